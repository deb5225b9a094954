//! Tools that lead from what a context shows back to the exact bytes.
//!
//! `canvas_read` shows a task, `node_read` the calls of a node with their refs, `ref_read` a text by
//! lines, by characters or by grep; without a ref it greps every text of the session.

use super::canvas::draw;
use super::intake::{Desk, find_session};
use super::ledger::Entry;
use super::refs;
use super::rows;
use super::session::Session;
use super::summary::command::shorten;
use super::summary::names::clip;
use crate::contract::{Answer, Invocation, Result};
use crate::l0::SessionId;
use crate::store::failure;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

/// An answer is at most this long, so that drilling down does not fill the context again.
const ANSWER_MAX_CHARS: usize = 12_000;
/// Lines of a text without a range.
const DEFAULT_LINES: usize = 200;
/// Matches of one grep.
const MATCHES_MAX: usize = 40;
/// Characters of a line around a match.
const MATCH_LINE_CHARS: usize = 300;
/// A drawn canvas in an answer.
const CANVAS_ANSWER_CHARS: usize = 8_000;

/// Returns the tools' names, descriptions and parameters as `tools.list` wants them.
pub fn tools() -> Vec<Value> {
    vec![
        json!({
            "name": "canvas_read",
            "description": "Shows a task of this session as a Mermaid flowchart whose nodes carry ids, and lists the tasks. Use it to see what was done, what is open and which way failed.",
            "parameters": {"type": "object", "properties": {
                "task": {"type": "integer", "minimum": 1, "description": "Number of the task; the running one if absent."},
            }, "additionalProperties": false},
        }),
        json!({
            "name": "node_read",
            "description": "Lists the tool calls of a node (`001-N3`) with their summaries and refs.",
            "parameters": {"type": "object", "required": ["node_id"], "properties": {
                "node_id": {"type": "string"},
                "from": {"type": "integer", "minimum": 0, "description": "Skip so many calls."},
            }, "additionalProperties": false},
        }),
        json!({
            "name": "ref_read",
            "description": "Reads an offloaded text exactly: all of it, a range of lines, a range of characters, or the lines that contain a text. Without `ref`, greps every offloaded text of this session.",
            "parameters": {"type": "object", "properties": {
                "ref": {"type": "string", "description": "As placeholders show it: refs/<hex>.md"},
                "from_line": {"type": "integer", "minimum": 1},
                "lines": {"type": "integer", "minimum": 1},
                "from_char": {"type": "integer", "minimum": 0, "description": "For texts with very long lines."},
                "chars": {"type": "integer", "minimum": 1},
                "grep": {"type": "string", "description": "Plain text, upper and lower case alike."},
            }, "additionalProperties": false},
        }),
    ]
}

/// Returns whether `name` is one of these tools, or the reference's name for one.
pub fn is_tool(name: &str) -> bool {
    matches!(name, "canvas_read" | "node_read" | "ref_read" | "tdai_read_cos")
}

/// Runs a tool. What the caller got wrong comes back as an answer with `is_error`.
pub fn call(desk: &mut Desk<'_>, invocation: &Invocation) -> Result<Answer> {
    let arguments: Value = match invocation.arguments_json.trim() {
        "" => json!({}),
        text => match serde_json::from_str(text) {
            Ok(value @ Value::Object(_)) => value,
            _ => return Ok(refused("the arguments are not a JSON object")),
        },
    };
    let Some(id) = find_session(desk.store.db(), &invocation.scope)? else { return Ok(refused("nothing was offloaded in this session")) };
    match invocation.name.as_str() {
        "canvas_read" => canvas_read(desk, id, &arguments),
        "node_read" => node_read(desk, id, &arguments),
        _ => ref_read(desk, id, &arguments),
    }
}

fn canvas_read(desk: &mut Desk<'_>, id: SessionId, arguments: &Value) -> Result<Answer> {
    let session = desk.sessions.get(desk.store.db(), id)?;
    let number = match number(arguments, "task") {
        Some(task) => u32::try_from(task).unwrap_or(0),
        None => session.board.current,
    };
    let Some(task) = session.board.tasks.iter().find(|task| task.number == number) else {
        return Ok(refused(&format!("there is no task {number}; {}", tasks_line(session))));
    };
    let running = number == session.board.current;
    let drawing = draw(task, session.ledger.entries(), running, &session.notes, CANVAS_ANSWER_CHARS);
    let nodes: Vec<Value> = drawing
        .nodes
        .iter()
        .map(|node| json!({"id": node.id, "label": node.label, "status": node.status.word(), "summary": node.summary, "covers": node.covers, "calls": node.calls}))
        .collect();
    let text = format!("{}\n{}", drawing.text, tasks_line(session));
    Ok(answer(text, json!({"task": number, "goal": task.goal, "nodes": nodes})))
}

