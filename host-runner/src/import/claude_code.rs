//! Claude Code's session logs: one event a line.
//!
//! A tool's result comes inside a user message there; here it gets the role `tool`, because the user did not say it. The
//! conversations of subagents become sessions of their own (`<session>:subagent:<agent>`).

use super::{Message, Outcome, Sink, Source, id, json, text, time_text};
use anyhow::Result;
use serde_json::Value;

/// Reads a session log.
pub(crate) fn read(source: &mut Source, sink: &mut dyn Sink) -> Result<()> {
    source.lines(sink, |source, sink, line| {
        let event = json(line)?;
        match text(&event, "type") {
            Some("user" | "assistant") => message(&event, source, sink),
            Some(other) => {
                sink.aside(&format!("{other} events"));
                Ok(Ok(()))
            }
            None => Err("an event without `type`".into()),
        }
    })
}

fn message(event: &Value, source: &Source, sink: &mut dyn Sink) -> Outcome {
    let body = event.get("message").ok_or("an event without `message`")?;
    let id = id(event, "uuid").ok_or("an event without `uuid`")?;
    let session = text(event, "sessionId").unwrap_or(&source.stem);
    let session = match event.get("isSidechain").and_then(Value::as_bool) {
        Some(true) => format!("{session}:subagent:{}", text(event, "agentId").unwrap_or("sidechain")),
        _ => session.to_owned(),
    };
    if event.get("isMeta").and_then(Value::as_bool) == Some(true) {
        sink.aside("meta messages");
        return Ok(Ok(()));
    }
    let (role, content, structured) = match body.get("content") {
        Some(Value::String(text)) => (text_role(body), text.clone(), false),
        Some(Value::Array(parts)) if !parts.is_empty() && parts.iter().all(|part| text(part, "type") == Some("tool_result")) => {
            ("tool", parts.iter().map(result_text).collect::<Vec<_>>().join("\n"), false)
        }
        Some(parts @ Value::Array(_)) => (text_role(body), parts.to_string(), true),
        _ => return Err("a message without `content`".into()),
    };
    let said_at = event.get("timestamp").and_then(|time| time_text::of_value(time, &source.zone));
    Ok(sink.message(Message { session, id, role: role.into(), speaker: None, content, structured, said_at }))
}

fn text_role(body: &Value) -> &str {
    text(body, "role").unwrap_or("user")
}

/// Returns the text of a tool's result: text, or a list of text parts.
fn result_text(part: &Value) -> String {
    match part.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| text(part, "text")).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::recorder::{lines, read};

    const LOG: &str = r#"{"type":"summary","summary":"x","leafUuid":"u"}
{"type":"user","uuid":"1","sessionId":"s","timestamp":"2026-03-01T10:00:00.000Z","message":{"role":"user","content":"Fix the parser"}}
{"type":"assistant","uuid":"2","sessionId":"s","timestamp":"2026-03-01T10:00:01.000Z","message":{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Read","input":{}}]}}
{"type":"user","uuid":"3","sessionId":"s","timestamp":"2026-03-01T10:00:02.000Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"fn main"}]}]}}
{"type":"user","uuid":"4","sessionId":"s","isMeta":true,"message":{"role":"user","content":"caveat"}}
{"type":"user","uuid":"5","sessionId":"s","isSidechain":true,"agentId":"a1","message":{"role":"user","content":"Look around"}}
{"uuid":"6"}
"#;

    #[test]
    fn tool_results_are_not_the_users_words() {
        let read = read(Format::ClaudeCode, "s.jsonl", LOG);
        assert_eq!(
            lines(&read),
            [
                "s | user | - | Fix the parser",
                r#"s | assistant | - | [{"type":"tool_use","id":"t","name":"Read","input":{}}]"#,
                "s | tool | - | fn main",
                "s:subagent:a1 | user | - | Look around",
            ]
        );
        assert_eq!(read.asides.len(), 2);
        assert_eq!(read.problems[0].line, 7);
    }
}
