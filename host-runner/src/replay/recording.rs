//! Recorded agent sessions: one reader for the shapes that agents write.
//!
//! | shape | how it is told |
//! | --- | --- |
//! | `{messages: [...]}` or `[...]` | a JSON document of chat, responses, Anthropic or OpenClaw messages |
//! | OpenClaw transcript | lines `{type: "message", message: {...}}` |
//! | Claude Code | lines `{type: "user" or "assistant", message: {...}}` |
//! | Codex | lines `{type: "response_item", payload: {...}}` |
//! | messages a line | lines with a `role` |
//!
//! Any of them may be compressed as `.xz`.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::Cursor;
use std::path::Path;

/// Unpacked bytes of a recording.
const RECORDING_MAX_BYTES: usize = 1 << 30;
/// How every `.xz` file begins.
const XZ_MAGIC: &[u8] = &[0xFD, b'7', b'z', b'X', b'Z', 0];

/// A message of a recording, with what it calls and answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recorded {
    /// The message as it is handed to the engine.
    pub(crate) message: Value,
    /// Who speaks.
    pub(crate) role: Speaker,
    /// Words of a user.
    pub(crate) text: String,
    /// Calls: id, tool, arguments as text.
    pub(crate) calls: Vec<(String, String, String)>,
    /// Results: id, text, failed.
    pub(crate) results: Vec<(String, String, bool)>,
    /// The message goes on with the answer that the one before began (Codex writes an item a line).
    pub(crate) continues: bool,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// The model: the messages before were read by it.
    Assistant,
    /// A person.
    User,
    /// Anyone else.
    Other,
}

/// Reads a recording.
pub(crate) fn read(path: &Path) -> Result<Vec<Recorded>> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&bytes).with_context(|| path.display().to_string())
}

/// Reads a recording from its bytes.
pub(crate) fn parse(bytes: &[u8]) -> Result<Vec<Recorded>> {
    let unpacked;
    let bytes = if bytes.starts_with(XZ_MAGIC) {
        let mut out = Vec::new();
        lzma_rs::xz_decompress(&mut Cursor::new(bytes), &mut out).map_err(|error| anyhow::anyhow!("not a whole .xz file: {error:?}"))?;
        unpacked = out;
        &unpacked[..]
    } else {
        bytes
    };
    if bytes.len() > RECORDING_MAX_BYTES {
        bail!("the recording has {} bytes, the limit is {RECORDING_MAX_BYTES}", bytes.len());
    }
    let text = std::str::from_utf8(bytes).context("the recording is not UTF-8 text")?;
    let messages = match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(messages)) => messages,
        Ok(Value::Object(mut document)) if document.get("messages").is_some_and(Value::is_array) => match document.remove("messages") {
            Some(Value::Array(messages)) => messages,
            _ => Vec::new(),
        },
        // A file with one line is a document too.
        _ => lines(text)?,
    };
    if messages.is_empty() {
        bail!("no messages in it; `strata replay --help` lists the shapes that are read");
    }
    let mut recorded: Vec<Recorded> = Vec::with_capacity(messages.len());
    for message in messages {
        let mut next = record(message);
        let is_item = next.message.get("type").is_some_and(|kind| kind != "message");
        next.continues = is_item && next.role == Speaker::Assistant && recorded.last().is_some_and(|last| last.role == Speaker::Assistant);
        recorded.push(next);
    }
    Ok(recorded)
}

/// Reads JSON lines. A line that is not JSON is an error with its number: a recording with holes would measure
/// something else.
fn lines(text: &str) -> Result<Vec<Value>> {
    let mut messages: Vec<Value> = Vec::new();
    // The id of the Claude Code answer that the last message is a part of.
    let mut open_answer: Option<String> = None;
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let mut value: Value = serde_json::from_str(line).with_context(|| format!("line {} is not JSON", number + 1))?;
        let kind = value.get("type").and_then(Value::as_str).unwrap_or("").to_owned();
        if value.get("isSidechain").and_then(Value::as_bool).unwrap_or(false) {
            continue;
        }
        match kind.as_str() {
            "response_item" => messages.extend(value.get_mut("payload").map(Value::take)),
            "message" | "user" | "assistant" if value.get("message").is_some_and(Value::is_object) => {
                let message = value["message"].take();
                let id = message.get("id").and_then(Value::as_str).map(str::to_owned);
                // Claude Code writes each block of an answer on a line of its own.
                if id.is_some() && id == open_answer && join(messages.last_mut(), &message) {
                    continue;
                }
                open_answer = id;
                messages.push(message);
            }
            _ if value.get("role").is_some() || is_item(&kind) => messages.push(value),
            _ => {}
        }
    }
    Ok(messages)
}

fn is_item(kind: &str) -> bool {
    matches!(kind, "function_call" | "function_call_output" | "custom_tool_call" | "custom_tool_call_output" | "reasoning")
}

fn join(last: Option<&mut Value>, part: &Value) -> bool {
    let Some(blocks) = last.and_then(|last| last.get_mut("content")).and_then(Value::as_array_mut) else { return false };
    let Some(more) = part.get("content").and_then(Value::as_array) else { return false };
    blocks.extend(more.iter().cloned());
    true
}

