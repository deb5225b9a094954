//! Questions about oneself get the fact that answers them, often in other words; unrelated prompts get nothing.

use serde_json::{Value, json};
use std::rc::Rc;
use strata_core::contract::{PromptEvent, Scope};
use strata_core::disk::{Disk, SimDisk};
use strata_core::engine::{Engine, Models};

const NOW: u64 = 1_780_000_000_000;

/// Facts with a question about each; `tests/openclaw/facts.json` is among them.
const FACTS: &str = include_str!("recall_personal/facts.json");

/// Prompts for work and knowledge, one a line, some of them about something of one's own.
const UNRELATED: &str = include_str!("recall_personal/unrelated.txt");

/// What was measured on 1 December 2026, of 72 questions and of 180 prompts; better is welcome.
const FOUND: usize = 41;
const UNRELATED_WITH_SOMETHING: usize = 3;

fn space(facts: &[&str]) -> Engine {
    let disk: Rc<dyn Disk> = Rc::new(SimDisk::new());
    let (mut engine, _) = Engine::open(disk, "", Models::default(), NOW).expect("opened");
    let record = |(place, text): (usize, &&str)| {
        json!({"record": "atom", "id": place.to_string(), "session": "s", "kind": "persona", "text": text, "origin": "user", "created-at": NOW - 1}).to_string()
    };
    let records: Vec<String> = facts.iter().enumerate().map(record).collect();
    engine.import(&Scope::default(), &records.join("\n"), false, NOW).expect("imported");
    engine
}

fn prompted(engine: &mut Engine, prompt: &str) -> String {
    let scope = Scope { session: "next".into(), ..Scope::default() };
    engine.before_prompt_build(&PromptEvent { scope, prompt: prompt.into(), at: NOW, ..PromptEvent::default() }).expect("built").dynamic
}

#[test]
fn a_question_about_oneself_gets_its_fact_and_an_unrelated_prompt_gets_nothing() {
    let rows: Vec<Value> = serde_json::from_str(FACTS).expect("JSON");
    let rows: Vec<(&str, &str)> = rows.iter().map(|row| (row["fact"].as_str().expect("text"), row["asks"].as_str().expect("text"))).collect();
    let (mut found, mut answered, mut disturbed) = (0, 0, 0);
    // Each half of the facts is a space; the other half's questions have no answer there.
    for half in 0..2 {
        let of = |this: bool| rows.iter().enumerate().filter(move |(place, _)| (place % 2 == half) == this).map(|(_, row)| *row);
        let mut engine = space(&of(true).map(|(fact, _)| fact).collect::<Vec<_>>());
        found += of(true).filter(|(fact, asks)| prompted(&mut engine, asks).contains(fact)).count();
        answered += of(false).filter(|(_, asks)| !prompted(&mut engine, asks).is_empty()).count();
        disturbed += UNRELATED.lines().filter(|prompt| !prompted(&mut engine, prompt).is_empty()).count();
    }
    println!("{found} of {} get their fact, {answered} of as many without an answer get something, {disturbed} unrelated prompts do", rows.len());
    assert!(found >= FOUND, "{found} of {}", rows.len());
    assert!(disturbed <= UNRELATED_WITH_SOMETHING, "{disturbed} unrelated prompts get a memory");
}
