//! `{"corpus", "space", "messages": [{"id", "session", "time", "speaker", "role", "text"}]}`: the shape of published test
//! conversations.
//!
//! Every space numbers its sessions and messages anew, so a session's name here is `<corpus>/<space>/<session>`: else the
//! second file of a folder would look like a repetition of the first.

use super::{Ids, Message, Sink, Source, id, json_stream, text, time_text};
use anyhow::Result;
use serde_json::Value;

/// Reads one space.
pub(crate) fn read(source: &mut Source, sink: &mut dyn Sink) -> Result<()> {
    let (zone, stem, name, position) = (source.zone.clone(), source.stem.clone(), source.name.clone(), source.position.clone());
    let mut ids = Ids::default();
    json_stream::elements(source, sink, &["messages"], &mut |sink, before, value| {
        let content = value.get("text").or_else(|| value.get("content")).and_then(Value::as_str).ok_or("a message without `text`")?.to_owned();
        let role = text(&value, "role").ok_or("a message without `role`")?.to_owned();
        let session = id(&value, "session").unwrap_or_else(|| stem.clone());
        let whose = ["corpus", "space"].iter().filter_map(|member| before.get(*member).and_then(Value::as_str));
        let session = whose.chain([session.as_str()]).collect::<Vec<_>>().join("/");
        let time = value.get("time").or_else(|| value.get("timestamp")).filter(|time| !time.is_null());
        let said_at = time.and_then(|time| time_text::of_value(time, &zone));
        if let (Some(time), None) = (time, said_at) {
            let line = position.newlines.get() + 1;
            sink.problem(super::Problem { file: name.clone(), line, reason: format!("the time {time} is not understood; the message is kept without it") });
        }
        let id = id(&value, "id").unwrap_or_else(|| ids.next(&session, &role, &content));
        Ok(sink.message(Message { session, id, speaker: text(&value, "speaker").map(str::to_owned), role, content, structured: false, said_at }))
    })
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::recorder::{lines, read};

    const SPACE: &str = r#"{"corpus": "own", "space": "1", "messages": [
  {"id": "D1:1", "session": "s1", "time": "1:56 pm on 8 May, 2023", "speaker": "Ann", "role": "user", "text": "I planted beans."},
  {"id": "D1:2", "session": "s1", "time": "some day", "speaker": "Bob", "role": "assistant", "text": "Nice."},
  {"id": "D1:3", "session": "s1", "role": "user"}
 ], "queries": [{"id": "q", "text": "beans?", "gold": ["D1:1"]}]}"#;

    #[test]
    fn ids_sessions_speakers_and_times_are_kept() {
        let read = read(Format::Corpus, "1.json", SPACE);
        assert_eq!(lines(&read), ["own/1/s1 | user | Ann | I planted beans.", "own/1/s1 | assistant | Bob | Nice."]);
        assert_eq!((read.messages[0].id.as_str(), read.messages[0].said_at), ("D1:1", Some(1_683_554_160_000)));
        assert_eq!(read.messages[1].said_at, None);
        assert_eq!(read.problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [3, 4]);
    }
}
