//! Scenarios: events and scripted model answers in; injections, requests and files out.
//!
//! `tests/README.md` is the format's description. A host is checked through [`Target`]; the same
//! scenario must give the same transcript on every one, byte for byte.

mod matching;
mod scenario;
mod transcript;
mod wasmtime_target;

pub use scenario::{Expected, Scenario, Step, find};
pub use transcript::{Verdict, run};
pub use wasmtime_target::WasmtimeTarget;

use crate::contract::{Abilities, EmbeddingModel, Instant};
use serde_json::{Map, Value};
use std::path::Path;

/// A result in JSON by the contract's names, or a refusal as `{"code", "message"}`.
pub type Answer = Result<Value, Value>;

/// Models as a scenario describes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptedModels {
    /// The language model.
    pub llm: Abilities,
    /// The embedding model.
    pub embedding: Option<EmbeddingModel>,
}

/// What a call asked for, as the transcript has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// Requests, as `tests/README.md` describes them.
    pub requests: Vec<Value>,
    /// Ids that were cancelled.
    pub cancelled: Vec<String>,
}

/// A host under test, on an empty data directory of its own. Errors (as opposed to refusals) mean
/// that the scenario or the host is broken.
pub trait Target {
    /// Returns the name that scenarios use for this host in `skip`.
    fn name(&self) -> &'static str;

    /// Returns the data directory.
    fn directory(&self) -> &Path;

    /// Tells what the models can do from now on.
    fn set_models(&mut self, models: ScriptedModels);

    /// Opens the space with `settings`.
    fn open(&mut self, settings: &Map<String, Value>, at: Instant) -> anyhow::Result<Answer>;

    /// Closes the space.
    fn close(&mut self, at: Instant) -> anyhow::Result<Answer>;

    /// Drops the instance without closing it.
    fn crash(&mut self) -> anyhow::Result<()>;

    /// Calls the export `call`.
    fn call(&mut self, call: &str, with: Map<String, Value>) -> anyhow::Result<Answer>;

    /// Returns what was asked for since the last time.
    fn asked(&mut self) -> anyhow::Result<Asked>;
}
