//! A file for people that the disk refuses does not make a stored result look failed.

use serde_json::{Value, json};
use std::path::Path;
use std::rc::Rc;
use strata_core::contract::{AssembleRequest, LogLevel, Outgoing, Scope, ToolEvent};
use strata_core::disk::{Disk, StdDisk};
use strata_core::engine::{Engine, Models};

const START: u64 = 1_780_000_000_000;

fn scope() -> Scope {
    Scope { session: "work".into(), ..Scope::default() }
}

fn open(dir: &Path) -> Engine {
    let disk: Rc<dyn Disk> = Rc::new(StdDisk::new(dir));
    Engine::open(disk, "", Models::default(), START).expect("opens").0
}

fn output(call: u64) -> String {
    (0..400).map(|line| format!("src/part{call}.rs:{line}: value {}\n", line * 7)).collect()
}

fn result(engine: &mut Engine, call: u64) -> String {
    let event = ToolEvent {
        scope: scope(),
        tool_call_id: format!("c{call}"),
        tool_name: "bash".into(),
        arguments_json: r#"{"command": "rg value"}"#.into(),
        output: output(call),
        at: START + call,
        ..ToolEvent::default()
    };
    engine.after_tool_call(&event).expect("the result is stored").result_ref
}

/// A list whose second result nobody told of.
fn list() -> String {
    let mut messages = vec![json!({"role": "user", "content": "Find the values."})];
    for call in 0..2 {
        let function = json!({"name": "bash", "arguments": r#"{"command": "rg value"}"#});
        messages
            .push(json!({"role": "assistant", "content": "Looking.", "tool_calls": [{"id": format!("c{call}"), "type": "function", "function": function}]}));
        messages.push(json!({"role": "tool", "tool_call_id": format!("c{call}"), "content": output(call)}));
    }
    Value::Array(messages).to_string()
}

fn warnings(engine: &mut Engine) -> usize {
    let is_warning = |out: &Outgoing| matches!(out, Outgoing::Log { level: LogLevel::Warn, text } if text.contains("tool calls"));
    engine.drain().iter().filter(|out| is_warning(out)).count()
}

fn behind(engine: &Engine) -> u64 {
    let status: Value = serde_json::from_str(&engine.status().expect("a status")).expect("a document");
    status["files"]["behind"].as_u64().expect("a count")
}

fn lines_of_log(dir: &Path) -> usize {
    let log = std::fs::read_dir(dir.join("offload")).expect("a folder").next().expect("a log").expect("an entry");
    std::fs::read_to_string(log.path()).expect("a text").lines().count()
}

#[test]
fn a_refused_log_leaves_the_result_stored_and_the_list_reduced_and_is_written_later() {
    let dir = tempfile::tempdir().expect("a directory");
    // Where the folder of the logs belongs is a file.
    std::fs::write(dir.path().join("offload"), "in the way").expect("an obstacle");
    let mut engine = open(dir.path());
    let stored = result(&mut engine, 0);
    assert!(dir.path().join(&stored).exists());
    assert_eq!(warnings(&mut engine), 1);
    assert_eq!(behind(&engine), 1);
    let request = AssembleRequest { scope: scope(), messages_json: list(), window_tokens: 9_000, at: START + 9, ..AssembleRequest::default() };
    let reduced = engine.assemble(&request).expect("the list is reduced");
    assert!(reduced.tokens_after < reduced.tokens_before, "{reduced:?}");
    engine.tick(START + 10, Models::default()).expect("a tick goes on");
    assert_eq!(behind(&engine), 1, "the obstacle is still there");
    std::fs::remove_file(dir.path().join("offload")).expect("the obstacle goes");
    engine.drain();
    engine.tick(START + 20, Models::default()).expect("ticks");
    assert_eq!((warnings(&mut engine), behind(&engine)), (0, 0));
    assert_eq!(lines_of_log(dir.path()), 2);
}

#[test]
fn refused_canvases_are_written_at_the_next_open() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("canvases"), "in the way").expect("an obstacle");
    let mut engine = open(dir.path());
    result(&mut engine, 0);
    result(&mut engine, 1);
    engine.close(START + 10).expect("closes");
    std::fs::remove_file(dir.path().join("canvases")).expect("the obstacle goes");
    let engine = open(dir.path());
    assert_eq!(behind(&engine), 0);
    assert!(dir.path().join("canvases").is_dir());
}

#[test]
fn a_log_that_somebody_removed_is_written_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut engine = open(dir.path());
    result(&mut engine, 0);
    std::fs::remove_dir_all(dir.path().join("offload")).expect("removed");
    result(&mut engine, 1);
    engine.tick(START + 10, Models::default()).expect("ticks");
    assert_eq!(lines_of_log(dir.path()), 2);
    assert_eq!(behind(&engine), 0);
}

#[test]
fn a_log_that_could_not_be_removed_goes_later_when_its_session_was_reclaimed() {
    const DAY: u64 = 24 * 60 * 60 * 1_000;
    let dir = tempfile::tempdir().expect("a directory");
    let disk: Rc<dyn Disk> = Rc::new(StdDisk::new(dir.path()));
    let (mut engine, _) = Engine::open(disk, r#"{"offload": {"retentionDays": 3}}"#, Models::default(), START).expect("opens");
    let stored = result(&mut engine, 0);
    let log = std::fs::read_dir(dir.path().join("offload")).expect("a folder").next().expect("a log").expect("an entry").path();
    std::fs::remove_file(&log).expect("removed");
    std::fs::create_dir_all(log.join("in the way")).expect("an obstacle");
    engine.tick(START + 4 * DAY, Models::default()).expect("a tick goes on");
    assert!(!dir.path().join(&stored).exists(), "its text goes all the same");
    assert_eq!(behind(&engine), 1);
    std::fs::remove_dir_all(&log).expect("the obstacle goes");
    std::fs::write(&log, "an old line").expect("the log is back");
    engine.tick(START + 4 * DAY + 1, Models::default()).expect("ticks");
    assert!(!log.exists());
    assert_eq!(behind(&engine), 0);
}
