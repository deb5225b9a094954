//! Tolerant reading of a model's JSON: fences, prose around it, raw line breaks in strings, trailing
//! commas and a cut-off end are all data, not errors.

use serde_json::Value;

/// Bytes of an answer that are looked at.
const MAX_ANSWER: usize = 1 << 20;

/// Places of an answer at which JSON may begin that are tried.
const MAX_STARTS: usize = 64;

/// A memory as a model proposes it, before any check.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proposal {
    /// The scene's name.
    pub scene: String,
    /// The fact.
    pub content: String,
    /// The kind's name.
    pub kind: String,
    /// The priority, if it was a number.
    pub priority: Option<i64>,
    /// Labels of messages, and words quoted from them.
    pub sources: Vec<(String, String)>,
    /// ISO 8601, or anything else.
    pub start: String,
    /// ISO 8601, or anything else.
    pub end: String,
}

/// What an answer proposes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extracted {
    /// The memories, in the order of the answer.
    pub proposals: Vec<Proposal>,
    /// Entries that are no memories.
    pub shapeless: u32,
}

/// Returns what an answer to the extraction proposes, or why it cannot be read.
pub fn parse(text: &str) -> Result<Extracted, String> {
    const NAMES: &[&str] = &["scenes", "memories", "result", "data"];
    // An empty list counts only where no other is found: prose may hold a pair of brackets.
    let root = json(text, |value| list(value, NAMES).is_some_and(|items| items.iter().any(Value::is_object)))
        .or_else(|_| json(text, |value| list(value, NAMES).is_some_and(Vec::is_empty)))
        .or_else(|_| json(text, |value| list(value, NAMES).is_some()))?;
    let items = list(&root, NAMES).expect("the search accepted only such a value");
    let mut extracted = Extracted::default();
    for item in items {
        let scene = string(item, &["scene", "scene_name"]);
        match list(item, &["memories"]).filter(|_| item.is_object()) {
            Some(memories) => memories.iter().for_each(|memory| push(&mut extracted, &scene, memory)),
            None => push(&mut extracted, &scene, item),
        }
    }
    if extracted.proposals.is_empty() && extracted.shapeless > 0 {
        return Err("the answer is JSON, but no entry of it is a memory".into());
    }
    Ok(extracted)
}

fn push(extracted: &mut Extracted, scene: &str, memory: &Value) {
    let content = string(memory, &["content", "text", "memory"]);
    // A scene without memories is no memory, and no fault either.
    if content.is_empty() && memory.get("scene").is_some() {
        return;
    }
    if content.is_empty() {
        extracted.shapeless += 1;
        return;
    }
    let empty = Value::Null;
    let metadata = memory.get("metadata").unwrap_or(&empty);
    let first = |names: &[&str], inner: &[&str]| {
        let outer = string(memory, names);
        if outer.is_empty() { string(metadata, inner) } else { outer }
    };
    extracted.proposals.push(Proposal {
        scene: scene.to_owned(),
        kind: string(memory, &["type", "kind"]),
        priority: memory.get("priority").and_then(number),
        sources: sources(memory),
        start: first(&["start"], &["activity_start_time"]),
        end: first(&["end"], &["activity_end_time"]),
        content,
    });
}

fn sources(memory: &Value) -> Vec<(String, String)> {
    let list = ["sources", "source_message_ids", "evidence", "message_ids"].iter().find_map(|name| memory.get(*name));
    let one = |item: &Value| match item {
        Value::String(id) => Some((id.trim().to_owned(), String::new())),
        Value::Object(_) => Some((string(item, &["id", "message_id"]), string(item, &["quote", "text"]))),
        Value::Number(id) => Some((id.to_string(), String::new())),
        _ => None,
    };
    match list {
        Some(Value::Array(items)) => items.iter().filter_map(one).collect(),
        Some(item) => one(item).into_iter().collect(),
        None => Vec::new(),
    }
}

/// Returns the array that a value is, or that it holds under one of `names`.
pub fn list<'a>(value: &'a Value, names: &[&str]) -> Option<&'a Vec<Value>> {
    match value {
        Value::Array(items) => Some(items),
        Value::Object(_) => names.iter().find_map(|name| value.get(*name).and_then(Value::as_array)),
        _ => None,
    }
}

/// Returns the first of `names` that holds text, trimmed; else empty text.
pub fn string(value: &Value, names: &[&str]) -> String {
    names.iter().find_map(|name| value.get(*name).and_then(Value::as_str)).unwrap_or_default().trim().to_owned()
}

/// Returns a number, also one that was written as text.
pub fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| number.as_f64().map(|float| float as i64)),
        Value::String(text) => text.trim().parse::<f64>().ok().map(|float| float as i64),
        _ => None,
    }
}

/// Returns the first JSON value in `text` that `accept` takes, mended where needed, or why there is none.
pub fn json(text: &str, accept: impl Fn(&Value) -> bool) -> Result<Value, String> {
    let text = &text[..text.floor_char_boundary(MAX_ANSWER)];
    // What a model thought aloud may hold brackets of all kinds; the answer follows it.
    let text = text.rsplit_once("</think>").map_or(text, |(_, answer)| answer);
    let starts: Vec<usize> = text.match_indices(['[', '{']).map(|(start, _)| start).filter(|start| is_likely_start(&text[*start..])).take(MAX_STARTS).collect();
    for start in &starts {
        // Whole as it stands, else mended: an outer value that was cut off comes before its parts.
        let whole = serde_json::Deserializer::from_str(&text[*start..]).into_iter::<Value>().next().and_then(Result::ok);
        if let Some(value) = whole.or_else(|| serde_json::from_str(&mend(&text[*start..])).ok())
            && accept(&value)
        {
            return Ok(value);
        }
    }
    Err(if text.trim().is_empty() { "the answer is empty".into() } else { "the answer holds no JSON of the asked shape".into() })
}

