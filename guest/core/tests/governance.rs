//! What people do to a memory: ask why, correct, forget, back up, carry away.

#[path = "story/space.rs"]
mod space;

use serde_json::{Value, json};
use space::{SECOND, Space, answer, create, scope, update};
use std::rc::Rc;
use strata_core::FailureCode;
use strata_core::contract::{EndEvent, Message, Scope, Selector, ToolEvent};
use strata_core::disk::{self, Disk};
use strata_core::engine::Engine;

const SECRET: &str = "zanzibar4711";

fn config() -> Value {
    json!({"pipeline": {"everyNConversations": 1, "l2MinIntervalSeconds": 0}})
}

fn json(text: Result<String, strata_core::Failure>) -> Value {
    serde_json::from_str(&text.expect("answered")).expect("JSON")
}

/// A space in which a secret has reached every layer and every kind of file.
fn full() -> (Space, String, String) {
    let mut space = Space::new(true, config());
    let porto = space.learn("I moved to Porto in May.", "episodic", "Porto");
    let secret = space.learn(&format!("My locker code is {SECRET}, tell nobody."), "persona", &format!("locker {SECRET}"));
    let (id, _) = space.scenes(10 * SECOND);
    let mut first = create(&format!("Locker {SECRET}"), &format!("The code is {SECRET}."), &secret);
    first["paragraphs"].as_array_mut().expect("a list").push(json!({"text": "Moved to Porto.", "atoms": [porto]}));
    space.complete(&id, &answer(json!([first])));
    space.tick(0);
    let (id, _) = space.one("l3-persona");
    let sections = json!({"sections": [{"heading": "Facts", "statements": [
        {"text": format!("Has a locker with {SECRET}."), "atoms": [secret]}, {"text": "Lives in Porto.", "atoms": [porto]}]}]});
    space.complete(&id, &sections.to_string());
    let tea = space.learn("I drink green tea.", "persona", "Drinks");
    let (id, _) = space.scenes(10 * SECOND);
    let scene = format!("Locker-{SECRET}.md");
    let paragraphs = json!([{"text": format!("The code is {SECRET}."), "atoms": [secret]}, {"text": "Drinks tea, moved to Porto.", "atoms": [tea, porto]}]);
    space.complete(&id, &answer(json!([update(&scene, paragraphs)])));
    let tool = ToolEvent {
        scope: scope(),
        tool_call_id: "call-1".into(),
        tool_name: "exec".into(),
        arguments_json: format!("{{\"command\": \"cat {SECRET}\"}}"),
        output: format!("locker file\n{}\ncode {SECRET}\n", "x".repeat(3_000)),
        at: space.at,
        ..ToolEvent::default()
    };
    space.engine.after_tool_call(&tool).expect("stored");
    space.tick(SECOND);
    space.asked();
    space.engine.backup("first", space.at).expect("backed up");
    space.engine.export("all", space.at).expect("exported");
    (space, secret, porto)
}

fn message_of(space: &Space, atom: &str) -> String {
    space.row(&format!("SELECT messages.uid FROM evidence JOIN atoms ON atoms.id = atom JOIN messages ON messages.id = message WHERE atoms.uid = '{atom}'"))
}

