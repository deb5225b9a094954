//! A crash after every single file operation of distilling, scenes, persona, edits, forgetting,
//! backup, restore and export: nothing is lost, nothing half done stays, and the work ends where an
//! undisturbed run ends.
//!
//! Each deed starts from one prepared disk. It is done once undisturbed, to count its file
//! operations; then once for each of them with a crash there, seen once as a kill and once as a power
//! cut. The space must open, be whole, and reach the same end when the deed is done again.

use serde_json::{Value, json};
use std::rc::Rc;
use strata_core::contract::{Abilities, EndEvent, Failure, LlmAnswer, LlmRequest, Message, Outcome, Outgoing, Scope, Selector};
use strata_core::disk::{self, Crash, Disk, SimDisk};
use strata_core::engine::{Engine, Models};

const START: u64 = 1_780_000_000_000;
const SECOND: u64 = 1_000;
const SECRET: &str = "zanzibar4711";

/// Rounds of ticks and answers after which the space must have come to rest.
const MAX_ROUNDS: u32 = 40;

fn models() -> Models {
    Models { llm: Abilities { available: true, model: "scripted".into(), json_schema: true }, embedding: None }
}

fn open(disk: &SimDisk) -> Result<Engine, Failure> {
    let disk: Rc<dyn Disk> = Rc::new(disk.clone());
    let config = json!({"holder": {"id": "deed"}, "pipeline": {"everyNConversations": 1, "l2MinIntervalSeconds": 0}, "extraction": {"enableDedup": false}});
    Engine::open(disk, &config.to_string(), models(), START).map(|(engine, _)| engine)
}

fn say(engine: &mut Engine, text: &str, at: u64) -> Result<(), Failure> {
    let message = Message { role: "user".into(), id: Some(text.into()), content: text.into(), ..Message::default() };
    engine.agent_end(&EndEvent { scope: Scope { session: "s".into(), ..Scope::default() }, messages: vec![message], success: true, at }).map(|_| ())
}

/// Returns the ids of atoms in a text, in order.
fn atoms_in(text: &str) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for (at, _) in text.match_indices("a_") {
        if let Some(id) = text.get(at..at + 18)
            && id[2..].bytes().all(|byte| byte.is_ascii_hexdigit())
            && !ids.iter().any(|known| known == id)
        {
            ids.push(id.to_owned());
        }
    }
    ids
}

/// The scripted model: a function of the question.
fn model(request: &LlmRequest) -> String {
    let ids = atoms_in(&request.prompt);
    match request.purpose.as_str() {
        "l1-extract" => {
            let memories: Vec<Value> = ["I live in Porto.", "I drink green tea.", "My locker code is zanzibar4711."]
                .iter()
                .enumerate()
                .filter(|(_, line)| request.prompt.rsplit_once("## New").map_or(request.prompt.as_str(), |(_, new)| new).contains(*line))
                .map(|(_, line)| json!({"content": line, "type": "persona", "priority": 90, "sources": [{"id": "m1", "quote": line}], "start": "", "end": ""}))
                .collect();
            json!({"scenes": [{"scene": "life", "memories": memories}]}).to_string()
        }
        "l2-scenes" => {
            let paragraphs: Vec<Value> = ids.iter().map(|id| json!({"text": format!("Fact number {}.", &id[2..6]), "atoms": [id]})).collect();
            if request.prompt.contains("There is none yet.") {
                json!({"operations": [{"op": "create", "name": "life", "summary": "Life.", "paragraphs": paragraphs}]}).to_string()
            } else {
                json!({"operations": [{"op": "update", "scene": "life.md", "summary": "Life.", "paragraphs": paragraphs}]}).to_string()
            }
        }
        "l3-persona" => {
            let statements: Vec<Value> = ids.iter().map(|id| json!({"text": format!("Statement {}.", &id[2..6]), "atoms": [id]})).collect();
            json!({"sections": [{"heading": "Facts", "statements": statements}]}).to_string()
        }
        other => panic!("the scripted model was not told of {other}"),
    }
}

/// Ticks and answers until nothing is due for an hour.
fn work(engine: &mut Engine, from: u64) -> Result<(), Failure> {
    let mut now = from;
    for _ in 0..MAX_ROUNDS {
        let next = engine.tick(now, models())?;
        let asked: Vec<(String, LlmRequest)> = engine
            .drain()
            .into_iter()
            .filter_map(|outgoing| match outgoing {
                Outgoing::AskModel { id, request } => Some((id, request)),
                _ => None,
            })
            .collect();
        let rest = asked.is_empty();
        for (id, request) in asked {
            engine.complete(&id, Outcome::Text(LlmAnswer { text: model(&request), ..LlmAnswer::default() }), now)?;
        }
        match next {
            Some(next) if next > now && next < now + 600 * SECOND => now = next,
            _ if rest => return Ok(()),
            _ => now += SECOND,
        }
    }
    panic!("the space does not come to rest within {MAX_ROUNDS} rounds");
}

