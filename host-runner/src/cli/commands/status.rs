//! `strata status`: what is stored, what waits for what, what failed and why.

use crate::cli::exit::Exit;
use crate::cli::options::Settings;
use crate::cli::terminal::{self, Terminal, counted};
use crate::cli::{clock, open};
use anyhow::Result;
use clap::Args;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  strata status
  strata status --json | jq .messages
  strata flush                        do now what waits")]
pub(crate) struct Status {}

impl Status {
    pub(crate) fn run(&self, settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        let space = open::look(settings)?;
        let status = open::document(space.status())?;
        space.close()?;
        if terminal.json {
            terminal.document(&status);
            return Ok(Exit::Done);
        }
        print(&status, settings, terminal);
        Ok(Exit::Done)
    }
}

fn print(status: &Value, settings: &Settings, terminal: &Terminal) {
    let number = |member: &str| status.get(member).and_then(Value::as_u64).unwrap_or(0);
    terminal.heading(&settings.data.display().to_string());
    terminal.field("messages", format!("{} in {}", number("messages"), counted(number("sessions"), "session")));
    let replaced = number("atoms-replaced");
    let replaced = if replaced > 0 { format!(", {replaced} replaced") } else { String::new() };
    terminal.field("memories", format!("{}{}{replaced}", number("atoms"), tally(status.get("atoms-by-kind"), " — ")));
    for (member, name) in [("scenes", "scenes"), ("personas", "personas"), ("entries", "tool results")] {
        if let Some(value) = status.get(member).filter(|value| !value.is_null()) {
            terminal.field(name, terminal::outline(value, &settings.zone).replace('\n', ", "));
        }
    }
    let model = status["model"].as_str().unwrap_or_default();
    terminal.field("model", if model.is_empty() { "none: memories are made by rules" } else { model });
    let waiting = status.pointer("/waiting/l1/messages").and_then(Value::as_u64).unwrap_or(0);
    if waiting > 0 {
        let due = status.pointer("/waiting/l1/due-at").and_then(Value::as_u64).map(|at| format!(", due {}", clock::people(at, &settings.zone)));
        terminal.field("waiting", format!("{} to be distilled{}", counted(waiting, "message"), due.unwrap_or_default()));
    }
    for (layer, makes) in [("l2", "scenes"), ("l3", "the persona")] {
        let waiting = status.pointer(&format!("/waiting/{layer}"));
        let list: Vec<&Value> = waiting.map_or(Vec::new(), |found| found.as_array().map_or_else(|| vec![found], |list| list.iter().collect()));
        for item in list {
            let since = clock::shown(&item["since"], &settings.zone);
            let why = item["trigger"].as_str().map(str::to_owned).or_else(|| item["atoms"].as_u64().map(|atoms| counted(atoms, "memory")));
            if let Some(since) = since {
                let due = clock::shown(&item["due-at"], &settings.zone).map_or_else(String::new, |due| format!(", due {due}"));
                terminal.field("waiting", format!("{makes}: {} since {since}{due}", why.unwrap_or_default()));
            }
        }
    }
    let behind = status.pointer("/files/behind").and_then(Value::as_u64).unwrap_or(0);
    if behind > 0 {
        terminal.field("files", format!("{} not yet written", counted(behind, "file")));
    }
    if status.pointer("/forgetting/unfinished").and_then(Value::as_bool).unwrap_or(false) {
        terminal.field("forgetting", "files may still hold what was forgotten; it is tried again at the next opening");
    }
    for backup in status.pointer("/forgetting/backups").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        terminal.field("forgetting", format!("the backup {backup} cannot be opened and may hold what was forgotten"));
    }
    for (pointer, name) in [("/waiting/requests", "in flight"), ("/waiting/retries", "tried again"), ("/failed/list", "failed")] {
        // Twenty batches that wait for the same thing are one line.
        let mut alike: BTreeMap<(&str, &str), (u64, Option<String>)> = BTreeMap::new();
        for item in status.pointer(pointer).and_then(Value::as_array).map_or(&[][..], Vec::as_slice) {
            let text = |member: &str| item.get(member).and_then(Value::as_str).unwrap_or_default();
            let what = if text("purpose").is_empty() { text("layer") } else { text("purpose") };
            let first = ["due-at", "since"].iter().find_map(|member| clock::shown(item.get(*member)?, &settings.zone));
            let (count, _) = alike.entry((what, text("reason"))).or_insert((0, first));
            *count += 1;
        }
        for ((what, reason), (count, first)) in alike {
            let times = if count > 1 { format!("{count} × ") } else { String::new() };
            terminal.field(name, format!("{times}{what}, {}  {reason}", first.unwrap_or_default()).trim_end());
        }
    }
    for (pointer, name) in [("/dropped/messages", "not kept"), ("/dropped/atoms", "refused")] {
        let dropped = tally(status.pointer(pointer), "");
        if !dropped.is_empty() {
            terminal.field(name, dropped);
        }
    }
    if status.pointer("/failed/dead").and_then(Value::as_u64).unwrap_or(0) > 0 {
        terminal.warn("some work failed for good; `strata retry` tries it again");
    }
}

/// Returns `3 persona, 1 episodic`, behind `lead` if there is any.
fn tally(counts: Option<&Value>, lead: &str) -> String {
    let counts = counts.and_then(Value::as_object).into_iter().flatten();
    let words: Vec<String> = counts.map(|(name, count)| format!("{count} {name}")).collect();
    if words.is_empty() { String::new() } else { format!("{lead}{}", words.join(", ")) }
}
