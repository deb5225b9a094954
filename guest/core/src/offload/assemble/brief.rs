//! A message in its short form: placeholders for results, heads of long arguments.

use crate::offload::ledger::{Ledger, fingerprint};
use crate::offload::message_shape::{MessageView, Role, view, with_arguments, with_result_text, with_text, without_reasoning};
use crate::offload::refs::ref_path;
use crate::offload::summary::command::{one_line, shorten};
use crate::offload::summary::names::{clip, names};
use crate::offload::token_estimate::{MESSAGE_OVERHEAD_TOKENS, estimate};
use serde_json::Value;
use std::cell::OnceCell;
use std::rc::Rc;

/// Results below this many tokens stay: a placeholder would cost as much.
const RESULT_MIN_TOKENS: u64 = 90;
/// String arguments of more characters than this are cut to a head in short forms.
pub const ARGUMENT_MIN_CHARS: usize = 320;
/// Characters of a long argument that stay.
const ARGUMENT_HEAD_CHARS: usize = 100;
/// Characters of names that stay of the rest of a long argument.
const ARGUMENT_NAMES_CHARS: usize = 120;
/// Reasoning below this many characters stays.
const REASONING_MIN_CHARS: usize = 200;
/// Words of an assistant beyond this many characters are cut when their turn is folded away.
const SAID_MAX_CHARS: usize = 280;
/// A short form must save at least this share of the tokens, in hundredths.
const WORTH_PERCENT: u64 = 75;
/// Arguments are looked into so deep.
const ARGUMENT_DEPTH_MAX: u8 = 6;

/// What kind of text a ref holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefKind {
    /// A tool result.
    Result,
    /// Long arguments of a call.
    Arguments,
    /// Hidden reasoning.
    Reasoning,
    /// Words of an assistant.
    Said,
}

/// A stored text that a short form points to. It must be durable before the form is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeededRef {
    /// Path of the stored text.
    pub path: String,
    /// What it is.
    pub kind: RefKind,
    /// The call, if there is one.
    pub call_id: String,
    /// The text itself.
    pub content: String,
}

/// A short form of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brief {
    /// The message as JSON text.
    pub json: String,
    /// Estimated tokens.
    pub tokens: u64,
    /// Texts that it points at.
    pub needs: Vec<Rc<NeededRef>>,
}

/// A message with everything that assembling asks of it.
#[derive(Debug)]
pub struct Measured {
    /// The message as JSON text.
    pub json: String,
    /// The same, parsed.
    pub value: Value,
    /// What it holds.
    pub view: MessageView,
    /// Estimated tokens.
    pub tokens: u64,
    /// Fingerprints of the results, in their order.
    pub prints: Vec<u64>,
    /// Estimated tokens of the results, in their order.
    costs: Vec<u64>,
    folded: OnceCell<Option<Rc<NeededRef>>>,
    brief: OnceCell<Option<Rc<Brief>>>,
    said: OnceCell<Option<Rc<Brief>>>,
}

impl Measured {
    /// Measures a message given as JSON text; `None` if it is not JSON.
    pub(super) fn new(json: String) -> Option<Self> {
        let value: Value = serde_json::from_str(&json).ok()?;
        let view = view(&value);
        let costs: Vec<u64> = view.results.iter().map(|result| estimate(&result.text)).collect();
        let tokens = tokens_beside_results(&view) + costs.iter().sum::<u64>();
        let prints = view.results.iter().map(|result| fingerprint(&result.text)).collect();
        Some(Self { json, value, view, tokens, prints, costs, folded: OnceCell::new(), brief: OnceCell::new(), said: OnceCell::new() })
    }

    /// Returns the short form, or `None` when the message is short enough or cannot be shortened.
    pub fn brief(&self, ledger: &Ledger) -> Option<Rc<Brief>> {
        self.brief.get_or_init(|| self.make_brief(ledger).map(Rc::new)).clone()
    }

    /// Returns the form of an assistant's words whose turn was folded away.
    pub fn said(&self) -> Option<Rc<Brief>> {
        self.said
            .get_or_init(|| {
                if self.view.text.chars().count() <= SAID_MAX_CHARS + 80 {
                    return None;
                }
                let path = ref_path(&self.view.text);
                let text = format!("{} [shortened | ref: {path}]", shorten(&self.view.text, SAID_MAX_CHARS));
                let mut value = with_text(&self.value, &text)?;
                let mut needs = vec![Rc::new(NeededRef { path, kind: RefKind::Said, call_id: String::new(), content: self.view.text.clone() })];
                if let Some(bare) = self.bare(&value, &mut needs) {
                    value = bare;
                }
                let said = Brief::of(&value, needs);
                (said.tokens < self.tokens).then(|| Rc::new(said))
            })
            .clone()
    }

    /// Returns what is lost from sight when the message goes with its turn: its words.
    pub fn folded_needs(&self) -> Option<Rc<NeededRef>> {
        let make = || NeededRef { path: ref_path(&self.view.text), kind: RefKind::Said, call_id: String::new(), content: self.view.text.clone() };
        self.folded.get_or_init(|| (!self.view.text.is_empty()).then(|| Rc::new(make()))).clone()
    }

