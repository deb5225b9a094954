//! The JSONL, Markdown and checkpoint files of a TencentDB Agent Memory directory.

use super::super::{Problem, Sink, Source, id, json, text, time_text};
use super::reading;
use anyhow::{Context, Result};
use jiff::tz::TimeZone;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Until when each session was distilled, in milliseconds.
pub(super) type Cursors = BTreeMap<String, u64>;

/// A message: a line of `conversations/`, or a row of `l0_conversations`.
#[derive(Clone, Debug)]
pub(super) struct L0Line {
    pub id: String,
    pub session: String,
    pub role: String,
    pub text: String,
    pub said_at: Option<u64>,
    pub recorded_at: Option<u64>,
    pub scope: Option<Value>,
}

impl L0Line {
    pub(super) fn of(value: &Value, zone: &TimeZone) -> std::result::Result<Self, String> {
        if value.get("messages").is_some() {
            return Err("a batched line of an early version: the reference does not read it either".into());
        }
        Ok(Self {
            id: id(value, "id").ok_or("a message without `id`")?,
            session: text(value, "sessionKey").or_else(|| text(value, "sessionId")).ok_or("a message without `sessionKey`")?.into(),
            role: text(value, "role").ok_or("a message without `role`")?.into(),
            text: value.get("content").and_then(Value::as_str).ok_or("a message without `content`")?.into(),
            said_at: value.get("timestamp").and_then(|time| time_text::of_value(time, zone)),
            recorded_at: value.get("recordedAt").and_then(|time| time_text::of_value(time, zone)),
            scope: scope(|name| text(value, name)),
        })
    }

    /// Returns the import record. A message before its session's cursor is marked as distilled: its atoms come along.
    pub(super) fn record(&self, cursors: &Cursors) -> Value {
        let arrived = self.recorded_at.or(self.said_at);
        let distilled = cursors.get(&self.session).zip(arrived).is_some_and(|(cursor, arrived)| arrived <= *cursor);
        let mut record = serde_json::json!({
            "record": "message", "id": self.id, "session": self.session, "role": self.role, "text": self.text,
            "said-at": self.said_at.or(self.recorded_at), "distilled": distilled,
        });
        if let Some(scope) = &self.scope {
            record["scope"] = scope.clone();
        }
        record
    }
}

/// An atom: a line of `records/`, or a row of `l1_records`.
#[derive(Clone, Debug)]
pub(super) struct L1Line {
    pub id: String,
    pub session: String,
    pub kind: String,
    pub text: String,
    pub priority: i64,
    pub scene: String,
    pub messages: Vec<String>,
    pub metadata: Map<String, Value>,
    pub created_at: Option<u64>,
    pub updated_at: Option<u64>,
    pub event: (Option<u64>, Option<u64>),
    pub scope: Option<Value>,
}

impl L1Line {
    pub(super) fn of(value: &Value, zone: &TimeZone) -> std::result::Result<Self, String> {
        let metadata = value.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        let time = |member: &str| value.get(member).and_then(|time| time_text::of_value(time, zone));
        Ok(Self {
            id: id(value, "id").ok_or("an atom without `id`")?,
            session: text(value, "sessionKey").or_else(|| text(value, "sessionId")).unwrap_or_default().into(),
            kind: kind(text(value, "type").ok_or("an atom without `type`")?),
            text: text(value, "content").ok_or("an atom without `content`")?.into(),
            priority: value.get("priority").and_then(Value::as_i64).unwrap_or(50),
            scene: text(value, "scene_name").unwrap_or_default().into(),
            messages: strings(value.get("source_message_ids")),
            event: event(&metadata, zone),
            metadata,
            created_at: time("createdAt"),
            updated_at: time("updatedAt"),
            scope: scope(|name| text(value, name)),
        })
    }

    /// Returns the import record. Its messages tell whose words it is: TencentDB Agent Memory distills what assistants and tools
    /// say too. Nobody wrote down when a superseded atom was superseded: its own last change stands for it.
    pub(super) fn record(&self, messages: &[String], superseded: bool) -> Value {
        let mut record = serde_json::json!({
            "record": "atom", "id": self.id, "kind": self.kind, "text": self.text, "priority": self.priority, "scene": self.scene,
            "messages": messages,
            "created-at": self.created_at, "updated-at": self.updated_at.or(self.created_at),
            "event-start": self.event.0, "event-end": self.event.1, "metadata": self.metadata,
        });
        if messages.is_empty() {
            record["origin"] = "imported".into();
        }
        if !self.session.is_empty() {
            record["session"] = self.session.clone().into();
        }
        if superseded {
            record["believed-to"] = serde_json::json!(self.updated_at.or(self.created_at).unwrap_or(0));
        }
        if let Some(scope) = &self.scope {
            record["scope"] = scope.clone();
        }
        record
    }
}

/// Returns today's word for a type of memory.
pub(super) fn kind(word: &str) -> String {
    match word {
        "episode" => "episodic",
        "instruct" => "instruction",
        "preference" => "persona",
        word => word,
    }
    .into()
}

