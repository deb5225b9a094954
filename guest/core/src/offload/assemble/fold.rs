//! Where the marks stand at the end of the list, and why.

use super::Policy;
use super::brief::Measured;
use super::groups::{Group, GroupKind, groups};
use crate::offload::ledger::Ledger;
use std::rc::Rc;

/// How hard the list had to be pressed at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Not at all.
    None,
    /// Old results are placeholders.
    Mild,
    /// The head is folded onto the canvas.
    Aggressive,
    /// Only what must stay was left.
    Emergency,
}

impl Mode {
    /// Returns the contract's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Mild => "mild",
            Self::Aggressive => "aggressive",
            Self::Emergency => "emergency",
        }
    }
}

/// The marks as group indices, and the groups they are about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The groups of the list.
    pub groups: Vec<Group>,
    /// Groups before this one are folded onto the canvas.
    pub fold: usize,
    /// Groups from `fold` up to this one are in their short form.
    pub brief: usize,
    /// How hard it was pressed.
    pub mode: Mode,
    /// Estimated tokens, overhead and canvas room included.
    pub tokens: u64,
}

/// At least this many of the newest turns stay whole while nothing presses.
const TAIL_MIN_TURNS: usize = 2;
/// A step takes at least this many turns, so that most turns only append: a prompt cache then pays for
/// at most every third turn.
const STEP_MIN_TURNS: usize = 3;
/// Under mild pressure a step needs only this share of its usual saving, in hundredths.
const MILD_STEP_PERCENT: u64 = 25;
/// A head deletion goes down to this share of the aggressive threshold, in hundredths (the
/// reference's).
const AGGRESSIVE_TARGET_PERCENT: u64 = 85;

/// Returns where the marks stand after all of `messages`.
pub fn plan(messages: &[Rc<Measured>], ledger: &Ledger, policy: &Policy, canvas_tokens: u64) -> Plan {
    let groups = groups(messages);
    let mut marks = Marks { fold: 0, brief: 0, tail: 0, raw: 0, short: 0, gone: 0, pool: 0, pool_turns: 0, tail_tokens: 0, tail_turns: 0, mode: Mode::None };
    for end in 1..=groups.len() {
        let newest = &groups[end - 1];
        marks.raw += newest.tokens;
        marks.tail_tokens += newest.tokens;
        marks.tail_turns += usize::from(newest.kind == GroupKind::Turn);
        // A list that stops inside a turn would decide otherwise than the whole list does later.
        if newest.kind == GroupKind::Unpaired && end < groups.len() {
            continue;
        }
        marks.advance(&groups[..end], messages, ledger, policy, canvas_tokens);
    }
    let tokens = marks.total(policy, canvas_tokens);
    Plan { fold: marks.fold, brief: marks.brief, mode: marks.mode, tokens, groups }
}

struct Marks {
    fold: usize,
    brief: usize,
    tail: usize,
    raw: u64,
    short: u64,
    gone: u64,
    /// Tokens that short forms would save of the groups from `brief` to `tail`.
    pool: u64,
    /// Turns from `brief` to `tail` that have something to save.
    pool_turns: usize,
    tail_tokens: u64,
    tail_turns: usize,
    mode: Mode,
}

impl Marks {
    fn total(&self, policy: &Policy, canvas_tokens: u64) -> u64 {
        let canvas = if self.brief > 0 { canvas_tokens } else { 0 };
        policy.overhead_tokens + canvas + self.raw + self.short + self.gone
    }

