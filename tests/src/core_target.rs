//! The core itself, natively over a directory, as a host under test.

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use strata_core::contract::{Abilities, EmbeddingModel, Failure, Instant, Outgoing, Scope, Selector};
use strata_core::disk::StdDisk;
use strata_core::engine::{self, Engine, Models};
use strata_host::conformance::{Answer, Asked, ScriptedModels, Target};

/// The engine without any host.
#[derive(Debug)]
pub struct CoreTarget {
    directory: PathBuf,
    models: Models,
    engine: Option<Engine>,
    outgoing: Vec<Outgoing>,
}

impl CoreTarget {
    /// Returns a target on an empty directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), models: Models::default(), engine: None, outgoing: Vec::new() }
    }

    /// Calls the engine as the component does: what it asks for goes out after each call.
    fn with<T: Serialize>(&mut self, call: impl FnOnce(&mut Engine) -> Result<T, Failure>) -> Result<Answer> {
        let Some(engine) = &mut self.engine else { return Ok(Err(not_open())) };
        let result = call(engine);
        self.outgoing.extend(engine.drain());
        answer(result)
    }
}

impl Target for CoreTarget {
    fn name(&self) -> &'static str {
        "core"
    }

    fn directory(&self) -> &Path {
        &self.directory
    }

    fn set_models(&mut self, models: ScriptedModels) {
        self.models = Models {
            llm: Abilities { available: models.llm.available, model: models.llm.model, json_schema: models.llm.json_schema },
            embedding: models.embedding.map(|model| EmbeddingModel { name: model.name, dimensions: model.dimensions, batch: model.batch }),
        };
    }

    fn open(&mut self, settings: &Map<String, Value>, at: Instant) -> Result<Answer> {
        let disk = Rc::new(StdDisk::new(&self.directory));
        match Engine::open(disk, &Value::Object(settings.clone()).to_string(), self.models.clone(), at) {
            Ok((mut engine, opened)) => {
                self.outgoing.extend(engine.drain());
                self.engine = Some(engine);
                answer(Ok(opened))
            }
            Err(failure) => answer::<Value>(Err(failure)),
        }
    }

    fn close(&mut self, at: Instant) -> Result<Answer> {
        match self.engine.take() {
            Some(engine) => answer(engine.close(at)),
            None => Ok(Err(not_open())),
        }
    }

    fn crash(&mut self) -> Result<()> {
        // A dropped connection folds the WAL as closing does; a forgotten one leaves the files as a
        // kill would.
        std::mem::forget(self.engine.take());
        Ok(())
    }

    fn call(&mut self, call: &str, with: Map<String, Value>) -> Result<Answer> {
        let mut with = Arguments { call: call.to_owned(), with };
        let answer = match call {
            "config-schema" => answer(Ok(engine::config_schema())),
            "query-text" => answer(Ok(engine::query_text(&with.take::<String>("prompt")?))),
            "before-message-write" => answer(Ok(engine::before_message_write(&with.record()?))),
            "list" => answer(Ok(engine::list_tools())),
            "flush" => {
                let at = with.take("at")?;
                self.with(|engine| engine.flush(at))
            }
            "status" => self.with(|engine| engine.status()),
            "before-prompt-build" => {
                let event = with.record()?;
                self.with(|engine| engine.before_prompt_build(&event))
            }
            "after-tool-call" => {
                let event = with.record()?;
                self.with(|engine| engine.after_tool_call(&event))
            }
            "agent-end" => {
                let event = with.record()?;
                self.with(|engine| engine.agent_end(&event))
            }
            "session-end" => {
                let event = with.record()?;
                self.with(|engine| engine.session_end(&event))
            }
            "assemble" => {
                let request = with.record()?;
                self.with(|engine| engine.assemble(&request))
            }
            "report-usage" => {
                let (model, estimated, reported): (String, u32, u32) = (with.take("model")?, with.take("estimated-tokens")?, with.take("reported-tokens")?);
                self.with(|engine| engine.report_usage(&model, estimated, reported))
            }
            "call" => {
                let invocation = with.record()?;
                self.with(|engine| engine.call_tool(&invocation))
            }
            "tick" => {
                let (now, models): (Instant, Models) = (with.take("now")?, self.models.clone());
                self.with(|engine| engine.tick(now, models))
            }
            "complete" => {
                let (id, outcome, at): (String, _, Instant) = (with.take("request-id")?, with.take("outcome")?, with.take("at")?);
                self.with(|engine| engine.complete(&id, outcome, at))
            }
            _ => self.memory(call, &mut with),
        }?;
        match with.with.keys().next() {
            Some(name) => bail!("{call} has no argument `{name}`"),
            None => Ok(answer),
        }
    }

    fn asked(&mut self) -> Result<Asked> {
        let mut asked = Asked::default();
        for one in std::mem::take(&mut self.outgoing) {
            match one {
                Outgoing::AskModel { id, request } => {
                    let mut line = json!({"kind": "llm", "id": id});
                    if let (Some(line), Value::Object(request)) = (line.as_object_mut(), serde_json::to_value(request)?) {
                        line.extend(request);
                    }
                    asked.requests.push(line);
                }
                Outgoing::Embed { id, texts } => asked.requests.push(json!({"kind": "embedding", "id": id, "texts": texts})),
                Outgoing::CancelModel { id } | Outgoing::CancelEmbed { id } => asked.cancelled.push(id),
                Outgoing::Log { .. } => {}
            }
        }
        Ok(asked)
    }
}

