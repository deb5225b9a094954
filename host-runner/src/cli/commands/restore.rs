//! `strata restore`: the space goes back to a copy.

use crate::cli::exit::{Exit, Usage};
use crate::cli::open;
use crate::cli::options::Settings;
use crate::cli::terminal::Terminal;
use anyhow::Result;
use clap::Args;
use serde_json::json;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strata restore before-move --yes\n\nThe state before is kept as a backup of its own; a damaged database is kept as it is."
)]
pub(crate) struct Restore {
    /// The copy's name
    #[arg(value_name = "NAME")]
    name: String,
    /// Do it
    #[arg(long)]
    yes: bool,
}

impl Restore {
    pub(crate) fn run(&self, settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        if !self.yes {
            return Err(Usage(format!("this replaces what {} holds by the backup `{}`; repeat with --yes", settings.data.display(), self.name)).into());
        }
        match open::look(settings) {
            Ok(space) => {
                terminal.outline(&open::document(space.restore(self.name.clone(), strata_host::now()))?);
                space.close()?;
            }
            Err(error) if Exit::of(&error) == Exit::Unreadable => {
                terminal.warn(format!("{error:#}"));
                let space = open::damaged(settings, &self.name)?;
                let status = open::document(space.status())?;
                terminal.outline(&json!({
                    "name": self.name, "messages": status["messages"], "atoms": status["atoms"], "kept-before": "under set-aside/ of the data directory"
                }));
                space.close()?;
            }
            Err(error) => return Err(error),
        }
        Ok(Exit::Done)
    }
}
