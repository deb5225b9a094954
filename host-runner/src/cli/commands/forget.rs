//! `strata forget`: removal from everywhere.

use super::browse;
use crate::cli::exit::{Exit, Usage};
use crate::cli::options::Settings;
use crate::cli::terminal::Terminal;
use crate::cli::{clock, open};
use anyhow::Result;
use clap::Args;
use serde_json::Value;
use strata_host::Space;
use strata_host::contract::Selector;

/// Things whose words are shown before they go.
const MAX_PREVIEW: usize = 20;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  strata forget --id m_0123456789abcdef             shows what would go
  strata forget --id m_0123456789abcdef --yes       removes it
  strata forget --query \"my old address\"            what a search finds
  strata forget --session work --since 2026-03-01 --until 2026-03-31

What goes: the rows, all that was built on them alone, and their traces in indexes, mirrors, scenes, the persona and
backups. Afterwards no file of the data directory holds the text. Conditions are combined: all of them must hold.")]
pub(crate) struct Forget {
    /// Ids of messages, memories, scenes, entries; may be repeated
    #[arg(long = "id", value_name = "ID")]
    ids: Vec<String>,
    /// What a search for these words finds
    #[arg(long, value_name = "WORDS")]
    query: Option<String>,
    /// Not before
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Not after
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Remove it; without this it is only shown
    #[arg(long)]
    yes: bool,
}

impl Forget {
    pub(crate) fn run(&self, settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        let now = strata_host::now();
        let time = |flag: &str, text: &Option<String>| text.as_ref().map(|text| clock::parse(flag, text, &settings.zone, now)).transpose();
        let which = Selector {
            ids: self.ids.clone(),
            query: self.query.clone(),
            session: Some(settings.scope.session.clone()).filter(|name| !name.is_empty()),
            user: Some(settings.scope.user.clone()).filter(|name| !name.is_empty()),
            since: time("--since", &self.since)?,
            until: time("--until", &self.until)?,
        };
        // Whose memory the environment or the configuration names is no condition: it holds for every command.
        if (Selector { user: which.user.clone().filter(|_| settings.user_named), ..which.clone() }) == Selector::default() {
            return Err(Usage("what shall be forgotten? Name --id, --query, --session, --user, --since or --until".into()).into());
        }
        let space = open::look(settings)?;
        let answer = open::document(space.forget(which, self.yes, now))?;
        if !self.yes && !terminal.json {
            preview(&space, &answer, terminal)?;
        }
        space.close()?;
        terminal.outline(&answer);
        let counted = |member: &str| answer[member].as_object().is_some_and(|counts| counts.values().any(|count| count.as_u64().unwrap_or(0) > 0));
        for backup in answer["unsearched-backups"].as_array().into_iter().flatten() {
            let text = |member: &str| backup[member].as_str().unwrap_or_default().to_owned();
            terminal.warn(format!("the backup {} cannot be opened and may still hold the text: {}", text("name"), text("reason")));
        }
        if answer.pointer("/searched/found").and_then(Value::as_u64).unwrap_or(0) > 0 {
            terminal.warn("some of the text is still in the data directory; `searched` says where");
            return Ok(Exit::Failed);
        }
        if !counted("would-remove") && !counted("removed") {
            terminal.note("nothing fits, so nothing was removed");
            return Ok(Exit::NotFound);
        }
        if !self.yes {
            terminal.note("nothing was removed yet; --yes removes it");
        }
        Ok(Exit::Done)
    }
}

/// Shows the words that would go, so that nobody confirms by ids alone.
fn preview(space: &Space, answer: &Value, terminal: &Terminal) -> Result<()> {
    let ids: Vec<&str> = answer["ids"].as_array().into_iter().flatten().filter_map(Value::as_str).filter(|id| id.starts_with(['m', 'a'])).collect();
    for id in ids.iter().take(MAX_PREVIEW) {
        browse::row(&open::document(space.trace((*id).to_owned()))?, terminal);
    }
    if ids.len() > MAX_PREVIEW {
        terminal.remark("", &format!("and {} more", ids.len() - MAX_PREVIEW));
    }
    Ok(())
}