#[test]
fn forgetting_leaves_no_byte_for_every_kind_of_selector() {
    for kind in ["id", "query", "session", "user", "time"] {
        let (mut space, secret, porto) = full();
        assert!(space.holding(SECRET).len() > 8, "{kind}: the secret is everywhere: {:?}", space.holding(SECRET));
        let mut which = Selector::default();
        match kind {
            "id" => which.ids = vec![message_of(&space, &secret), "call".into()],
            "query" => which.query = Some(SECRET.to_uppercase()),
            "session" => which.session = Some("s".into()),
            "user" => which.user = Some("default".into()),
            _ => {
                which.since = Some(space::START + 2 * SECOND);
                which.until = Some(space.at);
            }
        }
        if kind == "id" {
            which.ids[1] = space.row("SELECT uid FROM offload_entries");
        }
        let preview = json(space.engine.forget(&which, false, space.at));
        assert_eq!(preview["confirmed"], false);
        assert!(preview["would-remove"]["messages"].as_u64().expect("a count") >= 1, "{kind}: {preview}");
        assert!(space.holding(SECRET).len() > 8, "{kind}: a preview removes nothing");
        let receipt = json(space.engine.forget(&which, true, space.at));
        assert_eq!(space.holding(SECRET), Vec::<String>::new(), "{kind}: {receipt}");
        assert_eq!(receipt["removed"], preview["would-remove"], "{kind}: the preview was right");
        assert_eq!(receipt["searched"]["found"], 0, "{kind}: {receipt}");
        if kind == "id" || kind == "query" {
            assert!(space.file("persona.md").expect("a persona").contains("Lives in Porto."), "{kind}: what stands on its own stays");
            assert_eq!(space.row::<u32>(&format!("SELECT count(*) FROM atoms WHERE uid = '{porto}'")), 1, "{kind}");
            assert!(!space.holding("Drinks tea").is_empty(), "{kind}: the page keeps its other paragraph");
        }
        // The host tells its whole session again.
        let messages = vec![Message {
            role: "user".into(),
            id: Some((space::START + 2 * SECOND).to_string()),
            content: format!("My locker code is {SECRET}, tell nobody."),
            ..Message::default()
        }];
        space.engine.agent_end(&EndEvent { scope: scope(), messages, success: true, at: space.at }).expect("captured");
        assert_eq!(space.holding(SECRET), Vec::<String>::new(), "{kind}: the forgotten does not come back");
        let again = json(space.engine.forget(&which, true, space.at).or_else(|failure| Ok(json!({"removed": {}, "refused": failure.message}).to_string())));
        assert_eq!(again["removed"], json!({}), "{kind}: a second forgetting removes nothing and says so");
    }
}

#[test]
fn a_selector_that_limits_nothing_is_refused() {
    let mut space = Space::new(false, json!({}));
    assert!(space.engine.forget(&Selector::default(), true, 0).is_err());
    let unknown = Selector { ids: vec!["m_0000000000000000".into()], ..Selector::default() };
    assert!(space.engine.forget(&unknown, true, 0).is_err());
}

#[test]
fn forgetting_one_user_leaves_the_other() {
    let mut space = Space::new(false, json!({}));
    for (user, town) in [("ana", SECRET), ("ben", "Porto")] {
        space.at += SECOND;
        let scope = Scope { user: user.into(), session: "s".into(), ..Scope::default() };
        let messages = vec![Message { role: "user".into(), content: format!("I live in {town}."), ..Message::default() }];
        space.engine.agent_end(&EndEvent { scope, messages, success: true, at: space.at }).expect("captured");
    }
    space.engine.flush(space.at).expect("flushed");
    for _ in 0..4 {
        space.tick(SECOND);
    }
    let receipt = json(space.engine.forget(&Selector { user: Some("ana".into()), ..Selector::default() }, true, space.at));
    assert_eq!(receipt["removed"]["scopes"], 1, "{receipt}");
    assert_eq!(space.holding(SECRET), Vec::<String>::new());
    assert_eq!(space.row::<u32>("SELECT count(*) FROM atoms"), 1);
    assert!(!space.holding("Porto").is_empty());
}

#[test]
fn a_correction_that_is_forgotten_restores_what_it_corrected() {
    let mut space = Space::new(false, config());
    space.say("I live in Porto.");
    space.tick(0);
    space.say("I live in Lisbon.");
    space.tick(0);
    let lisbon = space.atom("The user lives in Lisbon.");
    assert_eq!(space.row::<u32>("SELECT count(*) FROM atoms WHERE believed_to IS NOT NULL"), 1);
    let which = Selector { ids: vec![message_of(&space, &lisbon)], ..Selector::default() };
    let receipt = json(space.engine.forget(&which, true, space.at));
    assert_eq!(receipt["removed"]["atoms-restored"], 1, "{receipt}");
    assert_eq!(space.row::<String>("SELECT text FROM atoms WHERE believed_to IS NULL"), "The user lives in Porto.");
}

