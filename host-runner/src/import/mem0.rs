//! Memories exported from mem0: `{"results": [...]}`, `{"memories": [...]}` or the bare array.
//!
//! mem0 keeps statements without the messages that they come from, so these atoms have no evidence below them and their
//! origin is `imported`: they are recalled, but never become instructions or persona lines on their own.

use super::{Sink, Source, id, json_stream, text, time_text};
use anyhow::Result;
use serde_json::{Map, Value, json};

/// The priority of a memory that has none.
const PRIORITY: u32 = 60;

/// Reads an export.
pub(crate) fn read(source: &mut Source, sink: &mut dyn Sink) -> Result<()> {
    let zone = source.zone.clone();
    json_stream::elements(source, sink, &["results", "memories"], &mut |sink, _, value| {
        let statement = text(&value, "memory").or_else(|| text(&value, "text")).or_else(|| text(&value, "data")).ok_or("a memory without `memory`")?;
        let time = |member: &str| value.get(member).and_then(|time| time_text::of_value(time, &zone));
        let mut scope = Map::new();
        for (member, part) in [("user_id", "user"), ("agent_id", "agent")] {
            if let Some(name) = text(&value, member) {
                scope.insert(part.into(), name.into());
            }
        }
        let categories: Vec<&str> = value.get("categories").and_then(Value::as_array).map_or(&[][..], Vec::as_slice).iter().filter_map(Value::as_str).collect();
        let mut metadata = value.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        if !categories.is_empty() {
            metadata.insert("categories".into(), json!(categories));
        }
        let mut record = json!({
            "record": "atom",
            "kind": if categories.iter().any(|category| category.contains("instruction")) { "instruction" } else { "persona" },
            "text": statement,
            "priority": PRIORITY,
            "origin": "imported",
            "created-at": time("created_at"),
            "updated-at": time("updated_at").or_else(|| time("created_at")),
            "metadata": metadata,
        });
        for (member, found) in [("id", id(&value, "id")), ("session", id(&value, "run_id"))] {
            if let Some(found) = found {
                record[member] = found.into();
            }
        }
        if !scope.is_empty() {
            record["scope"] = scope.into();
        }
        Ok(sink.record(record))
    })
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::recorder::read;
    use serde_json::json;

    #[test]
    fn memories_become_atoms_without_evidence() {
        let text = r#"{"results": [
            {"id": "1", "memory": "Likes rye bread", "user_id": "kim", "hash": "x", "created_at": "2026-01-02T03:04:05Z", "updated_at": null, "categories": ["food"], "metadata": {"a": 1}},
            {"id": "2"}]}"#;
        let read = read(Format::Mem0, "m.json", text);
        assert_eq!(
            read.records,
            [json!({"record": "atom", "kind": "persona", "text": "Likes rye bread", "priority": 60, "origin": "imported",
                    "created-at": 1_767_323_045_000_u64, "updated-at": 1_767_323_045_000_u64, "metadata": {"a": 1, "categories": ["food"]},
                    "id": "1", "scope": {"user": "kim"}})]
        );
        assert_eq!(read.problems[0].reason, "a memory without `memory`");
    }
}
