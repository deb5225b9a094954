//! Facts drawn from tool outputs, and a seeker who looks for each as an agent could: with what stands in its context
//! and the tools, and without having seen the outputs.

use crate::random_lists::Dice;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use strata_core::contract::{Invocation, Scope};
use strata_core::engine::Engine;
use strata_core::offload::message_shape::view;

/// Clues that a seeker tries on one fact.
const CLUES_MAX: usize = 8;
/// Words that anybody would grep for who looks for what went wrong.
const COMMON_CLUES: [&str; 3] = ["error", "fail", "warning"];

/// A tool output as it was stored.
#[derive(Clone, Debug)]
pub struct Output {
    /// Path of the stored text.
    pub path: String,
    /// The tool's arguments, as text.
    pub arguments: String,
    /// The whole text.
    pub text: String,
}

/// Something that an output says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// A number, a name, a path or an error line.
    pub text: String,
    /// The line that it stands in.
    pub line: String,
}

/// How a fact was found; the first that works, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// It stands in the list that the model reads.
    InContext,
    /// Behind a ref that the list names, on the first or the second page of `ref_read`.
    NamedRef,
    /// Behind a node that the list names: `node_read`, then the first page of `ref_read`.
    NamedNode,
    /// `ref_read` with a grep for a clue: a word of the call or of the line around it that the list holds, or `error`.
    Clue,
    /// `node_read` of a named node, then `ref_read`, with a grep for a clue in one of them.
    NodeAndClue,
    /// `ref_read` with a grep for the fact itself: presumes that the seeker knows it.
    Itself,
    /// Not in two calls.
    Lost,
}

/// Returns paths, ids, numbers and names of `text`: at least six characters with a mark, a digit or a hump.
pub fn strings(text: &str) -> Vec<&str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || "_./:@#-".contains(c)))
        .map(|word| word.trim_matches(|c: char| !(c.is_ascii_alphanumeric() || c == '_')))
        .filter(|word| word.len() >= 6)
        .filter(|word| {
            word.contains(['/', '_', '.', '-'])
                || word.bytes().any(|byte| byte.is_ascii_digit())
                || word.as_bytes().windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
        })
        .collect()
}

/// Draws a fact of `text`: an error line, a path, a number or a name.
pub fn fact(text: &str, dice: &mut Dice) -> Option<Fact> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| line.len() >= 6).collect();
    if lines.is_empty() {
        return None;
    }
    for _ in 0..20 {
        let line = lines[dice.below(lines.len() as u64) as usize];
        if dice.below(4) == 0 && ["error", "Error", "FAIL", "panic"].iter().any(|word| line.contains(word)) {
            return Some(Fact { text: line.chars().take(80).collect(), line: line.to_owned() });
        }
        let words: Vec<&str> = strings(line).into_iter().filter(|word| word.len() <= 120).collect();
        if !words.is_empty() {
            let text = words[dice.below(words.len() as u64) as usize].to_owned();
            return Some(Fact { text, line: line.to_owned() });
        }
    }
    None
}

/// Returns everything that a model reads of a list, as plain text.
pub fn readable(list: &str) -> String {
    let messages: Vec<Value> = serde_json::from_str(list).expect("a list");
    let mut text = String::new();
    for message in &messages {
        let seen = view(message);
        text.push_str(&seen.text);
        text.push('\n');
        for call in &seen.calls {
            text.push_str(&spoken(&call.arguments));
            text.push('\n');
        }
        for result in &seen.results {
            text.push_str(&result.text);
            text.push('\n');
        }
    }
    text
}

/// Returns the values of `arguments` on lines of their own.
pub fn spoken(arguments: &str) -> String {
    fn walk(value: &Value, out: &mut String) {
        match value {
            Value::String(text) => {
                out.push_str(text);
                out.push('\n');
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, out)),
            Value::Object(fields) => fields.values().for_each(|item| walk(item, out)),
            other => out.push_str(&format!("{other}\n")),
        }
    }
    let mut out = String::new();
    match serde_json::from_str::<Value>(arguments) {
        Ok(value) => walk(&value, &mut out),
        Err(_) => out.push_str(arguments),
    }
    out
}

/// An agent with a list before it and the tools.
#[derive(Debug)]
pub struct Seeker<'a> {
    engine: &'a mut Engine,
    scope: Scope,
    at: u64,
    context: String,
    named_nodes: Vec<String>,
    answers: BTreeMap<String, String>,
}

impl<'a> Seeker<'a> {
    /// Returns a seeker in the conversation `scope` who has `list` before it.
    pub fn new(engine: &'a mut Engine, scope: Scope, at: u64, list: &str) -> Self {
        let context = readable(list);
        let named_nodes = named_nodes(&context);
        Self { engine, scope, at, context, named_nodes, answers: BTreeMap::new() }
    }

