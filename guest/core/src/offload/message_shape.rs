//! One view over the message shapes that agents speak.
//!
//! OpenAI chat, OpenAI responses, Anthropic messages and OpenClaw differ in where a call, a result
//! and a text live; everything behind this file sees [`MessageView`] only. A message or a block that
//! is none of these is *opaque*: it is counted, never rewritten.

use serde_json::{Map, Value, json};

/// Who a message speaks for, as far as compaction cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Instructions of the host.
    System,
    /// Words of a person.
    User,
    /// Words or calls of the model.
    Assistant,
    /// Carries tool results and no words of a user.
    Tool,
    /// A shape that is not known; never touched.
    Opaque,
}

/// The dialect of one message; a list may mix them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// `/v1/chat/completions`.
    OpenAiChat,
    /// `/v1/responses` items.
    OpenAiResponses,
    /// `/v1/messages` blocks.
    Anthropic,
    /// OpenClaw transcripts.
    OpenClaw,
}

/// A tool call inside an assistant message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The call's id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments as text: the recorded JSON text, or the object written as JSON.
    pub arguments: String,
}

/// A tool result, wherever its message keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// The call it answers.
    pub call_id: String,
    /// The tool, where the message tells it.
    pub name: Option<String>,
    /// The whole text. Results with parts that are not text have `replaceable` unset.
    pub text: String,
    /// The host says that the tool failed.
    pub is_error: bool,
    /// All of it is text.
    pub replaceable: bool,
}

/// What one message holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageView {
    /// Who speaks.
    pub role: Role,
    /// The dialect.
    pub shape: Shape,
    /// Visible words, text parts joined by a newline.
    pub text: String,
    /// Hidden reasoning that the message carries along.
    pub reasoning: String,
    /// Calls, in order.
    pub calls: Vec<ToolCall>,
    /// Results, in order.
    pub results: Vec<ToolResult>,
    /// Characters of parts that are not text (encrypted reasoning, unknown blocks), for counting only. An image counts as
    /// [`IMAGE_CHARS`] whatever its bytes.
    pub opaque_chars: usize,
}

/// What an image counts for, in characters of four a token: 1,600 tokens, which is what Anthropic's API takes for its
/// largest images and more than OpenAI's takes for one of 1024 by 1024.
pub const IMAGE_CHARS: usize = 6_400;

/// Returns what `message` holds. Never fails: what is not understood has [`Role::Opaque`].
pub fn view(message: &Value) -> MessageView {
    let mut seen = MessageView {
        role: Role::Opaque,
        shape: Shape::OpenAiChat,
        text: String::new(),
        reasoning: String::new(),
        calls: Vec::new(),
        results: Vec::new(),
        opaque_chars: 0,
    };
    let Some(object) = message.as_object() else {
        seen.opaque_chars = message.to_string().len();
        return seen;
    };
    if let Some(kind) = text_of(object, "type")
        && kind != "message"
        && !object.contains_key("role")
    {
        view_responses_item(object, kind, &mut seen);
        return seen;
    }
    let role = text_of(object, "role").unwrap_or("");
    seen.role = match role {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" | "model" => Role::Assistant,
        "tool" | "toolResult" | "function" => Role::Tool,
        _ => Role::Opaque,
    };
    if seen.role == Role::Opaque {
        seen.opaque_chars = message.to_string().len();
        return seen;
    }
    if role == "toolResult" {
        seen.shape = Shape::OpenClaw;
    } else if text_of(object, "type") == Some("message") {
        seen.shape = Shape::OpenAiResponses;
    }
    if seen.role == Role::Tool {
        view_tool_message(object, &mut seen);
        return seen;
    }
    view_content(object.get("content"), &mut seen);
    for key in ["reasoning_content", "reasoning"] {
        if let Some(text) = text_of(object, key) {
            seen.reasoning.push_str(text);
        }
    }
    if let Some(calls) = object.get("tool_calls").and_then(Value::as_array) {
        for call in calls {
            view_chat_call(call, &mut seen);
        }
    }
    // Anthropic keeps results in user messages. Without words beside them nobody spoke.
    if seen.role == Role::User && !seen.results.is_empty() && seen.text.trim().is_empty() {
        seen.role = Role::Tool;
    }
    seen
}

/// Returns `message` with the text of the result of `call_id` replaced, or `None` when the message
/// holds no replaceable result of that call. Keys, order of parts and the error mark stay.
pub fn with_result_text(message: &Value, call_id: &str, text: &str) -> Option<Value> {
    let mut changed = message.clone();
    let object = changed.as_object_mut()?;
    if text_of(object, "type").is_some_and(|kind| kind.ends_with("_call_output")) {
        let output = object.get_mut("output")?;
        return set_text(output, text, "input_text").then_some(changed);
    }
    if matches!(text_of(object, "role"), Some("tool" | "toolResult" | "function")) {
        let content = object.get_mut("content")?;
        return set_text(content, text, "text").then_some(changed);
    }
    for block in object.get_mut("content")?.as_array_mut()? {
        if text_of_value(block, "type") == Some("tool_result") && text_of_value(block, "tool_use_id") == Some(call_id) {
            let content = block.get_mut("content")?;
            return set_text(content, text, "text").then_some(changed);
        }
    }
    None
}