fn record(message: Value) -> Recorded {
    let string = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
    let mut recorded = Recorded { role: Speaker::Other, text: String::new(), calls: Vec::new(), results: Vec::new(), continues: false, message: Value::Null };
    let role = string(&message, "role");
    recorded.role = match role.as_str() {
        "assistant" | "model" => Speaker::Assistant,
        "user" => Speaker::User,
        _ => Speaker::Other,
    };
    match string(&message, "type").as_str() {
        "function_call" | "custom_tool_call" => {
            recorded.role = Speaker::Assistant;
            let slot = message.get("arguments").or_else(|| message.get("input"));
            recorded.calls.push((string(&message, "call_id"), string(&message, "name"), as_text(slot)));
        }
        "function_call_output" | "custom_tool_call_output" => recorded.results.push((string(&message, "call_id"), content_text(message.get("output")), false)),
        "reasoning" => recorded.role = Speaker::Assistant,
        _ => {}
    }
    if matches!(role.as_str(), "tool" | "toolResult" | "function") {
        let id = ["tool_call_id", "toolCallId", "name"].iter().map(|key| string(&message, key)).find(|id| !id.is_empty()).unwrap_or_default();
        let failed = message.get("isError").and_then(Value::as_bool).unwrap_or(false);
        recorded.results.push((id, content_text(message.get("content")), failed));
    }
    for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
        let function = call.get("function").unwrap_or(&Value::Null);
        recorded.calls.push((string(call, "id"), string(function, "name"), as_text(function.get("arguments"))));
    }
    match message.get("content") {
        Some(Value::String(text)) if recorded.role == Speaker::User => recorded.text.clone_from(text),
        Some(Value::Array(blocks)) => {
            for block in blocks {
                match string(block, "type").as_str() {
                    "tool_use" => recorded.calls.push((string(block, "id"), string(block, "name"), as_text(block.get("input")))),
                    "toolCall" => recorded.calls.push((string(block, "id"), string(block, "name"), as_text(block.get("arguments")))),
                    "tool_result" => {
                        let failed = block.get("is_error").and_then(Value::as_bool).unwrap_or(false);
                        recorded.results.push((string(block, "tool_use_id"), content_text(block.get("content")), failed));
                    }
                    "text" | "input_text" if recorded.role == Speaker::User => recorded.text.push_str(&string(block, "text")),
                    _ => {}
                }
            }
        }
        _ => {}
    }
    recorded.message = message;
    recorded
}

fn as_text(slot: Option<&Value>) -> String {
    match slot {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

/// The text of a result as the engine sees it: text parts joined by a newline.
fn content_text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect();
            texts.join("\n")
        }
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Vec<(Speaker, usize, usize)> {
        parse(text.as_bytes()).expect("a recording").iter().map(|message| (message.role, message.calls.len(), message.results.len())).collect()
    }

    #[test]
    fn each_shape_gives_the_same_turn() {
        let turn = vec![(Speaker::User, 0, 0), (Speaker::Assistant, 1, 0)];
        let chat = r#"{"messages":[{"role":"user","content":"go"},{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"ls","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"x"}]}"#;
        assert_eq!(shape(chat)[..2], turn);
        assert_eq!(shape(chat)[2], (Speaker::Other, 0, 1));
        let claude = "{\"type\":\"summary\"}\n{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"go\"}}\n\
                      {\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"so\"}]}}\n\
                      {\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"ls\",\"input\":{}}]}}\n\
                      {\"type\":\"user\",\"isSidechain\":true,\"message\":{\"role\":\"user\",\"content\":\"aside\"}}\n\
                      {\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"a\",\"content\":\"x\"}]}}\n";
        assert_eq!(shape(claude)[..2], turn);
        assert_eq!(shape(claude)[2], (Speaker::User, 0, 1));
        let codex = "{\"type\":\"session_meta\",\"payload\":{}}\n{\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"go\"}]}}\n\
                     {\"type\":\"response_item\",\"payload\":{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"ls\",\"arguments\":\"{}\"}}\n\
                     {\"type\":\"response_item\",\"payload\":{\"type\":\"function_call_output\",\"call_id\":\"a\",\"output\":\"x\"}}\n";
        assert_eq!(shape(codex)[..2], turn);
        let openclaw = "{\"type\":\"session\",\"id\":\"s\"}\n{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"go\"}}\n\
                        {\"type\":\"message\",\"message\":{\"role\":\"assistant\",\"content\":[{\"type\":\"toolCall\",\"id\":\"a\",\"name\":\"ls\",\"arguments\":{}}]}}\n\
                        {\"type\":\"message\",\"message\":{\"role\":\"toolResult\",\"toolCallId\":\"a\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}}\n";
        assert_eq!(shape(openclaw)[..2], turn);
        assert_eq!(shape(openclaw)[2], (Speaker::Other, 0, 1));
    }

    #[test]
    fn what_is_no_recording_is_refused() {
        for text in ["", "[]", "hello", "{\"a\": 1}", "{\"role\":\"user\",\"content\":\"x\"}\n{broken"] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
