//! ChatGPT's `conversations.json`: a tree of messages a conversation, of which the current branch is read.

use super::{Message, Outcome, Sink, Source, id, json_stream, text, time_text};
use anyhow::Result;
use serde_json::Value;
use std::collections::BTreeSet;

/// Reads an export, or one conversation of it.
pub(crate) fn read(source: &mut Source, sink: &mut dyn Sink) -> Result<()> {
    let zone = source.zone.clone();
    json_stream::elements(source, sink, &["conversations"], &mut |sink, _, conversation| read_conversation(&conversation, &zone, sink))
}

fn read_conversation(conversation: &Value, zone: &jiff::tz::TimeZone, sink: &mut dyn Sink) -> Outcome {
    let mapping = conversation.get("mapping").and_then(Value::as_object).ok_or("a conversation without `mapping`")?;
    let session = id(conversation, "conversation_id").or_else(|| id(conversation, "id")).ok_or("a conversation without `id`")?;
    let leaf = match text(conversation, "current_node") {
        Some(node) => node.to_owned(),
        None => latest_leaf(mapping).ok_or("a conversation without messages")?,
    };
    for node in branch(mapping, &leaf)? {
        let Some(message) = mapping[node].get("message").filter(|message| message.is_object()) else { continue };
        let role = message.pointer("/author/role").and_then(Value::as_str).unwrap_or("unknown");
        let content = content(message.get("content").unwrap_or(&Value::Null));
        if content.is_empty() {
            sink.aside(&format!("{role} messages without text"));
            continue;
        }
        // Custom instructions come as a user message that the user did not write at that place.
        let role = if message.pointer("/metadata/is_user_system_message").and_then(Value::as_bool) == Some(true) { "system" } else { role };
        let said_at = message.get("create_time").and_then(|time| time_text::of_value(time, zone));
        let speaker = message.pointer("/author/name").and_then(Value::as_str).filter(|name| !name.is_empty()).map(str::to_owned);
        let id = text(message, "id").unwrap_or(node).to_owned();
        if let Err(refused) = sink.message(Message { session: session.clone(), id, role: role.into(), speaker, content, structured: false, said_at }) {
            return Ok(Err(refused));
        }
    }
    Ok(Ok(()))
}

/// Returns the nodes from the root to `leaf`. A parent that is missing ends the branch, a circle is refused.
fn branch<'a>(mapping: &'a serde_json::Map<String, Value>, leaf: &str) -> std::result::Result<Vec<&'a str>, String> {
    let mut nodes = Vec::new();
    let mut seen = BTreeSet::new();
    let mut next = Some(leaf);
    while let Some((key, node)) = next.and_then(|key| mapping.get_key_value(key)) {
        if !seen.insert(key.as_str()) {
            return Err(format!("node {key} is its own ancestor"));
        }
        nodes.push(key.as_str());
        next = text(node, "parent");
    }
    if nodes.is_empty() {
        return Err(format!("the current node {leaf} does not exist"));
    }
    nodes.reverse();
    Ok(nodes)
}

/// Returns the node without children whose message is the newest.
fn latest_leaf(mapping: &serde_json::Map<String, Value>) -> Option<String> {
    let time = |node: &Value| node.pointer("/message/create_time").and_then(Value::as_f64).unwrap_or(0.0);
    let is_leaf = |node: &Value| node.get("children").and_then(Value::as_array).is_none_or(Vec::is_empty);
    mapping.iter().filter(|(_, node)| is_leaf(node)).max_by(|a, b| time(a.1).total_cmp(&time(b.1))).map(|(key, _)| key.clone())
}

/// Returns a message's text, whatever its content type.
fn content(content: &Value) -> String {
    if let Some(parts) = content.get("parts").and_then(Value::as_array) {
        return parts.iter().filter_map(part).collect::<Vec<_>>().join("\n");
    }
    if let Some(thoughts) = content.get("thoughts").and_then(Value::as_array) {
        return thoughts.iter().filter_map(|thought| text(thought, "content")).collect::<Vec<_>>().join("\n");
    }
    let named: Vec<_> =
        ["text", "result", "content", "user_profile", "user_instructions", "model_set_context"].iter().filter_map(|member| text(content, member)).collect();
    named.join("\n")
}

fn part(part: &Value) -> Option<String> {
    match part {
        Value::String(text) if text.trim().is_empty() => None,
        Value::String(text) => Some(text.clone()),
        _ => text(part, "text").map(str::to_owned).or_else(|| {
            let kind = text(part, "content_type")?;
            Some(if kind.starts_with("image") { "[image]".into() } else { format!("[{kind}]") })
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::recorder::{lines, read};

    const EXPORT: &str = r#"[
 {"title": "Boats", "conversation_id": "c-1", "current_node": "n4", "mapping": {
   "n0": {"id": "n0", "message": null, "parent": null, "children": ["n1"]},
   "n1": {"id": "n1", "message": {"id": "n1", "author": {"role": "user"}, "create_time": 1700000000.5, "content": {"content_type": "text", "parts": ["Which boat?"]}}, "parent": "n0", "children": ["n2", "n3"]},
   "n2": {"id": "n2", "message": {"id": "n2", "author": {"role": "assistant"}, "create_time": 1700000001, "content": {"content_type": "text", "parts": ["The discarded answer."]}}, "parent": "n1", "children": []},
   "n3": {"id": "n3", "message": {"id": "n3", "author": {"role": "assistant"}, "create_time": 1700000002, "content": {"content_type": "text", "parts": [""]}}, "parent": "n1", "children": ["n4"]},
   "n4": {"id": "n4", "message": {"id": "n4", "author": {"role": "assistant"}, "create_time": 1700000003, "content": {"content_type": "multimodal_text", "parts": [{"content_type": "image_asset_pointer"}, "A ketch."]}}, "parent": "n3", "children": []}}},
 {"title": "No mapping", "id": "c-2"},
 {"title": "Tools", "id": "c-3", "current_node": "b", "mapping": {
   "a": {"id": "a", "message": {"id": "a", "author": {"role": "user"}, "metadata": {"is_user_system_message": true}, "content": {"content_type": "user_editable_context", "user_profile": "I sail."}}, "parent": null, "children": ["b"]},
   "b": {"id": "b", "message": {"id": "b", "author": {"role": "tool", "name": "python"}, "content": {"content_type": "execution_output", "text": "42"}}, "parent": "a", "children": []}}}
]"#;

    #[test]
    fn the_current_branch_is_read_and_a_conversation_without_tree_is_named() {
        let read = read(Format::ChatGpt, "conversations.json", EXPORT);
        assert_eq!(
            lines(&read),
            ["c-1 | user | - | Which boat?", "c-1 | assistant | - | [image]\nA ketch.", "c-3 | system | - | I sail.", "c-3 | tool | python | 42"]
        );
        assert_eq!(read.messages[0].said_at, Some(1_700_000_000_500));
        assert_eq!(read.asides.get("assistant messages without text"), Some(&1));
        assert_eq!(read.problems.len(), 1);
        assert_eq!((read.problems[0].line, read.problems[0].reason.as_str()), (8, "a conversation without `mapping`"));
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let text = r#"[{"id": "c", "current_node": "a", "mapping": {"a": {"parent": "b"}, "b": {"parent": "a"}}}]"#;
        let read = read(Format::ChatGpt, "c.json", text);
        assert!(read.messages.is_empty());
        assert!(read.problems[0].reason.contains("its own ancestor"));
    }
}
