//! Seed files of TencentDB Agent Memory: format A `{"sessions": [...]}`, format B the bare array of sessions.
//!
//! The reference refuses a file in which only some messages have a time; here such a message is taken to be 100 ms after
//! the one before it, as the reference does where no message has one.

use super::{Ids, Message, Outcome, Problem, Sink, Source, json_stream, text, time_text};
use anyhow::Result;
use jiff::tz::TimeZone;
use serde_json::Value;

/// Milliseconds between messages without a time (the reference's fill).
const STEP_MS: u64 = 100;

/// Reads a seed file.
pub(crate) fn read(source: &mut Source, sink: &mut dyn Sink) -> Result<()> {
    let (zone, name, position) = (source.zone.clone(), source.name.clone(), source.position.clone());
    json_stream::elements(source, sink, &["sessions"], &mut |sink, _, session| {
        let line = position.newlines.get() + 1;
        read_session(&session, &zone, sink, &|reason| Problem { file: name.clone(), line, reason })
    })
}

fn read_session(value: &Value, zone: &TimeZone, sink: &mut dyn Sink, problem: &dyn Fn(String) -> Problem) -> Outcome {
    let session = text(value, "sessionKey").or_else(|| text(value, "sessionId")).ok_or("a session without `sessionKey`")?;
    let rounds = value.get("conversations").and_then(Value::as_array).ok_or("a session without `conversations`")?;
    let mut ids = Ids::default();
    let mut last = None;
    for (round, message) in rounds.iter().enumerate().flat_map(|(at, round)| match round {
        Value::Array(messages) => messages.iter().map(|message| (at, message)).collect::<Vec<_>>(),
        single => vec![(at, single)],
    }) {
        let (Some(role), Some(content)) = (text(message, "role"), message.get("content").and_then(Value::as_str)) else {
            sink.problem(problem(format!("session {session}, round {}: a message without `role` or `content`", round + 1)));
            continue;
        };
        let said_at = message.get("timestamp").and_then(|time| time_text::of_value(time, zone)).or_else(|| last.map(|last| last + STEP_MS));
        last = said_at.or(last);
        let id = ids.next(session, role, content);
        let message = Message { session: session.into(), id, role: role.into(), speaker: None, content: content.into(), structured: false, said_at };
        if let Err(refused) = sink.message(message) {
            return Ok(Err(refused));
        }
    }
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::recorder::{lines, read};

    const SESSION: &str = r#"{"sessionKey": "agent:main:x", "sessionId": "1", "conversations": [
        [{"role": "user", "content": "I keep bees.", "timestamp": 1780279384000}, {"role": "assistant", "content": "Lovely."}],
        [{"role": "user"}, {"role": "user", "content": "Two hives.", "timestamp": "2026-06-01T02:05:00Z"}]]}"#;

    #[test]
    fn formats_a_and_b_read_the_same() {
        let a = read(Format::TdaiSeed, "seed.json", &format!("{{\"sessions\": [{SESSION}]}}"));
        let b = read(Format::TdaiSeed, "seed.json", &format!("[{SESSION}]"));
        assert_eq!(a.messages, b.messages);
        assert_eq!(lines(&a), ["agent:main:x | user | - | I keep bees.", "agent:main:x | assistant | - | Lovely.", "agent:main:x | user | - | Two hives."]);
        assert_eq!(a.messages.iter().map(|m| m.said_at).collect::<Vec<_>>(), [Some(1_780_279_384_000), Some(1_780_279_384_100), Some(1_780_279_500_000)]);
        assert!(a.problems[0].reason.contains("round 2"));
    }
}
