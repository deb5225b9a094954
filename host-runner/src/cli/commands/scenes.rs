//! `strata scenes`: pages about one project or situation each.

use super::browse;
use crate::cli::exit::Exit;
use crate::cli::options::Settings;
use crate::cli::terminal::{self, Terminal};
use crate::cli::{clock, open};
use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use strata_host::contract::{Failure, FailureCode, Selector};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  strata scenes                       list them, the most used first
  strata scenes moving-workshop       show one
  strata edit moving-workshop         correct it in your editor")]
pub(crate) struct Scenes {
    /// The scene to show
    name: Option<String>,
}

impl Scenes {
    pub(crate) fn run(&self, settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        let space = open::look(settings)?;
        let mut rows = browse::rows(&space, "scenes", &Selector::default(), u32::MAX)?;
        space.close()?;
        let named = |row: &Value, name: &str| ["name", "id"].iter().any(|member| row.get(*member).and_then(Value::as_str) == Some(name));
        if let Some(name) = &self.name {
            let name = name.trim_end_matches(".md");
            let Some(scene) = rows.iter().find(|row| named(row, name)) else {
                let message = format!("there is no scene `{name}`; `strata scenes` lists them");
                return Err(strata_host::SpaceError::Refused(Failure { code: FailureCode::NotFound, message }).into());
            };
            if terminal.json { terminal.document(scene) } else { terminal.line(scene["text"].as_str().unwrap_or_default().trim_end()) }
            return Ok(Exit::Done);
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.get("heat").and_then(Value::as_u64).unwrap_or(0)));
        if terminal.json {
            terminal.document(&json!({"rows": rows}));
            return Ok(Exit::Done);
        }
        for scene in &rows {
            let text = |member: &str| scene.get(member).and_then(Value::as_str).unwrap_or_default();
            let marks = format!("heat {} · {}", scene.get("heat").and_then(Value::as_u64).unwrap_or(0), clock::short(text("updated-at")));
            let name = if text("name").is_empty() { text("id") } else { text("name") };
            terminal.line(format!("{}  {}", terminal::id().apply_to(name), terminal::faint().apply_to(marks)));
            terminal.text("  ", text("summary"));
        }
        if rows.is_empty() {
            terminal.note("there are no scenes yet; `strata flush` makes them as soon as there is enough to go on");
        }
        Ok(Exit::Done)
    }
}
