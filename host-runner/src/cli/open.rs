//! Opening a space for a command.

use super::exit::Exit;
use super::options::Settings;
use super::terminal::Terminal;
use anyhow::{Context, Result};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use strata_host::models::HttpModels;
use strata_host::{Clock, Options, Space, SpaceError};

/// How often progress is shown while work is being done.
const GLANCE: Duration = Duration::from_millis(150);

/// How long a query's vector may take, in milliseconds: the default of the setting `recall.timeoutMs`.
const RECALL_MS: u64 = 5000;

/// Opens the space to look at it or to change it by one call. Waiting work is left alone: a command that lists memories
/// must not begin to ask a model.
pub(crate) fn look(settings: &Settings) -> Result<Space> {
    if !settings.has_space() {
        return Err(Missing(settings.data.display().to_string()).into());
    }
    open(settings, Clock::Manual { opened_at: strata_host::now() })
}

/// Opens the space, making it if there is none, and lets it do its work.
pub(crate) fn work(settings: &Settings) -> Result<Space> {
    open(settings, Clock::System)
}

/// Opens the space, making it if there is none, and leaves its work alone.
pub(crate) fn quiet(settings: &Settings) -> Result<Space> {
    open(settings, Clock::Manual { opened_at: strata_host::now() })
}

/// Opens a space whose database is lost or damaged: the backup `name` takes its place.
pub(crate) fn damaged(settings: &Settings, name: &str) -> Result<Space> {
    let mut settings = settings.clone();
    settings.config.settings.insert("restoreIfDamaged".into(), name.into());
    quiet(&settings)
}

fn open(settings: &Settings, clock: Clock) -> Result<Space> {
    let options = Options { settings: settings.config.settings.clone(), models: Arc::new(HttpModels::new(&settings.config)), clock, ..Options::default() };
    Ok(Space::open(&settings.data, options)?)
}

/// Returns the document that a call answered.
pub(crate) fn document(answer: Result<String, SpaceError>) -> Result<Value> {
    serde_json::from_str(&answer?).context("the engine answered what is not JSON")
}

/// Makes all waiting work due, and waits until it is done. It may be interrupted at any time: what is done stays done,
/// and the rest is done by the next command that works.
pub(crate) fn finish(space: &Space, settings: &Settings, terminal: &Terminal) -> Result<()> {
    space.flush(strata_host::now())?;
    let spinner = terminal.spinner("  {spinner} {msg} {elapsed}");
    let by = settings.config.llm.as_ref().map_or("by rules".to_owned(), |llm| format!("with {} (Ctrl-C is safe)", llm.model));
    loop {
        let state = space.settle(GLANCE)?;
        if state.quiet {
            break;
        }
        let status = document(space.status())?;
        spinner.set_message(format!("distilling {by}: {} memories so far", status["atoms"]));
        spinner.tick();
    }
    spinner.finish_and_clear();
    Ok(())
}

/// Warns about work that failed, so that a command that ran through does not look like success.
pub(crate) fn warn_of_failures(space: &Space, terminal: &Terminal) -> Result<Exit> {
    let status = document(space.status())?;
    let dead = status.pointer("/failed/dead").and_then(Value::as_u64).unwrap_or(0);
    let waiting = status.pointer("/waiting/retries").and_then(Value::as_array).map_or(0, Vec::len);
    if dead > 0 {
        terminal.warn(format!("{dead} batches failed for good; `strata status` says why, `strata retry` tries them again"));
    }
    if waiting > 0 {
        terminal.warn(format!("{waiting} batches failed and are tried again later; `strata status` says why"));
    }
    Ok(if dead > 0 { Exit::Failed } else { Exit::Done })
}

/// There is no memory in the directory.
#[derive(Debug)]
pub(crate) struct Missing(String);

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "there is no memory in {} yet; `strata import FILE` makes one, --data DIR names another", self.0)
    }
}

impl std::error::Error for Missing {}

/// Returns the query's vector by the host's embedding model, if there is one and it answers in time; words and the
/// built-in embedder serve otherwise.
pub(crate) fn query_vector(space: &Space, settings: &Settings, text: &str, terminal: &Terminal) -> Result<Option<Vec<f32>>> {
    if settings.config.embedding.is_none() {
        return Ok(None);
    }
    let limit_ms = settings.config.settings.get("recall").and_then(|recall| recall.get("timeoutMs")).and_then(Value::as_u64).unwrap_or(RECALL_MS);
    let text = space.query_text(text.to_owned())?;
    match HttpModels::new(&settings.config).embed(&text, Duration::from_millis(limit_ms)) {
        Some(Err(reason)) => {
            terminal.warn(format!("the query is not embedded: {reason}"));
            Ok(None)
        }
        answer => Ok(answer.and_then(Result::ok)),
    }
}
