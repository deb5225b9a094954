//! `strata config-schema`: the JSON Schema of the settings.

use crate::cli::exit::Exit;
use crate::cli::options::Settings;
use crate::cli::terminal::Terminal;
use anyhow::Result;
use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strata config-schema\n\nSettings go under [settings] of ~/.config/strata/config.toml:\n  [settings.recall]\n  maxResults = 8"
)]
pub(crate) struct ConfigSchema {}

impl ConfigSchema {
    pub(crate) fn run(&self, settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        let _not_about_a_space = settings;
        let folder = tempfile::tempdir()?;
        let space = strata_host::Space::open(folder.path(), strata_host::Options::default())?;
        let schema: serde_json::Value = serde_json::from_str(&space.config_schema()?)?;
        space.close()?;
        terminal.document(&schema);
        Ok(Exit::Done)
    }
}
