//! Claude's export: `conversations.json` with `chat_messages`.

use super::{Message, Outcome, Sink, Source, id, json_stream, text, time_text};
use anyhow::Result;
use jiff::tz::TimeZone;
use serde_json::Value;

/// Reads an export, or one conversation of it.
pub(crate) fn read(source: &mut Source, sink: &mut dyn Sink) -> Result<()> {
    let zone = source.zone.clone();
    json_stream::elements(source, sink, &["conversations"], &mut |sink, _, conversation| read_conversation(&conversation, &zone, sink))
}

fn read_conversation(conversation: &Value, zone: &TimeZone, sink: &mut dyn Sink) -> Outcome {
    let session = id(conversation, "uuid").ok_or("a conversation without `uuid`")?;
    let messages = conversation.get("chat_messages").and_then(Value::as_array).ok_or("a conversation without `chat_messages`")?;
    for (index, message) in messages.iter().enumerate() {
        for message in read_message(message, index, &session, zone, sink) {
            if let Err(refused) = sink.message(message) {
                return Ok(Err(refused));
            }
        }
    }
    Ok(Ok(()))
}

/// Returns the message and, as separate messages of role `tool`, the texts attached to it: nobody said these.
fn read_message(message: &Value, index: usize, session: &str, zone: &TimeZone, sink: &mut dyn Sink) -> Vec<Message> {
    let role = match text(message, "sender") {
        Some("human") => "user",
        Some(sender) => sender,
        None => "unknown",
    };
    let id = id(message, "uuid").unwrap_or_else(|| format!("{session}-{index}"));
    let said_at = message.get("created_at").and_then(|time| time_text::of_value(time, zone));
    let base = Message { session: session.into(), id: id.clone(), role: role.into(), said_at, ..Message::default() };
    let mut found: Vec<_> = attachments(message)
        .enumerate()
        .map(|(at, (name, content))| Message { id: format!("{id}/attachment-{at}"), role: "tool".into(), speaker: name, content, ..base.clone() })
        .collect();
    let content = content(message);
    if content.is_empty() {
        sink.aside(&format!("{role} messages without text"));
    } else {
        found.push(Message { content, ..base });
    }
    found
}

fn content(message: &Value) -> String {
    let parts = message.get("content").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let texts: Vec<_> = parts.iter().filter(|part| text(part, "type").is_none_or(|kind| kind == "text")).filter_map(|part| text(part, "text")).collect();
    if texts.is_empty() { text(message, "text").unwrap_or_default().to_owned() } else { texts.join("\n") }
}

fn attachments(message: &Value) -> impl Iterator<Item = (Option<String>, String)> {
    let list = message.get("attachments").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    list.iter().filter_map(|file| Some((text(file, "file_name").map(str::to_owned), text(file, "extracted_content")?.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::recorder::{lines, read};

    const EXPORT: &str = r#"[{"uuid": "u-1", "name": "Bread", "created_at": "2026-01-02T03:04:05.000000Z", "chat_messages": [
  {"uuid": "m-1", "sender": "human", "text": "old text", "content": [{"type": "text", "text": "How long to proof?"}], "created_at": "2026-01-02T03:04:05.123456Z",
   "attachments": [{"file_name": "recipe.txt", "extracted_content": "Flour, water."}]},
  {"uuid": "m-2", "sender": "assistant", "text": "Four hours.", "content": [], "created_at": "2026-01-02T03:05:00Z"},
  {"uuid": "m-3", "sender": "assistant", "text": "", "content": [{"type": "tool_use", "name": "search"}], "created_at": "2026-01-02T03:05:01Z"}
]}, {"name": "broken"}]"#;

    #[test]
    fn an_export_keeps_ids_times_and_attachments() {
        let read = read(Format::Claude, "conversations.json", EXPORT);
        assert_eq!(lines(&read), ["u-1 | tool | recipe.txt | Flour, water.", "u-1 | user | - | How long to proof?", "u-1 | assistant | - | Four hours."]);
        assert_eq!(read.messages[1].said_at, Some(1_767_323_045_123));
        assert_eq!(read.messages[0].id, "m-1/attachment-0");
        assert_eq!(read.asides.get("assistant messages without text"), Some(&1));
        assert_eq!(read.problems[0].reason, "a conversation without `uuid`");
    }
}
