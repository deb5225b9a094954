//! Runs a recorded session through short-term memory, turn by turn, and measures what a model would have read.
//!
//! A turn is one answer of the model: before it, the model reads all messages so far. `tokens before` is that list as
//! recorded, `tokens after` the list that `assemble` gives; both by the engine's estimate.

pub(crate) mod page;
pub(crate) mod recording;

use anyhow::{Context, Result, bail};
use recording::{Recorded, Speaker};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use strata_host::Space;
use strata_host::contract::{AssembleRequest, Instant, Invocation, PromptEvent, Scope, ToolEvent};

/// The time of the first message; a replay has no other clock, so that it gives the same bytes every time.
const START: Instant = 1_780_000_000_000;
/// Milliseconds between messages.
const STEP_MS: Instant = 1_000;
/// Characters asked of `ref_read` at once.
const PIECE_CHARS: usize = 12_000;
/// Canvases that are asked for at most.
const TASKS_MAX: u32 = 999;

/// What a turn read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Turn {
    /// Messages before the answer.
    pub(crate) messages: usize,
    /// Tokens of the list as recorded.
    pub(crate) before: u64,
    /// Tokens of the list as reduced.
    pub(crate) after: u64,
    /// `none`, `mild`, `aggressive`, `emergency`.
    pub(crate) mode: String,
    /// Share of the previous turn's bytes that this turn's list begins with.
    pub(crate) prefix: f64,
    /// Why the list is over its budget, if it is.
    pub(crate) reason: String,
}

/// A canvas at the end of the session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Canvas {
    /// The goal.
    pub(crate) goal: String,
    /// Mermaid text.
    pub(crate) mermaid: String,
    /// `canvas_read`'s nodes.
    pub(crate) nodes: Vec<Value>,
}

/// An offloaded result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Offloaded {
    /// The tool.
    pub(crate) tool: String,
    /// Path of the stored text.
    pub(crate) path: String,
    /// Bytes of the result.
    pub(crate) bytes: usize,
    /// `ref_read` gave the exact bytes back.
    pub(crate) exact: bool,
}

/// What a replay found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Report {
    /// The window, in tokens.
    pub(crate) window: u32,
    /// The turns, in order.
    pub(crate) turns: Vec<Turn>,
    /// Results that were stored, one a call.
    pub(crate) offloaded: Vec<Offloaded>,
    /// Canvases by task.
    pub(crate) canvases: Vec<Canvas>,
    /// The last list that a model would read.
    pub(crate) last_list: String,
}

impl Report {
    /// Tokens over all turns as recorded.
    pub(crate) fn before(&self) -> u64 {
        self.turns.iter().map(|turn| turn.before).sum()
    }

    /// The same where a list that does not fit the window is cut to it, as a host without memory must.
    pub(crate) fn before_capped(&self) -> u64 {
        self.turns.iter().map(|turn| turn.before.min(u64::from(self.window))).sum()
    }

    /// Tokens over all turns as reduced.
    pub(crate) fn after(&self) -> u64 {
        self.turns.iter().map(|turn| turn.after).sum()
    }

    /// Share of the offloaded bytes that came back exactly, 0 to 1.
    pub(crate) fn recovered(&self) -> f64 {
        let all: usize = self.offloaded.iter().map(|text| text.bytes).sum();
        let exact: usize = self.offloaded.iter().filter(|text| text.exact).map(|text| text.bytes).sum();
        if all == 0 { 1.0 } else { exact as f64 / all as f64 }
    }

    /// The median over the turns of the share of the previous list's bytes that stayed.
    pub(crate) fn prefix_median(&self) -> f64 {
        let mut shares: Vec<f64> = self.turns.iter().skip(1).map(|turn| turn.prefix).collect();
        shares.sort_by(f64::total_cmp);
        shares.get(shares.len() / 2).copied().unwrap_or(1.0)
    }

    /// Returns the document for programs.
    pub(crate) fn document(&self) -> Value {
        let turns: Vec<Value> = self
            .turns
            .iter()
            .map(|turn| json!({"messages": turn.messages, "tokens_before": turn.before, "tokens_after": turn.after, "mode": turn.mode, "prefix_kept": turn.prefix, "reason": turn.reason}))
            .collect();
        let canvases: Vec<Value> = self.canvases.iter().map(|canvas| json!({"goal": canvas.goal, "mermaid": canvas.mermaid, "nodes": canvas.nodes})).collect();
        let offloaded: Vec<Value> =
            self.offloaded.iter().map(|text| json!({"tool": text.tool, "ref": text.path, "bytes": text.bytes, "exact": text.exact})).collect();
        let bytes: usize = self.offloaded.iter().map(|text| text.bytes).sum();
        // A recording without a turn has no list.
        let last_list = serde_json::from_str::<Value>(&self.last_list).unwrap_or_default();
        json!({
            "window": self.window,
            "tokens_before": self.before(),
            "tokens_before_capped": self.before_capped(),
            "tokens_after": self.after(),
            "recovered": self.recovered(),
            "offloaded_results": self.offloaded.len(),
            "offloaded_bytes": bytes,
            "prefix_kept_median": self.prefix_median(),
            "turns": turns,
            "canvases": canvases,
            "offloaded": offloaded,
            "last_list": last_list,
        })
    }
}

