//! The one owner of the state: each export of the contract is a method here.
//!
//! Stages are plain functions that work on a transaction or return decisions; the engine opens the
//! transaction, applies, and collects what must go out.

use crate::calendar::Calendar;
use crate::capture::{self, injected};
use crate::contract::{
    Abilities, Answer, AssembleRequest, Assembled, CaptureReport, EmbeddingModel, EndEvent, FailureCode, Injection, Instant, Invocation, LogLevel, Opened,
    Outcome, Outgoing, PromptEvent, Result, SearchRequest, SessionEvent, ToolEvent, ToolReceipt, WriteEvent, check_time,
};
use crate::disk::Disk;
use crate::offload::intake::{self, Desk};
use crate::offload::session::Sessions;
use crate::offload::{drill, filing, mirror, model, reclaim, reduce};
use crate::settings::{self, Settings};
use crate::space_lock::SpaceLock;
use crate::store::{SCHEMA_VERSION, Store};
use crate::work::{self, Job};
use crate::{backup, inject, l0, retention, schedule, status, tools, trace, vectors};
use serde_json::json;
use std::rc::Rc;

/// What the host's models can do, as last told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Models {
    /// The language model.
    pub llm: Abilities,
    /// The embedding model.
    pub embedding: Option<EmbeddingModel>,
}

/// An open space.
#[derive(Debug)]
pub struct Engine {
    pub(crate) lock: SpaceLock,
    pub(crate) store: Store,
    pub(crate) settings: Settings,
    pub(crate) calendar: Calendar,
    pub(crate) models: Models,
    pub(crate) outgoing: Vec<Outgoing>,
    pub(crate) allowance: tools::Allowance,
    /// Where the next look for edits of files goes on.
    pub(crate) looked_until: String,
    pub(crate) offload_sessions: Sessions,
}

impl Engine {
    /// Opens the space on `disk`; see `wit/lifecycle.wit`.
    pub fn open(disk: Rc<dyn Disk>, config_json: &str, models: Models, at: Instant) -> Result<(Self, Opened)> {
        let settings = Settings::parse(config_json)?;
        let calendar = Calendar::new(&settings.timezone.0)?;
        retention::check(&settings.capture, &calendar)?;
        let lock = SpaceLock::claim(Rc::clone(&disk), &settings, at)?;
        let (store, resumed_requests) = match open_store(disk, &settings, &models, at) {
            Ok(opened) => opened,
            Err(failure) => {
                lock.release()?;
                return Err(failure);
            }
        };
        let opened = Opened { engine_version: env!("CARGO_PKG_VERSION").into(), schema_version: SCHEMA_VERSION, resumed_requests };
        let mut engine = Self {
            lock,
            store,
            settings,
            calendar,
            models,
            outgoing: Vec::new(),
            allowance: tools::Allowance::default(),
            looked_until: String::new(),
            offload_sessions: Sessions::default(),
        };
        engine.offload_sessions.behind = mirror::behind(engine.store.db())?;
        // What a crash left between a commit and its files.
        if let Err(failure) = engine.finish_restore() {
            engine.lock.release()?;
            return Err(failure);
        }
        engine.catch_up_forgetting();
        engine.show(at);
        Ok((engine, opened))
    }

    /// Lets offload work, and tells people of files that the disk refused on the way.
    pub(crate) fn offload<T>(&mut self, step: impl FnOnce(&mut Desk<'_>) -> T) -> T {
        let value = step(&mut Desk { store: &mut self.store, sessions: &mut self.offload_sessions, calendar: &self.calendar });
        for why in std::mem::take(&mut self.offload_sessions.refusals) {
            self.complain("writing the files of a session's tool calls", &why);
        }
        value
    }

    /// Returns the store, for checks by tests and for the owners of exports.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns what must go to the host, in order, and forgets it. Call after every method.
    pub fn drain(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.outgoing)
    }

