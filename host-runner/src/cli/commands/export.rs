//! `strata export`: everything as JSON Lines and Markdown.

use crate::cli::exit::Exit;
use crate::cli::open;
use crate::cli::options::Settings;
use crate::cli::terminal::Terminal;
use anyhow::Result;
use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strata export               below exports/ of the data directory, named after the time\n  strata export move          and `strata import ~/.strata/exports/move --data DIR` takes it up elsewhere"
)]
pub(crate) struct Export {
    /// The export's name
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

impl Export {
    pub(crate) fn run(&self, settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        let now = strata_host::now();
        let name = self.name.clone().unwrap_or_else(|| crate::cli::clock::file_name(now, &settings.zone));
        let space = open::look(settings)?;
        terminal.outline(&open::document(space.export(name, now))?);
        space.close()?;
        Ok(Exit::Done)
    }
}
