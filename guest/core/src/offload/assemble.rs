//! Reduces a message list under a model's window.
//!
//! The list is read once from the oldest message to the newest, as if each turn had been assembled
//! in its time: what an earlier turn replaced stays replaced in the same bytes, so that a prompt
//! cache keeps its prefix, and the work is linear. Two marks move forward only:
//!
//! ```text
//! 0 ........... fold ............... brief ................ tail ........ end
//!   user words    results and long     whole, waiting for     whole: the
//!   only, calls   arguments are        the next step          newest work
//!   on the canvas placeholders
//! ```
//!
//! `brief` jumps to `tail` when what it would save has grown to a step; `fold` jumps when the part in
//! placeholders has grown too large. Pressure of the window (mild, aggressive, emergency) moves them
//! earlier and further. Each move makes the list smaller or leaves it, and there are at most as many
//! moves as groups: it ends. The canvas stands at `brief`, where the bytes change anyway.

mod brief;
mod context;
mod fold;
mod gauge;
mod groups;

pub use brief::{ARGUMENT_MIN_CHARS, Measured, NeededRef, PLACEHOLDER_HEAD, RefKind};
pub use context::{CONTEXT_HEAD, CONTEXT_TOKENS_MIN, Language, Story, context, context_tokens};
pub use fold::{Mode, Plan, plan};
pub use gauge::{Gauge, NoList};
pub use groups::{Group, GroupKind, groups};

use super::ledger::{Entry, Ledger};
use super::message_shape::{Shape, user_message, view};
use brief::{Brief, tokens_of};
use std::rc::Rc;

/// How far a list may grow, and when what is old gets replaced.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The model's context window, in tokens.
    pub window_tokens: u64,
    /// Tokens of what is not in the list.
    pub overhead_tokens: u64,
    /// Shares of the window (the reference's defaults).
    pub mild_ratio: f64,
    /// the head is folded away from here,
    pub aggressive_ratio: f64,
    /// even the newest turns give way from here,
    pub emergency_ratio: f64,
    /// down to here.
    pub emergency_target_ratio: f64,
    /// Share of the window that canvases may take.
    pub canvas_ratio: f64,
    /// The newest messages of this many tokens stay whole.
    pub tail_tokens: u64,
    /// Old results are replaced once that saves this many tokens.
    pub step_tokens: u64,
    /// The part in placeholders is folded onto the canvas when it exceeds `fold_tokens`, down to
    /// `fold_target_tokens`.
    pub fold_tokens: u64,
    /// Where such a fold stops.
    pub fold_target_tokens: u64,
}

impl Policy {
    /// Returns the defaults for a window. The absolute sizes were chosen by measuring; see
    /// `docs/offload.md`.
    pub fn for_window(window_tokens: u64, overhead_tokens: u64) -> Self {
        let share = |ratio: f64| (window_tokens as f64 * ratio) as u64;
        Self {
            window_tokens,
            overhead_tokens,
            mild_ratio: 0.5,
            aggressive_ratio: 0.85,
            emergency_ratio: 0.95,
            emergency_target_ratio: 0.6,
            canvas_ratio: 0.2,
            tail_tokens: 5_000.min(share(0.07)),
            step_tokens: 3_000.min(share(0.036)),
            fold_tokens: 28_000.min(share(0.22)),
            fold_target_tokens: 18_000.min(share(0.11)),
        }
    }

    /// Returns `ratio` of the window in tokens.
    pub fn share(&self, ratio: f64) -> u64 {
        (self.window_tokens as f64 * ratio) as u64
    }
}

/// A reduced list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduced {
    /// The messages as JSON texts, in order.
    pub messages: Vec<String>,
    /// Estimated tokens of the list as it came.
    pub tokens_before: u64,
    /// Estimated tokens of the list as it goes.
    pub tokens_after: u64,
    /// How hard it was pressed.
    pub mode: Mode,
    /// Why the list is still over its budget; empty if it is not.
    pub reason: String,
    /// Texts that must be durable before the list is used.
    pub needs: Vec<Rc<NeededRef>>,
}

