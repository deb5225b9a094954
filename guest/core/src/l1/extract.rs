//! The first question of a batch: which atoms are in these messages?

use super::Input;
use super::check::{MAX_SCENE, MAX_SOURCES};
use crate::contract::{Abilities, LlmRequest};
use crate::l0::Message;
use serde_json::{Value, json};

/// The system prompt; people review it there.
const PROMPT: &str = include_str!("../../prompts/l1-extract.md");

/// Characters of one message that the model sees: the head and the tail of what is longer.
pub const MAX_VIEW: usize = 4000;

/// Characters of a background message that the model sees.
const MAX_BACKGROUND_VIEW: usize = 800;

/// Characters of the tail of a message that is cut.
const VIEW_TAIL: usize = 1000;

/// Characters of a tool's text that the model sees.
const MAX_TOOL_VIEW: usize = 600;

/// Tool messages shown in one batch.
const MAX_TOOLS: usize = 5;

/// Bound on the answer, in tokens (the reference system's figure).
const MAX_ANSWER_TOKENS: u32 = 4096;

/// Longest fact, quote and time that the schema allows, in characters. A small model that falls into a loop inside of
/// a string ends there, not at the bound of the answer: SmolLM2-135M needs it to answer at all.
pub const MAX_FACT: usize = 400;
const MAX_QUOTE: usize = 200;
const MAX_TIME: usize = 40;

/// The schema allows a memory for so many characters of new messages, and always `MIN_MEMORIES`: a small model fills
/// what it may fill.
const CHARACTERS_A_MEMORY: usize = 40;
const MIN_MEMORIES: usize = 3;

/// After this long the host should report failure, in milliseconds (the reference system's figure).
pub const TIMEOUT_MS: u32 = 180_000;

/// Returns the question.
pub fn request(input: &Input, model: &Abilities) -> LlmRequest {
    let mut prompt = String::new();
    let now = input.new.last().map_or(0, |message| message.said_at);
    prompt.push_str(&format!("The last message was said at {}.\n", input.calendar.iso(now)));
    prompt.push_str(&format!("Previous scene: {}\n\n## Background\n", if input.last_scene.is_empty() { "none" } else { &input.last_scene }));
    for message in &input.background {
        push_line(&mut prompt, input, "", message);
    }
    prompt.push_str("\n## New messages\n");
    let mut tools = 0;
    for (index, message) in input.new.iter().enumerate() {
        if message.role == "tool" {
            tools += 1;
            if tools > MAX_TOOLS {
                continue;
            }
        }
        push_line(&mut prompt, input, &label(index), message);
    }
    LlmRequest {
        purpose: "l1-extract".into(),
        system: PROMPT.replace("{max}", &input.max_atoms.to_string()),
        prompt,
        schema_json: if model.json_schema { schema(input).to_string() } else { String::new() },
        max_tokens: MAX_ANSWER_TOKENS,
        timeout_ms: TIMEOUT_MS,
    }
}

/// Returns the name by which a question calls the batch's message at `index`.
pub fn label(index: usize) -> String {
    format!("m{}", index + 1)
}

fn push_line(prompt: &mut String, input: &Input, label: &str, message: &Message) {
    let mut line = serde_json::Map::new();
    if !label.is_empty() {
        line.insert("id".into(), label.into());
    }
    line.insert("role".into(), message.role.as_str().into());
    if let Some(speaker) = &message.speaker {
        line.insert("speaker".into(), speaker.as_str().into());
    }
    line.insert("time".into(), input.calendar.iso(message.said_at).into());
    line.insert("text".into(), if label.is_empty() { cut(&view(message), MAX_BACKGROUND_VIEW) } else { view(message) }.into());
    prompt.push_str(&Value::Object(line).to_string());
    prompt.push('\n');
}

/// Returns what distillation sees of a message: an assistant's code blocks are evidence in L0, but
/// nothing about anybody; long texts are cut.
pub fn view(message: &Message) -> String {
    let text = if message.role == "assistant" { without_code_blocks(&message.text) } else { message.text.clone() };
    cut(&text, if message.role == "tool" { MAX_TOOL_VIEW } else { MAX_VIEW })
}

fn cut(text: &str, limit: usize) -> String {
    let length = text.chars().count();
    if length <= limit {
        return text.to_owned();
    }
    let tail = if limit > VIEW_TAIL * 2 { VIEW_TAIL } else { 0 };
    let head: String = text.chars().take(limit - tail).collect();
    let end: String = text.chars().skip(length - tail).collect();
    format!("{head} […{} characters left out…] {end}", length - limit).trim_end().to_owned()
}

/// Removes fenced blocks; a fence that is never closed stays.
pub fn without_code_blocks(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find("```") {
        let at_line_start = rest[..open].trim_end_matches([' ', '\t']).chars().next_back().is_none_or(|c| c == '\n');
        let close = rest[open + 3..].find("\n```");
        let Some(close) = close.filter(|_| at_line_start) else {
            kept.push_str(&rest[..open + 3]);
            rest = &rest[open + 3..];
            continue;
        };
        kept.push_str(&rest[..open]);
        rest = &rest[open + 3 + close + 4..];
    }
    kept.push_str(rest);
    kept
}

/// Returns the shape of the answer, with everything bounded that a model could draw out.
fn schema(input: &Input) -> Value {
    let labels: Vec<String> = (0..input.new.len()).map(label).collect();
    let characters: usize = input.new.iter().map(|message| message.text.chars().count()).sum();
    let memories = (characters / CHARACTERS_A_MEMORY).max(MIN_MEMORIES).min(input.max_atoms);
    let text = |longest: usize| json!({"type": "string", "maxLength": longest});
    json!({
        "type": "object", "required": ["scenes"], "additionalProperties": false,
        "properties": {"scenes": {"type": "array", "maxItems": labels.len(), "items": {
            "type": "object", "required": ["scene", "memories"], "additionalProperties": false,
            "properties": {
                "scene": text(MAX_SCENE),
                "memories": {"type": "array", "maxItems": memories, "items": {
                    "type": "object", "required": ["content", "type", "priority", "sources", "start", "end"], "additionalProperties": false,
                    "properties": {
                        "content": text(MAX_FACT),
                        "type": {"type": "string", "enum": ["persona", "episodic", "instruction"]},
                        "priority": {"type": "integer"},
                        "sources": {"type": "array", "maxItems": labels.len().min(MAX_SOURCES), "items": {
                            "type": "object", "required": ["id", "quote"], "additionalProperties": false,
                            "properties": {"id": {"type": "string", "enum": labels}, "quote": text(MAX_QUOTE)}
                        }},
                        "start": text(MAX_TIME),
                        "end": text(MAX_TIME)
                    }
                }}
            }
        }}}
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_blocks_go_and_other_text_stays() {
        for (text, seen) in [
            ("Here:\n```rust\nfn main() {}\n```\nDone.", "Here:\n\nDone."),
            ("Use `cargo test`.", "Use `cargo test`."),
            ("a ```inline``` b", "a ```inline``` b"),
            ("```\nnever closed", "```\nnever closed"),
        ] {
            assert_eq!(without_code_blocks(text), seen);
        }
    }

    #[test]
    fn long_texts_keep_head_and_tail() {
        let text = format!("{}{}", "a".repeat(5000), "z".repeat(5000));
        let seen = cut(&text, MAX_VIEW);
        assert!(seen.starts_with("aaa") && seen.ends_with("zzz") && seen.contains("6000 characters left out"));
        assert_eq!(cut("short", MAX_VIEW), "short");
    }
}