#[test]
fn a_middle_link_that_is_forgotten_does_not_bring_back_what_a_later_fact_had_ended() {
    let mut space = Space::new(false, config());
    for line in ["I live in Porto.", "I live in Lisbon.", "I live in Braga."] {
        space.say(line);
        space.tick(0);
    }
    let lisbon = space.atom("The user lives in Lisbon.");
    let which = Selector { ids: vec![message_of(&space, &lisbon)], ..Selector::default() };
    space.engine.forget(&which, true, space.at).expect("forgotten");
    assert_eq!(space.row::<String>("SELECT group_concat(text) FROM atoms WHERE believed_to IS NULL"), "The user lives in Braga.");
    let porto = space.atom("The user lives in Porto.");
    assert_eq!(space.row::<u32>(&format!("SELECT count(*) FROM links JOIN atoms ON atoms.id = older WHERE uid = '{porto}'")), 1, "Braga ends Porto");
    let report = json(space.engine.rebuild(space.at));
    assert_eq!(report["l1"]["identical"], true, "{report}");
}

#[test]
fn traces_go_both_ways() {
    let (space, secret, _) = full();
    let persona = json(space.engine.trace("persona"));
    let statement = &persona["statements"][0];
    assert_eq!(statement["rests-on"][0]["id"], secret.as_str());
    let message = statement["rests-on"][0]["rests-on"][0]["id"].as_str().expect("a message").to_owned();
    assert_eq!(statement["rests-on"][0]["rests-on"][0]["text"], format!("My locker code is {SECRET}, tell nobody."));
    let up = json(space.engine.trace(&message));
    let layers: Vec<&str> =
        up["built-on-it"][0]["built-on-it"].as_array().expect("a list").iter().map(|page| page["layer"].as_str().expect("a word")).collect();
    assert_eq!(layers, ["scene", "persona"]);
}

#[test]
fn why_shows_the_call_that_made_a_thing() {
    let (space, secret, _) = full();
    let why = json(space.engine.why(&secret));
    assert_eq!(why["calls"][0]["purpose"], "l1-extract");
    let persona = json(space.engine.why("persona"));
    assert_eq!((persona["calls"][0]["purpose"].as_str(), persona["calls"][0]["model"].as_str()), (Some("l3-persona"), Some("scripted")));
    assert!(persona["calls"][0]["answer"].as_str().expect("an answer").contains("Lives in Porto."));
    assert!(space.engine.why("a_0000000000000000").is_err());
}

#[test]
fn history_diff_and_rollback_of_a_page() {
    let (mut space, _, _) = full();
    space.engine.edit("persona", "# Me\n\nI am Ana.", space.at).expect("edited");
    let history = json(space.engine.history("persona"));
    let revisions = history["revisions"].as_array().expect("a list");
    assert_eq!(revisions.iter().map(|revision| revision["by"].as_str().expect("a word")).collect::<Vec<_>>(), ["model", "human"]);
    let diff = space.engine.diff("persona", 1, 2).expect("a diff");
    assert!(diff.contains("\n+I am Ana.\n") && diff.contains("\n-- Lives in Porto."), "{diff}");
    let back = json(space.engine.rollback("persona", 1, space.at));
    assert_eq!((back["revision"].as_u64(), back["changed"].as_bool()), (Some(3), Some(true)));
    assert!(space.file("persona.md").expect("the file").contains("Lives in Porto."));
    assert!(space.engine.rollback("persona", 9, space.at).is_err());
    let same = json(space.engine.rollback("persona", 1, space.at));
    assert_eq!(same["changed"], false, "a rollback to the same text says so");
}

