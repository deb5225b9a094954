//! `strata browse`: the rows of a layer.

use crate::cli::exit::Exit;
use crate::cli::options::Settings;
use crate::cli::terminal::{self, Terminal};
use crate::cli::{clock, open};
use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use strata_host::contract::Selector;

/// Rows asked for at once.
const PAGE: u32 = 500;

#[derive(Debug, Args)]
#[command(after_help = "\
Layers: messages, atoms, scenes, persona, entries, canvases, requests, batches

Examples:
  strata browse atoms
  strata browse messages --session lena#2026-09-07-a-workshop-on-rua-do-almada
  strata browse atoms --since 7d --json
  strata browse batches                            what was worked on, and what failed")]
pub(crate) struct Browse {
    /// The layer
    #[arg(default_value = "atoms")]
    layer: String,
    /// Not before
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Not after
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// At most so many rows
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1000)]
    limit: u32,
}

impl Browse {
    pub(crate) fn run(&self, settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        let now = strata_host::now();
        let time = |flag: &str, text: &Option<String>| text.as_ref().map(|text| clock::parse(flag, text, &settings.zone, now)).transpose();
        let filter = Selector {
            session: Some(settings.scope.session.clone()).filter(|name| !name.is_empty()),
            user: Some(settings.scope.user.clone()).filter(|name| !name.is_empty()),
            since: time("--since", &self.since)?,
            until: time("--until", &self.until)?,
            ..Selector::default()
        };
        let space = open::look(settings)?;
        let rows = rows(&space, &self.layer, &filter, self.limit)?;
        space.close()?;
        if terminal.json {
            terminal.document(&json!({"layer": self.layer, "items": rows}));
        } else {
            rows.iter().for_each(|found| row(found, terminal));
            terminal.note(terminal::counted(rows.len() as u64, "row"));
        }
        Ok(Exit::Done)
    }
}

/// Returns at most `limit` rows of a layer, oldest first, over as many pages as it takes.
pub(crate) fn rows(space: &strata_host::Space, layer: &str, filter: &Selector, limit: u32) -> Result<Vec<Value>> {
    let mut rows: Vec<Value> = Vec::new();
    let mut after = None;
    while (rows.len() as u64) < u64::from(limit) {
        let wanted = PAGE.min(limit - rows.len() as u32);
        let mut page = open::document(space.browse(layer.into(), filter.clone(), after.take(), wanted))?;
        rows.append(page["items"].as_array_mut().unwrap_or(&mut Vec::new()));
        after = page["next"].as_str().map(str::to_owned);
        if after.is_none() {
            break;
        }
    }
    Ok(rows)
}

/// Prints a row of any layer: its id and what marks it, then its text.
pub(crate) fn row(row: &Value, terminal: &Terminal) {
    let text = |member: &str| row.get(member).and_then(Value::as_str).filter(|text| !text.is_empty());
    let Some(words) = text("text").or_else(|| text("summary")).filter(|_| row.get("id").is_some()) else {
        terminal.line(terminal::outline(row, &terminal.zone));
        terminal.line("");
        return;
    };
    let id = text("id").unwrap_or("-");
    let time = |members: &[&str]| members.iter().find_map(|member| clock::shown(row.get(*member)?, &terminal.zone));
    let mut marks: Vec<String> = Vec::new();
    marks.extend(["kind", "speaker", "role", "tool", "path"].iter().find_map(|member| text(member)).map(str::to_owned));
    marks.extend(row.get("priority").filter(|priority| !priority.is_null()).map(|priority| format!("priority {priority}")));
    marks.extend(text("origin").or_else(|| text("by")).map(|origin| format!("by {origin}")));
    marks.extend(time(&["said-at", "valid-from", "updated-at", "at"]));
    marks.extend(time(&["believed-to"]).map(|at| format!("replaced {at}")));
    marks.extend(row.get("pinned").and_then(Value::as_bool).filter(|pinned| *pinned).map(|_| "pinned".to_owned()));
    terminal.line(format!("{}  {}", terminal::id().apply_to(id), terminal::faint().apply_to(marks.join(" · "))));
    terminal.text("  ", words);
}
