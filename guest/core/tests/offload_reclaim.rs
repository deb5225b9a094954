//! Reclaiming takes what is over and old, and leaves what is live or named.

use std::rc::Rc;
use strata_core::contract::{EndEvent, Message, Scope, SessionEvent, ToolEvent};
use strata_core::disk::{Disk, SimDisk, StdDisk};
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

#[test]
fn many_old_sessions_that_stay_do_not_keep_the_newer_ones() {
    // More than one run takes.
    const NAMED: u64 = 205;
    let sim = SimDisk::new();
    let disk: Rc<dyn Disk> = Rc::new(sim.clone());
    let (mut engine, _) = Engine::open(disk, r#"{"offload": {"retentionDays": 3}}"#, Models::default(), START).expect("opens");
    let named: Vec<String> = (0..NAMED).map(|number| result(&mut engine, &format!("named {number}"), START + number)).collect();
    let said = Message { role: "assistant".into(), content: format!("The listings: {} and {}.", named.join(", "), "refs/é".repeat(2)), ..Message::default() };
    engine.agent_end(&EndEvent { scope: scope("other"), messages: vec![said], success: true, at: START }).expect("stored");
    let newer = result(&mut engine, "newer", START + DAY);
    engine.tick(START + 5 * DAY, Models::default()).expect("ticks");
    let files = sim.files();
    assert!(!files.contains_key(&newer), "nothing names the newer session");
    assert!(named.iter().all(|path| files.contains_key(path)), "a message names them");
    let report: String = engine.store().db().query_row("SELECT value FROM space WHERE key = 'offload_reclaimed'", [], |row| row.get(0)).expect("a report");
    let report: serde_json::Value = serde_json::from_str(&report).expect("a document");
    assert_eq!((&report["sessions"], &report["kept"]), (&1.into(), &NAMED.into()));
}

#[test]
fn size_takes_the_oldest_sessions_and_no_more_than_it_must() {
    let sim = SimDisk::new();
    let disk: Rc<dyn Disk> = Rc::new(sim.clone());
    let (mut engine, _) = Engine::open(disk, r#"{"offload": {"maxSizeMb": 1}}"#, Models::default(), START).expect("opens");
    let mut noise = 1_u64;
    let mut paths = Vec::new();
    for number in 0..4 {
        // Does not compress.
        let output: String = (0..150_000)
            .map(|_| {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                format!("{:08x}", noise >> 32)
            })
            .collect();
        let event = ToolEvent {
            scope: scope(&format!("s{number}")),
            tool_call_id: "c1".into(),
            tool_name: "bash".into(),
            output,
            at: START + number,
            ..ToolEvent::default()
        };
        paths.push(engine.after_tool_call(&event).expect("stored").result_ref);
    }
    let size = |path: &String| -> u64 {
        let files = sim.files();
        [path.clone(), format!("{path}.gz")].iter().filter_map(|name| files.get(name)).map(|bytes| bytes.len() as u64).sum()
    };
    let before: Vec<u64> = paths.iter().map(size).collect();
    engine.tick(START + 2 * DAY, Models::default()).expect("ticks");
    let after: Vec<u64> = paths.iter().map(size).collect();
    let left: u64 = after.iter().sum();
    let last_gone = after.iter().rposition(|size| *size == 0).expect("something went");
    assert!(left <= 1 << 20 && left + before[last_gone] > 1 << 20, "{before:?} {after:?}");
    assert!(after[..last_gone].iter().all(|size| *size == 0) && after[last_gone + 1..] == before[last_gone + 1..], "{before:?} {after:?}");
}
