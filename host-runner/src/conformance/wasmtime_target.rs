//! The component in wasmtime, as a host under test.

use super::{Answer, Asked, ScriptedModels, Target};
use crate::contract::{Abilities, EmbeddingModel, Instant};
use crate::models::{Models, Reply, Request};
use crate::{Clock, Options, Runtime, Space, SpaceError, instance};
use anyhow::{Result, anyhow};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A space on wasmtime under a manual clock.
#[derive(Debug)]
pub struct WasmtimeTarget {
    runtime: Runtime,
    directory: PathBuf,
    models: Arc<Script>,
    space: Option<Space>,
}

impl WasmtimeTarget {
    /// Returns a target on an empty directory.
    pub fn new(runtime: Runtime, directory: impl Into<PathBuf>) -> Self {
        Self { runtime, directory: directory.into(), models: Arc::default(), space: None }
    }

    fn space(&self) -> Result<&Space, Value> {
        self.space.as_ref().ok_or_else(|| json!({"code": "not-open", "message": "no space is open; call `open` first"}))
    }
}

impl Target for WasmtimeTarget {
    fn name(&self) -> &'static str {
        "wasmtime"
    }

    fn directory(&self) -> &Path {
        &self.directory
    }

    fn set_models(&mut self, models: ScriptedModels) {
        *self.models.0.lock().unwrap_or_else(PoisonError::into_inner) = models;
    }

    fn open(&mut self, settings: &Map<String, Value>, at: Instant) -> Result<Answer> {
        let options = Options { settings: settings.clone(), models: self.models.clone(), clock: Clock::Manual { opened_at: at }, ..Options::default() };
        match Space::open_with(&self.runtime, &self.directory, options) {
            Ok(space) => {
                let opened = serde_json::to_value(space.opened())?;
                self.space = Some(space);
                Ok(Ok(opened))
            }
            Err(error) => refusal(error).map(Err),
        }
    }

    fn close(&mut self, at: Instant) -> Result<Answer> {
        match self.space.take() {
            Some(space) => match space.close_at(at) {
                Ok(()) => Ok(Ok(Value::Null)),
                Err(error) => refusal(error).map(Err),
            },
            None => Ok(self.space().map(|_| Value::Null)),
        }
    }

    fn crash(&mut self) -> Result<()> {
        if let Some(space) = self.space.take() {
            space.abandon()?;
        }
        Ok(())
    }

    fn call(&mut self, call: &str, with: Map<String, Value>) -> Result<Answer> {
        match self.space() {
            Ok(space) => match space.call_by_name(call, with)? {
                Ok(value) => Ok(Ok(value)),
                Err(error) => refusal(error).map(Err),
            },
            Err(refused) => Ok(Err(refused)),
        }
    }

    fn asked(&mut self) -> Result<Asked> {
        let Some(space) = &self.space else { return Ok(Asked::default()) };
        let mut asked = Asked::default();
        for one in space.take_requests()? {
            match one {
                instance::Asked::Submit(Request::Ask { id, request }) => {
                    let mut line = json!({"kind": "llm", "id": id});
                    if let (Some(line), Value::Object(request)) = (line.as_object_mut(), serde_json::to_value(request)?) {
                        line.extend(request);
                    }
                    asked.requests.push(line);
                }
                instance::Asked::Submit(Request::Embed { id, texts }) => asked.requests.push(json!({"kind": "embedding", "id": id, "texts": texts})),
                instance::Asked::Cancel(id) => asked.cancelled.push(id),
            }
        }
        Ok(asked)
    }
}

/// Returns the refusal; anything else means that the host is broken.
fn refusal(error: SpaceError) -> Result<Value> {
    match error {
        SpaceError::Refused(failure) => Ok(serde_json::to_value(failure)?),
        broken => Err(anyhow!(broken)),
    }
}

/// The models of a scenario: they can be described, and the scenario itself answers.
#[derive(Debug, Default)]
struct Script(Mutex<ScriptedModels>);

impl Script {
    fn now(&self) -> ScriptedModels {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Models for Script {
    fn abilities(&self) -> Abilities {
        self.now().llm
    }

    fn embedding(&self) -> Option<EmbeddingModel> {
        self.now().embedding
    }

    // Under a manual clock requests are recorded, so these two are never called.
    fn perform(&self, _request: Request, _reply: Reply) {}

    fn cancel(&self, _id: &str) {}
}