    /// `lifecycle.flush`.
    pub fn flush(&mut self, at: Instant) -> Result<()> {
        self.store.write(|tx| schedule::flush(tx, at))
    }

    /// `lifecycle.close`.
    pub fn close(mut self, at: Instant) -> Result<()> {
        self.show(at);
        self.store.close()?;
        self.lock.release()
    }

    /// `lifecycle.status`.
    pub fn status(&self) -> Result<String> {
        status::status(self.store.db(), &self.settings, &self.models, &self.offload_sessions.behind).map(|status| status.to_string())
    }

    /// `hooks.before-prompt-build`.
    pub fn before_prompt_build(&mut self, event: &PromptEvent) -> Result<Injection> {
        self.allowance.begin(tools::session_key(&event.scope), inject::turn(event));
        self.offload_sessions.note_prompt(&event.scope, &event.prompt);
        if let Some(scope) = l0::find_scope(self.store.db(), &event.scope)? {
            self.look_at_persona(scope, event.at);
        }
        inject::inject(self.store.db(), &self.store.index(), &self.settings, event)
    }

    /// `hooks.after-tool-call`.
    pub fn after_tool_call(&mut self, event: &ToolEvent) -> Result<ToolReceipt> {
        if !self.settings.offload.enabled {
            return Ok(ToolReceipt { filtered: "offload is off".into(), ..ToolReceipt::default() });
        }
        check_time(event.at)?;
        self.offload(|desk| intake::after_tool_call(desk, event))
    }

    /// `hooks.agent-end`.
    pub fn agent_end(&mut self, event: &EndEvent) -> Result<CaptureReport> {
        self.store.write(|tx| capture::capture(tx, &self.settings.capture, event))
    }

    /// `hooks.session-end`.
    pub fn session_end(&mut self, event: &SessionEvent) -> Result<()> {
        check_time(event.at)?;
        self.store.write(|tx| match l0::find_scope(tx, &event.scope)? {
            Some(scope) => schedule::end_session(tx, scope, &event.scope.session, &event.reason, event.at),
            None => Ok(()),
        })
    }

    /// `hooks.assemble`.
    pub fn assemble(&mut self, request: &AssembleRequest) -> Result<Assembled> {
        let settings = self.settings.offload.clone();
        self.offload(|desk| reduce::reduce(desk, &settings, request))
    }

    /// `hooks.report-usage`.
    pub fn report_usage(&mut self, model: &str, estimated_tokens: u32, reported_tokens: u32) -> Result<()> {
        reduce::report_usage(&mut self.store, model, estimated_tokens, reported_tokens)
    }

    /// `tools.call`.
    pub fn call_tool(&mut self, invocation: &Invocation) -> Result<Answer> {
        if drill::is_tool(&invocation.name) {
            return self.offload(|desk| drill::call(desk, invocation));
        }
        tools::call(&self.store, &self.settings, &mut self.allowance, invocation)
    }

    /// `work.tick`.
    pub fn tick(&mut self, now: Instant, models: Models) -> Result<Option<Instant>> {
        check_time(now)?;
        self.models = models;
        let beat = self.lock.beat(now)?;
        self.look(now);
        let work = self.work(now, schedule::tick)?;
        let cleanup = self.retain(now)?;
        let filing = self.offload(|desk| filing::tick(desk, now));
        let filing = self.or_later("giving offloaded texts their files", filing);
        let reclaim = self.reclaim(now);
        let reclaim = self.or_later("giving disk back", reclaim);
        self.show(now);
        let index = self.store.keep_index()?.then_some(now);
        Ok([beat, work, cleanup, filing, reclaim, index].into_iter().flatten().min())
    }

    /// Returns when to go on. What fails here is tried again at the next tick, and stops nothing else.
    fn or_later(&mut self, what: &str, outcome: Result<Option<Instant>>) -> Option<Instant> {
        outcome.unwrap_or_else(|failure| {
            self.complain(what, &failure.message);
            None
        })
    }