/// Returns what a deed must end in: rows apart from times and numbers of requests, and the files of pages.
fn state(engine: &Engine, disk: &SimDisk) -> String {
    let rows =
        |sql: &str| -> String { engine.store().db().query_row(sql, [], |row| row.get::<_, Option<String>>(0)).expect("SQLite answers").unwrap_or_default() };
    let mut text = rows("SELECT group_concat(uid, ' ') FROM (SELECT uid FROM messages ORDER BY uid)");
    text.push_str(&rows("SELECT group_concat(uid || text, ' ') FROM (SELECT uid, text FROM atoms WHERE believed_to IS NULL ORDER BY uid)"));
    text.push_str(&rows(
        "SELECT group_concat(path || body, ' ') FROM (SELECT path, body FROM pages JOIN revisions ON page = pages.id AND number = revision ORDER BY path)",
    ));
    for path in ["persona.md", "scenes/life.md"] {
        // The headers hold times, which a repeated deed may move.
        let file = disk::read_all(disk, path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let body: String = file.lines().filter(|line| !line.starts_with("updated:") && !line.starts_with("**Heat**") && !line.starts_with("heat:")).collect();
        text.push_str(&format!("\n{path}: {body}"));
    }
    text
}

fn holding(disk: &SimDisk, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for name in disk.list(&folder).expect("listed") {
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            if let Some(sub) = path.strip_suffix('/') {
                folders.push(sub.to_owned());
            } else if disk::read_all(disk, &path).expect("read").windows(text.len()).any(|window| window == text.as_bytes()) {
                found.push(path);
            }
        }
    }
    found
}

struct Deed {
    name: &'static str,
    /// Prepares the disk; undisturbed.
    prepare: fn(&mut Engine) -> Result<(), Failure>,
    /// What is disturbed; done again after the crash, it must reach the same end.
    deed: fn(&mut Engine, &SimDisk) -> Result<(), Failure>,
    /// What must hold as soon as the space is open again.
    check: fn(&Engine, &SimDisk, &str),
    /// What must hold at the end.
    at_end: fn(&Engine, &SimDisk, &str),
}

fn nothing(_: &Engine, _: &SimDisk, _: &str) {}

impl Deed {
    fn try_all(&self) {
        let prepared = SimDisk::new();
        let mut engine = open(&prepared).expect("opens");
        (self.prepare)(&mut engine).expect("prepared");
        engine.close(START + 900 * SECOND).expect("closes");

        let disk = prepared.after(Crash::Kill);
        let before = disk.operations();
        let mut engine = open(&disk).expect("opens");
        (self.deed)(&mut engine, &disk).expect("an undisturbed deed succeeds");
        let undisturbed = state(&engine, &disk);
        engine.close(START + 5_000 * SECOND).expect("closes");
        let operations = disk.operations() - before;

        for point in 1..=operations {
            let disk = prepared.after(Crash::Kill);
            disk.crash_at(point);
            if let Ok(mut engine) = open(&disk)
                && (self.deed)(&mut engine, &disk).is_ok()
            {
                // What is left of the operations is the closing.
                let _ = engine.close(START + 5_000 * SECOND).is_ok();
            }
            assert!(disk.crashed(), "{}: operation {point} of {operations} was not reached", self.name);
            for crash in [Crash::Kill, Crash::PowerCut(point)] {
                let place = format!("{}: operation {point} of {operations}, {crash:?}", self.name);
                let disk = disk.after(crash);
                let mut engine = open(&disk).unwrap_or_else(|failure| panic!("{place}: does not open: {failure}"));
                let integrity: String = engine.store().db().query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("SQLite answers");
                assert_eq!(integrity, "ok", "{place}");
                (self.check)(&engine, &disk, &place);
                (self.deed)(&mut engine, &disk).unwrap_or_else(|failure| panic!("{place}: done again: {failure}"));
                assert_eq!(state(&engine, &disk), undisturbed, "{place}: it ends elsewhere");
                (self.at_end)(&engine, &disk, &place);
            }
        }
        println!("{}: {operations} crash points, each as kill and as power cut", self.name);
    }
}

fn distilled(engine: &mut Engine) -> Result<(), Failure> {
    for (index, line) in ["I live in Porto.", "I drink green tea.", "My locker code is zanzibar4711."].into_iter().enumerate() {
        say(engine, line, START + index as u64 * SECOND)?;
    }
    work(engine, START + 10 * SECOND)
}

