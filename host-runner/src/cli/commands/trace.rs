//! `strata trace`: from a memory to the words it rests on, and from words to what was built on them.

use super::{browse, scenes};
use crate::cli::exit::Exit;
use crate::cli::options::Settings;
use crate::cli::terminal::{self, Terminal};
use crate::cli::{clock, open};
use anyhow::Result;
use clap::Args;
use serde_json::Value;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  strata trace a_0123456789abcdef     a memory: the messages it rests on
  strata trace m_0123456789abcdef     a message: the memories built on it
  strata trace persona                each statement and its grounds
  strata trace scenes/porto.md        the same of a scene
  strata trace 001-N1                 a node of a canvas: its calls
  strata trace refs/0123456789abcdef.md
                                      an offloaded text, and the calls that gave it")]
pub(crate) struct Trace {
    /// The id of a memory, a message, a scene, an entry, a node or an offloaded text; `persona` for the persona
    #[arg(value_name = "ID")]
    id: String,
}

impl Trace {
    pub(crate) fn run(&self, settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        let space = open::look(settings)?;
        let found = open::document(space.trace(scenes::id_of(&space, &self.id)?))?;
        space.close()?;
        if terminal.json {
            terminal.document(&found)
        } else {
            print(&found, terminal)
        }
        Ok(Exit::Done)
    }
}

/// Members of a trace that hold other things, and what they are to it.
const RELATIONS: [(&str, &str); 5] = [
    ("rests-on", "rests on"),
    ("built-on-it", "built on it"),
    ("replaces", "takes the place of"),
    ("replaced-by", "was replaced by"),
    ("statements", "what it says, and why"),
];

/// Prints a trace.
pub(crate) fn print(found: &Value, terminal: &Terminal) {
    browse::row(&without_relations(found), terminal);
    for (member, title) in RELATIONS {
        let list = related(found, member);
        if list.is_empty() {
            continue;
        }
        terminal.heading(title);
        for item in list {
            print_related(item, terminal);
        }
    }
}

fn print_related(item: &Value, terminal: &Terminal) {
    if let Some(quote) = item.get("quote").and_then(Value::as_str) {
        evidence(item, quote, terminal);
        return;
    }
    let text = |member: &str| item.get(member).and_then(Value::as_str).unwrap_or_default();
    if item.get("id").is_none() {
        // A statement of a page: its words, then the memories it rests on with their words.
        terminal.text("  ", text("text"));
        for atom in related(item, "rests-on") {
            let id = atom.get("id").and_then(Value::as_str).unwrap_or_default();
            let words = related(atom, "rests-on").first().and_then(|ground| ground.get("quote")).and_then(Value::as_str).unwrap_or_default();
            terminal.line(format!("    {}  {}", terminal::id().apply_to(id), terminal::faint().apply_to(words)));
        }
    } else if text("text").is_empty() {
        let place = if text("path").is_empty() { text("call") } else { text("path") };
        let marks = format!("{} · {place}", text("layer"));
        terminal.line(format!("{}  {}", terminal::id().apply_to(text("id")), terminal::faint().apply_to(marks)));
    } else {
        browse::row(&without_relations(item), terminal);
    }
}

fn related<'a>(found: &'a Value, member: &str) -> &'a [Value] {
    found.get(member).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn without_relations(found: &Value) -> Value {
    let mut own = found.clone();
    if let Value::Object(members) = &mut own {
        members.retain(|name, _| !RELATIONS.iter().any(|(relation, _)| relation == name));
    }
    own
}

/// Prints a message that something rests on, with the words that count set off.
pub(crate) fn evidence(message: &Value, quote: &str, terminal: &Terminal) {
    let text = |member: &str| message.get(member).and_then(Value::as_str).unwrap_or_default();
    let who = if text("speaker").is_empty() { text("role") } else { text("speaker") };
    let said_at = clock::shown(&message["said-at"], &terminal.zone).unwrap_or_default();
    let head = format!("{who} · {said_at} · {}", text("session"));
    terminal.line(format!("  {}  {}", terminal::id().apply_to(text("id")), terminal::faint().apply_to(head)));
    let words = text("text");
    match words.split_once(quote).filter(|_| !quote.is_empty()) {
        Some((before, after)) => {
            let marked = quote.split(' ').map(|word| terminal::strong().apply_to(word).to_string()).collect::<Vec<_>>().join(" ");
            terminal.text("    ", &format!("{before}{marked}{after}"));
        }
        None => terminal.text("    ", words),
    }
}