fn tasks_line(session: &Session) -> String {
    let tasks: Vec<String> = session.board.tasks.iter().map(|task| format!("{:03} {}", task.number, shorten(&task.goal, 80))).collect();
    format!("tasks: {}", tasks.join("; "))
}

fn node_read(desk: &mut Desk<'_>, id: SessionId, arguments: &Value) -> Result<Answer> {
    let Some(node) = arguments.get("node_id").and_then(Value::as_str) else { return Ok(refused("node_id is missing")) };
    let session = desk.sessions.get(desk.store.db(), id)?;
    // A node that a correction emptied still leads to its calls.
    let calls: Vec<&Entry> = session.ledger.entries().iter().filter(|entry| entry.node_id == node || entry.placed_node == node).collect();
    if calls.is_empty() {
        return Ok(refused(&format!("there is no node {node}; canvas_read shows the nodes")));
    }
    let skipped = number(arguments, "from").unwrap_or(0) as usize;
    let mut text = format!("{node}: {} calls\n", calls.len());
    let mut shown = Vec::new();
    for (at, entry) in calls.iter().enumerate().skip(skipped) {
        let arguments = entry.arguments_ref.as_ref().map_or(String::new(), |path| format!(" | arguments: {path}"));
        let line = format!(
            "{}. {} -> {} | ref: {} ({} bytes){arguments}\n",
            at + 1,
            entry.call_line,
            if entry.summary.is_empty() { "no output" } else { &entry.summary },
            entry.result_ref,
            entry.result_bytes
        );
        if text.len() + line.len() > ANSWER_MAX_CHARS {
            text.push_str(&format!("more: node_read with from={at}\n"));
            break;
        }
        text.push_str(&line);
        shown.push(
            json!({"entry": entry.uid, "tool_call_id": entry.call_id, "tool_call": entry.call_line, "summary": entry.summary, "result_ref": entry.result_ref,
                          "arguments_ref": entry.arguments_ref, "score": entry.score, "failed": entry.failed}),
        );
    }
    Ok(answer(text, json!({"node_id": node, "calls": calls.len(), "entries": shown})))
}

fn ref_read(desk: &mut Desk<'_>, id: SessionId, arguments: &Value) -> Result<Answer> {
    let grep = arguments.get("grep").and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let path = arguments.get("ref").or_else(|| arguments.get("path")).and_then(Value::as_str);
    let Some(path) = path else {
        return match grep {
            Some(needle) => grep_all(desk, id, needle),
            None => Ok(refused("give a ref, or a text to grep for in all refs")),
        };
    };
    let path = path.trim().trim_end_matches(".gz");
    if !may_read(desk.store.db(), id, path)? {
        return Ok(refused(&format!("there is no {path} in this conversation; node_read lists the refs of a node")));
    }
    let content = refs::read(desk.store.disk(), path)?;
    let lines = content.lines().count();
    let about = format!("{path}: {lines} lines, {} bytes\n", content.len());
    if let Some(needle) = grep {
        let found = matches(&content, needle);
        let total = found.len();
        let mut text = format!("{about}{total} lines contain it\n");
        for (number, line) in found.iter().take(MATCHES_MAX) {
            text.push_str(&format!("{number}: {line}\n"));
        }
        if total > MATCHES_MAX {
            text.push_str(&format!("{} more; grep for something longer\n", total - MATCHES_MAX));
        }
        let shown: Vec<Value> = found.iter().take(MATCHES_MAX).map(|(number, line)| json!({"line": number, "text": line})).collect();
        return Ok(answer(text, json!({"ref": path, "matches": shown, "total": total})));
    }
    if let Some(from) = number(arguments, "from_char") {
        let from = from as usize;
        let chars = number(arguments, "chars").map_or(ANSWER_MAX_CHARS, |chars| chars as usize).min(ANSWER_MAX_CHARS);
        let piece: String = content.chars().skip(from).take(chars).collect();
        return Ok(answer(
            format!("{about}characters {from} to {}\n{piece}", from + piece.chars().count()),
            json!({"ref": path, "from_char": from, "text": piece}),
        ));
    }
    let first = number(arguments, "from_line").unwrap_or(1).max(1) as usize;
    let wanted = number(arguments, "lines").map_or(DEFAULT_LINES, |lines| lines as usize);
    let mut piece = String::new();
    let mut last = first - 1;
    let mut cut = false;
    for line in content.split_inclusive('\n').skip(first - 1).take(wanted) {
        if piece.len() + line.len() > ANSWER_MAX_CHARS {
            if piece.is_empty() {
                piece.push_str(clip(line, ANSWER_MAX_CHARS));
                cut = true;
                last += 1;
            }
            break;
        }
        piece.push_str(line);
        last += 1;
    }
    let more = match (cut, last < lines) {
        (true, _) => "\nthe line goes on: ref_read with from_char".to_owned(),
        (false, true) => format!("\nmore: ref_read with from_line={}", last + 1),
        (false, false) => String::new(),
    };
    Ok(answer(
        format!("{about}lines {first} to {last}\n{piece}{more}"),
        json!({"ref": path, "from_line": first, "to_line": last, "lines": lines, "text": piece}),
    ))
}

