//! Content parts: the text of a message that comes as a JSON array.

use serde_json::Value;

/// Returns the text of `content`, a JSON array of parts: texts joined by line breaks, `[image]` and
/// `[file]` for what is not text; tool calls and hidden reasoning are not part of what was said.
/// Content that is not such an array is returned as it is: it is evidence all the same.
pub fn text(content: &str) -> String {
    match serde_json::from_str::<Value>(content) {
        Ok(Value::Array(parts)) => parts.iter().filter_map(part).collect::<Vec<_>>().join("\n"),
        Ok(Value::String(text)) => text,
        Ok(single @ Value::Object(_)) => part(&single).unwrap_or_default(),
        _ => content.to_owned(),
    }
}

fn part(part: &Value) -> Option<String> {
    if let Value::String(text) = part {
        return Some(text.clone());
    }
    let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "tool_use" | "tool_call" | "toolCall" | "function_call" | "thinking" | "redacted_thinking" | "reasoning" => None,
        "image" | "image_url" | "input_image" => Some("[image]".into()),
        "file" | "input_file" | "document" | "audio" | "input_audio" | "video" => Some("[file]".into()),
        // A tool result holds text or parts again; one level is what hosts write.
        _ => match part.get("text").or_else(|| part.get("content")) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Array(inner)) => Some(inner.iter().filter_map(|item| item.get("text").and_then(Value::as_str)).collect::<Vec<_>>().join("\n")),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_in_both_directions() {
        for (content, said) in [
            (r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#, "a\nb"),
            (r#"[{"type":"image","data":"AAAA"},{"type":"text","text":"look"}]"#, "[image]\nlook"),
            (r#"[{"type":"thinking","thinking":"hm"},{"type":"toolCall","name":"x"},{"type":"text","text":"done"}]"#, "done"),
            (r#"[{"type":"tool_result","content":[{"type":"text","text":"42"}]}]"#, "42"),
            (r#"["a","b"]"#, "a\nb"),
            (r#"[{"type":"text","text":"broken"#, r#"[{"type":"text","text":"broken"#),
            ("not json at all", "not json at all"),
        ] {
            assert_eq!(text(content), said);
        }
    }
}
