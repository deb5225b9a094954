//! `strata backup`: a verified copy of the space, while it stays open.

use crate::cli::exit::Exit;
use crate::cli::open;
use crate::cli::options::Settings;
use crate::cli::terminal::Terminal;
use anyhow::Result;
use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strata backup               named after the time\n  strata backup before-move   below backups/ of the data directory\n  strata restore before-move"
)]
pub(crate) struct Backup {
    /// The copy's name
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

impl Backup {
    pub(crate) fn run(&self, settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        let now = strata_host::now();
        let name = self.name.clone().unwrap_or_else(|| crate::cli::clock::file_name(now, &settings.zone));
        let space = open::look(settings)?;
        terminal.outline(&open::document(space.backup(name, now))?);
        space.close()?;
        Ok(Exit::Done)
    }
}