    /// Returns how `fact` of `output` is found.
    pub fn seek(&mut self, fact: &Fact, output: &Output) -> Way {
        if self.context.contains(&fact.text) {
            return Way::InContext;
        }
        let named = self.context.contains(&output.path);
        if named && self.pages(&output.path, 2).iter().any(|page| page.contains(&fact.text)) {
            return Way::NamedRef;
        }
        let behind: Vec<String> = self.named_nodes.clone();
        let by_node = behind.iter().any(|node| self.call("node_read", &json!({"node_id": node})).contains(&output.path));
        if by_node && self.pages(&output.path, 1)[0].contains(&fact.text) {
            return Way::NamedNode;
        }
        let clues = self.clues(fact, output);
        for clue in &clues {
            if self.call("ref_read", &json!({"grep": clue})).contains(&fact.text) {
                return Way::Clue;
            }
            if named && self.call("ref_read", &json!({"ref": output.path, "grep": clue})).contains(&fact.text) {
                return Way::Clue;
            }
        }
        if self.by_picked_call(&clues, fact, output) {
            return Way::NodeAndClue;
        }
        if by_node && clues.iter().any(|clue| self.call("ref_read", &json!({"ref": output.path, "grep": clue})).contains(&fact.text)) {
            return Way::NodeAndClue;
        }
        if self.call("ref_read", &json!({"grep": fact.text})).contains(&fact.text) { Way::Itself } else { Way::Lost }
    }

    /// Returns whether `node_read` of something named, with a grep for a clue, leads to the ref, and its first page to the
    /// fact.
    fn by_picked_call(&mut self, clues: &[String], fact: &Fact, output: &Output) -> bool {
        if !self.pages(&output.path, 1)[0].contains(&fact.text) {
            return false;
        }
        let nodes = self.named_nodes.clone();
        nodes.iter().any(|node| clues.iter().any(|clue| self.call("node_read", &json!({"node_id": node, "grep": clue})).contains(&output.path)))
    }

    /// Returns the text at `path` as `ref_read` gives it back, page by page.
    pub fn whole(&mut self, path: &str) -> String {
        const PIECE_CHARS: usize = 12_000;
        let mut whole = String::new();
        let mut from = 0;
        loop {
            let arguments = json!({"ref": path, "from_char": from, "chars": PIECE_CHARS});
            let invocation =
                Invocation { scope: self.scope.clone(), name: "ref_read".into(), arguments_json: arguments.to_string(), at: self.at, ..Invocation::default() };
            let answer = self.engine.call_tool(&invocation).expect("an answer");
            assert!(!answer.is_error, "{path}: {}", answer.text);
            let document: Value = serde_json::from_str(&answer.structured_json).expect("a document");
            let piece = document["text"].as_str().expect("a text");
            let chars = piece.chars().count();
            whole.push_str(piece);
            from += chars;
            if chars < PIECE_CHARS {
                return whole;
            }
        }
    }

    fn pages(&mut self, path: &str, most: usize) -> Vec<String> {
        let mut pages = vec![self.call("ref_read", &json!({"ref": path}))];
        while pages.len() < most {
            let last = pages.last().expect("there is one");
            let Some(from) = last.rsplit_once("from_line=").and_then(|(_, rest)| rest.trim().parse::<u64>().ok()) else { break };
            pages.push(self.call("ref_read", &json!({"ref": path, "from_line": from})));
        }
        pages
    }

    /// Words of the call and of the line around the fact that the context holds, the longest first, and what anybody
    /// tries.
    fn clues(&self, fact: &Fact, output: &Output) -> Vec<String> {
        let around = fact.line.replacen(&fact.text, " ", 1);
        let of_call = spoken(&output.arguments);
        let mut words: Vec<&str> = around
            .split(|c: char| !(c.is_alphanumeric() || "_./-".contains(c)))
            .chain(strings(&of_call))
            .filter(|word| word.chars().count() >= 4 && self.context.contains(word))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        words.sort_by_key(|word| (std::cmp::Reverse(word.len()), *word));
        words.truncate(CLUES_MAX);
        words.into_iter().map(str::to_owned).chain(COMMON_CLUES.map(str::to_owned)).collect()
    }

    fn call(&mut self, name: &str, arguments: &Value) -> String {
        let key = format!("{name} {arguments}");
        if let Some(known) = self.answers.get(&key) {
            return known.clone();
        }
        let invocation =
            Invocation { scope: self.scope.clone(), name: name.into(), arguments_json: arguments.to_string(), at: self.at, ..Invocation::default() };
        let text = self.engine.call_tool(&invocation).expect("an answer").text;
        self.answers.insert(key, text.clone());
        text
    }
}

/// Returns what the context names that `node_read` takes, as it stands there: `002-N4`, `002-N1..N3,N7`, `task 002`.
fn named_nodes(context: &str) -> Vec<String> {
    let mut found: BTreeSet<String> = context
        .split(|c: char| !(c.is_ascii_alphanumeric() || "-.,".contains(c)))
        .map(|word| word.trim_matches(['.', ',']))
        .filter(|word| word.len() >= 6 && word.as_bytes()[..3].iter().all(u8::is_ascii_digit) && word[3..].starts_with("-N"))
        .map(str::to_owned)
        .collect();
    for line in context.lines() {
        if let Some(task) = line.strip_prefix("task ").and_then(|rest| rest.split(':').next()).filter(|task| task.starts_with(|c: char| c.is_ascii_digit())) {
            found.insert(task.to_owned());
        }
    }
    found.into_iter().collect()
}
