//! `strata retry`: failed work is due again, and done.

use crate::cli::exit::Exit;
use crate::cli::open;
use crate::cli::options::Settings;
use crate::cli::terminal::Terminal;
use anyhow::Result;
use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strata status               shows what failed and why\n  strata retry                tries all of it\n  strata retry l1             tries one layer"
)]
pub(crate) struct Retry {
    /// The layer whose work to try again: l1, l2, l3, offload, embedding; all if absent
    #[arg(default_value = "")]
    layer: String,
}

impl Retry {
    pub(crate) fn run(&self, settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        let space = open::work(settings)?;
        let answer = open::document(space.retry(self.layer.clone(), strata_host::now()))?;
        open::finish(&space, settings, terminal)?;
        terminal.outline(&answer);
        let exit = open::warn_of_failures(&space, terminal)?;
        space.close()?;
        Ok(exit)
    }
}
