//! JSON, HTML, HTTP answers, accessibility trees.

use serde_json::Value;

use super::{Finding, Text, counted, finding, pick_lines, some_of};
use crate::offload::summary::command::shorten;

/// Larger JSON texts are not parsed; their head is read as text.
const JSON_PARSED_MAX_BYTES: usize = 512 * 1024;

/// A JSON value, or one JSON object a line.
pub(super) fn json(text: &Text<'_, '_>) -> Option<Finding<'static>> {
    let body = text.body.trim();
    if !body.starts_with(['{', '[']) || body.len() > JSON_PARSED_MAX_BYTES {
        return None;
    }
    if let Ok(value) = serde_json::from_str::<Value>(body) {
        return Some(json_value(&value));
    }
    let first = body.lines().next()?;
    let value: Value = serde_json::from_str(first).ok()?;
    if !value.is_object() {
        return None;
    }
    let found = json_value(&value);
    let lines = body.lines().count();
    Some(Finding { headline: format!("{} of JSON; first: {}", counted(lines, "line"), found.headline), ..found })
}

fn json_value(value: &Value) -> Finding<'static> {
    let mut key_lines = Vec::new();
    let mut failed = false;
    if let Some(object) = value.as_object() {
        for key in ["error", "errors", "message", "detail", "status", "title", "id", "identifier", "url", "state", "code"] {
            if let Some(found) = object.get(key).filter(|found| !found.is_null() && **found != Value::Bool(false)) {
                failed |= matches!(key, "error" | "errors");
                let shown = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
                key_lines.push(format!("{key}: {}", shorten(&shown, 160)));
            }
        }
    }
    let told = if key_lines.is_empty() { String::new() } else { format!("; {}", some_of(&key_lines, 3)) };
    finding("json", format!("{}{told}", outline(value, 2)), key_lines, failed)
}

/// Returns the outline of `value`: keys of objects, length and first element of arrays.
fn outline(value: &Value, depth: u8) -> String {
    match value {
        Value::Object(fields) => {
            let keys: Vec<String> = fields
                .iter()
                .map(|(key, inner)| match inner {
                    Value::Array(items) => format!("{key}[{}]", items.len()),
                    Value::Object(inner) if depth > 1 && inner.len() <= 6 => format!("{key}{{{}}}", inner.keys().cloned().collect::<Vec<_>>().join(",")),
                    Value::Object(inner) => format!("{key}{{{}}}", inner.len()),
                    _ => key.clone(),
                })
                .collect();
            format!("JSON {{{}}}", some_of(&keys, 14))
        }
        Value::Array(items) => match items.first() {
            Some(first) if depth > 0 => format!("JSON array of {}: {}", items.len(), outline(first, depth - 1)),
            _ => format!("JSON array of {}", items.len()),
        },
        other => shorten(&other.to_string(), 80),
    }
}

/// An HTTP answer with its status line (`curl -i`, `curl -v`, `http`).
pub(super) fn http(text: &Text<'_, '_>) -> Option<Finding<'static>> {
    let failure = text.lines().map(str::trim).find(|line| line.starts_with("curl: ("));
    if let Some(line) = failure {
        return Some(finding("http", line.to_owned(), vec![line.to_owned()], true));
    }
    let line = text.lines().map(|line| line.trim_start_matches(['<', ' '])).rfind(|line| line.starts_with("HTTP/") && line.len() < 80)?;
    let code: u16 = line.split(' ').nth(1)?.parse().ok()?;
    let body = text.body.split_once("\r\n\r\n").or_else(|| text.body.split_once("\n\n")).map_or("", |(_, body)| body.trim());
    let inner = Text { body, command: text.command };
    let told = json(&inner).or_else(|| html(&inner)).map_or_else(|| shorten(body, 100), |found| found.headline);
    let key_lines = pick_lines(text.body, |line| line.to_ascii_lowercase().starts_with("location:") || line.to_ascii_lowercase().starts_with("content-type:"));
    Some(finding("http", format!("{}; {told}", line.trim()), key_lines, code >= 400))
}

/// An HTML page.
pub(super) fn html(text: &Text<'_, '_>) -> Option<Finding<'static>> {
    let head = super::super::names::clip(text.body.trim_start(), 2_000).to_ascii_lowercase();
    let is_page = head.contains("<html") || head.contains("<!doctype") || (head.starts_with('<') && head.contains("<div"));
    if !is_page {
        return None;
    }
    let title = between(text.body, "<title", "</title>").unwrap_or_default();
    let mut headings = Vec::new();
    for level in ["<h1", "<h2"] {
        let mut rest = text.body;
        while let Some(at) = rest.find(level) {
            rest = &rest[at..];
            let close = format!("</{}>", &level[1..]);
            if let Some(heading) = between(rest, level, &close) {
                headings.push(heading);
            }
            rest = &rest[level.len()..];
            if headings.len() >= 8 {
                break;
            }
        }
    }
    let links = text.body.matches("<a ").count();
    let forms = text.body.matches("<form").count();
    let headline = format!("HTML page \"{title}\": {}, {}; {}", counted(links, "link"), counted(forms, "form"), some_of(&headings, 4));
    let key_lines = pick_lines(text.body, |line| line.contains("<form") || line.contains("<input") || line.contains("name=\""));
    Some(finding("html", headline, key_lines, false))
}

/// The text between the tag that starts with `open` and `close`, without inner tags.
fn between(text: &str, open: &str, close: &str) -> Option<String> {
    let start = text.find(open)?;
    let inner = &text[start..];
    let inner = &inner[inner.find('>')? + 1..];
    let inner = &inner[..inner.find(close)?];
    let mut plain = String::new();
    let mut in_tag = false;
    for c in inner.chars().take(400) {
        match c {
            '<' => in_tag = true,
            '>' => in_tag = false,
            c if !in_tag => plain.push(c),
            _ => {}
        }
    }
    Some(super::super::command::one_line(&plain))
}

/// A browser's accessibility tree: where the page is, what went wrong, what can be acted on.
pub(super) fn accessibility_tree(text: &Text<'_, '_>) -> Option<Finding<'static>> {
    if !text.has("RootWebArea") && !text.has("- document") && !text.has("Page URL:") {
        return None;
    }
    let outcome = text.lines().find_map(|line| line.strip_prefix("Outcome: ")).unwrap_or("").trim();
    let title = text.lines().find_map(|line| line.trim().strip_prefix("RootWebArea ")).unwrap_or("").trim();
    let acting = ["button", "link", "textbox", "combobox", "menuitem", "tab", "checkbox", "searchbox", "option", "gridcell"];
    let elements: Vec<String> = text
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with('[') && line.split(' ').nth(1).is_some_and(|word| acting.contains(&word)) && !line.contains("''"))
        .map(|line| shorten(line, 70))
        .collect();
    let failed = outcome.contains("Error");
    let told = if outcome.is_empty() { String::new() } else { format!("{outcome}; ") };
    let headline = format!("{told}page {}; {}", shorten(title, 130), counted(elements.len(), "element"));
    let key_lines = elements.into_iter().take(10).collect();
    Some(finding("accessibility tree", headline, key_lines, failed))
}
