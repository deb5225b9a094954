//! The one message that stands for what was folded: canvas, earlier tasks, names in use.

use crate::offload::canvas::{CANVAS_MAX_CHARS, NodeNote, Task, draw};
use crate::offload::ledger::Entry;
use crate::offload::summary::command::shorten;
use std::collections::BTreeMap;

/// How the message begins; a list that holds it was assembled before.
pub const CONTEXT_HEAD: &str = "<current_task_context>";
const CONTEXT_TAIL: &str = "</current_task_context>";

/// The language of the few sentences that tell how to drill down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// English.
    English,
    /// Simplified Chinese.
    Chinese,
}

impl Language {
    /// Returns the language that `text` is mostly written in.
    pub fn of(text: &str) -> Self {
        let wide = text.chars().filter(|c| ('\u{4e00}'..='\u{9fff}').contains(c)).count();
        let letters = text.chars().filter(char::is_ascii_alphabetic).count();
        if wide * 3 > letters { Self::Chinese } else { Self::English }
    }
}

/// Names in use take at most this many characters.
const NAMES_MAX_CHARS: usize = 1_500;
/// Earlier tasks listed, newest first.
const PAST_TASKS_MAX: usize = 12;
/// Of the newest of them, so many show the stretches of their work,
const PAST_DRAWN_MAX: usize = 3;
/// if they have more calls than one page of `node_read` tells in full,
const PAST_DRAWN_CALLS: usize = 24;
/// folded to a drawing of so many characters,
const PAST_DRAWN_CHARS: usize = 1_100;
/// a line a node.
const PAST_LINE_CHARS: usize = 90;
/// A use so many calls ago counts half.
const NAME_HALF_LIFE_CALLS: u32 = 40;

/// What the context is made from.
#[derive(Clone, Copy, Debug)]
pub struct Story<'a> {
    /// All tasks.
    pub tasks: &'a [Task],
    /// The running task.
    pub current: u32,
    /// What a model said of nodes.
    pub notes: &'a BTreeMap<String, NodeNote>,
    /// The user's language.
    pub language: Language,
}

/// Returns the context for `entries` (the oldest of the session, up to the brief mark), in at most
/// `max_chars` characters.
pub fn context(story: Story<'_>, entries: &[Entry], max_chars: usize) -> String {
    let current = entries.last().and_then(Entry::task).unwrap_or(story.current);
    let how = match story.language {
        Language::English => {
            "Older tool results were moved out of this conversation; nothing is lost. `ref_read` with a ref (line range or grep) gives the exact bytes, without a ref it greps all of them; \
             `node_read` with a node id, a range as a folded node shows it, or a task number lists the calls with their refs (`grep` picks among them); `canvas_read` draws a task. \
             This is a record, not an instruction."
        }
        Language::Chinese => {
            "较早的工具结果已移出对话，内容没有丢失。用 `ref_read` 按 ref 读取原文（可指定行范围或 grep），不给 ref 时在全部结果中 grep；\
             用 `node_read` 按节点 id、折叠节点所示范围或任务号列出调用和 ref（可用 grep 筛选）；用 `canvas_read` 查看任务图。这是记录，不是指令。"
        }
    };
    let mut text = format!("{CONTEXT_HEAD}\n{how}\n");
    let canvas_room = CANVAS_MAX_CHARS.min(max_chars.saturating_sub(text.len() + CONTEXT_TAIL.len() + 200) * 7 / 10);
    text.push_str(&past_tasks(&story, current, entries, max_chars.saturating_sub(text.len() + canvas_room)));
    if let Some(task) = story.tasks.iter().find(|task| task.number == current) {
        let drawing = draw(task, entries, true, story.notes, canvas_room.max(200));
        text.push_str("```mermaid\n");
        text.push_str(&drawing.text);
        text.push_str("```\n");
    }
    let room = max_chars.saturating_sub(text.len() + CONTEXT_TAIL.len() + 20).min(NAMES_MAX_CHARS);
    let names = names_in_use(entries, room);
    if !names.is_empty() {
        text.push_str("in use: ");
        text.push_str(&names);
        text.push('\n');
    }
    text.push_str(CONTEXT_TAIL);
    text
}

/// Returns a line for each of the newest earlier tasks, and one for those before them. The large ones among the newest get
/// a line for each stretch of their work, as far as `room` characters allow: what was done there is then two calls away,
/// `node_read` of the stretch and `ref_read`.
fn past_tasks(story: &Story<'_>, current: u32, entries: &[Entry], room: usize) -> String {
    let mut calls: BTreeMap<u32, usize> = BTreeMap::new();
    for task in entries.iter().filter_map(Entry::task) {
        *calls.entry(task).or_default() += 1;
    }
    let past: Vec<&Task> = story.tasks.iter().filter(|task| task.number != current && calls.contains_key(&task.number)).collect();
    let mut text = String::new();
    for (at, task) in past.iter().rev().take(PAST_TASKS_MAX).enumerate() {
        text.push_str(&format!("task {:03}: {} ({} calls)\n", task.number, shorten(&task.goal, 90), calls[&task.number]));
        if at >= PAST_DRAWN_MAX || calls[&task.number] <= PAST_DRAWN_CALLS || text.len() + PAST_DRAWN_CHARS > room {
            continue;
        }
        for node in draw(task, entries, false, story.notes, PAST_DRAWN_CHARS).nodes {
            text.push_str(&format!("  {}: {}\n", node.id, shorten(&node.label, PAST_LINE_CHARS)));
        }
    }
    let older = &past[..past.len().saturating_sub(PAST_TASKS_MAX)];
    if let (Some(first), Some(last)) = (older.first(), older.last()) {
        let sum: usize = older.iter().map(|task| calls[&task.number]).sum();
        text.push_str(&format!("task {:03}..{:03}: earlier ones ({sum} calls)\n", first.number, last.number));
    }
    text
}

/// Returns the names that calls used, those used often and lately first.
fn names_in_use(entries: &[Entry], max_chars: usize) -> String {
    let newest = entries.last().map_or(0, |entry| entry.ordinal);
    let mut weights: BTreeMap<&str, (u64, u32)> = BTreeMap::new();
    for entry in entries {
        let age = (newest - entry.ordinal) / NAME_HALF_LIFE_CALLS;
        let weight = 1_000_u64 >> age.min(9);
        for name in &entry.names_used {
            let slot = weights.entry(name).or_default();
            slot.0 += weight.max(1);
            slot.1 = entry.ordinal;
        }
    }
    let mut ranked: Vec<(&str, u64, u32)> = weights.into_iter().map(|(name, (weight, last))| (name, weight, last)).collect();
    ranked.sort_by_key(|(name, weight, last)| (std::cmp::Reverse(*weight), std::cmp::Reverse(*last), *name));
    let mut text = String::new();
    for (name, _, _) in ranked {
        if text.len() + name.len() + 2 > max_chars || text.contains(name) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(name);
    }
    text
}
