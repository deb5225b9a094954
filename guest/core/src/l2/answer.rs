//! What a model may answer about scenes. Text in, operations out; nothing here trusts it.

use super::{MAX_SCENE_CHARS, MAX_SUMMARY_CHARS};
use crate::pages;
use serde::Deserialize;
use serde_json::{Value, json};

/// Longest answer that is looked at, in bytes: ten times what the token bound allows.
const MAX_ANSWER: usize = 256 << 10;

/// Longest name, heading or id that the schema allows, in characters: a small model that loops inside of a string ends there.
const MAX_NAME: usize = 80;

/// Operations of one answer: every scene once, and a new one.
const MAX_OPERATIONS: usize = 32;

/// Paragraphs of one scene: with 20 characters each they would fill it twice.
const MAX_PARAGRAPHS: usize = 80;

/// Atoms behind one paragraph.
pub(super) const MAX_ATOMS: usize = 40;

/// Longest reason that an answer may give, in characters.
const MAX_WHY: usize = 300;

/// A paragraph of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Paragraph {
    pub heading: Option<String>,
    pub text: String,
    pub atoms: Vec<String>,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Create { name: String, summary: String, paragraphs: Vec<Paragraph> },
    Update { scene: String, summary: String, paragraphs: Vec<Paragraph> },
    Merge { scenes: Vec<String>, summary: String, paragraphs: Vec<Paragraph> },
    Archive { scene: String },
}

/// A parsed answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub operations: Vec<Operation>,
    pub need: Vec<String>,
    pub persona_update: Option<String>,
}

/// Returns the JSON Schema of the answer.
pub(super) fn schema() -> String {
    let text = |longest: usize| json!({"type": "string", "maxLength": longest});
    let paragraphs = json!({"type": "array", "maxItems": MAX_PARAGRAPHS, "items": {
        "type": "object", "required": ["text", "atoms"], "additionalProperties": false,
        "properties": {
            "heading": text(MAX_NAME), "text": text(MAX_SCENE_CHARS),
            "atoms": {"type": "array", "minItems": 1, "maxItems": MAX_ATOMS, "items": text(MAX_NAME)}}}});
    let names = json!({"type": "array", "maxItems": MAX_OPERATIONS, "items": text(MAX_NAME)});
    json!({
        "type": "object", "additionalProperties": false,
        "properties": {
            "operations": {"type": "array", "maxItems": MAX_OPERATIONS, "items": {
                "type": "object", "required": ["op"], "additionalProperties": false,
                "properties": {
                    "op": {"enum": ["create", "update", "merge", "archive"]},
                    "name": text(MAX_NAME), "scene": text(MAX_NAME), "scenes": names,
                    "summary": text(MAX_SUMMARY_CHARS), "reason": text(MAX_WHY), "paragraphs": paragraphs}}},
            "need": names,
            "persona_update": text(MAX_WHY)}
    })
    .to_string()
}

/// Returns the JSON object in a model's answer: the whole text, or what stands between the first `{` and the last `}`.
pub(crate) fn object(text: &str) -> Result<Value, String> {
    if text.len() > MAX_ANSWER {
        return Err(format!("the answer has {} bytes, the limit is {MAX_ANSWER}", text.len()));
    }
    let (Some(start), Some(end)) = (text.find('{'), text.rfind('}')) else {
        return Err("the answer holds no JSON object".into());
    };
    if end < start {
        return Err("the answer holds no JSON object".into());
    }
    serde_json::from_str(&text[start..=end]).map_err(|error| format!("the answer is not JSON: {error}"))
}

fn word(value: &Value, key: &str, operation: usize) -> Result<String, String> {
    match value.get(key).and_then(Value::as_str).map(str::trim) {
        Some(word) if !word.is_empty() => Ok(word.to_owned()),
        _ => Err(format!("operation {operation} needs `{key}`")),
    }
}

fn names(value: &Value, key: &str) -> Vec<String> {
    value.get(key).and_then(Value::as_array).map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect()).unwrap_or_default()
}

fn paragraphs(value: &Value, operation: usize) -> Result<Vec<Paragraph>, String> {
    let list = value.get("paragraphs").cloned().ok_or_else(|| format!("operation {operation} needs `paragraphs`"))?;
    let list: Vec<Paragraph> = serde_json::from_value(list).map_err(|error| format!("operation {operation}, paragraphs: {error}"))?;
    if list.is_empty() || list.len() > MAX_PARAGRAPHS {
        return Err(format!("operation {operation} has {} paragraphs, 1 to {MAX_PARAGRAPHS} are allowed", list.len()));
    }
    Ok(list)
}

/// Parses an answer. The error is a sentence for the ledger and for the model's next attempt.
pub(super) fn parse(text: &str) -> Result<Answer, String> {
    let value = object(text)?;
    let mut answer = Answer { need: names(&value, "need"), ..Answer::default() };
    answer.persona_update = value.get("persona_update").and_then(Value::as_str).map(|why| pages::one_line(why, MAX_WHY)).filter(|why| !why.is_empty());
    let operations = match value.get("operations") {
        None | Some(Value::Null) if !answer.need.is_empty() => return Ok(answer),
        Some(Value::Array(operations)) => operations,
        _ => return Err("the answer has no `operations`".into()),
    };
    if operations.len() > MAX_OPERATIONS {
        return Err(format!("{} operations, the limit is {MAX_OPERATIONS}", operations.len()));
    }
    for (index, operation) in operations.iter().enumerate() {
        answer.operations.push(match operation.get("op").and_then(Value::as_str) {
            Some("create") => Operation::Create {
                name: word(operation, "name", index)?,
                summary: word(operation, "summary", index)?,
                paragraphs: paragraphs(operation, index)?,
            },
            Some("update") => Operation::Update {
                scene: word(operation, "scene", index)?,
                summary: word(operation, "summary", index)?,
                paragraphs: paragraphs(operation, index)?,
            },
            Some("merge") => {
                Operation::Merge { scenes: names(operation, "scenes"), summary: word(operation, "summary", index)?, paragraphs: paragraphs(operation, index)? }
            }
            Some("archive") => Operation::Archive { scene: word(operation, "scene", index)? },
            other => return Err(format!("operation {index} is `{}`; create, update, merge and archive exist", other.unwrap_or("missing"))),
        });
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_and_prose_around_an_object_are_tolerated() {
        let answer = parse("Sure!\n```json\n{\"operations\": [{\"op\": \"archive\", \"scene\": \"a.md\", \"reason\": \"over\"}]}\n```").expect("parses");
        assert_eq!(answer.operations, [Operation::Archive { scene: "a.md".into() }]);
        assert_eq!(parse("{\"need\": [\"b.md\"]}").expect("parses").need, ["b.md"]);
    }

    #[test]
    fn bad_answers_are_sentences_not_panics() {
        for bad in [
            "",
            "no idea",
            "}{",
            "{\"operations\": 3}",
            "{\"operations\": [{\"op\": \"delete\"}]}",
            "{\"operations\": [{\"op\": \"create\", \"name\": \"x\"}]}",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(parse(&"x".repeat(MAX_ANSWER + 1)).expect_err("too long").contains("limit"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in ".{0,200}") {
            let _ = parse(&text).is_ok();
        }
    }
}