/// Returns `messages` reduced under `policy`. `freeze` gives the context text for the entries that it is shown, in less than
/// so many tokens (of a whole message, at least [`CONTEXT_TOKENS_MIN`]), so that a caller can keep what it gave before. A
/// list that is reduced already comes back as it is.
///
/// Folded calls stand on the context message. As long as all that was saved would not pay for the smallest one, there is
/// none, and calls stay in their short forms. What was saved only grows with the list, so nothing folded comes back.
pub fn assemble(messages: &[Rc<Measured>], ledger: &Ledger, policy: &Policy, freeze: &mut dyn FnMut(&[Entry], u64) -> String) -> Reduced {
    let (mut reduced, mut is_short_of_a_fold) = reduce(messages, ledger, policy, freeze);
    // Where a fold under pressure was not worth its context message, what was written instead may press harder than what
    // was planned: it is reduced as a list that is sent again would be.
    for _ in 0..ROUNDS_MAX {
        if !is_short_of_a_fold || reduced.mode <= Mode::Mild {
            break;
        }
        let mut gauge = Gauge::default();
        let Some(written) = reduced.messages.iter().map(|message| gauge.measure(message)).collect::<Option<Vec<_>>>() else { break };
        let (again, goes_on) = reduce(&written, ledger, policy, freeze);
        if again.tokens_after >= reduced.tokens_after {
            break;
        }
        let mut needs = reduced.needs;
        needs.extend(again.needs.into_iter().filter(|need| !needs.contains(need)).collect::<Vec<_>>());
        reduced = Reduced { tokens_before: reduced.tokens_before, needs, ..again };
        is_short_of_a_fold = goes_on;
    }
    reduced
}

/// Reduces once; says also whether something was shortened that the plan had folded.
fn reduce(messages: &[Rc<Measured>], ledger: &Ledger, policy: &Policy, freeze: &mut dyn FnMut(&[Entry], u64) -> String) -> (Reduced, bool) {
    let told: Vec<Rc<Measured>> = messages.iter().filter(|message| !is_context(message)).cloned().collect();
    let earlier = messages.iter().rev().find(|message| is_context(message));
    let canvas_tokens = policy.share(policy.canvas_ratio).min(CONTEXT_TOKENS_MAX);
    let plan = plan(&told, ledger, policy, canvas_tokens);
    let tokens_before: u64 = messages.iter().map(|message| message.tokens).sum();
    let mut out = Output::write(&told, &plan, ledger, true);
    let room = tokens_before.saturating_sub(out.tokens);
    let text = match out.covered {
        Some(covered) if room > CONTEXT_TOKENS_MIN => freeze(&ledger.entries()[..=covered as usize], room),
        _ => String::new(),
    };
    let is_short_of_a_fold = text.is_empty() && out.covered.is_some();
    if !text.is_empty() {
        out.put_context(&text);
    } else {
        if is_short_of_a_fold {
            out = Output::write(&told, &plan, ledger, false);
        }
        if let Some(earlier) = earlier {
            out.messages.insert(out.context_at, earlier.json.clone());
            out.tokens += earlier.tokens;
        }
    }
    if !out.changed {
        return (untouched(messages, policy), false);
    }
    let over = out.tokens + policy.overhead_tokens > policy.window_tokens;
    let reduced = Reduced {
        messages: out.messages,
        tokens_before,
        tokens_after: out.tokens,
        mode: plan.mode,
        reason: if over { OVER_WORDS.to_owned() } else { String::new() },
        needs: out.needs,
    };
    (reduced, is_short_of_a_fold)
}

/// The list as it is written.
struct Output {
    messages: Vec<String>,
    tokens: u64,
    needs: Vec<Rc<NeededRef>>,
    /// Something was shortened or folded.
    changed: bool,
    /// Where the context message goes: behind what was shortened or folded.
    context_at: usize,
    /// The newest entry before it.
    covered: Option<u32>,
    /// The dialect of the messages before it.
    shape: Shape,
}

