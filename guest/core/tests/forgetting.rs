//! Forgetting where something stands in its way, and what comes back afterwards.

#[path = "story/space.rs"]
mod space;

use serde_json::{Value, json};
use space::{SECOND, Space, answer, create, scope};
use strata_core::contract::{EndEvent, Message, Scope, Selector, ToolEvent};
use strata_core::disk;

const SECRET: &str = "zanzibar4711";

fn json(text: Result<String, strata_core::Failure>) -> Value {
    serde_json::from_str(&text.expect("answered")).expect("JSON")
}

fn space() -> Space {
    Space::new(false, json!({}))
}

fn forget(space: &mut Space, which: &Selector) -> Value {
    json(space.engine.forget(which, true, space.at))
}

fn words(query: &str) -> Selector {
    Selector { query: Some(query.into()), ..Selector::default() }
}

#[test]
fn a_damaged_backup_stops_neither_a_forgetting_nor_the_next_opening() {
    let mut space = space();
    space.say(&format!("My locker code is {SECRET}, tell nobody."));
    space.say("I moved to Porto in May.");
    for name in ["first", "second", "third"] {
        space.engine.backup(name, space.at).expect("backed up");
    }
    space.write("backups/first/manifest.json", "{\"format\": 1, \"crea");
    space.write("backups/second/strata.db", "damaged");
    let receipt = forget(&mut space, &words(SECRET));
    assert_eq!((&receipt["removed"]["messages"], &receipt["backups"]), (&json!(1), &json!(1)), "{receipt}");
    let unsearched: Vec<&Value> = receipt["unsearched-backups"].as_array().expect("a list").iter().map(|backup| &backup["name"]).collect();
    assert_eq!(unsearched, ["first", "second"]);
    assert_eq!(receipt["searched"]["where"], json!(["backups/first/strata.db"]), "what is still there is said");
    for _ in 0..2 {
        assert_eq!(json(space.engine.status())["forgetting"], json!({"unfinished": false, "backups": ["first", "second"]}));
        space.crash();
    }
    assert_eq!(json(space.engine.restore("third", space.at))["messages"], 1);
}

#[test]
fn a_backup_that_could_not_be_opened_is_forgotten_in_as_soon_as_it_can() {
    let mut space = space();
    // A scenario writes no bytes.
    space.engine.untold();
    space.say(&format!("My locker code is {SECRET}, tell nobody."));
    space.say("My bicycle is green and old.");
    space.engine.backup("first", space.at).expect("backed up");
    let database = disk::read_all(&space.disk, "backups/first/strata.db").expect("read");
    disk::replace(&space.disk, "backups/first/strata.db", &database[..5_000]).expect("cut");
    for query in [SECRET, "bicycle"] {
        let receipt = forget(&mut space, &words(query));
        assert_eq!(receipt["unsearched-backups"][0]["name"], "first", "{receipt}");
    }
    assert!(space.engine.restore("first", space.at).is_err(), "damaged");
    disk::replace(&space.disk, "backups/first/strata.db", &database).expect("mended");
    space.crash();
    assert_eq!(space.holding(SECRET), [""; 0]);
    assert_eq!(space.holding("bicycle"), [""; 0]);
    assert_eq!(json(space.engine.status())["forgetting"], json!({"unfinished": false, "backups": []}));
    assert_eq!(json(space.engine.restore("first", space.at))["messages"], 0, "its manifest fits what is left of it");
}

#[test]
fn a_backup_without_what_is_forgotten_can_be_restored_afterwards() {
    let mut space = space();
    space.say("I moved to Porto in May.");
    space.engine.backup("before", space.at).expect("backed up");
    space.say(&format!("My locker code is {SECRET}, tell nobody."));
    assert_eq!(forget(&mut space, &words(SECRET))["backups"], 0);
    assert_eq!(json(space.engine.restore("before", space.at))["messages"], 1);
}

#[test]
fn a_forgetting_that_cannot_be_finished_does_not_keep_the_space_shut() {
    let mut space = space();
    space.say(&format!("My locker code is {SECRET}, tell nobody."));
    space.engine.backup("first", space.at).expect("backed up");
    let note = json!({"needles": "of another build"}).to_string();
    space.change(&format!("INSERT INTO space VALUES ('forgetting', '{note}')"));
    space.crash();
    assert_eq!(json(space.engine.status())["forgetting"]["unfinished"], true);
    space.at += SECOND;
    space.say("And the space goes on.");
}

/// Delivers messages of the user, each with the host's id or without; returns how many were stored, known, and dropped as
/// forgotten.
fn deliver(space: &mut Space, messages: &[(Option<&str>, &str)]) -> (usize, u32, u32) {
    space.at += SECOND;
    let message = |(id, text): &(Option<&str>, &str)| Message { role: "user".into(), content: (*text).into(), id: id.map(str::to_owned), ..Message::default() };
    let event = EndEvent { scope: scope(), messages: messages.iter().map(message).collect(), success: true, at: space.at };
    let report = space.engine.agent_end(&event).expect("captured");
    let forgotten = report.dropped.iter().filter(|(reason, _)| reason == "forgotten").map(|(_, count)| count).sum();
    (report.stored.len(), report.known, forgotten)
}

