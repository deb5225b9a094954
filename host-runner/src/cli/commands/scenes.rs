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
use strata_host::{Space, SpaceError};

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
        let mut rows = live(&space)?;
        space.close()?;
        if let Some(name) = &self.name {
            let Some(scene) = rows.iter().find(|row| is_named(row, name)) else {
                let message = format!("there is no scene `{name}`; `strata scenes` lists them");
                return Err(SpaceError::Refused(Failure { code: FailureCode::NotFound, message }).into());
            };
            if terminal.json {
                terminal.document(scene)
            } else {
                terminal.line(scene["text"].as_str().unwrap_or_default().trim_end())
            }
            return Ok(Exit::Done);
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.get("heat").and_then(Value::as_u64).unwrap_or(0)));
        if terminal.json {
            terminal.document(&json!({"items": rows}));
            return Ok(Exit::Done);
        }
        for scene in &rows {
            let changed = clock::shown(&scene["updated-at"], &terminal.zone).unwrap_or_default();
            let marks = format!("heat {} · {changed}", scene.get("heat").and_then(Value::as_u64).unwrap_or(0));
            terminal.line(format!("{}  {}", terminal::id().apply_to(stem(scene)), terminal::faint().apply_to(marks)));
            terminal.text("  ", scene["summary"].as_str().unwrap_or_default());
        }
        if rows.is_empty() {
            terminal.note("there are no scenes yet; `strata flush` makes them as soon as there is enough to go on");
        }
        Ok(Exit::Done)
    }
}

/// Returns the scenes that are not archived.
fn live(space: &Space) -> Result<Vec<Value>> {
    let mut rows = browse::rows(space, "scenes", &Selector::default(), u32::MAX)?;
    rows.retain(|row| row.get("archived-at").is_none_or(Value::is_null));
    Ok(rows)
}

/// Returns the id of what people named: an id as it is, a scene also by the name of its file.
pub(crate) fn id_of(space: &Space, name: &str) -> Result<String> {
    let is_id = name == "persona" || name.split_once('_').is_some_and(|(prefix, _)| prefix.len() == 1);
    if is_id {
        return Ok(name.into());
    }
    let scene = live(space)?.into_iter().find(|row| is_named(row, name));
    Ok(scene.and_then(|row| row["id"].as_str().map(str::to_owned)).unwrap_or_else(|| name.into()))
}

fn is_named(scene: &Value, name: &str) -> bool {
    scene["id"] == *name || stem(scene) == name.trim_end_matches(".md")
}

/// Returns the name of a scene's file without folder and extension.
fn stem(scene: &Value) -> &str {
    let path = scene["path"].as_str().unwrap_or_default();
    path.rsplit('/').next().unwrap_or(path).trim_end_matches(".md")
}
