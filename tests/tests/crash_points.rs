//! A crash after every single file operation: what was acknowledged is there, and a second run ends
//! where an undisturbed run ends.
//!
//! A story is a list of calls on a simulated disk. It runs once undisturbed, to count its file
//! operations; then once for each of them with a crash there, by kill and by power cut. After each
//! crash the space opens, SQLite finds it whole, every acknowledged message is found, and the story,
//! told again from the start, ends in the same rows.

use serde_json::Value;
use std::collections::BTreeSet;
use std::rc::Rc;
use strata_core::contract::{Abilities, EndEvent, Failure, LlmAnswer, Message, Outcome, Outgoing, Scope};
use strata_core::disk::{Crash, Disk, SimDisk};
use strata_core::engine::{Engine, Models};

const START: u64 = 1_772_000_000_000;
const MINUTE: u64 = 60_000;

/// Power cuts tried at each crash point, by their seeds.
const SEEDS: std::ops::Range<u64> = 0..2;

/// Ticks after which a story must have come to rest.
const MAX_TICKS: u32 = 200;

/// What a story was told to be durable.
#[derive(Default)]
struct Acknowledged {
    messages: BTreeSet<String>,
}

/// One telling: the engine, and the scripted model behind it.
struct Telling<'a> {
    engine: Engine,
    acknowledged: &'a mut Acknowledged,
    model: fn(&str) -> Option<&'static str>,
}

impl Telling<'_> {
    fn say(&mut self, session: &str, lines: &[&str], at: u64) -> Result<(), Failure> {
        let messages = lines
            .iter()
            .enumerate()
            .map(|(index, line)| Message {
                role: if index % 2 == 0 { "user" } else { "assistant" }.into(),
                content: (*line).into(),
                said_at: Some(at + index as u64),
                ..Message::default()
            })
            .collect();
        let event = EndEvent { scope: Scope { session: session.into(), ..Scope::default() }, messages, success: true, at };
        let report = self.engine.agent_end(&event)?;
        self.acknowledged.messages.extend(report.stored);
        self.answer(at)
    }

    /// Ticks from `at` on until nothing is due before `until`.
    fn work(&mut self, at: u64, until: u64) -> Result<(), Failure> {
        let mut now = at;
        for _ in 0..MAX_TICKS {
            let models = models(self.model);
            let next = self.engine.tick(now, models)?;
            self.answer(now)?;
            match next {
                Some(next) if next <= until => now = next.max(now + 1),
                _ => return Ok(()),
            }
        }
        panic!("the story does not come to rest within {MAX_TICKS} ticks");
    }

    fn answer(&mut self, at: u64) -> Result<(), Failure> {
        let mut waiting = self.engine.drain();
        while !waiting.is_empty() {
            for outgoing in std::mem::take(&mut waiting) {
                if let Outgoing::AskModel { id, request } = outgoing {
                    let text = (self.model)(&request.purpose).unwrap_or_else(|| panic!("the scripted model was not told of {}", request.purpose));
                    self.engine.complete(&id, Outcome::Text(LlmAnswer { text: text.into(), ..LlmAnswer::default() }), at)?;
                }
            }
            waiting = self.engine.drain();
        }
        Ok(())
    }
}

fn models(model: fn(&str) -> Option<&'static str>) -> Models {
    let available = model("l1-extract").is_some();
    Models { llm: Abilities { available, model: "scripted".into(), json_schema: true }, embedding: None }
}

