//! What an L1 batch costs beside 1,000, 10,000 and 100,000 atoms, and what opening such a space costs.
//!
//! The atoms are imported; what their making leaves in a space is put beside them: a batch with two answered questions
//! for each three atoms, all in one session, a session for each ten, a batch of L2 for each twenty. All have their scene.
//!
//! A measurement, not a check: `cargo test --release -p strata-core --test l1_batch_cost -- --ignored --nocapture`.

#![allow(clippy::disallowed_methods, reason = "a measurement owns a clock")]

use serde_json::json;
use std::rc::Rc;
use std::time::{Duration, Instant as Clock};
use strata_core::contract::{Abilities, EndEvent, LlmAnswer, Message, Outcome, Outgoing, PromptEvent, Scope};
use strata_core::disk::StdDisk;
use strata_core::engine::{Engine, Models};

const SIZES: &[u64] = &[1_000, 10_000, 100_000];
const BATCHES: u64 = 20;
const OPENINGS: usize = 9;
const START: u64 = 1_780_000_000_000;

/// Returns a sentence of eight words, common ones often and rare ones seldom, as in real texts.
fn sentence(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut words = Vec::new();
    for _ in 0..8 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // The reciprocal of a uniform number falls off as words of a language do.
        let rank = 20_000 / (1 + state % 20_000);
        words.push(format!("w{}", rank * 7 + state % 7));
    }
    format!("The user {}.", words.join(" "))
}

/// Returns the shortest time, which is sound on a shared machine too.
fn least(times: &[Duration]) -> f64 {
    times.iter().min().map_or(0.0, |time| time.as_secs_f64() * 1000.0)
}

/// Puts the rows beside `atoms` atoms that making them would have left.
fn leave_history(engine: &Engine, atoms: u64) {
    let sql = format!(
        "BEGIN;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {atoms} / 10)
           INSERT INTO sessions (scope, name, created_at, active_at) SELECT 1, 'past' || i, i, i FROM n;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {atoms} / 3)
           INSERT INTO batches (layer, scope, session, state, stage, due_at, created_at, done_at, applied)
             SELECT 'l1', 1, (SELECT id FROM sessions WHERE name = 'new'), 'done', 'settle', i, i, i, i FROM n;
         INSERT INTO requests (batch, kind, purpose, body, state, asked_at, answered_at, answer)
           SELECT id, 'llm', 'l1-' || column1, printf('%.*c', 3000, 'q'), 'answered', 1, 2, printf('%.*c', 500, 'a')
             FROM batches JOIN (VALUES ('extract'), ('settle'));
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {atoms} / 20)
           INSERT INTO batches (layer, scope, state, due_at, created_at, done_at) SELECT 'l2', 1, 'done', i, i, i FROM n;
         UPDATE atoms SET scene_batch = (SELECT max(id) FROM batches);
         COMMIT;"
    );
    engine.store().db().execute_batch(&sql).expect("rows of a history");
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1000.0
}

#[test]
#[ignore = "a measurement of minutes"]
fn batch_and_open() {
    let models = Models { llm: Abilities { available: true, model: "scripted".into(), json_schema: true }, embedding: None };
    for size in SIZES {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let config =
            r#"{"holder": {"id": "cost"}, "pipeline": {"everyNConversations": 1, "l2DelayAfterL1Seconds": 100000000, "l2MaxIntervalSeconds": 100000000}}"#;
        let open = || Engine::open(Rc::new(StdDisk::new(directory.path())), config, models.clone(), START).expect("opens").0;
        let mut engine = open();
        for first in (0..*size).step_by(1000) {
            let records: String = (first..first + 1000)
                .map(|n| {
                    format!("{}\n", json!({"record": "atom", "id": format!("x{n}"), "session": "s", "kind": "persona", "text": sentence(n), "priority": 80}))
                })
                .collect();
            engine.import(&Scope::default(), &records, false, START).expect("imported");
        }
        let opening = Message { role: "assistant".into(), content: "Hello".into(), ..Message::default() };
        let scope = Scope { session: "new".into(), ..Scope::default() };
        engine.agent_end(&EndEvent { scope, messages: vec![opening], success: true, at: START }).expect("captured");
        leave_history(&engine, *size);
        let mut at = START;
        let mut spent = Vec::new();
        for batch in 0..BATCHES {
            at += 60_000;
            let texts: Vec<String> = (0..3).map(|n| sentence(1_000_000 + batch * 3 + n)).collect();
            let message = Message { role: "user".into(), content: texts.join(" "), id: Some(batch.to_string()), ..Message::default() };
            let scope = Scope { session: "new".into(), ..Scope::default() };
            let clock = Clock::now();
            engine.agent_end(&EndEvent { scope, messages: vec![message], success: true, at }).expect("captured");
            engine.tick(at, models.clone()).expect("ticks");
            while let Some(Outgoing::AskModel { id, request }) = engine.drain().into_iter().find(|one| matches!(one, Outgoing::AskModel { .. })) {
                let text = if request.purpose == "l1-extract" {
                    let memories: Vec<_> = texts
                        .iter()
                        .map(|text| json!({"content": text, "type": "persona", "priority": 80, "sources": [{"id": "m1", "quote": text}]}))
                        .collect();
                    json!({"scenes": [{"scene": "s", "memories": memories}]})
                } else {
                    json!({"decisions": [{"new": "n1", "action": "store"}]})
                };
                let answer = LlmAnswer { text: text.to_string(), ..LlmAnswer::default() };
                engine.complete(&id, Outcome::Text(answer), at).expect("taken");
            }
            spent.push(clock.elapsed());
        }
        engine.close(at).expect("closes");
        let mut opened = [Duration::ZERO; OPENINGS];
        let mut ticked = [Duration::ZERO; OPENINGS];
        let mut recalled = [Duration::ZERO; OPENINGS];
        let mut told = [Duration::ZERO; OPENINGS];
        for opening in 0..OPENINGS {
            at += 60_000;
            let clock = Clock::now();
            let mut engine = open();
            opened[opening] = clock.elapsed();
            let clock = Clock::now();
            engine.tick(at, models.clone()).expect("ticks");
            ticked[opening] = clock.elapsed();
            let event =
                PromptEvent { scope: Scope { session: "new".into(), ..Scope::default() }, prompt: sentence(opening as u64), at, ..PromptEvent::default() };
            let clock = Clock::now();
            engine.before_prompt_build(&event).expect("recalls");
            recalled[opening] = clock.elapsed();
            let clock = Clock::now();
            engine.status().expect("status");
            told[opening] = clock.elapsed();
            engine.close(at).expect("closes");
        }
        println!(
            "{size} atoms: a batch of 3 atoms {:.1} ms, at least {:.1} ms (median and least of {BATCHES}); opening {:.1} ms, then the first tick {:.1} ms, the first recall {:.1} ms, status {:.1} ms (medians of {OPENINGS})",
            median(&mut spent),
            least(&spent),
            median(&mut opened),
            median(&mut ticked),
            median(&mut recalled),
            median(&mut told),
        );
    }
}