    fn reclaim(&mut self, now: Instant) -> Result<Option<Instant>> {
        let settings = self.settings.offload.clone();
        let (report, next) = self.offload(|desk| reclaim::tick(desk, &settings, now))?;
        if let Some(report) = report {
            let text = format!(
                "offload gave {} bytes back: {} sessions, {} entries, {} texts, {} files without a row; {} sessions stay because a message names their texts",
                report.disk_bytes, report.sessions, report.entries, report.refs, report.orphans, report.kept
            );
            self.outgoing.push(Outgoing::Log { level: LogLevel::Info, text });
        }
        Ok(next)
    }

    /// `work.complete`.
    pub fn complete(&mut self, request_id: &str, outcome: Outcome, at: Instant) -> Result<bool> {
        check_time(at)?;
        let session = model::session_of(self.store.db(), request_id)?;
        let taken = self.work(at, |job| work::complete(job, request_id, &outcome))?;
        if let Some(session) = session.filter(|_| taken) {
            // The answer changed rows under the session in memory.
            self.offload_sessions.drop_cached(session);
            self.offload(|desk| mirror::redraw(desk, session));
        }
        self.show(at);
        Ok(taken)
    }

    /// Runs a step of slow work in one transaction; what goes to the host goes only if it is durable.
    fn work<T>(&mut self, at: Instant, step: impl FnOnce(&mut Job<'_>) -> Result<T>) -> Result<T> {
        let mut out = Vec::new();
        let index = self.store.index();
        let value = self.store.write(|tx| step(&mut Job { tx, index: &index, settings: &self.settings, models: &self.models, at, out: &mut out }))?;
        self.outgoing.append(&mut out);
        Ok(value)
    }

    /// `memory.search`.
    pub fn search(&mut self, request: &SearchRequest) -> Result<String> {
        tools::search(self.store.db(), &self.store.index(), &self.settings, request).map(|found| found.to_string())
    }

    /// `memory.trace`.
    pub fn trace(&self, id: &str) -> Result<String> {
        trace::trace(self.store.db(), self.store.disk(), &Calendar::new(&self.settings.timezone.0)?, id).map(|document| document.to_string())
    }

    /// `memory.retry`.
    pub fn retry(&mut self, layer: &str, at: Instant) -> Result<String> {
        self.store.write(|tx| work::retry(tx, layer, at)).map(|batches| json!({"batches": batches}).to_string())
    }
}

fn open_store(disk: Rc<dyn Disk>, settings: &Settings, models: &Models, at: Instant) -> Result<(Store, u32)> {
    // A restore that a crash cut short may have left an empty database beside full folders.
    let opened = if backup::is_restoring(disk.as_ref())? { Store::open_or_begin(Rc::clone(&disk)) } else { Store::open(Rc::clone(&disk)) };
    let mut store = match (opened, &settings.restore_if_damaged) {
        (Err(failure), Some(name)) if failure.code == FailureCode::Corrupt => {
            backup::begin_restore(disk.as_ref(), name, at)?;
            Store::open_or_begin(disk)?
        }
        (opened, _) => opened?,
    };
    let resumed_requests = store.write(|tx| {
        vectors::describe(tx, models.embedding.as_ref())?;
        work::resume(tx)
    })?;
    Ok((store, resumed_requests))
}

/// `lifecycle.config-schema`.
pub fn config_schema() -> String {
    settings::schema().to_string()
}

/// `hooks.query-text`.
pub fn query_text(prompt: &str) -> String {
    inject::query_text(prompt)
}

/// `hooks.before-message-write`.
pub fn before_message_write(event: &WriteEvent) -> String {
    injected::strip(&event.content)
}

/// `tools.list`.
pub fn list_tools() -> String {
    let mut all = tools::list();
    if let Some(tools) = all.as_array_mut() {
        tools.extend(drill::tools());
    }
    all.to_string()
}
