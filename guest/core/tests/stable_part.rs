//! The stable part of the injection is byte-identical while persona and scenes do not change.

use std::rc::Rc;
use strata_core::contract::{EndEvent, Message, PromptEvent, Scope};
use strata_core::disk::SimDisk;
use strata_core::engine::{Engine, Models};

const START: u64 = 1_780_000_000_000;
const MINUTE: u64 = 60_000;
const TURNS: u64 = 1_000;

fn said(engine: &mut Engine, session: &str, text: &str, at: u64) {
    let message = |role: &str, content: &str| Message { role: role.into(), content: content.into(), ..Message::default() };
    let messages = vec![message("user", text), message("assistant", "Done, line by line.")];
    let scope = Scope { session: session.into(), ..Scope::default() };
    engine.agent_end(&EndEvent { scope, messages, success: true, at }).expect("captured");
}

fn stable(engine: &mut Engine, session: &str, prompt: &str, at: u64) -> String {
    let scope = Scope { session: session.into(), ..Scope::default() };
    engine.before_prompt_build(&PromptEvent { scope, prompt: prompt.into(), at, ..PromptEvent::default() }).expect("injected").stable
}

#[test]
fn a_thousand_turns_of_churn_leave_the_stable_part_as_it_is() {
    let (mut engine, _) = Engine::open(Rc::new(SimDisk::new()), "", Models::default(), START).expect("opened");
    said(&mut engine, "first", "I live in Lyon. I love green tea. I work at Acme. Always answer in metric units.", START);
    engine.flush(START).expect("flushed");
    let mut at = START;
    for _ in 0..20 {
        at += MINUTE;
        engine.tick(at, Models::default()).expect("ticked");
    }
    let expected = stable(&mut engine, "first", "hello", at);
    assert!(expected.contains("Lyon") && expected.contains("<scene-navigation>") && expected.contains("<memory-tools-guide>"), "{expected}");
    for turn in 0..TURNS {
        at += MINUTE * (1 + turn % 90);
        let session = format!("session-{}", turn % 37);
        let prompt = ["What tea do I love?", "Fix line 17 of the parser", "Where do I live?", "ok", ""][turn as usize % 5];
        said(&mut engine, &session, &format!("Please look at ticket {turn} in the tracker"), at);
        engine.tick(at, Models::default()).expect("ticked");
        assert_eq!(stable(&mut engine, &session, prompt, at), expected, "after turn {turn}");
    }
    // It is the content that it follows: a new fact changes it.
    said(&mut engine, "last", "I live in Oslo now. I live in Oslo.", at);
    engine.flush(at).expect("flushed");
    for _ in 0..200 {
        at += MINUTE * 30;
        engine.tick(at, Models::default()).expect("ticked");
    }
    assert_ne!(stable(&mut engine, "last", "hello", at), expected);
}