fn grep_all(desk: &mut Desk<'_>, id: SessionId, needle: &str) -> Result<Answer> {
    let session = desk.sessions.get(desk.store.db(), id)?;
    let mut named: std::collections::BTreeMap<&str, &Entry> = std::collections::BTreeMap::new();
    for entry in session.ledger.entries() {
        named.insert(&entry.result_ref, entry);
        if let Some(path) = &entry.arguments_ref {
            named.insert(path, entry);
        }
    }
    let newest_first = |path: &String| std::cmp::Reverse(named.get(path.as_str()).map(|entry| entry.ordinal));
    let mut paths = rows::paths(desk.store.db(), id)?;
    paths.sort_by_key(newest_first);
    let mut text = String::new();
    let mut shown = Vec::new();
    let mut total = 0;
    for path in &paths {
        let content = refs::read(desk.store.disk(), path)?;
        for (number, line) in matches(&content, needle) {
            total += 1;
            if shown.len() < MATCHES_MAX && text.len() < ANSWER_MAX_CHARS {
                let node = named.get(path.as_str()).map_or("", |entry| entry.node_id.as_str());
                text.push_str(&format!("{path}:{number}: {line} ({node})\n"));
                shown.push(json!({"ref": path, "line": number, "text": line, "node_id": node}));
            }
        }
    }
    let head = format!("{total} lines in {} texts contain it{}\n", paths.len(), if total > shown.len() { "; the newest are shown" } else { "" });
    Ok(answer(head + &text, json!({"matches": shown, "total": total})))
}

/// Returns the lines of `content` that contain `needle` without regard to case, or, if none does,
/// those that contain all of its words; with their numbers, cut around the match.
fn matches(content: &str, needle: &str) -> Vec<(usize, String)> {
    let needle = needle.trim().to_lowercase();
    let mut exact = Vec::new();
    let mut loose = Vec::new();
    let words: Vec<&str> = needle.split_whitespace().collect();
    for (at, line) in content.lines().enumerate() {
        let lower = line.to_lowercase();
        if let Some(start) = lower.find(&needle) {
            exact.push((at + 1, around(line, start)));
        } else if exact.is_empty() && words.len() > 1 && words.iter().all(|word| lower.contains(word)) {
            loose.push((at + 1, around(line, 0)));
        }
    }
    if exact.is_empty() { loose } else { exact }
}

fn around(line: &str, start: usize) -> String {
    if line.len() <= MATCH_LINE_CHARS {
        return line.to_owned();
    }
    // The offset is of the lower-case line; near enough to choose a window.
    let mut from = start.saturating_sub(MATCH_LINE_CHARS / 3).min(line.len());
    while !line.is_char_boundary(from) {
        from -= 1;
    }
    let piece = clip(&line[from..], MATCH_LINE_CHARS);
    format!("{}{piece}{}", if from > 0 { "…" } else { "" }, if from + piece.len() < line.len() { "…" } else { "" })
}

/// Returns whether a session may read a text: one of the sessions of its scope points at it.
fn may_read(db: &Connection, id: SessionId, path: &str) -> Result<bool> {
    db.prepare_cached(
        "SELECT 1 FROM offload_uses JOIN sessions ON sessions.id = offload_uses.session
         WHERE path = ?2 AND sessions.scope = (SELECT scope FROM sessions WHERE id = ?1)",
    )
    .and_then(|mut query| query.exists(params![id.0, path]))
    .map_err(failure)
}

fn number(arguments: &Value, key: &str) -> Option<u64> {
    let value = arguments.get(key)?;
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn answer(text: String, structured: Value) -> Answer {
    Answer { text, structured_json: structured.to_string(), is_error: false }
}

fn refused(text: &str) -> Answer {
    Answer { text: text.to_owned(), structured_json: json!({"error": text}).to_string(), is_error: true }
}
