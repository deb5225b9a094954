//! What memory puts into a prompt comes back in captured messages; it must never become memory again.

#[path = "story/space.rs"]
mod space;

use serde_json::json;
use space::{Space, scope};
use strata_core::contract::{EndEvent, Message, PromptEvent, WriteEvent};
use strata_core::engine;

/// Rounds of a test run; `STRATA_ROUNDS=10000` is the long proof.
const ROUNDS: u64 = 500;

/// Rounds after which a host hands over the session as it is; in between it tells the new turn alone.
const WHOLE_SESSION: u64 = 250;

#[test]
fn recalls_that_are_captured_add_no_memory_of_memory() {
    let rounds = std::env::var("STRATA_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS);
    let mut space =
        Space::new(false, json!({"pipeline": {"everyNConversations": 1, "l2DelayAfterL1Seconds": 100_000_000, "l2MaxIntervalSeconds": 100_000_000}}));
    space.say("I live in Lyon. I love green tea. Always answer in metric units.");
    space.tick(0);
    let atoms = |space: &Space| space.row::<u32>("SELECT count(*) FROM atoms");
    assert_eq!(atoms(&space), 3);
    let mut session: Vec<Message> = Vec::new();
    for round in 0..rounds {
        space.at += 1000;
        let prompt = format!("What tea do I love, and where do I live? ({round})");
        let event = PromptEvent { scope: scope(), prompt: prompt.clone(), at: space.at, ..PromptEvent::default() };
        let injection = space.engine.before_prompt_build(&event).expect("built");
        assert!(injection.dynamic.contains("green tea") && injection.recalled.len() == 2, "{}", injection.dynamic);
        // Hosts differ in what they hand back: the prompt as sent, or the history as written.
        let sent = format!("{}\n{prompt}", injection.dynamic);
        let content = match round % 3 {
            0 => sent,
            1 => format!("{}{}", injection.stable, sent),
            _ => engine::before_message_write(&WriteEvent { scope: scope(), role: "user".into(), content: sent }),
        };
        let turn = [("user", content), ("assistant", format!("You live in Lyon and love green tea, as memory says. ({round})"))]
            .map(|(role, content)| Message { id: Some(format!("{role}{round}")), role: role.into(), content, ..Message::default() });
        session.extend(turn.clone());
        let messages = if round % WHOLE_SESSION == 0 { session.clone() } else { turn.to_vec() };
        let report = space.engine.agent_end(&EndEvent { scope: scope(), messages, success: true, at: space.at }).expect("captured");
        assert_eq!(report.stored.len(), 2, "round {round}");
        space.tick(0);
    }
    println!("{rounds} rounds");
    assert_eq!(atoms(&space), 3, "no atom came from what was recalled");
    assert_eq!(space.row::<u64>("SELECT count(*) FROM messages"), 1 + 2 * rounds);
    assert_eq!(
        space.row::<u32>(
            "SELECT count(*) FROM messages WHERE text LIKE '%Recalled from earlier%' OR text LIKE '%relevant-memories%' OR text LIKE '%memory-tools-guide%'"
        ),
        0
    );
    assert_eq!(space.row::<u32>("SELECT count(*) FROM evidence"), 3, "nothing that was recalled corroborates itself");
}