#[test]
fn an_edited_atom_keeps_its_sources_and_a_pinned_one_stays() {
    let mut space = Space::new(false, config());
    space.say("I live in Porto.");
    space.tick(0);
    let porto = space.atom("The user lives in Porto.");
    let edited = json(space.engine.edit(&porto, "The user lives in Porto Alegre.", space.at));
    let alegre = edited["id"].as_str().expect("an id").to_owned();
    assert_eq!(edited["replaces"], porto.as_str());
    let trace = json(space.engine.trace(&alegre));
    assert_eq!((trace["origin"].as_str(), trace["rests-on"][0]["text"].as_str()), (Some("human"), Some("I live in Porto.")));
    assert_eq!(json(space.engine.history(&alegre))["revisions"].as_array().expect("a list").len(), 2);
    assert!(space.engine.edit(&porto, "x", space.at).is_err(), "the old one is not edited any more");
    assert_eq!(json(space.engine.edit(&alegre, "The user lives in Porto Alegre.", space.at))["changed"], false);

    space.engine.pin(&alegre, true, space.at).expect("pinned");
    space.say("I live in Lisbon.");
    space.tick(0);
    assert_eq!(space.row::<u32>(&format!("SELECT count(*) FROM atoms WHERE uid = '{alegre}' AND believed_to IS NULL")), 1);
    assert_eq!(json(space.engine.pin(&alegre, true, space.at))["changed"], false);
}

#[test]
fn a_pinned_atom_is_neither_replaced_nor_merged_by_a_model() {
    for action in ["update", "merge"] {
        let mut space = Space::new(true, json!({"extraction": {}, "pipeline": {"everyNConversations": 1, "l2DelayAfterL1Seconds": 1_000_000}}));
        let lyon = space.learn("I live in Lyon.", "persona", "home");
        space.engine.pin(&lyon, true, space.at).expect("pinned");
        space.say("I live in Turin.");
        space.tick(0);
        let (id, _) = space.one("l1-extract");
        let memory = json!({"content": "I live in Turin.", "type": "persona", "priority": 90, "sources": [{"id": "m1", "quote": "live in Turin"}], "start": "", "end": ""});
        space.complete(&id, &json!({"scenes": [{"scene": "home", "memories": [memory]}]}).to_string());
        let (id, request) = space.one("l1-settle");
        assert!(request.prompt.contains("I live in Lyon."), "{}", request.prompt);
        let decision = json!({"new": "n1", "action": action, "targets": ["c1"], "content": "I live in Turin.", "type": "persona", "priority": 90});
        space.complete(&id, &json!({"decisions": [decision]}).to_string());
        let trace = json(space.engine.trace(&lyon));
        assert_eq!((trace["pinned"].as_bool(), &trace["believed-to"], &trace["valid-to"]), (Some(true), &Value::Null, &Value::Null), "{action}: {trace}");
        let status = json(space.engine.status());
        assert_eq!((status["atoms"].as_u64(), status["atoms-replaced"].as_u64()), (Some(2), Some(0)), "{action}: both are believed");
    }
}

#[test]
fn a_backup_is_verified_and_restored_whole() {
    let (mut space, _, _) = full();
    let persona = space.file("persona.md").expect("a persona");
    assert!(space.engine.backup("first", space.at).is_err(), "a name is used once");
    space.engine.edit("persona", "# Me\n\nAll different now.", space.at).expect("edited");
    let later = space.learn("I bought a boat yesterday.", "episodic", "boat");
    let restored = json(space.engine.restore("first", space.at));
    assert_eq!(space.file("persona.md").expect("a persona"), persona, "files are as they were");
    assert_eq!(space.row::<u32>(&format!("SELECT count(*) FROM atoms WHERE uid = '{later}'")), 0);
    space.tick(SECOND);
    assert_eq!(space.row::<u32>("SELECT count(*) FROM revisions WHERE author = 'human'"), 0, "no file is mistaken for an edit");
    let before = restored["kept-before"].as_str().expect("a name").to_owned();
    space.engine.restore(&before, space.at).expect("and back again");
    assert!(space.file("persona.md").expect("a persona").contains("All different now."));
    assert_eq!(space.row::<u32>(&format!("SELECT count(*) FROM atoms WHERE uid = '{later}'")), 1);
    assert!(space.engine.restore("none", space.at).is_err());
    space.write("backups/first/strata.db", "damaged");
    assert!(space.engine.restore("first", space.at).is_err(), "a damaged backup is refused");
    assert!(space.file("persona.md").expect("a persona").contains("All different now."));
    for bad in ["", "..", "a/b", ".hidden"] {
        assert!(space.engine.backup(bad, space.at).is_err(), "{bad}");
    }
}

