//! `strata flush`: all waiting work is done now.

use crate::cli::exit::Exit;
use crate::cli::open;
use crate::cli::options::Settings;
use crate::cli::terminal::Terminal;
use anyhow::Result;
use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strata flush                distil what waits for more turns or for time\n\nWith a model configured it asks the model; it may be interrupted at any time."
)]
pub(crate) struct Flush {}

impl Flush {
    pub(crate) fn run(&self, settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        let space = open::work(settings)?;
        open::finish(&space, settings, terminal)?;
        terminal.outline(&open::document(space.status())?);
        let exit = open::warn_of_failures(&space, terminal)?;
        space.close()?;
        Ok(exit)
    }
}
