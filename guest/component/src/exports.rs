//! The exports: each is one call of the engine between two conversions.

use crate::bindings::exports::strata::memory::{hooks, lifecycle, memory, tools, work};
use crate::bindings::strata::memory::types::{Failure, Instant, Scope};
use crate::wasi_disk::WasiDisk;
use crate::{Component, ENGINE, Inside, convert, not_open, outgoing, with_engine};
use std::rc::Rc;
use strata_core::contract as core;
use strata_core::engine::{self, Engine};

impl lifecycle::Guest for Component {
    fn config_schema() -> String {
        engine::config_schema()
    }

    fn open(config_json: String, at: Instant) -> Result<lifecycle::Opened, Failure> {
        open(&config_json, at).map(convert::opened).map_err(convert::failure)
    }

    fn flush(at: Instant) -> Result<(), Failure> {
        with_engine(|engine| engine.flush(at)).map_err(convert::failure)
    }

    fn close(at: Instant) -> Result<(), Failure> {
        let close = || {
            let _inside = Inside::enter()?;
            let engine = ENGINE.take().ok_or_else(not_open)?;
            engine.close(at)
        };
        close().map_err(convert::failure)
    }

    fn status() -> Result<String, Failure> {
        with_engine(|engine| engine.status()).map_err(convert::failure)
    }
}

fn open(config_json: &str, at: Instant) -> core::Result<core::Opened> {
    let _inside = Inside::enter()?;
    if ENGINE.with_borrow(Option::is_some) {
        return Err(core::Failure::new(core::FailureCode::Busy, "this instance holds an open space; close it first"));
    }
    let disk = WasiDisk::first_preopen()?;
    let (mut engine, opened) = Engine::open(Rc::new(disk), config_json, outgoing::models(), at)?;
    let waiting = engine.drain();
    ENGINE.set(Some(engine));
    outgoing::send(waiting);
    Ok(opened)
}

impl hooks::Guest for Component {
    fn query_text(prompt: String) -> String {
        engine::query_text(&prompt)
    }

    fn before_prompt_build(event: hooks::PromptEvent) -> Result<hooks::Injection, Failure> {
        let event = convert::prompt_event(event);
        with_engine(|engine| engine.before_prompt_build(&event)).map(convert::injection).map_err(convert::failure)
    }

    fn before_message_write(event: hooks::WriteEvent) -> String {
        engine::before_message_write(&convert::write_event(event))
    }

    fn after_tool_call(event: hooks::ToolEvent) -> Result<hooks::ToolReceipt, Failure> {
        let event = convert::tool_event(event);
        with_engine(|engine| engine.after_tool_call(&event)).map(convert::tool_receipt).map_err(convert::failure)
    }

    fn agent_end(event: hooks::EndEvent) -> Result<hooks::CaptureReport, Failure> {
        let event = convert::end_event(event);
        with_engine(|engine| engine.agent_end(&event)).map(convert::capture_report).map_err(convert::failure)
    }

    fn session_end(event: hooks::SessionEvent) -> Result<(), Failure> {
        let event = convert::session_event(event);
        with_engine(|engine| engine.session_end(&event)).map_err(convert::failure)
    }

    fn assemble(request: hooks::AssembleRequest) -> Result<hooks::Assembled, Failure> {
        let request = convert::assemble_request(request);
        with_engine(|engine| engine.assemble(&request)).map(convert::assembled).map_err(convert::failure)
    }

    fn report_usage(model: String, estimated_tokens: u32, reported_tokens: u32) -> Result<(), Failure> {
        with_engine(|engine| engine.report_usage(&model, estimated_tokens, reported_tokens)).map_err(convert::failure)
    }
}

impl tools::Guest for Component {
    fn list() -> String {
        engine::list_tools()
    }

    fn call(invocation: tools::Invocation) -> Result<tools::Answer, Failure> {
        let invocation = convert::invocation(invocation);
        with_engine(|engine| engine.call_tool(&invocation)).map(convert::answer).map_err(convert::failure)
    }
}

impl work::Guest for Component {
    fn tick(now: Instant) -> Result<Option<Instant>, Failure> {
        let models = outgoing::models();
        with_engine(|engine| engine.tick(now, models)).map_err(convert::failure)
    }

    fn complete(request_id: String, outcome: work::Outcome, at: Instant) -> Result<bool, Failure> {
        let outcome = convert::outcome(outcome);
        with_engine(|engine| engine.complete(&request_id, outcome, at)).map_err(convert::failure)
    }
}

impl memory::Guest for Component {
    fn browse(layer: String, filter: memory::Selector, after: Option<String>, limit: u32) -> Result<String, Failure> {
        let filter = convert::selector(filter);
        with_engine(|engine| engine.browse(&layer, &filter, after.as_deref(), limit)).map_err(convert::failure)
    }

    fn search(request: memory::SearchRequest) -> Result<String, Failure> {
        let request = convert::search_request(request);
        with_engine(|engine| engine.search(&request)).map_err(convert::failure)
    }

    fn trace(id: String) -> Result<String, Failure> {
        with_engine(|engine| engine.trace(&id)).map_err(convert::failure)
    }

    fn why(id: String) -> Result<String, Failure> {
        with_engine(|engine| engine.why(&id)).map_err(convert::failure)
    }

    fn history(id: String) -> Result<String, Failure> {
        with_engine(|engine| engine.history(&id)).map_err(convert::failure)
    }

    fn diff(id: String, before: u32, after: u32) -> Result<String, Failure> {
        with_engine(|engine| engine.diff(&id, before, after)).map_err(convert::failure)
    }

    fn rollback(id: String, revision: u32, at: Instant) -> Result<String, Failure> {
        with_engine(|engine| engine.rollback(&id, revision, at)).map_err(convert::failure)
    }

    fn edit(id: String, text: String, at: Instant) -> Result<String, Failure> {
        with_engine(|engine| engine.edit(&id, &text, at)).map_err(convert::failure)
    }

    fn pin(id: String, pinned: bool, at: Instant) -> Result<String, Failure> {
        with_engine(|engine| engine.pin(&id, pinned, at)).map_err(convert::failure)
    }

    fn forget(which: memory::Selector, confirmed: bool, at: Instant) -> Result<String, Failure> {
        let which = convert::selector(which);
        with_engine(|engine| engine.forget(&which, confirmed, at)).map_err(convert::failure)
    }

    fn retry(layer: String, at: Instant) -> Result<String, Failure> {
        with_engine(|engine| engine.retry(&layer, at)).map_err(convert::failure)
    }

    fn backup(name: String, at: Instant) -> Result<String, Failure> {
        with_engine(|engine| engine.backup(&name, at)).map_err(convert::failure)
    }

    fn restore(name: String, at: Instant) -> Result<String, Failure> {
        with_engine(|engine| engine.restore(&name, at)).map_err(convert::failure)
    }

    fn export(name: String, at: Instant) -> Result<String, Failure> {
        with_engine(|engine| engine.export(&name, at)).map_err(convert::failure)
    }

    fn import(scope: Scope, records: String, dry_run: bool, at: Instant) -> Result<String, Failure> {
        let scope = convert::scope(scope);
        with_engine(|engine| engine.import(&scope, &records, dry_run, at)).map_err(convert::failure)
    }

    fn rebuild(at: Instant) -> Result<String, Failure> {
        with_engine(|engine| engine.rebuild(at)).map_err(convert::failure)
    }
}