/// Returns `message` with the arguments of call `call_id` replaced by the JSON object `arguments`,
/// in the form (text or object) that the message used, or `None` when there is no such call.
pub fn with_arguments(message: &Value, call_id: &str, arguments: &Value) -> Option<Value> {
    let mut changed = message.clone();
    let object = changed.as_object_mut()?;
    if text_of(object, "call_id") == Some(call_id) {
        for key in ["arguments", "input"] {
            if let Some(slot) = object.get_mut(key) {
                return set_arguments(slot, arguments).then_some(changed);
            }
        }
        return None;
    }
    if let Some(calls) = object.get_mut("tool_calls").and_then(Value::as_array_mut) {
        for call in calls {
            if text_of_value(call, "id") == Some(call_id) {
                let slot = call.get_mut("function")?.get_mut("arguments")?;
                return set_arguments(slot, arguments).then_some(changed);
            }
        }
    }
    let blocks = object.get_mut("content")?.as_array_mut()?;
    for block in blocks {
        let is_call = matches!(text_of_value(block, "type"), Some("tool_use" | "toolCall"));
        if is_call && text_of_value(block, "id") == Some(call_id) {
            let key = if block.get("input").is_some() { "input" } else { "arguments" };
            return set_arguments(block.get_mut(key)?, arguments).then_some(changed);
        }
    }
    None
}

/// Returns `message` without its hidden reasoning, or `None` when it carries none that can go.
/// Responses `reasoning` items stay: the API wants them beside their calls.
pub fn without_reasoning(message: &Value) -> Option<Value> {
    let mut changed = message.clone();
    let object = changed.as_object_mut()?;
    let mut gone = false;
    for key in ["reasoning_content", "reasoning"] {
        if object.get(key).is_some_and(Value::is_string) {
            object.remove(key);
            gone = true;
        }
    }
    if let Some(blocks) = object.get_mut("content").and_then(Value::as_array_mut) {
        let before = blocks.len();
        if blocks.iter().any(|block| text_of_value(block, "type") != Some("thinking")) {
            blocks.retain(|block| text_of_value(block, "type") != Some("thinking"));
        }
        gone |= blocks.len() != before;
    }
    gone.then_some(changed)
}

/// Returns `message` with its visible text replaced, or `None` when its parts are not all text.
pub fn with_text(message: &Value, text: &str) -> Option<Value> {
    let mut changed = message.clone();
    let content = changed.as_object_mut()?.get_mut("content")?;
    let kind = content.as_array().and_then(|parts| parts.first()).and_then(|part| text_of_value(part, "type")).unwrap_or("text").to_owned();
    set_text(content, text, &kind).then_some(changed)
}

/// Returns a user message in `shape` that says `text`. `timestamp_ms` is for OpenClaw, whose
/// messages carry one.
pub fn user_message(shape: Shape, text: &str, timestamp_ms: Option<i64>) -> Value {
    match shape {
        Shape::OpenAiChat => json!({"role": "user", "content": text}),
        Shape::OpenAiResponses => json!({
            "type": "message", "role": "user", "content": [{"type": "input_text", "text": text}],
        }),
        Shape::Anthropic => json!({"role": "user", "content": [{"type": "text", "text": text}]}),
        Shape::OpenClaw => {
            json!({"role": "user", "content": text, "timestamp": timestamp_ms.unwrap_or(0)})
        }
    }
}

fn view_responses_item(object: &Map<String, Value>, kind: &str, seen: &mut MessageView) {
    seen.shape = Shape::OpenAiResponses;
    let call_id = text_of(object, "call_id").unwrap_or("").to_owned();
    let whole = || Value::Object(object.clone()).to_string().len();
    match kind {
        "function_call" | "custom_tool_call" => {
            seen.role = Role::Assistant;
            let slot = object.get("arguments").or_else(|| object.get("input"));
            seen.calls.push(ToolCall { id: call_id, name: text_of(object, "name").unwrap_or("").to_owned(), arguments: argument_text(slot) });
        }
        "local_shell_call" => {
            seen.role = Role::Assistant;
            seen.calls.push(ToolCall { id: call_id, name: "local_shell".to_owned(), arguments: argument_text(object.get("action")) });
        }
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
            seen.role = Role::Tool;
            push_result(seen, call_id, None, object.get("output"), false);
        }
        "reasoning" => {
            seen.role = Role::Assistant;
            seen.opaque_chars = whole();
        }
        _ => seen.opaque_chars = whole(),
    }
}

