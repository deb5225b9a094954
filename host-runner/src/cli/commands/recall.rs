//! `strata recall`: the exact text that would enter a prompt.

use crate::cli::exit::Exit;
use crate::cli::open;
use crate::cli::options::Settings;
use crate::cli::terminal::Terminal;
use anyhow::Result;
use clap::Args;
use serde_json::json;
use strata_host::contract::PromptEvent;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  strata recall \"what shall I cook for my mother\"
  strata recall \"plan my Saturday\" --dynamic        only the part that goes beside the user's text
  strata recall \"plan my Saturday\" --json | jq -r .recalled[]
  strata trace a_0123456789abcdef                  where a line comes from")]
pub(crate) struct Recall {
    /// What the user writes
    prompt: String,
    /// Print only the stable part: persona, scenes, tool guide
    #[arg(long, conflicts_with = "dynamic")]
    stable: bool,
    /// Print only the dynamic part: the memories that fit this prompt
    #[arg(long)]
    dynamic: bool,
}

impl Recall {
    pub(crate) fn run(&self, settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        let space = open::look(settings)?;
        let event = PromptEvent {
            scope: settings.scope.clone(),
            prompt: self.prompt.clone(),
            query_vector: open::query_vector(&space, settings, &self.prompt, terminal)?,
            at: strata_host::now(),
            ..PromptEvent::default()
        };
        let injection = space.before_prompt_build(event)?;
        space.close()?;
        if terminal.json {
            terminal.document(&json!(injection));
        } else {
            // Nothing but the text goes to standard output, so that a script can put it into a prompt.
            let stable = if self.dynamic { "" } else { injection.stable.trim_end() };
            let dynamic = if self.stable { "" } else { injection.dynamic.trim_end() };
            for part in [stable, dynamic].into_iter().filter(|part| !part.is_empty()) {
                terminal.line(part);
            }
            if injection.cut + injection.dropped > 0 {
                terminal.note(format!("to fit the budget, {} memories were shortened and {} left out", injection.cut, injection.dropped));
            }
            if injection.partial {
                terminal.warn("some source could not be read; what is here is still right");
            }
            if stable.is_empty() && dynamic.is_empty() {
                terminal.note("nothing fits this prompt");
            }
        }
        Ok(Exit::Done)
    }
}
