//! OpenClaw's session transcripts: a header line, then one entry a line; also plain chat messages, one a line.
//!
//! All branches of a session are read in the order of the file: each was said. Entries that are not messages (model
//! changes, compactions, custom data) hold nothing that was said and are counted aside.
//!
//! A transcript names its session by an id; the OpenClaw plugin names sessions by their key, because one conversation goes
//! through many ids. Where OpenClaw's index or the plugin's book know the key, it is the name here too, so that what the
//! plugin captured is not there twice.

use super::{Ids, Message, Outcome, Sink, Source, id, json, text, time_text};
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

/// OpenClaw's index of sessions, beside the transcripts: `{KEY: {"sessionId": …}}`.
const INDEX: &str = "sessions.json";

/// The plugin's book, beside the memory's directory: `{"sessions": {…: {"sessionKey": …, "sessionId": …}}}`.
const BOOK: &str = "openclaw-sessions.json";

/// Returns the keys of sessions by their ids, from the index beside `transcript` and the book beside the directory `data`.
/// Neither has to be there.
pub(crate) fn session_keys(transcript: &Path, data: &Path) -> Result<BTreeMap<String, String>> {
    let mut keys = BTreeMap::new();
    if let Some(index) = transcript.parent().map(|folder| document(&folder.join(INDEX))).transpose()?.flatten() {
        for (key, entry) in index.as_object().into_iter().flatten() {
            keys.extend(id(entry, "sessionId").map(|id| (id, key.clone())));
        }
    }
    if let Some(book) = data.parent().map(|folder| document(&folder.join(BOOK))).transpose()?.flatten() {
        for entry in book.get("sessions").and_then(Value::as_object).into_iter().flat_map(|sessions| sessions.values()) {
            keys.extend(id(entry, "sessionId").zip(text(entry, "sessionKey").map(str::to_owned)));
        }
    }
    Ok(keys)
}