impl CoreTarget {
    /// Calls an export of the interface `memory`.
    fn memory(&mut self, call: &str, with: &mut Arguments) -> Result<Answer> {
        match call {
            "browse" => {
                let (layer, filter, after, limit): (String, Selector, Option<String>, u32) =
                    (with.take("layer")?, with.take("filter")?, with.take("after")?, with.take("limit")?);
                self.with(|engine| engine.browse(&layer, &filter, after.as_deref(), limit))
            }
            "search" => {
                let request = with.record()?;
                self.with(|engine| engine.search(&request))
            }
            "trace" => {
                let id: String = with.take("id")?;
                self.with(|engine| engine.trace(&id))
            }
            "why" => {
                let id: String = with.take("id")?;
                self.with(|engine| engine.why(&id))
            }
            "history" => {
                let id: String = with.take("id")?;
                self.with(|engine| engine.history(&id))
            }
            "diff" => {
                let (id, before, after): (String, u32, u32) = (with.take("id")?, with.take("before")?, with.take("after")?);
                self.with(|engine| engine.diff(&id, before, after))
            }
            "rollback" => {
                let (id, revision, at): (String, u32, Instant) = (with.take("id")?, with.take("revision")?, with.take("at")?);
                self.with(|engine| engine.rollback(&id, revision, at))
            }
            "edit" => {
                let (id, text, at): (String, String, Instant) = (with.take("id")?, with.take("text")?, with.take("at")?);
                self.with(|engine| engine.edit(&id, &text, at))
            }
            "pin" => {
                let (id, pinned, at): (String, bool, Instant) = (with.take("id")?, with.take("pinned")?, with.take("at")?);
                self.with(|engine| engine.pin(&id, pinned, at))
            }
            "forget" => {
                let (which, confirmed, at): (Selector, bool, Instant) = (with.take("which")?, with.take("confirmed")?, with.take("at")?);
                self.with(|engine| engine.forget(&which, confirmed, at))
            }
            "retry" => {
                let (layer, at): (String, Instant) = (with.take("layer")?, with.take("at")?);
                self.with(|engine| engine.retry(&layer, at))
            }
            "import" => {
                let (scope, records, dry_run, at): (Scope, String, bool, Instant) =
                    (with.take("scope")?, with.take("records")?, with.take("dry-run")?, with.take("at")?);
                self.with(|engine| engine.import(&scope, &records, dry_run, at))
            }
            "rebuild" => {
                let at: Instant = with.take("at")?;
                self.with(|engine| engine.rebuild(at))
            }
            "backup" | "restore" | "export" => {
                let (name, at): (String, Instant) = (with.take("name")?, with.take("at")?);
                self.with(|engine| match call {
                    "backup" => engine.backup(&name, at),
                    "restore" => engine.restore(&name, at),
                    _ => engine.export(&name, at),
                })
            }
            _ => bail!("the contract has no export `{call}`"),
        }
    }
}

/// What a step calls with; what is left over afterwards was misnamed.
struct Arguments {
    call: String,
    with: Map<String, Value>,
}

impl Arguments {
    fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<T> {
        match self.with.remove(name) {
            Some(value) => serde_json::from_value(value),
            // An absent option is none, an absent record is all defaults; anything else must be there.
            None => serde_json::from_value(Value::Null).or_else(|_| serde_json::from_value(Value::Object(Map::new()))),
        }
        .with_context(|| format!("{}: argument `{name}`", self.call))
    }

    fn record<T: DeserializeOwned>(&mut self) -> Result<T> {
        serde_json::from_value(Value::Object(std::mem::take(&mut self.with))).with_context(|| self.call.clone())
    }
}

fn answer<T: Serialize>(result: Result<T, Failure>) -> Result<Answer> {
    Ok(match result {
        Ok(value) => Ok(serde_json::to_value(value)?),
        Err(failure) => Err(serde_json::to_value(failure)?),
    })
}

fn not_open() -> Value {
    json!({"code": "not-open", "message": "no space is open; call `open` first"})
}
