//! An engine that notes each call as a step of a scenario, so that a story told once in Rust runs
//! unchanged on every driver.
//!
//! With `STRATA_TELL=DIR` each test writes `DIR/<area>/<test>.json`. A test that reaches into the rows
//! cannot be told so; it says `untold`.

#![allow(dead_code, unreachable_pub, reason = "each test crate uses its part")]

use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use strata_core::contract::{
    Answer, CaptureReport, EndEvent, Failure, Injection, Instant, Invocation, Outcome, Outgoing, PromptEvent, Result, Scope, Selector, SessionEvent, ToolEvent,
    ToolReceipt,
};
use strata_core::engine::{Engine, Models};
use strata_core::store::Store;

/// The engine and what was told so far.
pub struct Telling {
    engine: Option<Engine>,
    config: Value,
    models: Models,
    steps: RefCell<Vec<Value>>,
    out: Vec<Outgoing>,
    untold: Cell<bool>,
}

fn outcome<T>(result: &Result<T>, expect: impl FnOnce(&T) -> Value) -> Value {
    match result {
        Ok(value) => expect(value),
        Err(failure) => json!({"$failure": failure.code}),
    }
}

/// Returns what a document must say: all of it, but for sizes of files, the schema's version, and what every question
/// of a layer says.
fn document(text: &str) -> Value {
    let mut value: Value = serde_json::from_str(text).expect("a document is JSON");
    for call in value.get_mut("calls").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(question) = call.get_mut("question").and_then(Value::as_object_mut) {
            question.retain(|name, _| !matches!(name.as_str(), "system" | "schema-json"));
        }
    }
    if let Some(members) = value.as_object_mut() {
        for name in ["bytes", "database-bytes", "schema-version"] {
            members.remove(name);
        }
        if let Some(searched) = members.get_mut("searched").and_then(Value::as_object_mut) {
            searched.retain(|name, _| name == "found");
        }
    }
    json!({"$json": value})
}

impl Telling {
    pub fn new(engine: Engine, config: Value, models: Models) -> Self {
        let mut telling = Self { engine: Some(engine), config, models, steps: RefCell::default(), out: Vec::new(), untold: Cell::new(false) };
        telling.out = telling.engine_mut().drain();
        telling
    }

    fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("open")
    }

    fn engine_mut(&mut self) -> &mut Engine {
        self.engine.as_mut().expect("open")
    }

    /// Says that the story has reached into the rows.
    pub fn untold(&self) {
        self.untold.set(true);
    }

    pub fn store(&self) -> &Store {
        self.engine().store()
    }

    pub fn drain(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.out)
    }

    /// Drops the engine without closing it and takes another one that was opened on the same disk.
    pub fn crash(&mut self, open: impl FnOnce() -> Engine) {
        drop(self.engine.take());
        self.engine = Some(open());
        self.out.clear();
        self.note("crash", json!({}), Value::Null);
    }

    /// Notes a step that is no call of the engine.
    pub fn step(&self, step: Value) {
        self.steps.borrow_mut().push(step);
    }

    fn note(&mut self, call: &str, with: Value, expect: Value) {
        let out = self.engine_mut().drain();
        let mut step = json!({"call": call, "with": with});
        if !expect.is_null() {
            step["expect"] = expect;
        }
        let asked: Vec<Value> = out
            .iter()
            .filter_map(|outgoing| match outgoing {
                Outgoing::AskModel { id, request } => Some(json!({"kind": "llm", "id": id, "purpose": request.purpose})),
                _ => None,
            })
            .collect();
        let cancelled: Vec<&String> = out
            .iter()
            .filter_map(|outgoing| match outgoing {
                Outgoing::CancelModel { id } => Some(id),
                _ => None,
            })
            .collect();
        if !asked.is_empty() {
            step["requests"] = asked.into();
        }
        if !cancelled.is_empty() {
            step["cancelled"] = json!(cancelled);
        }
        self.step(step);
        self.out.extend(out);
    }

    pub fn agent_end(&mut self, event: &EndEvent) -> Result<CaptureReport> {
        let result = self.engine_mut().agent_end(event);
        let expect = outcome(&result, |report| json!({"stored": {"$count": report.stored.len()}, "known": report.known}));
        self.note("agent-end", json!(event), expect);
        result
    }

    pub fn tick(&mut self, now: Instant, models: Models) -> Result<Option<Instant>> {
        if models != self.models {
            self.untold();
        }
        let result = self.engine_mut().tick(now, models);
        // When to look again is what a story of deadlines is about; elsewhere it would only be in the way.
        let expect = outcome(&result, |_| Value::Null);
        self.note("tick", json!({"now": now}), expect);
        result
    }

    /// Ticks in a story that is about the deadline.
    pub fn deadline(&mut self, now: Instant, models: Models) -> Result<Option<Instant>> {
        let result = self.engine_mut().tick(now, models);
        self.note("tick", json!({"now": now}), outcome(&result, |next| json!(next)));
        result
    }

    pub fn complete(&mut self, id: &str, answer: Outcome, at: Instant) -> Result<bool> {
        let with = json!({"request-id": id, "outcome": answer, "at": at});
        let result = self.engine_mut().complete(id, answer, at);
        self.note("complete", with, outcome(&result, |taken| json!(taken)));
        result
    }

    pub fn flush(&mut self, at: Instant) -> Result<()> {
        let result = self.engine_mut().flush(at);
        self.note("flush", json!({"at": at}), Value::Null);
        result
    }

    pub fn session_end(&mut self, event: &SessionEvent) -> Result<()> {
        let result = self.engine_mut().session_end(event);
        self.note("session-end", json!(event), Value::Null);
        result
    }

    pub fn before_prompt_build(&mut self, event: &PromptEvent) -> Result<Injection> {
        let result = self.engine_mut().before_prompt_build(event);
        self.note("before-prompt-build", json!(event), outcome(&result, |injection| json!({"stable": injection.stable})));
        result
    }

    pub fn after_tool_call(&mut self, event: &ToolEvent) -> Result<ToolReceipt> {
        let result = self.engine_mut().after_tool_call(event);
        self.note("after-tool-call", json!(event), outcome(&result, |receipt| json!({"duplicate": receipt.duplicate})));
        result
    }

    pub fn call_tool(&mut self, invocation: &Invocation) -> Result<Answer> {
        let result = self.engine_mut().call_tool(invocation);
        self.note("call", json!(invocation), outcome(&result, |answer| json!({"is-error": answer.is_error, "text": answer.text})));
        result
    }

    fn told(&mut self, call: &str, with: Value, result: Result<String>) -> Result<String> {
        let expect = outcome(&result, |text| if call == "diff" { json!(text) } else { document(text) });
        self.note(call, with, expect);
        result
    }

    fn looked(&self, call: &str, with: Value, result: Result<String>) -> Result<String> {
        let expect = outcome(&result, |text| if call == "diff" { json!(text) } else { document(text) });
        self.step(json!({"call": call, "with": with, "expect": expect}));
        result
    }

    pub fn trace(&self, id: &str) -> Result<String> {
        self.looked("trace", json!({"id": id}), self.engine().trace(id))
    }

    pub fn why(&self, id: &str) -> Result<String> {
        self.looked("why", json!({"id": id}), self.engine().why(id))
    }

    pub fn history(&self, id: &str) -> Result<String> {
        self.looked("history", json!({"id": id}), self.engine().history(id))
    }

    pub fn diff(&self, id: &str, before: u32, after: u32) -> Result<String> {
        self.looked("diff", json!({"id": id, "before": before, "after": after}), self.engine().diff(id, before, after))
    }

    pub fn browse(&self, layer: &str, filter: &Selector, after: Option<&str>, limit: u32) -> Result<String> {
        let with = json!({"layer": layer, "filter": filter, "after": after, "limit": limit});
        self.looked("browse", with, self.engine().browse(layer, filter, after, limit))
    }

    pub fn status(&self) -> Result<String> {
        self.looked("status", json!({}), self.engine().status())
    }

    pub fn rollback(&mut self, id: &str, revision: u32, at: Instant) -> Result<String> {
        let result = self.engine_mut().rollback(id, revision, at);
        self.told("rollback", json!({"id": id, "revision": revision, "at": at}), result)
    }

    pub fn edit(&mut self, id: &str, text: &str, at: Instant) -> Result<String> {
        let result = self.engine_mut().edit(id, text, at);
        self.told("edit", json!({"id": id, "text": text, "at": at}), result)
    }

    pub fn pin(&mut self, id: &str, pinned: bool, at: Instant) -> Result<String> {
        let result = self.engine_mut().pin(id, pinned, at);
        self.told("pin", json!({"id": id, "pinned": pinned, "at": at}), result)
    }

    pub fn forget(&mut self, which: &Selector, confirmed: bool, at: Instant) -> Result<String> {
        let result = self.engine_mut().forget(which, confirmed, at);
        self.told("forget", json!({"which": which, "confirmed": confirmed, "at": at}), result)
    }

    pub fn retry(&mut self, layer: &str, at: Instant) -> Result<String> {
        let result = self.engine_mut().retry(layer, at);
        self.told("retry", json!({"layer": layer, "at": at}), result)
    }

    pub fn backup(&mut self, name: &str, at: Instant) -> Result<String> {
        let result = self.engine_mut().backup(name, at);
        self.told("backup", json!({"name": name, "at": at}), result)
    }

    pub fn restore(&mut self, name: &str, at: Instant) -> Result<String> {
        let result = self.engine_mut().restore(name, at);
        self.told("restore", json!({"name": name, "at": at}), result)
    }

    pub fn export(&mut self, name: &str, at: Instant) -> Result<String> {
        let result = self.engine_mut().export(name, at);
        self.told("export", json!({"name": name, "at": at}), result)
    }

    pub fn import(&mut self, scope: &Scope, records: &str, dry_run: bool, at: Instant) -> Result<String> {
        let result = self.engine_mut().import(scope, records, dry_run, at);
        self.told("import", json!({"scope": scope, "records": records, "dry-run": dry_run, "at": at}), result)
    }

    pub fn rebuild(&mut self, at: Instant) -> Result<String> {
        let result = self.engine_mut().rebuild(at);
        self.told("rebuild", json!({"at": at}), result)
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        let Ok(folder) = std::env::var("STRATA_TELL") else { return };
        if self.untold.get() || std::thread::panicking() || self.steps.borrow().is_empty() {
            return;
        }
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("story").to_owned();
        let about = format!("{}{}.", test[..1].to_uppercase(), test[1..].replace('_', " "));
        let area = match env!("CARGO_CRATE_NAME") {
            "forgetting" => "governance",
            "persona" => "l3",
            "scenes" => "l2",
            "trace_ways" => "recall",
            other => other,
        };
        let llm = &self.models.llm;
        let scenario = json!({
            "about": about, "config": self.config,
            "llm": {"available": llm.available, "model": llm.model, "json-schema": llm.json_schema},
            "steps": *self.steps.borrow(),
        });
        let head = format!("{{\n  \"about\": {},\n  \"config\": {},\n  \"llm\": {},\n  \"steps\": [\n", scenario["about"], scenario["config"], scenario["llm"]);
        let steps: Vec<String> = self.steps.borrow().iter().map(|step| format!("    {step}")).collect();
        let text = format!("{head}{}\n  ]\n}}\n", steps.join(",\n"));
        let folder = format!("{folder}/{area}");
        let name = test.replace('_', "-");
        let place = |number: usize| if number == 1 { format!("{folder}/{name}.json") } else { format!("{folder}/{name}-{number}.json") };
        let taken = |path: &str| TOLD.with_borrow(|told| told.iter().any(|known| known == path));
        let path = (1..100).map(place).find(|path| !taken(path)).expect("fewer than a hundred spaces a test");
        TOLD.with_borrow_mut(|told| told.push(path.clone()));
        std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, text)).unwrap_or_else(|error| eprintln!("{path}: {error}"));
    }
}

thread_local! {
    /// What this test has written.
    static TOLD: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Returns a refusal, for tests that turn one into a document.
pub fn refused(failure: &Failure) -> Value {
    json!({"removed": {}, "refused": failure.message})
}
