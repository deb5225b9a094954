//! What a host promises around the engine: one holder, bounded calls, a new instance after a trap,
//! and no call that waits for a model.

use serde_json::Value;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use strata_host::contract::{Abilities, EmbeddingModel, EndEvent, FailureCode, Message, PromptEvent, Scope};
use strata_host::models::{Models, Reply, Request};
use strata_host::{Clock, ComponentSource, Limits, Options, Runtime, Space, SpaceError};

const NOW: u64 = 1_780_000_000_000;

/// Longest that a test waits for what must happen; reached only when it fails.
const PATIENCE: Duration = Duration::from_secs(60);

fn runtime() -> Runtime {
    Runtime::new(&ComponentSource::Embedded).expect("the component compiles")
}

fn manual(limits: Limits) -> Options {
    Options { clock: Clock::Manual { opened_at: NOW }, limits, ..Options::default() }
}

fn messages(count: usize, text: &str) -> EndEvent {
    let messages = (0..count).map(|n| Message { role: "user".into(), content: format!("{text} {n}"), ..Message::default() }).collect();
    EndEvent { scope: Scope { session: "s".into(), ..Scope::default() }, messages, success: true, at: NOW }
}

fn count(space: &Space) -> u64 {
    let status: Value = serde_json::from_str(&space.status().expect("status answers")).expect("status is JSON");
    status["messages"].as_u64().expect("status counts messages")
}

#[test]
fn a_second_opener_is_told_who_holds_the_space() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let runtime = runtime();
    let first = Space::open_with(&runtime, directory.path(), manual(Limits::default())).expect("free");
    match Space::open_with(&runtime, directory.path(), manual(Limits::default())) {
        Err(SpaceError::Refused(failure)) => {
            assert_eq!(failure.code, FailureCode::Busy);
            let holder: Value = serde_json::from_str(&failure.message).expect("the holder is JSON");
            assert_eq!(holder["pid"], std::process::id());
        }
        other => panic!("{other:?}"),
    }
    first.close().expect("closed");
    Space::open_with(&runtime, directory.path(), manual(Limits::default())).expect("free again");
}

#[test]
fn a_call_past_its_deadline_costs_the_instance_and_nothing_acknowledged() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let limits = Limits { call_deadline: Duration::from_secs(2), ..Limits::default() };
    let space = Space::open_with(&runtime(), directory.path(), manual(limits)).expect("opens");
    space.agent_end(messages(3, "kept before")).expect("short enough");
    match space.agent_end(messages(100_000, &"too much at once ".repeat(40))) {
        Err(SpaceError::Trapped { call, reason }) => {
            assert_eq!(call, "agent-end");
            assert!(reason.contains("deadline of 2000 ms"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(count(&space), 3, "the next call works, on a new instance");
    space.agent_end(messages(4, "kept after")).expect("works");
    assert_eq!(count(&space), 7);
}

#[test]
fn a_call_past_its_memory_costs_the_instance_and_nothing_acknowledged() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let limits = Limits { memory_bytes: 32 << 20, ..Limits::default() };
    let space = Space::open_with(&runtime(), directory.path(), manual(limits)).expect("opens");
    space.agent_end(messages(3, "kept before")).expect("small enough");
    match space.agent_end(messages(4, &"a long story ".repeat(1 << 20))) {
        Err(SpaceError::Trapped { reason, .. }) => assert!(!reason.contains("long story"), "{reason}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(count(&space), 3);
    assert!(space.peak_memory().expect("known") <= 32 << 20);
}

/// A model that takes every request and never answers; it tells what it was asked.
struct Silent {
    asked: Mutex<Sender<String>>,
    cancelled: Mutex<Sender<String>>,
    held: Mutex<Vec<Reply>>,
}

impl Silent {
    fn new() -> (Arc<Self>, Receiver<String>, Receiver<String>) {
        let ((asked, told), (cancelled, ended)) = (channel(), channel());
        (Arc::new(Self { asked: Mutex::new(asked), cancelled: Mutex::new(cancelled), held: Mutex::default() }), told, ended)
    }
}

impl Models for Silent {
    fn abilities(&self) -> Abilities {
        Abilities { available: true, model: "silent".into(), json_schema: true }
    }

    fn embedding(&self) -> Option<EmbeddingModel> {
        None
    }

    fn perform(&self, request: Request, reply: Reply) {
        self.held.lock().expect("no panic").push(reply);
        self.asked.lock().expect("no panic").send(request.id().to_owned()).expect("the test listens");
    }

    fn cancel(&self, id: &str) {
        self.cancelled.lock().expect("no panic").send(id.to_owned()).expect("the test listens");
    }
}

#[test]
fn a_recall_does_not_wait_for_a_model_and_closing_cancels_what_is_open() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (models, asked, cancelled) = Silent::new();
    let space = Space::open_with(&runtime(), directory.path(), Options { models, ..Options::default() }).expect("opens");
    let now = strata_host::now();
    space.agent_end(EndEvent { at: now, ..messages(12, "I like walking by the sea, note") }).expect("stored");
    space.flush(now).expect("flushed");
    let id = asked.recv_timeout(PATIENCE).expect("the model is asked");
    space.before_prompt_build(PromptEvent { prompt: "where do I like to walk?".into(), at: now, ..PromptEvent::default() }).expect("answers");
    let state = space.settle(Duration::ZERO).expect("known");
    assert!(!state.quiet && state.in_flight >= 1, "the model has still not answered: {state:?}");
    space.close().expect("closes");
    assert_eq!(cancelled.recv_timeout(PATIENCE).expect("it is cancelled"), id);
}