pub(super) fn event(metadata: &Map<String, Value>, zone: &TimeZone) -> (Option<u64>, Option<u64>) {
    let time = |member: &str| metadata.get(member).and_then(|time| time_text::of_value(time, zone));
    (time("activity_start_time"), time("activity_end_time"))
}

/// Returns the scope that v3 columns or members name, if they name one that is not the default.
pub(super) fn scope<'a>(find: impl Fn(&str) -> Option<&'a str>) -> Option<Value> {
    let mut scope = Map::new();
    for (part, names) in [("team", ["teamId", "team_id"]), ("user", ["userId", "user_id"]), ("agent", ["agentId", "agent_id"])] {
        if let Some(name) = names.iter().find_map(|name| find(name)).filter(|name| *name != "default") {
            scope.insert(part.into(), name.into());
        }
    }
    (!scope.is_empty()).then(|| scope.into())
}

fn strings(value: Option<&Value>) -> Vec<String> {
    value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Reads all `YYYY-MM-DD.jsonl` of a folder in the order of the days. Broken lines are reported and skipped.
pub(super) fn jsonl<T>(folder: &Path, sink: &mut dyn Sink, parse: impl Fn(&Value) -> std::result::Result<T, String>) -> Result<Vec<T>> {
    let mut rows = Vec::new();
    for path in list(folder)? {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !is_day_file(&name) {
            continue;
        }
        Source::open(&path, TimeZone::UTC)?.lines(sink, |_, _, line| {
            rows.push(parse(&json(line)?)?);
            Ok(Ok(()))
        })?;
    }
    Ok(rows)
}

fn is_day_file(name: &str) -> bool {
    let shape: String = name.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }).collect();
    shape == "9999-99-99.jsonl"
}

/// Returns the entries of a folder by name; none if it does not exist.
pub(super) fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| reading(folder))? {
        paths.push(entry.with_context(|| reading(folder))?.path());
    }
    paths.sort();
    Ok(paths)
}

/// Returns how many files are below a folder.
pub(super) fn count(folder: &Path) -> Result<u64> {
    let mut files = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in list(&folder)? {
            // A link is counted as one file and not followed, so that a circle of links ends.
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else {
                files += 1;
            }
        }
    }
    Ok(files)
}

/// Reads the extraction cursors of a checkpoint, v1 or v3.
pub(super) fn cursors(dir: &Path, zone: &TimeZone, sink: &mut dyn Sink) -> Result<Cursors> {
    let mut cursors = Cursors::new();
    for name in ["recall_checkpoint.json", "checkpoint.json"] {
        let path = dir.join(".metadata").join(name);
        if !path.exists() {
            continue;
        }
        let bytes = std::fs::read(&path).with_context(|| reading(&path))?;
        let value: Value = match serde_json::from_slice(&bytes) {
            Ok(value) => value,
            Err(error) => {
                let reason = format!("{error}; without cursors all messages are distilled again");
                sink.problem(Problem { file: path.display().to_string(), line: error.line() as u64, reason });
                continue;
            }
        };
        for states in ["session_states", "runner_states"].iter().filter_map(|member| value.get(*member).and_then(Value::as_object)) {
            for (session, state) in states {
                if let Some(at) = state.get("last_l1_cursor").and_then(|time| time_text::of_value(time, zone)) {
                    cursors.insert(session.clone(), at);
                }
            }
        }
    }
    Ok(cursors)
}

/// Returns the import record of a scene file: META header and Markdown body; without a header the whole file is the body.
pub(super) fn scene(name: &str, text: &str, zone: &TimeZone) -> Value {
    let text = text.trim_start_matches('\u{feff}');
    let parts = text.split_once("-----META-START-----").and_then(|(before, rest)| {
        let (header, body) = rest.split_once("-----META-END-----")?;
        before.trim().is_empty().then_some((header, body))
    });
    let (header, body) = parts.unwrap_or(("", text));
    let field = |name: &str| header.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim).filter(|value| !value.is_empty());
    let time = |name: &str| field(name).and_then(|value| time_text::parse(value, zone));
    serde_json::json!({
        "record": "scene", "name": name, "text": body.trim(), "summary": field("summary").unwrap_or_default(),
        "heat": field("heat").and_then(|heat| heat.parse::<u64>().ok()).unwrap_or(0),
        "created-at": time("created"), "updated-at": time("updated"), "atoms": [], "origin": "imported",
    })
}

/// Returns a persona without the scene navigation that the reference appends.
pub(super) fn persona_body(text: &str) -> &str {
    let end = text.find("## 🗺️ Scene Navigation").unwrap_or(text.len());
    let body = text[..end].trim();
    if end < text.len() { body.strip_suffix("---").unwrap_or(body).trim() } else { body }
}

/// Returns `name` with `%XX` replaced by the bytes that they name.
pub(super) fn percent_decoded(name: &str) -> String {
    let bytes = name.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok()).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (bytes[at], hex) {
            (b'%', Some(byte)) => {
                decoded.push(byte);
                at += 3;
            }
            (byte, _) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
