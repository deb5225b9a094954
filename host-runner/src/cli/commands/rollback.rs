//! `strata rollback`: an earlier revision becomes current, as a new revision.

use super::scenes;
use crate::cli::exit::Exit;
use crate::cli::open;
use crate::cli::options::Settings;
use crate::cli::terminal::Terminal;
use anyhow::Result;
use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strata history persona\n  strata rollback persona 2\n\nNothing is lost: the revision that was current stays in the history."
)]
pub(crate) struct Rollback {
    /// The id of a memory, a scene or a message; `persona` for the persona
    #[arg(value_name = "ID")]
    id: String,
    /// The revision to go back to
    revision: u32,
}

impl Rollback {
    pub(crate) fn run(&self, settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        let space = open::look(settings)?;
        terminal.outline(&open::document(space.rollback(scenes::id_of(&space, &self.id)?, self.revision, strata_host::now()))?);
        space.close()?;
        Ok(Exit::Done)
    }
}
