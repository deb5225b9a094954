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
pub use context::{CONTEXT_HEAD, Language, Story, context};
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
    /// The newest entry that the context message covers.
    pub covered: Option<u32>,
}

/// Returns `messages` reduced under `policy`. `freeze` gives the context text for the entries that it
/// is shown, so that a caller can keep what it gave before. A list that is reduced already comes back
/// as it is.
pub fn assemble(messages: &[Rc<Measured>], ledger: &Ledger, policy: &Policy, freeze: &mut dyn FnMut(&[Entry]) -> String) -> Reduced {
    let told: Vec<Rc<Measured>> = messages.iter().filter(|message| !is_context(message)).cloned().collect();
    let earlier = messages.iter().rev().find(|message| is_context(message));
    let canvas_tokens = policy.share(policy.canvas_ratio).min(CONTEXT_TOKENS_MAX);
    let plan = plan(&told, ledger, policy, canvas_tokens);
    let mut out = Output { messages: Vec::with_capacity(told.len()), tokens: 0, needs: Vec::new(), changed: false };
    let mut covered: Option<u32> = None;
    let mut shape = Shape::OpenAiChat;
    for (at, group) in plan.groups.iter().enumerate() {
        if at == plan.brief {
            out.push_context(ledger, covered, earlier, shape, freeze);
        }
        for message in &told[group.first..=group.last] {
            shape = shape.max(message.view.shape);
            if at >= plan.brief || group.kind == GroupKind::Kept {
                out.push(message, None);
                continue;
            }
            covered = covered.max(newest_entry(message, ledger));
            match (at < plan.fold, group.kind) {
                (true, GroupKind::Turn) => out.fold(message, ledger),
                (true, GroupKind::Said) => out.push(message, message.said().or_else(|| message.brief(ledger))),
                _ => out.push(message, message.brief(ledger)),
            }
        }
    }
    if plan.brief == plan.groups.len() {
        out.push_context(ledger, covered, earlier, shape, freeze);
    }
    let tokens_before: u64 = messages.iter().map(|message| message.tokens).sum();
    if !out.changed || out.tokens >= tokens_before {
        return untouched(messages, policy);
    }
    let over = out.tokens + policy.overhead_tokens > policy.window_tokens;
    Reduced {
        messages: out.messages,
        tokens_before,
        tokens_after: out.tokens,
        mode: plan.mode,
        reason: if over { OVER_WORDS.to_owned() } else { String::new() },
        needs: out.needs,
        covered,
    }
}

/// The list as it is written.
struct Output {
    messages: Vec<String>,
    tokens: u64,
    needs: Vec<Rc<NeededRef>>,
    /// Something was shortened or folded.
    changed: bool,
}

impl Output {
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

    fn push_context(
        &mut self,
        ledger: &Ledger,
        covered: Option<u32>,
        earlier: Option<&Rc<Measured>>,
        shape: Shape,
        freeze: &mut dyn FnMut(&[Entry]) -> String,
    ) {
        let text = covered.map_or(String::new(), |covered| freeze(&ledger.entries()[..=covered as usize]));
        if !text.is_empty() {
            let message = user_message(shape, &text, None);
            self.tokens += tokens_of(&view(&message));
            self.messages.push(message.to_string());
        } else if let Some(earlier) = earlier {
            self.push(earlier, None);
        }
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
        covered: None,
    }
}

/// Returns whether a message is the one that an earlier call put in.
pub fn is_context(message: &Measured) -> bool {
    message.view.text.starts_with(CONTEXT_HEAD)
}
