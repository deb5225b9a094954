//! A crash after every file operation of short-term memory: no placeholder without its text.
//!
//! The story runs once undisturbed, to count its file operations; then once for each of them with a
//! crash there, by kill and by power cut. After each crash the space opens, every entry's text is read
//! back exactly, every placeholder that was handed out leads to its text, and the story, told again,
//! hands out the same bytes.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::rc::Rc;
use strata_core::contract::{AssembleRequest, Failure, Invocation, Scope, ToolEvent};
use strata_core::disk::{Crash, Disk, SimDisk};
use strata_core::engine::{Engine, Models};

const START: u64 = 1_772_000_000_000;
const CALLS: u64 = 7;
/// Power cuts tried at each crash point, by their seeds.
const SEEDS: std::ops::Range<u64> = 0..2;
/// Small, so that the few calls of the story are replaced and folded.
const WINDOW_TOKENS: u32 = 16_000;

fn scope() -> Scope {
    Scope { session: "crash".into(), ..Scope::default() }
}

fn output(call: u64) -> String {
    // One result is large enough to be compressed.
    let lines = if call == 2 { 900 } else { 60 };
    (0..lines).map(|line| format!("src/part{call}.rs:{line}: value {} of call {call}\n", line * 7 + call)).collect()
}

/// What was handed out before the crash.
#[derive(Default)]
struct Handed {
    refs: BTreeMap<String, String>,
    lists: Vec<String>,
}

fn open(disk: &SimDisk) -> Result<Engine, Failure> {
    let disk: Rc<dyn Disk> = Rc::new(disk.clone());
    Engine::open(disk, r#"{"holder": {"id": "story"}}"#, Models::default(), START).map(|(engine, _)| engine)
}

fn tell(disk: &SimDisk, handed: &mut Handed) -> Result<(), Failure> {
    let mut engine = open(disk)?;
    let mut messages = vec![json!({"role": "user", "content": "Find the value of each part."})];
    for call in 0..CALLS {
        let at = START + call * 1_000;
        let id = format!("call_{call}");
        let arguments = json!({"command": format!("rg value src/part{call}.rs"), "note": "n".repeat(if call == 3 { 900 } else { 0 })}).to_string();
        let receipt = engine.after_tool_call(&ToolEvent {
            scope: scope(),
            tool_call_id: id.clone(),
            tool_name: "bash".into(),
            arguments_json: arguments.clone(),
            output: output(call),
            at,
            ..ToolEvent::default()
        })?;
        handed.refs.insert(receipt.result_ref, output(call));
        messages.push(json!({"role": "assistant", "content": "Looking.", "tool_calls": [{"id": id, "type": "function", "function": {"name": "bash", "arguments": arguments}}]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": output(call)}));
        let request = AssembleRequest {
            scope: scope(),
            messages_json: Value::Array(messages.clone()).to_string(),
            window_tokens: WINDOW_TOKENS,
            at,
            ..AssembleRequest::default()
        };
        handed.lists.push(engine.assemble(&request)?.messages_json);
    }
    // The same list in a session that nobody told of: many texts by one commit, then their files.
    let other = Scope { session: "untold".into(), ..Scope::default() };
    for message in messages.iter_mut().filter(|message| message["role"] == "tool") {
        message["content"] = json!(message["content"].as_str().expect("a text").replace("value", "weight"));
    }
    let request = AssembleRequest {
        scope: other,
        messages_json: Value::Array(messages).to_string(),
        window_tokens: WINDOW_TOKENS,
        at: START + 50_000,
        ..AssembleRequest::default()
    };
    handed.lists.push(engine.assemble(&request)?.messages_json);
    while engine.tick(START + 51_000, Models::default())?.is_some_and(|next| next <= START + 51_000) {}
    engine.close(START + 60_000)
}

/// Returns the refs that a list names.
fn named(list: &str) -> Vec<String> {
    list.split("refs/").skip(1).filter_map(|rest| rest.split(".md").next().map(|hex| format!("refs/{hex}.md"))).filter(|path| path.len() == 24).collect()
}

fn check(engine: &mut Engine, handed: &Handed, place: &str) {
    let integrity: String = engine.store().db().query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("SQLite answers");
    assert_eq!(integrity, "ok", "{place}");
    let rows: Vec<String> = {
        let mut query = engine.store().db().prepare("SELECT result_ref FROM offload_entries UNION SELECT path FROM offload_uses").expect("SQLite answers");
        query.query_map([], |row| row.get(0)).expect("SQLite answers").map(|row| row.expect("a path")).collect()
    };
    let promised = handed.lists.iter().flat_map(|list| named(list)).chain(handed.refs.keys().cloned());
    for path in rows.into_iter().chain(promised) {
        let text = read(engine, &path).unwrap_or_else(|said| panic!("{place}: {path} is named and cannot be read: {said}"));
        if let Some(whole) = handed.refs.get(&path) {
            assert_eq!(&text, whole, "{place}: {path} is not what was stored");
        }
    }
}

fn read(engine: &mut Engine, path: &str) -> Result<String, String> {
    let mut whole = String::new();
    loop {
        let arguments = json!({"ref": path, "from_char": whole.chars().count(), "chars": 12_000});
        let invocation = Invocation { scope: scope(), name: "ref_read".into(), arguments_json: arguments.to_string(), at: START, ..Invocation::default() };
        let answer = engine.call_tool(&invocation).map_err(|failure| failure.to_string())?;
        if answer.is_error {
            return Err(answer.text);
        }
        let document: Value = serde_json::from_str(&answer.structured_json).expect("a document");
        let piece = document["text"].as_str().expect("a text");
        whole.push_str(piece);
        if piece.chars().count() < 12_000 {
            return Ok(whole);
        }
    }
}

#[test]
fn no_placeholder_is_without_its_text_after_any_crash() {
    let disk = SimDisk::new();
    let mut undisturbed = Handed::default();
    tell(&disk, &mut undisturbed).expect("an undisturbed story succeeds");
    let replaced: usize = undisturbed.lists.iter().map(|list| list.matches("[Offloaded Tool Result").count()).sum();
    let folded = undisturbed.lists.iter().filter(|list| list.contains("<current_task_context>")).count();
    assert!(replaced > 0 && folded > 0, "the story replaces {replaced} and folds {folded}");
    let operations = disk.operations();
    for point in 1..=operations {
        let disk = SimDisk::new();
        disk.crash_at(point);
        let mut handed = Handed::default();
        let ended = tell(&disk, &mut handed);
        assert!(disk.crashed() || ended.is_ok(), "operation {point} of {operations} was not reached");
        for crash in std::iter::once(Crash::Kill).chain(SEEDS.map(|seed| Crash::PowerCut(seed * operations + point))) {
            let place = format!("operation {point} of {operations}, {crash:?}");
            let disk = disk.after(crash);
            let mut engine = open(&disk).unwrap_or_else(|failure| panic!("{place}: does not open: {failure}"));
            check(&mut engine, &handed, &place);
            drop(engine);
            let mut again = Handed::default();
            tell(&disk, &mut again).unwrap_or_else(|failure| panic!("{place}: second telling: {failure}"));
            assert_eq!(again.lists, undisturbed.lists, "{place}: the second telling hands out other bytes");
        }
    }
    println!("offload: {operations} crash points, {replaced} placeholders at the end");
}
