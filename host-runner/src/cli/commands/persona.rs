//! `strata persona`: who the user is taken to be.

use super::browse;
use crate::cli::exit::Exit;
use crate::cli::open;
use crate::cli::options::Settings;
use crate::cli::terminal::{self, Terminal};
use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use strata_host::contract::Selector;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  strata persona
  strata edit persona                 correct it in your editor
  strata trace persona                what each statement rests on
  strata history persona              how it came to be")]
pub(crate) struct Persona {}

impl Persona {
    pub(crate) fn run(&self, settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        let space = open::look(settings)?;
        let rows = browse::rows(&space, "persona", &Selector::default(), u32::MAX)?;
        space.close()?;
        if terminal.json {
            terminal.document(&json!({"items": rows}));
        } else {
            for persona in &rows {
                terminal.line(terminal::without_comments(persona["text"].as_str().unwrap_or_default()));
            }
            if rows.is_empty() {
                terminal.note("there is no persona yet; `strata flush` makes one as soon as there is enough to go on");
            }
        }
        Ok(if rows.iter().any(|row| row.get("text").and_then(Value::as_str).is_some()) { Exit::Done } else { Exit::NotFound })
    }
}