fn view_tool_message(object: &Map<String, Value>, seen: &mut MessageView) {
    let id = ["tool_call_id", "toolCallId", "name"].iter().find_map(|key| text_of(object, key));
    let name = ["name", "toolName"].iter().find_map(|key| text_of(object, key));
    let is_error = ["isError", "is_error"].iter().any(|key| object.get(*key).and_then(Value::as_bool).unwrap_or(false));
    push_result(seen, id.unwrap_or("").to_owned(), name.map(str::to_owned), object.get("content"), is_error);
}

fn view_chat_call(call: &Value, seen: &mut MessageView) {
    let Some(function) = call.get("function") else {
        seen.opaque_chars += call.to_string().len();
        return;
    };
    seen.calls.push(ToolCall {
        id: text_of_value(call, "id").unwrap_or("").to_owned(),
        name: text_of_value(function, "name").unwrap_or("").to_owned(),
        arguments: argument_text(function.get("arguments")),
    });
}

fn view_content(content: Option<&Value>, seen: &mut MessageView) {
    let blocks = match content {
        Some(Value::String(text)) => {
            seen.text.push_str(text);
            return;
        }
        Some(Value::Array(blocks)) => blocks,
        Some(Value::Null) | None => return,
        Some(other) => {
            seen.opaque_chars += other.to_string().len();
            return;
        }
    };
    for block in blocks {
        match text_of_value(block, "type") {
            Some("text" | "input_text" | "output_text") => {
                if !seen.text.is_empty() {
                    seen.text.push('\n');
                }
                seen.text.push_str(text_of_value(block, "text").unwrap_or(""));
            }
            Some("thinking") => {
                seen.reasoning.push_str(text_of_value(block, "thinking").unwrap_or(""));
                if block.get("signature").is_some() && seen.shape == Shape::OpenAiChat {
                    seen.shape = Shape::Anthropic;
                }
            }
            Some("tool_use") => {
                seen.shape = Shape::Anthropic;
                seen.calls.push(block_call(block, "input"));
            }
            Some("toolCall") => {
                seen.shape = Shape::OpenClaw;
                seen.calls.push(block_call(block, "arguments"));
            }
            Some("tool_result") => {
                seen.shape = Shape::Anthropic;
                let error = block.get("is_error").and_then(Value::as_bool).unwrap_or(false);
                let id = text_of_value(block, "tool_use_id").unwrap_or("").to_owned();
                push_result(seen, id, None, block.get("content"), error);
            }
            _ => seen.opaque_chars += opaque_chars(block),
        }
    }
}

/// Returns what a part that is not text counts for.
fn opaque_chars(part: &Value) -> usize {
    match text_of_value(part, "type") {
        Some("image" | "image_url" | "input_image") => IMAGE_CHARS,
        _ => part.to_string().len(),
    }
}

fn block_call(block: &Value, key: &str) -> ToolCall {
    ToolCall {
        id: text_of_value(block, "id").unwrap_or("").to_owned(),
        name: text_of_value(block, "name").unwrap_or("").to_owned(),
        arguments: argument_text(block.get(key)),
    }
}

/// Reads a result's content; what of it is no text is counted.
fn push_result(seen: &mut MessageView, call_id: String, name: Option<String>, content: Option<&Value>, is_error: bool) {
    let parts = content.and_then(Value::as_array).into_iter().flatten();
    seen.opaque_chars += parts.filter(|part| text_of_value(part, "text").is_none()).map(opaque_chars).sum::<usize>();
    seen.results.push(result_of(call_id, name, content, is_error));
}

fn result_of(call_id: String, name: Option<String>, content: Option<&Value>, is_error: bool) -> ToolResult {
    let (text, replaceable) = match content {
        Some(Value::String(text)) => (text.clone(), true),
        Some(Value::Array(parts)) => {
            let all_text = parts.iter().all(|part| text_of_value(part, "text").is_some());
            let texts: Vec<&str> = parts.iter().filter_map(|part| text_of_value(part, "text")).collect();
            (texts.join("\n"), all_text && !parts.is_empty())
        }
        Some(Value::Null) | None => (String::new(), false),
        Some(other) => (other.to_string(), false),
    };
    ToolResult { call_id, name, text, is_error, replaceable }
}

fn argument_text(slot: Option<&Value>) -> String {
    match slot {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

fn set_arguments(slot: &mut Value, arguments: &Value) -> bool {
    match slot {
        Value::String(text) => *text = arguments.to_string(),
        Value::Object(_) => *slot = arguments.clone(),
        _ => return false,
    }
    true
}

fn set_text(content: &mut Value, text: &str, default_kind: &str) -> bool {
    match content {
        Value::String(old) => *old = text.to_owned(),
        Value::Array(parts) => {
            let all_text = parts.iter().all(|part| text_of_value(part, "text").is_some());
            if parts.is_empty() || !all_text {
                return false;
            }
            let kind = text_of_value(&parts[0], "type").unwrap_or(default_kind).to_owned();
            *parts = vec![json!({"type": kind, "text": text})];
        }
        _ => return false,
    }
    true
}

fn text_of<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}

fn text_of_value<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}