fn messages_are_there(engine: &Engine, _: &SimDisk, place: &str) {
    let count: u32 = engine.store().db().query_row("SELECT count(*) FROM messages", [], |row| row.get(0)).expect("SQLite answers");
    assert_eq!(count, 3, "{place}: an acknowledged message is gone");
}

#[test]
fn distilling_by_a_model_survives_a_crash_after_every_file_operation() {
    let told = |engine: &mut Engine| {
        for (index, line) in ["I live in Porto.", "I drink green tea.", "My locker code is zanzibar4711."].into_iter().enumerate() {
            say(engine, line, START + index as u64 * SECOND)?;
        }
        Ok(())
    };
    Deed { name: "L1, L2 and L3 by model", prepare: told, deed: |engine, _| work(engine, START + 10 * SECOND), check: messages_are_there, at_end: nothing }
        .try_all();
}

#[test]
fn an_edit_in_a_file_survives_a_crash_after_every_file_operation() {
    Deed {
        name: "a human's edit of two files",
        prepare: distilled,
        deed: |engine, disk| {
            for path in ["persona.md", "scenes/life.md"] {
                let text = disk::read_all(disk, path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
                if !text.contains("By hand.") {
                    let edited = match text.split_once("\n---\n") {
                        Some((body, rest)) => format!("{body}\n\nBy hand.\n\n---\n{rest}"),
                        None => format!("{text}\n\nBy hand.\n"),
                    };
                    disk::replace(disk, path, edited.as_bytes()).map_err(|error| Failure::invalid(format!("{error:?}")))?;
                }
            }
            work(engine, START + 2_000 * SECOND)
        },
        check: messages_are_there,
        at_end: |engine, _, place| {
            let hands: u32 = engine
                .store()
                .db()
                .query_row("SELECT count(*) FROM pages JOIN revisions ON page = pages.id AND number = revision WHERE body LIKE '%By hand.%'", [], |row| {
                    row.get(0)
                })
                .expect("SQLite answers");
            assert_eq!(hands, 2, "{place}: an edit is gone");
        },
    }
    .try_all();
}

#[test]
fn forgetting_survives_a_crash_after_every_file_operation() {
    Deed {
        name: "forget with a backup and an export",
        prepare: |engine| {
            distilled(engine)?;
            engine.backup("one", START + 800 * SECOND)?;
            engine.export("one", START + 800 * SECOND).map(|_| ())
        },
        deed: |engine, _| {
            let which = Selector { query: Some(SECRET.into()), ..Selector::default() };
            engine.forget(&which, true, START + 2_000 * SECOND)?;
            work(engine, START + 2_000 * SECOND)
        },
        check: |engine, disk, place| {
            let left: u32 =
                engine.store().db().query_row("SELECT count(*) FROM messages WHERE text LIKE '%zanzibar4711%'", [], |row| row.get(0)).expect("SQLite answers");
            // Either it has not happened, or opening has finished it.
            if left == 0 {
                assert_eq!(holding(disk, SECRET), Vec::<String>::new(), "{place}: rows are gone, bytes are not");
            }
        },
        at_end: |_, disk, place| assert_eq!(holding(disk, SECRET), Vec::<String>::new(), "{place}"),
    }
    .try_all();
}

#[test]
fn restoring_survives_a_crash_after_every_file_operation() {
    Deed {
        name: "restore",
        prepare: |engine| {
            distilled(engine)?;
            engine.backup("one", START + 800 * SECOND)?;
            engine.edit("persona", "# Me\n\nAll different.", START + 850 * SECOND).map(|_| ())
        },
        deed: |engine, _| engine.restore("one", START + 2_000 * SECOND).map(|_| ()),
        check: messages_are_there,
        at_end: |_, disk, place| {
            let persona = disk::read_all(disk, "persona.md").map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
            assert!(persona.contains("Statement") && !persona.contains("All different."), "{place}: {persona}");
        },
    }
    .try_all();
}

#[test]
fn backup_and_export_survive_a_crash_after_every_file_operation() {
    Deed {
        name: "backup and export",
        prepare: distilled,
        deed: |engine, _| {
            let kept = |outcome: Result<String, Failure>| match outcome {
                // Done again: the first one was complete.
                Err(failure) if failure.code == strata_core::FailureCode::Conflict => Ok(()),
                other => other.map(|_| ()),
            };
            kept(engine.backup("one", START + 2_000 * SECOND))?;
            kept(engine.export("one", START + 2_000 * SECOND))
        },
        check: messages_are_there,
        at_end: |_, disk, place| {
            assert!(disk.exists("backups/one/manifest.json").expect("looked"), "{place}");
            let export = disk::read_all(disk, "exports/one/space.jsonl").expect("the export");
            assert!(export.ends_with(b"\n") && String::from_utf8_lossy(&export).lines().count() > 8, "{place}");
        },
    }
    .try_all();
}
