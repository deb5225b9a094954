//! Which format a file has, by its name and its first bytes.

use super::Format;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Returns the format, or the reason why none fits.
pub(crate) fn detect(path: &Path, head: &[u8]) -> Result<Format, String> {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    if matches!(name.as_str(), "memory.md" | "user.md") {
        return Ok(Format::MemoryFile);
    }
    if [".md", ".markdown", ".txt"].iter().any(|end| name.ends_with(end)) {
        return Ok(Format::Markdown);
    }
    if head.starts_with(b"PK\x03\x04") {
        return Err("is a ZIP archive; unpack it and import `conversations.json`".into());
    }
    if head.starts_with(b"SQLite format 3\0") {
        return Err("is a SQLite database; for a TencentDB Agent Memory directory use `--from tdai DIR`".into());
    }
    let text = String::from_utf8_lossy(head);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if !text.starts_with(['{', '[']) {
        return Err("is neither JSON nor Markdown; name the format with --format".into());
    }
    by_lines(text).or_else(|| by_members(text)).ok_or_else(|| "has a shape that no reader knows; name the format with --format".into())
}

/// Recognizes one JSON object a line. The first lines may be broken: the first whole one decides.
fn by_lines(text: &str) -> Option<Format> {
    let object = text.lines().take(50).filter_map(|line| serde_json::from_str::<Value>(line.trim()).ok()).find(Value::is_object)?;
    let has = |member: &str| object.get(member).is_some();
    if has("record") {
        return Some(Format::Strata);
    }
    let kind = object.get("type").and_then(Value::as_str).unwrap_or_default();
    if has("sessionId") && (has("uuid") || has("parentUuid")) || has("leafUuid") || kind == "file-history-snapshot" {
        return Some(Format::ClaudeCode);
    }
    let is_chat = has("role") && (has("content") || has("text"));
    (kind == "session" || kind == "message" || is_chat || has("parentId") && !kind.is_empty()).then_some(Format::OpenClaw)
}

/// Recognizes one JSON document by the names of its outer members, which a document of gigabytes shows in its first bytes.
fn by_members(text: &str) -> Option<Format> {
    let members = members(text);
    let has = |name: &str| members.contains(name);
    if has("mapping") {
        Some(Format::ChatGpt)
    } else if has("chat_messages") {
        Some(Format::Claude)
    } else if has("conversations") && (has("sessionKey") || has("sessionId")) {
        Some(Format::TdaiSeed)
    } else if has("memory") && (has("user_id") || has("hash") || has("created_at") || has("results") || has("memories")) {
        Some(Format::Mem0)
    } else if has("messages") && has("role") && (has("text") || has("content")) || has("session") && has("role") && has("text") {
        Some(Format::Corpus)
    } else {
        None
    }
}

/// Levels of nesting whose members are looked at.
const DEPTH: usize = 4;

/// Returns the names of the members in the outer levels. Text inside strings is not mistaken for members.
fn members(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let start = at + 1;
                at = start;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                let colon = bytes.get(at + 1..).unwrap_or_default().iter().find(|byte| !byte.is_ascii_whitespace());
                if depth <= DEPTH && colon == Some(&b':') {
                    found.insert(text.get(start..at).unwrap_or_default().to_owned());
                }
            }
            _ => {}
        }
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, head: &str, expect: Format) {
        assert_eq!(detect(Path::new(name), head.as_bytes()), Ok(expect), "{head}");
    }

    #[test]
    fn each_format_is_known_by_its_shape() {
        check("a.jsonl", "{\"type\":\"session\",\"id\":\"x\"}\n{\"type\":\"message\"}\n", Format::OpenClaw);
        check("a.jsonl", "{broken\n{\"type\":\"message\",\"id\":\"x\",\"message\":{}}\n", Format::OpenClaw);
        check("a.jsonl", "{\"role\":\"user\",\"content\":\"hi\"}\n", Format::OpenClaw);
        check("a.jsonl", "{\"type\":\"user\",\"uuid\":\"1\",\"sessionId\":\"s\",\"message\":{}}\n", Format::ClaudeCode);
        check("conversations.json", "[\n {\"title\": \"x\", \"mapping\": {\"a\": {", Format::ChatGpt);
        check("conversations.json", "[{\"uuid\": \"x\", \"name\": \"a\", \"chat_messages\": [{\"text", Format::Claude);
        check("seed.json", "{\"sessions\": [{\"sessionKey\": \"k\", \"conversations\": [[", Format::TdaiSeed);
        check("seed.json", "[{\"sessionKey\": \"k\", \"conversations\": []}]", Format::TdaiSeed);
        check("1.json", "{\"corpus\": \"x\", \"messages\": [{\"id\": \"1\", \"role\": \"user\", \"text\": \"a\"", Format::Corpus);
        check("m.json", "{\"results\": [{\"id\": \"1\", \"memory\": \"a\", \"user_id\": \"u\"}]}", Format::Mem0);
        check("e.jsonl", "{\"record\":\"message\",\"role\":\"user\",\"text\":\"a\"}\n", Format::Strata);
        check("MEMORY.md", "- x", Format::MemoryFile);
        check("chat.md", "User: x", Format::Markdown);
    }

    #[test]
    fn a_string_that_looks_like_a_member_does_not_decide() {
        check("1.json", r#"{"note": "\"mapping\": {", "messages": [{"role": "user", "text": "\"chat_messages\": ["}"#, Format::Corpus);
    }

    #[test]
    fn what_is_unknown_says_what_to_do() {
        assert!(detect(Path::new("a.zip"), b"PK\x03\x04rest").expect_err("zip").contains("unpack"));
        assert!(detect(Path::new("a.db"), b"SQLite format 3\0").expect_err("db").contains("--from tdai"));
        assert!(detect(Path::new("a.json"), b"{\"x\": 1}").expect_err("unknown").contains("--format"));
        assert!(detect(Path::new("a.bin"), b"\x00\x01").expect_err("unknown").contains("--format"));
    }
}