#[test]
fn a_forgotten_message_does_not_come_back_when_the_host_has_ids_later() {
    const PIN: &str = "my PIN is zanzibar4711";
    let mut space = space();
    assert_eq!(deliver(&mut space, &[(None, PIN), (None, "good morning to you")]), (2, 0, 0));
    forget(&mut space, &words(SECRET));
    assert_eq!(deliver(&mut space, &[(Some("x1"), PIN), (Some("x2"), "good morning to you")]), (0, 1, 1));
    assert_eq!(space.holding(SECRET), [""; 0]);
    assert_eq!(deliver(&mut space, &[(Some("x1"), PIN)]), (0, 0, 1), "the id stays known");
    assert_eq!(deliver(&mut space, &[(None, PIN), (None, "good morning to you")]), (0, 1, 1), "and so does the content");
    // Said once more is said anew: one forgotten message stands for one delivery.
    assert_eq!(deliver(&mut space, &[(Some("x3"), PIN)]), (1, 0, 0));
    assert_eq!(deliver(&mut space, &[(Some("x1"), PIN), (Some("x3"), PIN)]), (0, 1, 1));
    // What had an id when it was forgotten is claimed by no other.
    forget(&mut space, &words(SECRET));
    assert_eq!(deliver(&mut space, &[(Some("x4"), PIN), (Some("x3"), PIN)]), (1, 0, 1));
}

#[test]
fn of_equal_messages_only_the_forgotten_one_stays_away() {
    const PIN: &str = "my PIN is zanzibar4711";
    let mut space = space();
    assert_eq!(deliver(&mut space, &[(None, PIN), (None, PIN)]), (2, 0, 0));
    let uid: String = space.row("SELECT uid FROM messages ORDER BY id LIMIT 1");
    forget(&mut space, &Selector { ids: vec![uid], ..Selector::default() });
    assert_eq!(deliver(&mut space, &[(Some("x1"), PIN), (Some("x2"), PIN), (Some("x3"), PIN)]), (1, 1, 1));
    assert_eq!(deliver(&mut space, &[(Some("x3"), PIN), (Some("x2"), PIN), (Some("x1"), PIN)]), (0, 2, 1));
}

#[test]
fn records_of_an_export_do_not_bring_back_what_was_forgotten() {
    let mut space = Space::new(true, json!({"pipeline": {"everyNConversations": 1, "l2MinIntervalSeconds": 0}}));
    let porto = space.learn("I moved to Porto in May.", "episodic", "Porto");
    let secret = space.learn(&format!("My locker code is {SECRET}, tell nobody."), "persona", "Lockers");
    let (id, _) = space.scenes(10 * SECOND);
    space.complete(&id, &answer(json!([create("Locker", &format!("It opens with {SECRET}."), &secret)])));
    space.tick(0);
    let (id, _) = space.one("l3-persona");
    let statements = json!([{"text": format!("Has a locker with {SECRET}."), "atoms": [secret]}, {"text": "Lives in Porto.", "atoms": [porto]}]);
    space.complete(&id, &json!({"sections": [{"heading": "Facts", "statements": statements}]}).to_string());
    space.tick(SECOND);
    space.engine.export("all", space.at).expect("exported");
    let records = space.file("exports/all/space.jsonl").expect("the export");
    assert!(records.matches(SECRET).count() >= 4, "it is in every layer");
    let message: String = space.row(&format!("SELECT uid FROM messages WHERE text LIKE '%{SECRET}%'"));
    forget(&mut space, &Selector { ids: vec![message], ..Selector::default() });
    for _ in 0..2 {
        let report = json(space.engine.import(&Scope::default(), &records, false, space.at));
        for (kind, dropped) in [("message", 1), ("atom", 1), ("scene", 1)] {
            assert_eq!((&report[kind]["added"], &report[kind]["dropped"]), (&json!(0), &json!({"forgotten": dropped})), "{report}");
        }
        assert_eq!(report["persona"]["added"], 0, "{report}");
        space.tick(SECOND);
        assert_eq!(space.holding(SECRET), [""; 0]);
    }
    assert_eq!(space.row::<u32>("SELECT count(*) FROM atoms WHERE text LIKE '%Porto%'"), 1);
}

#[test]
fn what_a_crash_had_left_goes_with_what_is_forgotten() {
    let mut space = space();
    space.say(&format!("My locker code is {SECRET}, tell nobody."));
    space.engine.backup("first", space.at).expect("backed up");
    space.engine.export("all", space.at).expect("exported");
    // As a crash leaves them between a file and its row, and before a file takes its name.
    let left = ["refs/0123456789abcdef.md", "exports/all/space.jsonl.new", "backups/first/refs/0123456789abcdef.md", "persona.md.new"];
    for path in left {
        space.write(path, &format!("The locker has {SECRET}."));
    }
    space.write("lock/other.new", "{}");
    let receipt = forget(&mut space, &words(SECRET));
    assert_eq!((&receipt["ruined-copies"], &receipt["searched"]["found"]), (&json!(3), &json!(0)), "{receipt}");
    assert_eq!(space.holding(SECRET), [""; 0]);
    assert!(space.file("lock/other.new").is_some(), "a claim is no ruin");
    assert_eq!(json(space.engine.restore("first", space.at))["messages"], 0);
    space.write(left[0], &format!("The locker has {SECRET}."));
    forget(&mut space, &words(SECRET));
    assert_eq!(space.holding(SECRET), [""; 0], "even where no row tells of it");
}

