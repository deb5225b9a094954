//! Reclaiming takes what is over and old, and leaves what is live or named.

use std::rc::Rc;
use strata_core::contract::{EndEvent, Message, Scope, SessionEvent, ToolEvent};
use strata_core::disk::{Disk, StdDisk};
use strata_core::engine::{Engine, Models};

const START: u64 = 1_780_000_000_000;
const DAY: u64 = 24 * 60 * 60 * 1_000;

fn scope(session: &str) -> Scope {
    Scope { session: session.into(), ..Scope::default() }
}

fn result(engine: &mut Engine, session: &str, at: u64) -> String {
    let event = ToolEvent {
        scope: scope(session),
        tool_call_id: "c1".into(),
        tool_name: "bash".into(),
        arguments_json: r#"{"command": "ls"}"#.into(),
        output: format!("the listing of {session}"),
        at,
        ..ToolEvent::default()
    };
    engine.after_tool_call(&event).expect("stored").result_ref
}

#[test]
fn old_sessions_go_whole_and_named_or_live_ones_stay() {
    let dir = tempfile::tempdir().expect("a directory");
    let disk: Rc<dyn Disk> = Rc::new(StdDisk::new(dir.path()));
    let settings = r#"{"offload": {"retentionDays": 3}}"#;
    let (mut engine, _) = Engine::open(Rc::clone(&disk), settings, Models::default(), START).expect("opens");
    let old = result(&mut engine, "old", START);
    let named = result(&mut engine, "named", START);
    let said = Message { role: "assistant".into(), content: format!("The listing is in {named}."), ..Message::default() };
    engine.agent_end(&EndEvent { scope: scope("other"), messages: vec![said], success: true, at: START }).expect("stored");
    engine.session_end(&SessionEvent { scope: scope("old"), reason: "done".into(), at: START + 1 }).expect("ended");
    std::fs::write(dir.path().join("refs/ffffffffffffffff.md"), "left by a crash").expect("an orphan");
    let live = result(&mut engine, "live", START + 4 * DAY);
    let next = engine.tick(START + 4 * DAY, Models::default()).expect("ticks");
    assert!(next.is_some(), "the next run has a time");
    assert!(!dir.path().join(&old).exists(), "the text of the old session is gone");
    assert!(dir.path().join(&named).exists(), "a message names it");
    assert!(dir.path().join(&live).exists(), "the session is live");
    assert!(!dir.path().join("refs/ffffffffffffffff.md").exists(), "no row named it");
    let left = |sql: &str| -> i64 { engine.store().db().query_row(sql, [], |row| row.get(0)).expect("a count") };
    assert_eq!(left("SELECT count(*) FROM offload_entries"), 2);
    assert_eq!(left("SELECT count(*) FROM offload_refs"), 2);
}