    fn advance(&mut self, groups: &[Group], messages: &[Rc<Measured>], ledger: &Ledger, policy: &Policy, canvas_tokens: u64) {
        self.move_tail(groups, messages, ledger, policy.tail_tokens, TAIL_MIN_TURNS);
        self.mode = Mode::None;
        if self.pool >= policy.step_tokens && self.pool_turns >= STEP_MIN_TURNS {
            self.move_brief(groups, messages, ledger);
        }
        if self.short >= policy.fold_tokens {
            self.move_fold(groups, messages, ledger, |marks| marks.short <= policy.fold_target_tokens);
        }
        if self.brief > 0 {
            self.mode = Mode::Mild;
        }
        if self.total(policy, canvas_tokens) >= policy.share(policy.mild_ratio) && self.pool >= policy.step_tokens * MILD_STEP_PERCENT / 100 {
            self.move_brief(groups, messages, ledger);
            self.mode = Mode::Mild;
        }
        let aggressive = policy.share(policy.aggressive_ratio);
        if self.total(policy, canvas_tokens) >= aggressive {
            self.mode = Mode::Aggressive;
            let target = aggressive * AGGRESSIVE_TARGET_PERCENT / 100;
            self.move_brief(groups, messages, ledger);
            self.move_fold(groups, messages, ledger, |marks| marks.total(policy, canvas_tokens) <= target);
        }
        if self.total(policy, canvas_tokens) >= policy.share(policy.emergency_ratio) {
            self.mode = Mode::Emergency;
            let target = policy.share(policy.emergency_target_ratio);
            // Everything but the newest turn, then the newest turn too.
            for turns in [1, 0] {
                self.move_tail(groups, messages, ledger, 0, turns);
                self.move_brief(groups, messages, ledger);
                self.move_fold(groups, messages, ledger, |marks| marks.total(policy, canvas_tokens) <= target);
                if self.total(policy, canvas_tokens) <= target {
                    break;
                }
            }
        }
    }

    /// Moves the tail forward while what stays behind it still fills `tokens` and `turns`.
    fn move_tail(&mut self, groups: &[Group], messages: &[Rc<Measured>], ledger: &Ledger, tokens: u64, turns: usize) {
        while self.tail < groups.len() {
            let group = &groups[self.tail];
            let is_turn = usize::from(group.kind == GroupKind::Turn);
            if self.tail_tokens - group.tokens < tokens || self.tail_turns - is_turn < turns {
                break;
            }
            self.tail_tokens -= group.tokens;
            self.tail_turns -= is_turn;
            // What is short already counts for nothing, so that a reduced list is left alone.
            let gain = group.tokens - short_tokens(group, messages, ledger);
            self.pool += gain;
            self.pool_turns += if gain > 0 { is_turn } else { 0 };
            self.tail += 1;
        }
    }

    fn move_brief(&mut self, groups: &[Group], messages: &[Rc<Measured>], ledger: &Ledger) {
        while self.brief < self.tail {
            let group = &groups[self.brief];
            self.raw -= group.tokens;
            self.short += short_tokens(group, messages, ledger);
            self.brief += 1;
        }
        self.pool = 0;
        self.pool_turns = 0;
    }

    fn move_fold(&mut self, groups: &[Group], messages: &[Rc<Measured>], ledger: &Ledger, enough: impl Fn(&Self) -> bool) {
        while self.fold < self.brief && !enough(self) {
            let group = &groups[self.fold];
            self.short -= short_tokens(group, messages, ledger);
            self.gone += folded_tokens(group, messages, ledger);
            self.fold += 1;
        }
    }
}

fn short_tokens(group: &Group, messages: &[Rc<Measured>], ledger: &Ledger) -> u64 {
    if matches!(group.kind, GroupKind::Kept) {
        return group.tokens;
    }
    messages[group.first..=group.last].iter().map(|message| message.brief(ledger).map_or(message.tokens, |brief| brief.tokens)).sum()
}

/// Tokens of a folded group: turns vanish, words of the assistant are cut, all else stays.
fn folded_tokens(group: &Group, messages: &[Rc<Measured>], ledger: &Ledger) -> u64 {
    match group.kind {
        GroupKind::Turn => 0,
        GroupKind::Said => messages[group.first..=group.last]
            .iter()
            .map(|message| message.said().or_else(|| message.brief(ledger)).map_or(message.tokens, |short| short.tokens))
            .sum(),
        GroupKind::Unpaired => short_tokens(group, messages, ledger),
        GroupKind::Kept => group.tokens,
    }
}