#[test]
fn ids_do_not_switch_the_other_conditions_off() {
    let mut space = Space::new(true, json!({"pipeline": {"everyNConversations": 1, "l2MinIntervalSeconds": 0}}));
    let atom = space.learn("I moved to Porto in May.", "episodic", "Porto");
    let (id, _) = space.scenes(10 * SECOND);
    space.complete(&id, &answer(json!([create("Moving", "Moved to Porto.", &atom)])));
    let tool = ToolEvent {
        scope: scope(),
        tool_call_id: "call-1".into(),
        tool_name: "exec".into(),
        output: "a line of the result\n".repeat(300),
        at: space.at,
        ..ToolEvent::default()
    };
    space.engine.after_tool_call(&tool).expect("stored");
    let (message, said_at): (String, u64) = (space.row("SELECT uid FROM messages"), space::START + SECOND);
    let (page, entry): (String, String) = (space.row("SELECT uid FROM pages WHERE kind = 'scene'"), space.row("SELECT uid FROM offload_entries"));
    let other = |ids: &String| Selector { ids: vec![ids.clone()], ..Selector::default() };
    for id in [&message, &atom, &page, &entry] {
        for which in [
            Selector { user: Some("somebody else".into()), ..other(id) },
            Selector { session: Some("another".into()), ..other(id) },
            Selector { until: Some(said_at - 1), ..other(id) },
        ] {
            assert_eq!(forget(&mut space, &which)["removed"], json!({}), "{which:?}");
        }
        let which = Selector { user: Some("default".into()), since: Some(said_at), ..other(id) };
        assert_ne!(json(space.engine.forget(&which, false, space.at))["would-remove"], json!({}), "{which:?}");
    }
    for id in [&message, &atom, &page] {
        let which = Selector { query: Some("lisbon".into()), ..other(id) };
        assert_eq!(forget(&mut space, &which)["removed"], json!({}), "{which:?}");
        let which = Selector { query: Some("porto".into()), ..other(id) };
        assert_ne!(json(space.engine.forget(&which, false, space.at))["would-remove"], json!({}), "{which:?}");
    }
    assert!(space.engine.forget(&Selector { query: Some("line".into()), ..other(&entry) }, true, space.at).is_err(), "refused, not ignored");
}

#[test]
fn a_query_of_one_user_reaches_their_tool_results_and_pages_and_no_others() {
    let mut space = Space::new(true, json!({"pipeline": {"everyNConversations": 1, "l2MinIntervalSeconds": 0}}));
    let atom = space.learn("I moved to Porto in May.", "episodic", "Porto");
    let (id, _) = space.scenes(10 * SECOND);
    space.complete(&id, &answer(json!([create("Moving", &format!("Moved to Porto, to house {SECRET}."), &atom)])));
    let tool = |user: &str, own: &str| ToolEvent {
        scope: Scope { user: user.into(), ..scope() },
        tool_call_id: format!("call-{user}-{}", own.len()),
        tool_name: "exec".into(),
        output: format!("{}{SECRET} {own}\n{}", "a line of the result\n".repeat(200), "another line\n".repeat(200)),
        at: space.at,
        ..ToolEvent::default()
    };
    for event in [tool("", "of the first"), tool("kim", "of the second, kim"), tool("", "of both"), tool("kim", "of both")] {
        space.engine.after_tool_call(&event).expect("stored");
    }
    space.tick(SECOND);
    let holding = |space: &Space| space.holding(SECRET).into_iter().filter(|path| path.starts_with("refs/")).count();
    assert_eq!(holding(&space), 3);
    assert!(space.file("scenes/Moving.md").expect("a scene").contains(SECRET));
    let receipt = forget(&mut space, &Selector { user: Some("default".into()), ..words(SECRET) });
    assert_eq!(receipt["removed"]["refs"], 1, "what kim's session points at too is kim's: {receipt}");
    assert!(space.file("scenes/Moving.md").is_none_or(|scene| !scene.contains(SECRET)));
    assert_eq!(holding(&space), 2);
    let kim: u32 = space.row(
        "SELECT count(*) FROM offload_entries JOIN sessions ON sessions.id = session JOIN scopes ON scopes.id = scope
          WHERE user = 'kim' AND summary = '[forgotten]'",
    );
    assert_eq!(kim, 0);
    forget(&mut space, &Selector { user: Some("kim".into()), ..words(SECRET) });
    assert_eq!(holding(&space), 1, "and what both point at goes when nobody is named");
    forget(&mut space, &words(SECRET));
    assert_eq!(space.holding(SECRET), [""; 0]);
}
