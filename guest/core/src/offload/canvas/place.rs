//! Which node a call belongs to.

use super::Task;
use crate::offload::boundary::{Boundary, STEERING_MAX_CHARS, TaskTraits, judge, mentions, words};
use crate::offload::ledger::{Entry, fingerprint};
use crate::offload::summary::command::{Intent, one_line, shorten};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A node takes at most this many calls; a longer run goes on in the next node.
const NODE_MAX_CALLS: usize = 24;
/// So many calls of exploring in a row are an exploration of their own and not a look aside.
const EXPLORE_RUN: usize = 4;
/// A working node whose check passed is a turning point once it has so many calls.
const TURNING_CALLS: usize = 6;
/// The goal of a task that began with a call.
const NO_GOAL: &str = "(no goal was stated)";
/// Goals are kept to this many characters.
const GOAL_MAX_CHARS: usize = 160;
/// Names kept a task to tell it from others.
const TOUCHED_MAX: usize = 400;
/// Of so many of the newest tasks: the board is a row that every call writes, and its size must not grow with the session.
const TOLD_APART_TASKS: u32 = 24;

/// The phase a node is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    Explore,
    Work,
    Operate,
}

/// The last calls of the open node, as far as placement looks at them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Open {
    task: u32,
    node: u32,
    phase: Phase,
    calls: usize,
    explored_in_row: usize,
    check_passed: bool,
    recorded: bool,
    turn: u32,
}

/// The tasks of a session and where the next call goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Board {
    /// All tasks, oldest first.
    pub tasks: Vec<Task>,
    /// The running task's number; 0 before the first.
    pub current: u32,
    open: Option<Open>,
    /// Nodes given out a task.
    nodes: BTreeMap<u32, u32>,
    traits: BTreeMap<u32, (usize, std::collections::BTreeSet<String>)>,
    turn: u32,
    last_turn_print: u64,
    last_at_ms: i64,
}

/// Where a call was put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// `001-N1`.
    pub node_id: String,
    /// The call opened the node.
    pub opened: bool,
}

impl Board {
    /// Takes a user's message in. The same message twice in a row counts once. Returns whether it
    /// was a boundary.
    pub fn user_turn(&mut self, text: &str, at_ms: i64) -> bool {
        let text = words(text);
        let print = fingerprint(text);
        if print == self.last_turn_print || text.is_empty() {
            return false;
        }
        self.last_turn_print = print;
        self.turn += 1;
        let boundary = if self.current == 0 {
            Boundary::New
        } else {
            let current = self.traits_of(self.current);
            let past: Vec<TaskTraits> = self.tasks.iter().filter(|task| task.number != self.current).map(|task| self.traits_of(task.number)).collect();
            judge(text, at_ms.saturating_sub(self.last_at_ms), &current, &past)
        };
        self.last_at_ms = at_ms;
        self.apply(&boundary, text, at_ms);
        let number = self.current;
        let calls = self.traits.get(&number).map_or(0, |(calls, _)| *calls);
        let goal = self.tasks.iter().find(|task| task.number == number).map_or("", |task| task.goal.as_str());
        // A document that a harness puts first (`# AGENTS.md …`) is not the goal; what follows it before any call is.
        let is_document = goal.starts_with('#') && calls == 0 && text.chars().count() >= STEERING_MAX_CHARS;
        if goal == NO_GOAL || is_document {
            self.rename_current(text);
        }
        for name in mentions(text) {
            self.touch(number, name);
        }
        boundary != Boundary::Same
    }

    /// Applies a boundary, whoever found it.
    pub fn apply(&mut self, boundary: &Boundary, text: &str, at_ms: i64) {
        match boundary {
            Boundary::Same => {}
            Boundary::New => {
                let number = self.tasks.last().map_or(1, |task| task.number + 1);
                self.tasks.push(Task { number, goal: shorten(&one_line(text), GOAL_MAX_CHARS), created_ms: at_ms });
                self.current = number;
                self.open = None;
                if let Some((_, touched)) = number.checked_sub(TOLD_APART_TASKS).and_then(|old| self.traits.get_mut(&old)) {
                    touched.clear();
                }
            }
            Boundary::Return(number) => {
                if self.tasks.iter().any(|task| task.number == *number) {
                    self.current = *number;
                    self.open = None;
                }
            }
        }
    }

