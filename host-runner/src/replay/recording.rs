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
use std::fs::File;
use std::io::{Cursor, ErrorKind, Read, Write};
use std::path::Path;

/// Unpacked bytes of a recording.
const RECORDING_MAX_BYTES: usize = 1 << 30;
/// How every `.xz` file begins.
const XZ_MAGIC: &[u8] = &[0xFD, b'7', b'z', b'X', b'Z', 0];
/// How files begin that people hand over and that are not read, and what to do about them.
const NOT_READ: [(&[u8], &str); 5] = [
    (&[0x1F, 0x8B], "gzip: unpack it, or pack it as .xz"),
    (&[0x28, 0xB5, 0x2F, 0xFD], "zstd: unpack it, or pack it as .xz"),
    (b"PK\x03\x04", "a zip archive: unpack it"),
    (&[0xFF, 0xFE], "UTF-16 text: save it as UTF-8"),
    (&[0xFE, 0xFF], "UTF-16 text: save it as UTF-8"),
];

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
    let open = || -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // One byte more tells a file that is too large from one that just fits.
        File::open(path)?.take(RECORDING_MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = open().with_context(|| format!("cannot read {}", path.display()))?;
    parse(&bytes).with_context(|| path.display().to_string())
}

/// Reads a recording from its bytes.
pub(crate) fn parse(bytes: &[u8]) -> Result<Vec<Recorded>> {
    let unpacked;
    let bytes = if bytes.starts_with(XZ_MAGIC) {
        unpacked = unpack(bytes)?;
        &unpacked[..]
    } else {
        bytes
    };
    if bytes.len() > RECORDING_MAX_BYTES {
        bail!("the recording is larger than {RECORDING_MAX_BYTES} bytes");
    }
    if let Some((_, what)) = NOT_READ.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        bail!("this is {what}");
    }
    let text = std::str::from_utf8(bytes).context("the recording is not UTF-8 text")?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let messages = match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(messages)) => messages,
        Ok(Value::Object(mut document)) if document.get("messages").is_some_and(Value::is_array) => match document.remove("messages") {
            Some(Value::Array(messages)) => messages,
            _ => Vec::new(),
        },
        // A file with one line is a document too.
        Ok(_) => lines(text)?,
        Err(error) => {
            let first_line = text.lines().find(|line| !line.trim().is_empty());
            if first_line.is_some_and(|line| serde_json::from_str::<Value>(line).is_err()) {
                let hint = if error.is_eof() { "; is the file cut short?" } else { "" };
                bail!("neither a JSON document nor JSON lines: {error}{hint}");
            }
            lines(text)?
        }
    };
    let is_message = |message: &Value| ["role", "type"].iter().any(|key| message.get(key).is_some_and(Value::is_string));
    if !messages.iter().any(is_message) {
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

/// Returns what is in an `.xz` file, as long as it is no more than a recording may have.
fn unpack(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut out = Bounded { bytes: Vec::new(), max: RECORDING_MAX_BYTES };
    match lzma_rs::xz_decompress(&mut Cursor::new(bytes), &mut out) {
        Ok(()) => Ok(out.bytes),
        Err(_) if out.bytes.len() > RECORDING_MAX_BYTES => bail!("the recording is larger than {RECORDING_MAX_BYTES} bytes, unpacked"),
        Err(error) => bail!("not a whole .xz file: {error:?}"),
    }
}

/// Takes bytes until they are more than `max`.
struct Bounded {
    bytes: Vec<u8>,
    max: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > self.max { Err(ErrorKind::FileTooLarge.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
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
    is_call(kind) || is_output(kind) || kind == "reasoning"
}

fn is_call(kind: &str) -> bool {
    matches!(kind, "function_call" | "custom_tool_call" | "local_shell_call")
}

fn is_output(kind: &str) -> bool {
    matches!(kind, "function_call_output" | "custom_tool_call_output" | "local_shell_call_output")
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
        kind if is_call(kind) => {
            recorded.role = Speaker::Assistant;
            let slot = ["arguments", "input", "action"].iter().find_map(|key| message.get(key));
            let name = if kind == "local_shell_call" { "local_shell".to_owned() } else { string(&message, "name") };
            recorded.calls.push((string(&message, "call_id"), name, as_text(slot)));
        }
        kind if is_output(kind) => recorded.results.push((string(&message, "call_id"), content_text(message.get("output")), false)),
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
    fn each_kind_of_codex_call_is_a_call() {
        for (call, slot, output) in [
            ("function_call", r#""name":"shell","arguments":"{}""#, "function_call_output"),
            ("custom_tool_call", r#""name":"apply_patch","input":"x""#, "custom_tool_call_output"),
            ("local_shell_call", r#""action":{"type":"exec","command":["ls"]}"#, "local_shell_call_output"),
        ] {
            let item = |text: &str| format!("{{\"type\":\"response_item\",\"payload\":{text}}}\n");
            let bare = [format!("{{\"type\":\"{call}\",\"call_id\":\"a\",{slot}}}"), format!("{{\"type\":\"{output}\",\"call_id\":\"a\",\"output\":\"x\"}}")];
            let expected = vec![(Speaker::Assistant, 1, 0), (Speaker::Other, 0, 1)];
            assert_eq!(shape(&bare.iter().map(|text| item(text)).collect::<String>()), expected, "{call}");
            assert_eq!(shape(&bare.join("\n")), expected, "{call}");
        }
    }

    #[test]
    fn a_byte_order_mark_and_carriage_returns_are_no_matter() {
        let lines = "{\"role\":\"user\",\"content\":\"go\"}\r\n{\"role\":\"assistant\",\"content\":\"so\"}\r\n";
        let expected = vec![(Speaker::User, 0, 0), (Speaker::Assistant, 0, 0)];
        assert_eq!(shape(lines), expected);
        assert_eq!(shape(&format!("\u{feff}{lines}")), expected);
        assert_eq!(shape("\u{feff}[{\"role\":\"user\"},7,{\"role\":\"assistant\"}]").len(), 3);
    }

    #[test]
    fn what_is_no_recording_is_refused_with_its_reason() {
        let refused: [(&[u8], &str); 12] = [
            (b"", "no messages"),
            (b" \n", "no messages"),
            (b"[]", "no messages"),
            (b"[1, \"x\", {\"a\": 1}]", "no messages"),
            (b"{\"a\": 1}", "no messages"),
            (b"hello", "neither a JSON document nor JSON lines"),
            (b"[\n {\"role\": \"user\"},\n {\"role\"", "at line 3 column 8; is the file cut short?"),
            (b"{\"role\":\"user\",\"content\":\"x\"}\n{broken", "line 2 is not JSON"),
            (b"\x1f\x8b\x08\x00", "gzip"),
            (b"\xff\xfe[\x00", "UTF-16"),
            (b"caf\xe9", "not UTF-8"),
            (b"\xfd7zXZ\x00garbage", "not a whole .xz file"),
        ];
        for (bytes, reason) in refused {
            let error = format!("{:#}", parse(bytes).expect_err("no recording"));
            assert!(error.contains(reason), "{error:?} does not say {reason:?}");
        }
    }

    #[test]
    fn an_unpacked_recording_has_a_bound() {
        let mut out = Bounded { bytes: Vec::new(), max: 3 };
        assert!(out.write(b"abc").is_ok());
        assert_eq!(out.write(b"d").map_err(|error| error.kind()), Err(ErrorKind::FileTooLarge));
    }
}