impl Output {
    /// Writes the list without a context message. Turns before the fold mark are left out; if `folds_entries` is unset, only
    /// those that hold no entry, which no context would tell of.
    fn write(told: &[Rc<Measured>], plan: &Plan, ledger: &Ledger, folds_entries: bool) -> Self {
        let mut out = Self {
            messages: Vec::with_capacity(told.len() + 1),
            tokens: 0,
            needs: Vec::new(),
            changed: false,
            context_at: 0,
            covered: None,
            shape: Shape::OpenAiChat,
        };
        for (at, group) in plan.groups.iter().enumerate() {
            if at == plan.brief {
                out.context_at = out.messages.len();
            }
            let members = &told[group.first..=group.last];
            if at >= plan.brief {
                members.iter().for_each(|message| out.push(message, None));
                continue;
            }
            out.shape = members.iter().map(|message| message.view.shape).fold(out.shape, Shape::max);
            if group.kind == GroupKind::Kept {
                members.iter().for_each(|message| out.push(message, None));
                continue;
            }
            let newest = members.iter().filter_map(|message| newest_entry(message, ledger)).max();
            out.covered = out.covered.max(newest);
            let is_folded = at < plan.fold;
            for message in members {
                match group.kind {
                    GroupKind::Turn if is_folded && (folds_entries || newest.is_none()) => out.fold(message, ledger),
                    GroupKind::Said if is_folded => out.push(message, message.said().or_else(|| message.brief(ledger))),
                    _ => out.push(message, message.brief(ledger)),
                }
            }
        }
        if plan.brief == plan.groups.len() {
            out.context_at = out.messages.len();
        }
        out
    }

    fn push(&mut self, message: &Measured, short: Option<Rc<Brief>>) {
        match short {
            Some(short) => {
                self.messages.push(short.json.clone());
                self.tokens += short.tokens;
                self.needs.extend(short.needs.iter().cloned());
                self.changed = true;
            }
            None => {
                self.messages.push(message.json.clone());
                self.tokens += message.tokens;
            }
        }
    }

    /// Leaves a message out. What it held stays within reach.
    fn fold(&mut self, message: &Measured, ledger: &Ledger) {
        if let Some(brief) = message.brief(ledger) {
            self.needs.extend(brief.needs.iter().cloned());
        }
        self.needs.extend(message.folded_needs());
        self.changed = true;
    }

    fn put_context(&mut self, text: &str) {
        let message = user_message(self.shape, text, None);
        self.tokens += tokens_of(&view(&message));
        self.messages.insert(self.context_at, message.to_string());
    }
}

/// Returns the ordinal of the newest entry among a message's results, whole or replaced.
fn newest_entry(message: &Measured, ledger: &Ledger) -> Option<u32> {
    let entries = message.view.results.iter().zip(&message.prints).filter_map(|(result, print)| match result.text.strip_prefix(PLACEHOLDER_HEAD) {
        Some(rest) => ledger.find_ref(&result.call_id, rest.split_once(" | ref: ")?.1.split(']').next()?),
        None => ledger.find(&result.call_id, result.text.len() as u64, *print),
    });
    entries.map(|entry| entry.ordinal).max()
}

/// Times that a list is reduced again where a fold was not worth its context message; each makes it smaller.
const ROUNDS_MAX: usize = 3;

/// Room kept for the context message: a canvas of 4,000 characters, names, and how to read them.
const CONTEXT_TOKENS_MAX: u64 = 2_200;
const OVER_WORDS: &str = "what may not be removed (words of the user and the system, unpaired or unknown messages, the newest turn) is larger than the window";

/// Returns `messages` as they are.
pub fn untouched(messages: &[Rc<Measured>], policy: &Policy) -> Reduced {
    let tokens: u64 = messages.iter().map(|message| message.tokens).sum();
    let over = tokens + policy.overhead_tokens > policy.window_tokens;
    Reduced {
        messages: messages.iter().map(|message| message.json.clone()).collect(),
        tokens_before: tokens,
        tokens_after: tokens,
        mode: Mode::None,
        reason: if over { OVER_WORDS.to_owned() } else { String::new() },
        needs: Vec::new(),
    }
}

/// Returns whether a message is the one that an earlier call put in.
pub fn is_context(message: &Measured) -> bool {
    message.view.text.starts_with(CONTEXT_HEAD)
}
