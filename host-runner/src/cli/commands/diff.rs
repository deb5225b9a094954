//! `strata diff`: what changed between two revisions.

use super::scenes;
use crate::cli::exit::Exit;
use crate::cli::open;
use crate::cli::options::Settings;
use crate::cli::terminal::Terminal;
use anyhow::Result;
use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  strata diff persona 1 3\n  strata history persona      lists the revisions")]
pub(crate) struct Diff {
    /// The id of a memory, a scene or a message; `persona` for the persona
    #[arg(value_name = "ID")]
    id: String,
    /// The earlier revision
    before: u32,
    /// The later revision
    after: u32,
}

impl Diff {
    pub(crate) fn run(&self, settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        let space = open::look(settings)?;
        let difference = space.diff(scenes::id_of(&space, &self.id)?, self.before, self.after)?;
        if terminal.json {
            terminal.document(&serde_json::json!({"id": self.id, "before": self.before, "after": self.after, "diff": difference}));
        } else {
            terminal.line(difference.trim_end());
        }
        space.close()?;
        Ok(Exit::Done)
    }
}
