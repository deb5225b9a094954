//! `strata trace`: from a memory to the words it rests on, and from words to what was built on them.

use super::browse;
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
  strata trace persona                each statement and its grounds")]
pub(crate) struct Trace {
    /// The id of a memory, a message, a scene, an entry; `persona` for the persona
    #[arg(value_name = "ID")]
    id: String,
}

impl Trace {
    pub(crate) fn run(&self, settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        let space = open::look(settings)?;
        let found = open::document(space.trace(self.id.clone()))?;
        space.close()?;
        if terminal.json { terminal.document(&found) } else { print(&found, terminal) }
        Ok(Exit::Done)
    }
}

/// Members of a trace that hold other things, and what they are to it.
const RELATIONS: [(&str, &str); 6] = [
    ("rests-on", "rests on"),
    ("built-on-it", "built on it"),
    ("replaces", "takes the place of"),
    ("replaced-by", "was replaced by"),
    ("statements", "statements"),
    ("paragraphs", "paragraphs"),
];

/// Prints a trace.
pub(crate) fn print(found: &Value, terminal: &Terminal) {
    let mut own = found.clone();
    let mut rest = serde_json::Map::new();
    if let Value::Object(members) = &mut own {
        for (name, _) in RELATIONS {
            if let Some(list) = members.shift_remove(name) {
                rest.insert(name.into(), list);
            }
        }
    }
    browse::row(&own, terminal);
    for (member, title) in RELATIONS {
        let list = rest.get(member).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if list.is_empty() {
            continue;
        }
        terminal.heading(title);
        for item in list {
            match item.get("quote").and_then(Value::as_str) {
                Some(quote) => evidence(item, quote, terminal),
                None => browse::row(item, terminal),
            }
        }
    }
}

/// Prints a message that something rests on, with the words that count set off.
pub(crate) fn evidence(message: &Value, quote: &str, terminal: &Terminal) {
    let text = |member: &str| message.get(member).and_then(Value::as_str).unwrap_or_default();
    let who = if text("speaker").is_empty() { text("role") } else { text("speaker") };
    let head = format!("{} · {} · {}", who, clock::short(text("said-at")), text("session"));
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