/// Returns whether what follows an opening bracket can be JSON; `[sic]` and `{x}` cannot.
fn is_likely_start(text: &str) -> bool {
    let next = text[1..].trim_start().chars().next();
    match next {
        None => false,
        Some(c) if text.starts_with('{') => matches!(c, '"' | '}'),
        Some(c) => matches!(c, '{' | '[' | '"' | ']'),
    }
}

/// Escapes raw control characters in strings, removes trailing commas, drops what follows the value,
/// and closes a value that was cut off after its last whole object.
fn mend(text: &str) -> String {
    let mut mended = String::with_capacity(text.len());
    let mut open: Vec<char> = Vec::new();
    let mut whole: Option<(usize, Vec<char>)> = None;
    let (mut in_string, mut escaped) = (false, false);
    for c in text.chars() {
        if in_string {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                _ => {}
            }
            if c.is_control() {
                mended.push_str(&format!("\\u{:04x}", c as u32));
            } else {
                mended.push(c);
            }
            continue;
        }
        match c {
            '"' => in_string = true,
            '{' => open.push('}'),
            '[' => open.push(']'),
            '}' | ']' => {
                while mended.ends_with(|c: char| c.is_whitespace() || c == ',') {
                    mended.pop();
                }
                if open.pop() != Some(c) {
                    break;
                }
            }
            _ => {}
        }
        mended.push(c);
        if matches!(c, '}' | ']') {
            if open.is_empty() {
                return mended;
            }
            whole = Some((mended.len(), open.clone()));
        }
    }
    match whole {
        Some((length, open)) => {
            mended.truncate(length);
            mended.extend(open.iter().rev());
            mended
        }
        None => mended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: &str = r#"{"scenes":[{"scene":"s","memories":[{"content":"likes tea","type":"persona","priority":80,"sources":[{"id":"m1","quote":"tea"}]}]}]}"#;

    fn contents(text: &str) -> Vec<String> {
        parse(text).expect("readable").proposals.into_iter().map(|proposal| proposal.content).collect()
    }

    #[test]
    fn fences_prose_and_thoughts_around_it() {
        for text in [
            ONE.to_owned(),
            format!("```json\n{ONE}\n```"),
            format!("The list was [] before. {ONE}"),
            format!("Sure! [Note] here it is:\n\n{ONE}\n\nAnything else?"),
            format!("<think>maybe [{{\"content\": \"wrong\"}}]</think>{ONE}"),
            format!("{}{ONE}", "Lorem [ipsum] {dolor} ".repeat(10_000)),
        ] {
            assert_eq!(contents(&text), ["likes tea"]);
        }
    }

    #[test]
    fn the_reference_shape_and_wrong_types() {
        let text = r#"[{"scene_name":"s","message_ids":["m1"],"memories":[{"content":"a","type":"persona","priority":"85","source_message_ids":["m1"],"metadata":{"activity_start_time":"2026-01-01T00:00:00Z"}},{"content":7},"x"]}]"#;
        let extracted = parse(text).expect("readable");
        assert_eq!(extracted.shapeless, 2);
        assert_eq!(extracted.proposals[0].priority, Some(85));
        assert_eq!(extracted.proposals[0].sources, [("m1".to_owned(), String::new())]);
        assert_eq!(extracted.proposals[0].start, "2026-01-01T00:00:00Z");
        assert_eq!(contents(r#"{"memories":[{"content":"a"}]}"#), ["a"]);
    }

    #[test]
    fn cut_off_and_sloppy_json_keeps_its_whole_entries() {
        assert_eq!(contents(r#"{"scenes":[{"scene":"s","memories":[{"content":"a","priority":80},{"content":"b","pri"#), ["a"]);
        assert_eq!(contents("[{\"content\":\"line\nbreak\",},]"), ["line\nbreak"]);
    }

    #[test]
    fn nothing_to_note_is_an_answer() {
        assert_eq!(parse("[]").expect("readable").proposals, []);
        assert_eq!(parse(r#"{"scenes":[]}"#).expect("readable").proposals, []);
        assert_eq!(parse(r#"{"scenes":[{"scene":"chat","memories":[]}]}"#).expect("readable").proposals, []);
    }

    #[test]
    fn what_cannot_be_read_says_so() {
        for text in ["", "I found nothing worth noting.", "{}", "null", r#"{"error":"overloaded"}"#, "[1, 2]", r#"[{"foo":1}]"#] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,400}") {
            let _ = parse(&text);
        }

        #[test]
        fn any_cut_of_an_answer_is_read_or_refused(end in 0usize..ONE.len()) {
            if let Ok(extracted) = parse(&ONE[..end]) {
                prop_assert!(extracted.proposals.len() <= 1);
            }
        }

        #[test]
        fn any_soup_of_brackets_is_read_or_refused(parts in proptest::collection::vec(0usize..12, 0..60)) {
            let pieces = ["[", "]", "{", "}", "\"", ",", ":", "\\", "\n", "content", "\"content\":\"x\"", "1"];
            let text: String = parts.iter().map(|part| pieces[*part]).collect();
            let _ = parse(&text);
        }
    }
}