fn document(path: &Path) -> Result<Option<Value>> {
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).with_context(|| format!("{} is not JSON", path.display())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Reads a transcript.
pub(crate) fn read(source: &mut Source, sink: &mut dyn Sink) -> Result<()> {
    let mut session = source.session_name(&source.stem);
    let mut ids = Ids::default();
    source.lines(sink, |source, sink, line| {
        let entry = json(line)?;
        match text(&entry, "type") {
            Some("session") => {
                if let Some(id) = id(&entry, "id") {
                    session = source.session_name(&id);
                }
                Ok(Ok(()))
            }
            Some("message") => message(&entry, entry.get("message").unwrap_or(&entry), &session, &mut ids, source, sink),
            Some(other) if entry.get("role").is_none() => {
                sink.aside(&format!("{other} entries"));
                Ok(Ok(()))
            }
            _ => message(&entry, &entry, &session, &mut ids, source, sink),
        }
    })
}

fn message(entry: &Value, body: &Value, session: &str, ids: &mut Ids, source: &Source, sink: &mut dyn Sink) -> Outcome {
    let role = match text(body, "role").ok_or("a message without `role`")? {
        "toolResult" => "tool",
        role => role,
    };
    let (content, structured) = match body.get("content").or_else(|| body.get("text")) {
        Some(Value::String(text)) => (text.clone(), false),
        Some(parts @ Value::Array(_)) => (parts.to_string(), true),
        Some(Value::Null) | None => (String::new(), false),
        Some(_) => return Err("`content` is neither text nor a list of parts".into()),
    };
    let session = text(entry, "sessionKey").or_else(|| text(entry, "session")).unwrap_or(session).to_owned();
    let id = id(entry, "id").unwrap_or_else(|| ids.next(&session, role, &content));
    let time = body.get("timestamp").or_else(|| entry.get("timestamp")).or_else(|| body.get("time"));
    let said_at = time.and_then(|time| time_text::of_value(time, &source.zone));
    let speaker = text(body, "speaker").or_else(|| text(body, "toolName")).map(str::to_owned);
    Ok(sink.message(Message { session, id, role: role.into(), speaker, content, structured, said_at }))
}

#[cfg(test)]
mod tests {
    use super::super::recorder::{lines, read};
    use super::super::{Format, Problem, Source};
    use super::session_keys;
    use std::collections::BTreeMap;

    const TRANSCRIPT: &str = r#"{"type":"session","version":3,"id":"5f0c","timestamp":"2026-02-06T07:49:00.000Z","cwd":"/home/ada"}
{"type":"model_change","id":"aa","provider":"x","modelId":"y"}
{"type":"message","id":"b1","parentId":"aa","timestamp":"2026-02-06T07:49:03.491Z","message":{"role":"user","content":[{"type":"text","text":"Good morning"}],"timestamp":1770364143489}}
{"type":"message","id":"b2","parentId":"b1","timestamp":"2026-02-06T07:49:05.000Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"toolCall","id":"c1","name":"exec","arguments":{}}]}}
{"type":"message","id":"b3","parentId":"b2","timestamp":"2026-02-06T07:49:06.000Z","message":{"role":"toolResult","toolCallId":"c1","toolName":"exec","content":[{"type":"text","text":"ok"}]}}
{"type":"message","id":"b4","parentId":"b3","message":{"role":"user"
{"type":"message","id":"b5","parentId":"b3","timestamp":"2026-02-06T07:50:00.000Z","message":{"role":"user","content":"plain"}}
"#;

    #[test]
    fn a_transcript_keeps_ids_roles_times_and_skips_only_the_broken_line() {
        let read = read(Format::OpenClaw, "a/5f0c.jsonl", TRANSCRIPT);
        assert_eq!(
            lines(&read),
            [
                r#"5f0c | user | - | [{"type":"text","text":"Good morning"}]"#,
                r#"5f0c | assistant | - | [{"type":"thinking","thinking":"hm"},{"type":"toolCall","id":"c1","name":"exec","arguments":{}}]"#,
                r#"5f0c | tool | exec | [{"type":"text","text":"ok"}]"#,
                "5f0c | user | - | plain",
            ]
        );
        assert_eq!(read.messages.iter().map(|m| m.id.as_str()).collect::<Vec<_>>(), ["b1", "b2", "b3", "b5"]);
        assert_eq!(read.messages[0].said_at, Some(1_770_364_143_489), "the message's own time, not the entry's");
        assert_eq!(read.messages[3].said_at, Some(1_770_364_200_000));
        assert_eq!(read.problems.len(), 1);
        assert_eq!(read.problems[0].line, 6);
        assert_eq!(read.asides.get("model_change entries"), Some(&1));
    }

    #[test]
    fn a_session_that_the_plugin_captured_has_the_plugins_name() {
        let home = tempfile::tempdir().expect("a temporary directory");
        let sessions = home.path().join("agents/main/sessions");
        std::fs::create_dir_all(&sessions).expect("writable");
        let data = home.path().join("strata/memory");
        std::fs::create_dir_all(&data).expect("writable");
        let transcript = sessions.join("5f0c.jsonl");
        assert_eq!(session_keys(&transcript, &data).expect("neither is needed"), BTreeMap::new());

        std::fs::write(sessions.join("sessions.json"), r#"{"agent:main:main":{"sessionId":"5f0c"},"agent:main:odd":{}}"#).expect("writable");
        let book = r#"{"version":1,"since":1,"sessions":{"main agent:main:old 77aa":{"agentId":"main","sessionKey":"agent:main:old","sessionId":"77aa"}}}"#;
        std::fs::write(home.path().join("strata/openclaw-sessions.json"), book).expect("writable");
        let keys = session_keys(&transcript, &data).expect("both are JSON");
        assert_eq!(keys.iter().map(|(id, key)| format!("{id} {key}")).collect::<Vec<_>>(), ["5f0c agent:main:main", "77aa agent:main:old"]);

        let mut recorder = super::super::recorder::Recorder::default();
        let mut source = Source::of_text("a/5f0c.jsonl", TRANSCRIPT);
        source.session_keys = keys;
        super::read(&mut source, &mut recorder).expect("a recorder takes everything");
        assert!(recorder.messages.iter().all(|message| message.session == "agent:main:main"), "{:?}", recorder.messages);

        std::fs::write(sessions.join("sessions.json"), "{").expect("writable");
        assert!(session_keys(&transcript, &data).is_err(), "an index that cannot be read is not passed over in silence");
    }

    #[test]
    fn bare_chat_lines_get_stable_ids_and_equal_ones_stay_apart() {
        let text = "{\"role\":\"user\",\"content\":\"yes\"}\n{\"role\":\"user\",\"content\":\"yes\"}\n{\"content\":\"who?\"}\n";
        let first = read(Format::OpenClaw, "chat.jsonl", text);
        assert_eq!(lines(&first), ["chat | user | - | yes", "chat | user | - | yes"]);
        assert_ne!(first.messages[0].id, first.messages[1].id);
        assert_eq!(first.messages, read(Format::OpenClaw, "chat.jsonl", text).messages);
        assert_eq!(first.problems, [Problem { file: "chat.jsonl".into(), line: 3, reason: "a message without `role`".into() }]);
    }
}