/// Replays `messages` in `space` as the conversation `scope`.
pub(crate) fn replay(space: &Space, scope: &Scope, messages: &[Recorded], window: u32, progress: &mut dyn FnMut(usize)) -> Result<Report> {
    let mut report = Report { window, turns: Vec::new(), offloaded: Vec::new(), canvases: Vec::new(), last_list: String::new() };
    let mut calls: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    let mut contents: Vec<&str> = Vec::new();
    let mut list = String::from("[");
    for (at, message) in messages.iter().enumerate() {
        let now = START + at as Instant * STEP_MS;
        progress(at);
        if message.role == Speaker::Assistant && !message.continues && at > 0 {
            let request =
                AssembleRequest { scope: scope.clone(), messages_json: format!("{list}]"), window_tokens: window, at: now, ..AssembleRequest::default() };
            let reduced = space.assemble(request)?;
            let previous = report.last_list.trim_end_matches(']').as_bytes();
            let common = previous.iter().zip(reduced.messages_json.as_bytes()).take_while(|(a, b)| a == b).count();
            report.turns.push(Turn {
                messages: at,
                before: u64::from(reduced.tokens_before),
                after: u64::from(reduced.tokens_after),
                mode: reduced.mode,
                prefix: if previous.is_empty() { 1.0 } else { common as f64 / previous.len() as f64 },
                reason: reduced.reason,
            });
            report.last_list = reduced.messages_json;
        }
        if message.role == Speaker::User && !message.text.is_empty() {
            space.before_prompt_build(PromptEvent { scope: scope.clone(), prompt: message.text.clone(), at: now, ..PromptEvent::default() })?;
        }
        for (id, tool, arguments) in &message.calls {
            calls.insert(id, (tool, arguments));
        }
        for (id, output, failed) in &message.results {
            let Some((tool, arguments)) = calls.get(id.as_str()) else { continue };
            let receipt = space.after_tool_call(ToolEvent {
                scope: scope.clone(),
                tool_call_id: id.clone(),
                tool_name: (*tool).to_owned(),
                arguments_json: (*arguments).to_owned(),
                output: output.clone(),
                is_error: *failed,
                duration_ms: None,
                at: now,
            })?;
            if receipt.filtered.is_empty() && !receipt.duplicate {
                report.offloaded.push(Offloaded { tool: (*tool).to_owned(), path: receipt.result_ref, bytes: output.len(), exact: false });
                contents.push(output);
            }
        }
        if list.len() > 1 {
            list.push(',');
        }
        list.push_str(&message.message.to_string());
    }
    let end = START + messages.len() as Instant * STEP_MS;
    for (text, content) in report.offloaded.iter_mut().zip(contents) {
        text.exact = read_whole(space, scope, &text.path, end)? == content;
    }
    for task in 1..=TASKS_MAX {
        let answer = call(space, scope, "canvas_read", &json!({"task": task}), end)?;
        let Some((text, document)) = answer else { break };
        let nodes = document["nodes"].as_array().cloned().unwrap_or_default();
        let mermaid = text.rsplit_once("\ntasks: ").map_or(text.as_str(), |(drawing, _)| drawing).to_owned();
        report.canvases.push(Canvas { goal: document["goal"].as_str().unwrap_or_default().to_owned(), mermaid, nodes });
    }
    Ok(report)
}

/// Reads an offloaded text through the tool that a model has.
fn read_whole(space: &Space, scope: &Scope, path: &str, at: Instant) -> Result<String> {
    let mut whole = String::new();
    let mut from = 0;
    loop {
        let arguments = json!({"ref": path, "from_char": from, "chars": PIECE_CHARS});
        let Some((_, document)) = call(space, scope, "ref_read", &arguments, at)? else { bail!("{path} cannot be read") };
        let piece = document["text"].as_str().context("ref_read answers a text")?;
        let chars = piece.chars().count();
        whole.push_str(piece);
        from += chars;
        if chars < PIECE_CHARS {
            return Ok(whole);
        }
    }
}

/// Calls a tool; returns its text and document, or nothing where it refused.
fn call(space: &Space, scope: &Scope, name: &str, arguments: &Value, at: Instant) -> Result<Option<(String, Value)>> {
    let invocation = Invocation { scope: scope.clone(), name: name.to_owned(), arguments_json: arguments.to_string(), at, ..Invocation::default() };
    let answer = space.call_tool(invocation)?;
    if answer.is_error {
        return Ok(None);
    }
    Ok(Some((answer.text, serde_json::from_str(&answer.structured_json).context("a tool's document is JSON")?)))
}
