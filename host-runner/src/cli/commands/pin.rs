//! `strata pin`: a memory that nothing replaces or merges.

use crate::cli::exit::Exit;
use crate::cli::open;
use crate::cli::options::Settings;
use crate::cli::terminal::Terminal;
use anyhow::Result;
use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  strata pin a_0123456789abcdef\n  strata pin a_0123456789abcdef --release")]
pub(crate) struct Pin {
    /// The id of a memory
    #[arg(value_name = "ID")]
    id: String,
    /// Let it be replaced again
    #[arg(long)]
    release: bool,
}

impl Pin {
    pub(crate) fn run(&self, settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        let space = open::look(settings)?;
        terminal.outline(&open::document(space.pin(self.id.clone(), !self.release, strata_host::now()))?);
        space.close()?;
        Ok(Exit::Done)
    }
}
