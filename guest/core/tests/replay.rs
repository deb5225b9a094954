//! 200 sessions of ten turns with a scripted model and a virtual clock: the model calls of each layer
//! are those that the rules give by hand.
//!
//! A session has a turn a minute and starts an hour after the one before. Its L1 batches are due after
//! 1, 2 and 4 turns (minutes 0, 2 and 6); the three turns that are left are due when the session has
//! been quiet for ten minutes (minute 19). That is 4 extractions a session, 800 in all. Every batch
//! gives one atom that is like those before, so all but the first are settled: 799 settlements. L2 runs
//! 10 s after the first atom, then not sooner than 15 minutes after itself: at 0:10, 15:10 and 30:10,
//! 600 in all. L3 runs on the first scenes, then for every 50 new atoms: 1 + (800 - 1) / 50 = 16.

#[path = "story/space.rs"]
mod space;

use serde_json::{Value, json};
use space::{START, Space, answer, create, profile, update};
use std::collections::BTreeMap;
use strata_core::contract::{EndEvent, Instant, LlmRequest, Message, Scope};

const SESSIONS: u64 = 200;
const TURNS: u64 = 10;
const MINUTE: Instant = 60_000;
const HOUR: Instant = 60 * MINUTE;

/// Answers as a model would; counts what it is asked.
struct Scripted {
    calls: BTreeMap<String, u32>,
    batches: u32,
    has_scene: bool,
    ticks: u32,
}

impl Scripted {
    fn answer(&mut self, request: &LlmRequest) -> String {
        *self.calls.entry(request.purpose.clone()).or_insert(0) += 1;
        match request.purpose.as_str() {
            "l1-extract" => {
                self.batches += 1;
                let quote = request.prompt.split("## New messages").nth(1).and_then(|new| new.split("Turn ").nth(1)).and_then(|text| text.split('"').next());
                let content = format!("The user reached step {}", self.batches);
                let memory = json!({"content": content, "type": "persona", "priority": 80, "sources": [{"id": "m1", "quote": format!("Turn {}", quote.expect("a turn"))}], "start": "", "end": ""});
                json!({"scenes": [{"scene": "replay", "memories": [memory]}]}).to_string()
            }
            "l1-settle" => json!({"decisions": [{"new": "n1", "action": "store", "targets": []}]}).to_string(),
            "l2-scenes" => {
                let atom = ids(&request.prompt).into_iter().next().expect("a new fact");
                let operation =
                    if self.has_scene { update("work.md", json!([{"text": "It goes on.", "atoms": [atom]}])) } else { create("work", "It began.", &atom) };
                self.has_scene = true;
                answer(json!([operation]))
            }
            "l3-persona" => profile("The user works.", ids(&request.prompt).last().expect("a fact of a page")),
            other => panic!("nobody was told of {other}"),
        }
    }
}

/// Returns the ids of atoms in a prompt, in order.
fn ids(prompt: &str) -> Vec<String> {
    prompt
        .match_indices("a_")
        .map(|(at, _)| prompt[at..].chars().take(18).collect::<String>())
        .filter(|id| id[2..].len() == 16 && id[2..].bytes().all(|b| b.is_ascii_hexdigit()))
        .collect()
}

fn say(space: &mut Space, session: u64, turn: u64) {
    let message = |role: &str, text: String| Message { role: role.into(), content: text, id: Some(format!("{role}{turn}")), ..Message::default() };
    let messages = vec![message("user", format!("Turn {turn} of session {session}")), message("assistant", format!("Reply {turn}"))];
    let scope = Scope { session: format!("s{session}"), ..Scope::default() };
    space.engine.agent_end(&EndEvent { scope, messages, success: true, at: space.at }).expect("captured");
}

/// Ticks and answers until nothing is left to do before `until`.
fn work(space: &mut Space, model: &mut Scripted, until: Instant) {
    loop {
        let next = space.tick(0);
        let asked = space.asked();
        for (id, request) in &asked {
            let text = model.answer(request);
            space.complete(id, &text);
            for (id, request) in space.asked() {
                let text = model.answer(&request);
                space.complete(&id, &text);
            }
        }
        model.ticks += 1;
        match next.filter(|next| *next < until) {
            // An answer may have made something due that the tick before it could not know.
            _ if !asked.is_empty() => {}
            Some(next) => space.at = space.at.max(next),
            None => break,
        }
    }
    space.at = until;
}

#[test]
fn model_calls_of_two_thousand_turns_are_those_counted_by_hand() {
    let config: Value = json!({"extraction": {"enableDedup": true}, "pipeline": {}});
    let mut space = Space::new(true, config);
    let mut model = Scripted { calls: BTreeMap::new(), batches: 0, has_scene: false, ticks: 0 };
    for session in 0..SESSIONS {
        for turn in 0..TURNS {
            space.at = START + session * HOUR + turn * MINUTE;
            say(&mut space, session, turn);
            let until = if turn + 1 < TURNS { space.at + MINUTE } else { START + (session + 1) * HOUR };
            work(&mut space, &mut model, until);
        }
    }
    let counted: Vec<(&str, u32)> = model.calls.iter().map(|(purpose, count)| (purpose.as_str(), *count)).collect();
    println!("{} messages, {} ticks, calls {counted:?}", SESSIONS * TURNS * 2, model.ticks);
    assert_eq!(counted, [("l1-extract", 800), ("l1-settle", 799), ("l2-scenes", 600), ("l3-persona", 16)]);
    assert_eq!(space.row::<u32>("SELECT count(*) FROM messages WHERE batch IS NULL"), 0);
    assert_eq!(space.row::<u32>("SELECT count(*) FROM batches WHERE state <> 'done'"), 0);
}