    /// Puts the call of `entry` on the canvas. The entry's `node_id` is not read.
    pub fn place(&mut self, entry: &Entry, at_ms: i64) -> Placed {
        if self.current == 0 {
            self.apply(&Boundary::New, NO_GOAL, at_ms);
        }
        self.last_at_ms = at_ms;
        let number = self.current;
        if let Some(target) = &entry.target {
            self.touch(number, target.rsplit('/').next().unwrap_or(target).to_owned());
        }
        self.traits.entry(number).or_default().0 += 1;
        let turn = self.turn;
        let phase = match entry.intent {
            Intent::Explore | Intent::Plan => Phase::Explore,
            Intent::Change | Intent::Verify | Intent::Record => Phase::Work,
            Intent::Operate => Phase::Operate,
        };
        let opened = match &self.open {
            Some(open) if open.task == number => opens(open, phase, entry, turn),
            _ => true,
        };
        if opened {
            let node = self.nodes.entry(number).or_insert(0);
            *node += 1;
            self.open = Some(Open { task: number, node: *node, phase, calls: 0, explored_in_row: 0, check_passed: false, recorded: false, turn });
        }
        let open = self.open.as_mut().expect("a node is open: it was, or it was opened above");
        open.calls += 1;
        open.turn = turn;
        open.explored_in_row = if entry.intent == Intent::Explore { open.explored_in_row + 1 } else { 0 };
        match entry.intent {
            Intent::Verify => open.check_passed = !entry.failed,
            Intent::Change => open.check_passed = false,
            Intent::Record => open.recorded = true,
            _ => {}
        }
        Placed { node_id: format!("{:03}-N{}", open.task, open.node), opened }
    }

    /// Says the goal of the running task better. Empty words change nothing.
    pub fn rename_current(&mut self, goal: &str) {
        let current = self.current;
        if let Some(task) = self.tasks.iter_mut().find(|task| task.number == current && !goal.trim().is_empty()) {
            task.goal = shorten(&one_line(goal), GOAL_MAX_CHARS);
        }
    }

    /// Returns the id of a new node of the running task, for calls that move there.
    pub fn fresh_node(&mut self) -> String {
        let node = self.nodes.entry(self.current).or_insert(0);
        *node += 1;
        self.open = None;
        format!("{:03}-N{node}", self.current)
    }

    fn traits_of(&self, number: u32) -> TaskTraits {
        let (calls, touched) = self.traits.get(&number).cloned().unwrap_or_default();
        TaskTraits { number, calls, touched }
    }

    fn touch(&mut self, number: u32, name: String) {
        let touched = &mut self.traits.entry(number).or_default().1;
        if touched.len() < TOUCHED_MAX && name.len() >= 4 {
            touched.insert(name);
        }
    }
}

fn opens(open: &Open, phase: Phase, entry: &Entry, turn: u32) -> bool {
    if entry.intent == Intent::Plan {
        return open.calls >= NODE_MAX_CALLS;
    }
    if open.calls >= NODE_MAX_CALLS || (turn != open.turn && open.calls >= 3) {
        return true;
    }
    match (open.phase, phase) {
        (Phase::Work, Phase::Explore) => open.recorded || open.explored_in_row + 1 >= EXPLORE_RUN,
        (Phase::Work, Phase::Work) => {
            let change = entry.intent == Intent::Change;
            change && (open.recorded || (open.check_passed && open.calls >= TURNING_CALLS))
        }
        (Phase::Explore, Phase::Work) => true,
        (Phase::Operate, Phase::Explore) | (Phase::Explore, Phase::Operate) => false,
        (Phase::Operate, Phase::Work) | (Phase::Work, Phase::Operate) => open.calls >= 3,
        _ => false,
    }
}
