//! Records of other systems that are wrong in one place cost that place, never the whole call nor later work.

#[path = "story/space.rs"]
mod space;

use serde_json::{Value, json};
use space::Space;
use strata_core::contract::{EndEvent, MAX_INSTANT, Message, Scope};

fn import(space: &mut Space, records: &[Value]) -> Value {
    let records: Vec<String> = records.iter().map(Value::to_string).collect();
    let report = space.engine.import(&Scope::default(), &records.join("\n"), false, space.at).expect("imported");
    serde_json::from_str(&report).expect("JSON")
}

fn lines(report: &Value) -> Vec<u64> {
    report["errors"].as_array().expect("a list").iter().map(|error| error["line"].as_u64().expect("a line")).collect()
}

#[test]
fn a_time_beyond_every_year_is_named_and_stops_no_work() {
    let mut space = Space::new(false, json!({}));
    let beyond = MAX_INSTANT + 1;
    let report = import(
        &mut space,
        &[
            json!({"record": "message", "session": "s", "role": "user", "text": "I live in Porto.", "said-at": beyond}),
            json!({"record": "atom", "session": "s", "kind": "episodic", "text": "The user sails.", "event-start": u64::MAX}),
            json!({"record": "atom", "session": "s", "kind": "persona", "text": "The user likes tea.", "created-at": -1}),
            json!({"record": "scene", "name": "tea", "text": "# Tea\n\nGreen.", "updated-at": 1e25}),
            json!({"record": "atom", "session": "s", "kind": "persona", "text": "The user likes rye.", "created-at": MAX_INSTANT, "valid-to": null}),
        ],
    );
    assert_eq!(lines(&report), [1, 2, 3, 4], "{report}");
    assert!(report["errors"][1]["reason"].as_str().is_some_and(|reason| reason.contains("`event-start`")), "{report}");
    assert_eq!(report["atom"]["added"], 1, "{report}");
    space.tick(10_000);
    assert!(space.engine.import(&Scope::default(), "", false, beyond).is_err(), "nor is the call's own time");
}

#[test]
fn a_message_said_beyond_every_year_was_said_when_it_came() {
    let mut space = Space::new(false, json!({}));
    let message = Message { role: "user".into(), content: "I live in Porto.".into(), said_at: Some(u64::MAX), ..Message::default() };
    let event = EndEvent { scope: space::scope(), messages: vec![message], success: true, at: space.at };
    assert_eq!(space.engine.agent_end(&event).expect("captured").stored.len(), 1);
    assert_eq!(space.row::<u64>("SELECT said_at FROM messages"), space.at);
    assert!(space.engine.agent_end(&EndEvent { at: MAX_INSTANT + 1, ..event }).is_err());
    space.tick(10_000);
}
