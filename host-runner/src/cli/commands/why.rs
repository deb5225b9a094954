//! `strata why`: the model call or rule that made a memory.

use super::scenes;
use crate::cli::exit::Exit;
use crate::cli::open;
use crate::cli::options::Settings;
use crate::cli::terminal::Terminal;
use anyhow::Result;
use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  strata why a_0123456789abcdef\n  strata why persona --json")]
pub(crate) struct Why {
    /// The id of a memory, a scene or a message; `persona` for the persona
    #[arg(value_name = "ID")]
    id: String,
}

impl Why {
    pub(crate) fn run(&self, settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        let space = open::look(settings)?;
        terminal.outline(&open::document(space.why(scenes::id_of(&space, &self.id)?))?);
        space.close()?;
        Ok(Exit::Done)
    }
}