#[test]
fn an_opening_that_fails_gives_the_directory_up() {
    let (mut space, ..) = full();
    space.engine.untold();
    disk::replace(&space.disk, "restoring.json", b"{").expect("written");
    space.engine.crash(|| {
        let open = || Engine::open(Rc::new(space.disk.clone()), r#"{"holder": {"id": "test"}}"#, space::models(true), space.at);
        assert_eq!(open().expect_err("the note of a restore is damaged").code, FailureCode::Corrupt);
        assert_eq!(space.disk.list("lock").expect("listed"), [""; 0]);
        space.disk.remove("restoring.json").expect("removed");
        open().expect("opens").0
    });
}

#[test]
fn mirrors_are_grown_and_rebuilt_to_the_same_bytes() {
    let (mut space, _, _) = full();
    let day = "conversations/2026-05-28.jsonl";
    let grown = space.file(day).expect("a mirror");
    assert_eq!(grown.lines().count(), 3);
    space.write(day, &grown[..grown.len() / 2]);
    space.say("And one more thing.");
    space.tick(SECOND);
    let whole = space.file(day).expect("a mirror");
    assert!(whole.starts_with(&grown), "a cut mirror is made whole");
    space.engine.export("again", space.at).expect("exported");
    assert_eq!(space.file(day).expect("a mirror"), whole);
    let _ = disk::read_all(&space.disk, "exports/again/space.jsonl").expect("the export");
}

#[test]
fn an_export_imports_whole_and_twice_adds_nothing() {
    let (space, _, _) = full();
    let records = space.file("exports/all/space.jsonl").expect("the export");
    let mut other = Space::new(false, json!({}));
    let preview = json(other.engine.import(&Scope::default(), &records, true, other.at));
    assert_eq!(other.row::<u32>("SELECT count(*) FROM messages"), 0, "a dry run writes nothing");
    let report = json(other.engine.import(&Scope::default(), &records, false, other.at));
    assert_eq!((preview["message"].clone(), preview["atom"].clone()), (report["message"].clone(), report["atom"].clone()));
    assert_eq!(report["errors"], json!([]), "{report}");
    assert_eq!(report["unresolved"], 0, "{report}");
    for (sql, about) in [
        ("SELECT group_concat(uid || text || said_at || recorded_at || (batch IS NULL), '|') FROM (SELECT * FROM messages ORDER BY uid)", "messages"),
        (
            "SELECT group_concat(uid || text || kind || priority || scene || origin || valid_from || believed_from, '|') FROM (SELECT * FROM atoms ORDER BY uid)",
            "atoms",
        ),
        ("SELECT count(*) || group_concat(quote) FROM (SELECT quote FROM evidence JOIN atoms ON atoms.id = atom ORDER BY uid)", "evidence"),
        (
            "SELECT group_concat(path || body || summary || heat, '|') FROM (SELECT path, body, summary, heat FROM pages JOIN revisions ON page = pages.id AND number = revision ORDER BY path)",
            "pages",
        ),
    ] {
        assert_eq!(other.row::<String>(sql), space.row::<String>(sql), "{about}");
    }
    let again = json(other.engine.import(&Scope::default(), &records, false, other.at));
    for kind in ["message", "atom", "scene", "persona"] {
        assert_eq!(again[kind]["added"], 0, "{kind}: {again}");
    }
    assert!(other.file("persona.md").expect("the file").contains("Lives in Porto."));
}

#[test]
fn records_of_other_systems_are_taken_and_broken_lines_are_named() {
    let mut space = Space::new(false, json!({}));
    let lines = [
        json!({"record": "message", "id": "msg_1", "session": "agent:main", "role": "user", "text": "I moved to Lisbon in May.", "said-at": 1_780_279_384_000_u64}),
        json!({"record": "message", "session": "agent:main", "role": "user", "text": "ok", "said-at": 1_780_279_385_000_u64}),
        json!({"record": "message", "session": "agent:main", "role": "user", "text": "ok", "said-at": 1_780_279_385_000_u64}),
        json!({"record": "atom", "id": "m_17_ab", "session": "agent:main", "kind": "persona", "text": "The user lives in Lisbon.", "priority": 80, "messages": ["msg_1", "msg_9"], "origin": "imported"}),
        json!({"record": "scene", "name": "moving to portugal", "text": "# Moving\n\nThey moved.", "summary": "s", "heat": 3, "atoms": ["m_17_ab", "m_gone"]}),
        json!({"record": "persona", "text": "# Who\n\nLives in Lisbon.", "origin": "human"}),
        json!({"record": "vector", "of": "m_17_ab", "model": "x", "values": [0.1]}),
        json!({"record": "atom", "kind": "mood", "text": "x"}),
        json!({"record": "ghost"}),
    ];
    let mut records: Vec<String> = lines.iter().map(Value::to_string).collect();
    records.push("{not json".into());
    let records = records.join("\n\n");
    let report = json(space.engine.import(&Scope::default(), &records, false, space.at));
    assert_eq!((report["message"]["added"].as_u64(), report["atom"]["added"].as_u64()), (Some(3), Some(1)), "{report}");
    assert_eq!((report["scene"]["added"].as_u64(), report["persona"]["added"].as_u64()), (Some(1), Some(1)), "{report}");
    assert_eq!((report["unresolved"].as_u64(), report["vector"]["ignored"].as_u64()), (Some(2), Some(1)), "{report}");
    assert_eq!(report["errors"].as_array().expect("a list").iter().map(|error| error["line"].as_u64().expect("a line")).collect::<Vec<_>>(), [15, 17, 19]);
    assert!(space.file("scenes/moving-to-portugal.md").expect("the file").contains("heat: 3\n"));
    let trace = json(space.engine.trace(&space.row::<String>("SELECT uid FROM atoms")));
    assert_eq!(trace["rests-on"][0]["text"], "I moved to Lisbon in May.");
    let again = json(space.engine.import(&Scope::default(), &records, false, space.at));
    for kind in ["message", "atom", "scene", "persona"] {
        assert_eq!(again[kind]["added"], 0, "{kind}: {again}");
    }
}

#[test]
fn every_layer_can_be_browsed_a_page_at_a_time() {
    let (space, secret, _) = full();
    for (layer, count) in [("messages", 3), ("atoms", 3), ("scenes", 1), ("persona", 1), ("entries", 1), ("canvases", 1), ("requests", 6), ("batches", 6)] {
        let page = json(space.engine.browse(layer, &Selector::default(), None, 100));
        assert_eq!(page["items"].as_array().expect("a list").len(), count, "{layer}");
        let first = json(space.engine.browse(layer, &Selector::default(), None, 1));
        let rest = json(space.engine.browse(layer, &Selector::default(), first["next"].as_str(), 100));
        assert_eq!(rest["items"].as_array().expect("a list").len(), count - 1, "{layer}");
    }
    let which = Selector { query: Some("LOCKER".into()), ..Selector::default() };
    assert_eq!(json(space.engine.browse("atoms", &which, None, 10))["items"][0]["id"], secret.as_str());
    assert!(space.engine.browse("nonsense", &Selector::default(), None, 10).is_err());
    assert!(space.engine.browse("atoms", &Selector::default(), None, 0).is_err());
}

#[test]
fn a_rebuild_by_model_gets_identical_hashes_beside_human_edits() {
    let (mut space, _, porto) = full();
    let report = json(space.engine.rebuild(space.at));
    assert_eq!(report["identical"], true, "{report}");
    assert_eq!((report["l1"]["rows"].as_u64(), report["l2"]["rows"].as_u64(), report["l3"]["rows"].as_u64()), (Some(3), Some(2), Some(1)), "{report}");
    assert_eq!(report["l1"]["stored"], report["l1"]["derived"]);

    // Human edits are inputs.
    space.engine.edit("persona", "# Me\n\nI am Ana.", space.at).expect("edited");
    space.engine.edit(&porto, "The user moved to Porto Alegre.", space.at).expect("edited");
    space.at += SECOND;
    let boat = space.learn("I bought a boat yesterday.", "episodic", "boat");
    let (id, _) = space.scenes(10 * SECOND);
    space.complete(&id, &answer(json!([create("boat", "Has a boat.", &boat)])));
    let report = json(space.engine.rebuild(space.at));
    assert_eq!(report["identical"], true, "{report}");
}

#[test]
fn a_rebuild_by_rules_gets_identical_hashes() {
    let mut space = Space::new(false, config());
    for line in ["I live in Porto.", "I prefer tea to coffee.", "I live in Lisbon.", "My name is Ana."] {
        space.say(line);
        space.tick(SECOND);
        space.tick(60 * SECOND);
    }
    space.engine.flush(space.at).expect("flushed");
    for _ in 0..3 {
        space.tick(SECOND);
    }
    let report = json(space.engine.rebuild(space.at));
    assert_eq!(report["identical"], true, "{report}");
    assert!(report["batches"].as_u64().expect("a count") > 6, "{report}");
}

#[test]
fn a_rebuild_names_a_row_that_was_tampered_with() {
    let (mut space, boat, _) = full();
    space.change(&format!("UPDATE atoms SET text = 'tampered' WHERE uid = '{boat}'"));
    let report = json(space.engine.rebuild(space.at));
    assert_eq!((report["identical"].as_bool(), report["l1"]["differences"][0].as_str()), (Some(false), Some(boat.as_str())), "{report}");
}

#[test]
fn a_rebuild_after_a_forgetting_takes_the_rest_as_given() {
    let (mut space, secret, _) = full();
    let which = Selector { ids: vec![message_of(&space, &secret)], ..Selector::default() };
    space.engine.forget(&which, true, space.at).expect("forgotten");
    let report = json(space.engine.rebuild(space.at));
    assert_eq!(report["l1"]["identical"], true, "{report}");
    assert!(report["given"].as_u64().expect("a count") > 0, "{report}");
}

#[test]
fn retention_removes_old_rows_under_its_guards() {
    const DAY: u64 = 86_400_000;
    let aggressive = json!({"capture": {"l0l1RetentionDays": 1}});
    let settings = json!({"holder": {"id": "x"}, "capture": aggressive["capture"]});
    let disk: std::rc::Rc<dyn disk::Disk> = std::rc::Rc::new(disk::SimDisk::new());
    assert!(strata_core::Engine::open(disk, &settings.to_string(), space::models(false), 0).is_err(), "one day needs a second word");

    let mut space = Space::new(false, json!({"capture": {"l0l1RetentionDays": 3}}));
    space.say("I live in Porto.");
    for index in 0..10 {
        space.say(&format!("Old talk number {index} about nothing."));
    }
    space.engine.flush(space.at).expect("flushed");
    for _ in 0..12 {
        space.tick(SECOND);
    }
    space.at += 4 * DAY;
    assert!(space.deadline(0).expect("a next look") > space.at, "the next look is at the local time of day");
    let status: Value = json(space.engine.status());
    assert!(status["retention"]["messages"]["refused"].as_str().expect("a reason").contains("fewer than 50"), "{status}");
    assert_eq!(status["messages"], 11, "the guard refuses");
    for index in 0..60 {
        space.say(&format!("New talk number {index} about nothing."));
    }
    space.at += DAY;
    space.tick(0);
    let status: Value = json(space.engine.status());
    assert_eq!((status["messages"].as_u64(), status["retention"]["messages"]["removed"].as_u64()), (Some(61), Some(10)), "{status}");
    assert_eq!(space.holding("Old talk number 3"), Vec::<String>::new(), "mirrors, index and WAL follow");
    // Its atom is old too, but few atoms would stay: it does, and so does the message that it rests on.
    assert_eq!(status["retention"]["atoms"]["removed"], 0, "{status}");
    let trace = json(space.engine.trace(&space.atom("The user lives in Porto.")));
    assert_eq!(trace["rests-on"][0]["text"], "I live in Porto.");
}
