//! `strata restore`: the space goes back to a copy.

use crate::cli::exit::{Exit, Usage};
use crate::cli::open;
use crate::cli::options::Settings;
use crate::cli::terminal::Terminal;
use anyhow::Result;
use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  strata restore before-move --yes\n\nThe state before is kept as a backup of its own.")]
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
        let space = open::look(settings)?;
        terminal.outline(&open::document(space.restore(self.name.clone(), strata_host::now()))?);
        space.close()?;
        Ok(Exit::Done)
    }
}