    fn bare(&self, value: &Value, needs: &mut Vec<Rc<NeededRef>>) -> Option<Value> {
        if self.view.role != Role::Assistant || self.view.reasoning.len() < REASONING_MIN_CHARS {
            return None;
        }
        let bare = without_reasoning(value)?;
        let content = self.view.reasoning.clone();
        needs.push(Rc::new(NeededRef { path: ref_path(&content), kind: RefKind::Reasoning, call_id: String::new(), content }));
        Some(bare)
    }

    fn make_brief(&self, ledger: &Ledger) -> Option<Brief> {
        let mut value: Option<Value> = None;
        let mut needs = Vec::new();
        let results = self.view.results.iter().zip(&self.prints).zip(&self.costs);
        for ((result, print), &cost) in results.filter(|((result, _), _)| result.replaceable) {
            if cost < RESULT_MIN_TOKENS || result.text.starts_with(PLACEHOLDER_HEAD) {
                continue;
            }
            let Some(entry) = ledger.find(&result.call_id, result.text.len() as u64, *print) else { continue };
            let text = placeholder(&entry.placed_node, &entry.result_ref, entry.shown.as_ref().unwrap_or(&entry.summary), &entry.digest);
            if estimate(&text) * 100 > cost * WORTH_PERCENT {
                continue;
            }
            let current = value.as_ref().unwrap_or(&self.value);
            if let Some(changed) = with_result_text(current, &result.call_id, &text) {
                value = Some(changed);
                needs.push(Rc::new(NeededRef {
                    path: entry.result_ref.clone(),
                    kind: RefKind::Result,
                    call_id: result.call_id.clone(),
                    content: result.text.clone(),
                }));
            }
        }
        for call in &self.view.calls {
            if call.arguments.len() <= ARGUMENT_MIN_CHARS {
                continue;
            }
            let path = ref_path(&call.arguments);
            let Some(short) = brief_arguments(&call.arguments, &path) else { continue };
            let current = value.as_ref().unwrap_or(&self.value);
            if let Some(changed) = with_arguments(current, &call.id, &short) {
                value = Some(changed);
                needs.push(Rc::new(NeededRef { path, kind: RefKind::Arguments, call_id: call.id.clone(), content: call.arguments.clone() }));
            }
        }
        let bare = self.bare(value.as_ref().unwrap_or(&self.value), &mut needs);
        let brief = Brief::of(&bare.or(value)?, needs);
        (brief.tokens < self.tokens).then_some(brief)
    }
}

impl Brief {
    fn of(value: &Value, needs: Vec<Rc<NeededRef>>) -> Self {
        let tokens = tokens_of(&view(value));
        Self { json: value.to_string(), tokens, needs }
    }
}

/// Returns the tokens that a model reads for a message.
pub(super) fn tokens_of(view: &MessageView) -> u64 {
    tokens_beside_results(view) + view.results.iter().map(|result| estimate(&result.text)).sum::<u64>()
}

fn tokens_beside_results(view: &MessageView) -> u64 {
    let calls: u64 = view.calls.iter().map(|call| estimate(&call.arguments) + estimate(&call.name) + MESSAGE_OVERHEAD_TOKENS).sum();
    MESSAGE_OVERHEAD_TOKENS + estimate(&view.text) + estimate(&view.reasoning) + calls + view.opaque_chars as u64 / 4
}

/// How every placeholder begins.
pub const PLACEHOLDER_HEAD: &str = "[Offloaded Tool Result | node: ";

/// Returns the text that stands for a result.
fn placeholder(node_id: &str, result_ref: &str, summary: &str, digest: &str) -> String {
    let mut text = format!("{PLACEHOLDER_HEAD}{node_id} | ref: {result_ref}]\n{summary}");
    if !digest.is_empty() {
        text.push('\n');
        text.push_str(digest);
    }
    text
}

/// Returns `arguments` with long strings cut to their heads, or `None` if none is long or the text
/// is not a JSON object.
fn brief_arguments(arguments: &str, path: &str) -> Option<Value> {
    let mut value: Value = serde_json::from_str(arguments).ok()?;
    if !value.is_object() {
        return None;
    }
    cut_strings(&mut value, path, ARGUMENT_DEPTH_MAX).then_some(value)
}

fn cut_strings(value: &mut Value, path: &str, depth: u8) -> bool {
    match value {
        Value::String(text) if text.len() > ARGUMENT_MIN_CHARS => {
            let head = clip(text, ARGUMENT_HEAD_CHARS);
            let mut kept = String::new();
            let mut ranked = names(&text[head.len()..]);
            ranked.sort_by_key(|name| (std::cmp::Reverse(name.class), name.first_at));
            for name in ranked {
                if kept.len() + name.text.len() + 2 > ARGUMENT_NAMES_CHARS || head.contains(name.text) {
                    continue;
                }
                kept.push_str(name.text);
                kept.push_str(", ");
            }
            *text = format!("{} … [+{} chars offloaded | ref: {path}] {}", one_line(head), text.len() - head.len(), kept.trim_end_matches(", "));
            true
        }
        Value::Array(items) if depth > 0 => {
            let mut any = false;
            for item in items {
                any |= cut_strings(item, path, depth - 1);
            }
            any
        }
        Value::Object(fields) if depth > 0 => {
            let mut any = false;
            for item in fields.values_mut() {
                any |= cut_strings(item, path, depth - 1);
            }
            any
        }
        _ => false,
    }
}
