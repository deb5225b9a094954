//! `strata edit`: a correction by hand.

use super::{browse, scenes};
use crate::cli::exit::{Exit, Usage};
use crate::cli::open;
use crate::cli::options::Settings;
use crate::cli::terminal::Terminal;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::io::{IsTerminal, Read};
use std::process::Command;
use strata_host::Space;
use strata_host::contract::Selector;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  strata edit a_0123456789abcdef \"The user lives in Matosinhos.\"
  strata edit persona                 opens $EDITOR
  strata edit bread < bread.md        from standard input

The earlier text stays in `strata history ID`. Scenes and the persona may as well be edited as files in the data
directory; the edit is noticed and kept.")]
pub(crate) struct Edit {
    /// The id of a memory or a scene; `persona` for the persona
    #[arg(value_name = "ID")]
    id: String,
    /// The new text; without it standard input, or $EDITOR at a terminal
    text: Option<String>,
}

impl Edit {
    pub(crate) fn run(&self, settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        let space = open::look(settings)?;
        let id = scenes::id_of(&space, &self.id)?;
        let text = match &self.text {
            Some(text) => text.clone(),
            None if std::io::stdin().is_terminal() => match edited(&current(&space, &id)?)? {
                Some(text) => text,
                None => {
                    terminal.note("the text is as it was; nothing was changed");
                    return Ok(Exit::Done);
                }
            },
            None => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
                text
            }
        };
        if text.trim().is_empty() {
            return Err(Usage(format!("the new text is empty; `strata forget --id {}` removes a memory", self.id)).into());
        }
        terminal.outline(&open::document(space.edit(id, text.trim_end().to_owned(), strata_host::now()))?);
        space.close()?;
        Ok(Exit::Done)
    }
}

/// Returns the text that an id has now. Pages come from their layer, because a trace takes them apart.
fn current(space: &Space, id: &str) -> Result<String> {
    let layer = if id.starts_with("s_") { "scenes" } else { "persona" };
    let row = if id == "persona" || id.starts_with("s_") || id.starts_with("p_") {
        let ids = if id == "persona" { Vec::new() } else { vec![id.to_owned()] };
        browse::rows(space, layer, &Selector { ids, ..Selector::default() }, 1)?.pop()
    } else {
        Some(open::document(space.trace(id.into()))?)
    };
    Ok(row.and_then(|row| row["text"].as_str().map(str::to_owned)).unwrap_or_default())
}

/// Lets the user edit the text; returns nothing if they left it as it was.
fn edited(text: &str) -> Result<Option<String>> {
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.trim().is_empty())).unwrap_or_else(|| "vi".into());
    let mut words = editor.split_whitespace();
    let program = words.next().context("$EDITOR is empty")?;
    let file = tempfile::Builder::new().prefix("strata-").suffix(".md").tempfile()?;
    std::fs::write(file.path(), text)?;
    let status = Command::new(program).args(words).arg(file.path()).status().with_context(|| format!("cannot start the editor `{editor}`; set $EDITOR"))?;
    if !status.success() {
        bail!("the editor `{editor}` ended with {status}; nothing was changed");
    }
    let new = std::fs::read_to_string(file.path())?;
    Ok((new.trim_end() != text.trim_end()).then_some(new))
}
