//! `strata rebuild`: every layer derived again from messages and stored model answers, and compared.

use crate::cli::exit::Exit;
use crate::cli::open;
use crate::cli::options::Settings;
use crate::cli::terminal::Terminal;
use anyhow::Result;
use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  strata rebuild              no model is asked: the stored answers are used again")]
pub(crate) struct Rebuild {}

impl Rebuild {
    pub(crate) fn run(&self, settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        let space = open::look(settings)?;
        let spinner = terminal.spinner("  {spinner} deriving every layer again {elapsed}");
        spinner.enable_steady_tick(std::time::Duration::from_millis(100));
        let answer = open::document(space.rebuild(strata_host::now()));
        spinner.finish_and_clear();
        let answer = answer?;
        terminal.outline(&answer);
        space.close()?;
        // Layers that cannot be derived again are what this command looks for: finding one is no success.
        Ok(if answer["identical"] == false { Exit::Failed } else { Exit::Done })
    }
}
