//! `strata search`: memories or messages by words or meaning.

use super::browse;
use crate::cli::exit::Exit;
use crate::cli::options::Settings;
use crate::cli::terminal::Terminal;
use crate::cli::{clock, open};
use anyhow::Result;
use clap::{Args, ValueEnum};
use serde_json::Value;
use strata_host::contract::SearchRequest;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  strata search \"where does she live\"
  strata search cello --messages -n 20
  strata search rate --believed-at 2026-09-20       as it was believed then
  strata search 花生 --strategy keyword")]
pub(crate) struct Search {
    /// What to look for; plain words, no query syntax
    query: String,
    /// Search what was said instead of what was concluded
    #[arg(long)]
    messages: bool,
    /// By words, by meaning, or both [default: the setting]
    #[arg(long, value_enum)]
    strategy: Option<Strategy>,
    /// Results, 1 to 100
    #[arg(short = 'n', long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: u32,
    /// Answer as things were believed at this time
    #[arg(long, value_name = "TIME")]
    believed_at: Option<String>,
    /// Answer what was true at this time
    #[arg(long, value_name = "TIME")]
    true_at: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Strategy {
    Keyword,
    Vector,
    Hybrid,
}

impl Search {
    pub(crate) fn run(&self, settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        let now = strata_host::now();
        let time = |flag: &str, text: &Option<String>| text.as_ref().map(|text| clock::parse(flag, text, &settings.zone, now)).transpose();
        let (believed_at, true_at) = (time("--believed-at", &self.believed_at)?, time("--true-at", &self.true_at)?);
        let space = open::look(settings)?;
        let strategy = match self.strategy {
            None => "",
            Some(Strategy::Keyword) => "keyword",
            Some(Strategy::Vector) => "vector",
            Some(Strategy::Hybrid) => "hybrid",
        };
        let request = SearchRequest {
            scope: settings.scope.clone(),
            query: self.query.clone(),
            layer: if self.messages { "messages" } else { "atoms" }.into(),
            strategy: strategy.into(),
            limit: self.limit,
            query_vector: if strategy == "keyword" { None } else { open::query_vector(&space, settings, &self.query, terminal)? },
            believed_at,
            true_at,
            at: now,
        };
        let found = open::document(space.search(request))?;
        space.close()?;
        let results = found.get("results").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if terminal.json {
            terminal.document(&found);
        } else {
            results.iter().for_each(|row| browse::row(row, terminal));
            if results.is_empty() {
                terminal.note(format!("nothing about \"{}\"; `strata search --messages` looks into what was said", self.query));
            }
        }
        Ok(if results.is_empty() { Exit::NotFound } else { Exit::Done })
    }
}