struct Story {
    tell: fn(&mut Telling<'_>) -> Result<(), Failure>,
    model: fn(&str) -> Option<&'static str>,
}

impl Story {
    fn open(&self, disk: &SimDisk) -> Result<Engine, Failure> {
        let disk: Rc<dyn Disk> = Rc::new(disk.clone());
        Engine::open(disk, r#"{"holder": {"id": "story"}}"#, models(self.model), START).map(|(engine, _)| engine)
    }

    fn tell(&self, disk: &SimDisk, acknowledged: &mut Acknowledged) -> Result<String, Failure> {
        let mut telling = Telling { engine: self.open(disk)?, acknowledged, model: self.model };
        (self.tell)(&mut telling)?;
        let rows = rows(&telling.engine)?;
        telling.engine.close(START + 10 * MINUTE)?;
        Ok(rows)
    }

    /// Tries every crash point; returns how many there were.
    fn try_all(&self) -> u64 {
        let disk = SimDisk::new();
        let undisturbed = self.tell(&disk, &mut Acknowledged::default()).expect("an undisturbed story succeeds");
        let operations = disk.operations();
        for point in 1..=operations {
            let disk = SimDisk::new();
            disk.crash_at(point);
            let mut acknowledged = Acknowledged::default();
            let ended = self.tell(&disk, &mut acknowledged);
            assert!(disk.crashed() || ended.is_ok(), "operation {point} of {operations} was not reached");
            let crashes = std::iter::once(Crash::Kill).chain(SEEDS.map(|seed| Crash::PowerCut(seed * operations + point)));
            for crash in crashes {
                let place = format!("operation {point} of {operations}, {crash:?}");
                let disk = disk.after(crash);
                let engine = self.open(&disk).unwrap_or_else(|failure| panic!("{place}: does not open: {failure}"));
                check(&engine, &acknowledged, &place);
                drop(engine);
                let again = self.tell(&disk, &mut Acknowledged::default()).unwrap_or_else(|failure| panic!("{place}: second telling: {failure}"));
                assert_eq!(again, undisturbed, "{place}: the second telling ends elsewhere");
            }
        }
        operations
    }
}

/// Checks what must hold after any crash.
fn check(engine: &Engine, acknowledged: &Acknowledged, place: &str) {
    let integrity: String = engine.store().db().query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("SQLite answers");
    assert_eq!(integrity, "ok", "{place}");
    for uid in &acknowledged.messages {
        let found = engine.store().db().prepare("SELECT 1 FROM messages WHERE uid = ?1").and_then(|mut query| query.exists([uid])).expect("SQLite answers");
        assert!(found, "{place}: acknowledged message {uid} is gone");
    }
}

/// Returns the rows that a story must end in, whatever happened on the way.
fn rows(engine: &Engine) -> Result<String, Failure> {
    let status: Value = serde_json::from_str(&engine.status()?).expect("status is JSON");
    Ok(format!("messages {} atoms {}", status["messages"], status["atoms"]))
}

fn no_model(_purpose: &str) -> Option<&'static str> {
    None
}

#[test]
fn capture_survives_a_crash_after_every_file_operation() {
    let story = Story {
        tell: |telling| {
            telling.say("one", &["I live in Porto.", "Noted."], START)?;
            telling.say("one", &["I live in Porto.", "Noted.", "ok", "Good.", "ok", "Good."], START + MINUTE)?;
            telling.say("two", &["I prefer tea to coffee.", "Tea it is."], START + 2 * MINUTE)
        },
        model: no_model,
    };
    println!("capture: {} crash points", story.try_all());
}

#[test]
fn distilling_by_rules_survives_a_crash_after_every_file_operation() {
    let story = Story {
        tell: |telling| {
            telling.say("one", &["I live in Porto.", "Noted.", "Always answer in English.", "Sure."], START)?;
            telling.work(START + MINUTE, START + 2 * MINUTE)?;
            telling.engine.flush(START + 3 * MINUTE)?;
            telling.work(START + 3 * MINUTE, START + 4 * MINUTE)
        },
        model: no_model,
    };
    println!("rules: {} crash points", story.try_all());
}

#[test]
fn a_disk_that_fills_up_refuses_and_loses_nothing() {
    let story = Story { tell: |telling| telling.say("one", &["I live in Porto.", "Noted."], START), model: no_model };
    let lines: Vec<String> = (0..40).map(|index| format!("line {index} {}", "x".repeat(2000))).collect();
    for room in (100_000..600_000).step_by(20_000) {
        let disk = SimDisk::new();
        let mut acknowledged = Acknowledged::default();
        story.tell(&disk, &mut acknowledged).expect("room enough");
        disk.set_room(Some(room));
        let mut refused = false;
        let engine = story.open(&disk);
        if let Ok(engine) = engine {
            let mut telling = Telling { engine, acknowledged: &mut acknowledged, model: no_model };
            for (index, line) in lines.iter().enumerate() {
                match telling.say("big", &[line, "Noted."], START + index as u64) {
                    Ok(()) => {}
                    Err(failure) => {
                        assert_eq!(failure.code, strata_core::FailureCode::StorageFull, "{failure}");
                        refused = true;
                    }
                }
            }
        } else {
            refused = true;
        }
        disk.set_room(None);
        let engine = story.open(&disk).expect("opens with room");
        check(&engine, &acknowledged, &format!("room {room}"));
        assert!(refused || room > 300_000, "room {room} was never short: the test tests nothing");
    }
}
