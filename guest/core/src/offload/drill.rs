//! Tools that lead from what a context shows back to the exact bytes.
//!
//! `canvas_read` shows a task, `node_read` the calls of a node, of several or of a task with their refs, `ref_read` a
//! text by lines, by characters or by grep; without a ref it greps every text of the session.

mod selection;
mod texts;

use super::canvas::draw;
use super::intake::{Desk, find_session};
use super::ledger::Entry;
use super::session::Session;
use super::summary::command::shorten;
use crate::contract::{Answer, Invocation, Result};
use crate::l0::SessionId;
use selection::Selection;
use serde_json::{Value, json};
use texts::ref_read;

/// An answer is at most this long, so that drilling down does not fill the context again.
const ANSWER_MAX_CHARS: usize = 12_000;
/// More calls than this are listed on short lines, so that a page holds more of them.
const CALLS_IN_FULL: usize = 24;
/// Characters of a call, and of its summary, on a short line.
const SHORT_CALL_CHARS: usize = 64;
const SHORT_SUMMARY_CHARS: usize = 56;
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
            "description": "Lists the tool calls of a node (`001-N3`), of several (`001-N1..N4,N6`, as a folded node shows them) or of a task (`001`) with their summaries and refs.",
            "parameters": {"type": "object", "required": ["node_id"], "properties": {
                "node_id": {"type": "string"},
                "grep": {"type": "string", "description": "Only calls whose command, summary or names contain this text."},
                "from": {"type": "integer", "minimum": 0, "description": "Skip so many calls."},
            }, "additionalProperties": false},
        }),
        json!({
            "name": "ref_read",
            "description": "Reads an offloaded text exactly: all of it, a range of lines, a range of characters, or the lines that contain a text. Without `ref`, greps every offloaded text of this session, or of the nodes in `node_id`.",
            "parameters": {"type": "object", "properties": {
                "ref": {"type": "string", "description": "As placeholders show it: refs/<hex>.md"},
                "node_id": {"type": "string", "description": "For grep: only texts of these nodes, as node_read takes them."},
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
    let Some(named) = arguments.get("node_id").and_then(Value::as_str) else { return Ok(refused("node_id is missing")) };
    let session = desk.sessions.get(desk.store.db(), id)?;
    let Some(selection) = Selection::parse(named, &session.contexts) else { return Ok(refused(&unknown(named))) };
    let grep = arguments.get("grep").and_then(Value::as_str).map(|text| text.trim().to_lowercase()).filter(|text| !text.is_empty());
    let on_node: Vec<&Entry> = session.ledger.entries().iter().filter(|entry| selection.holds(entry)).collect();
    if on_node.is_empty() {
        return Ok(refused(&unknown(named)));
    }
    let calls: Vec<&Entry> = on_node.iter().copied().filter(|entry| grep.as_ref().is_none_or(|needle| mentions(entry, needle))).collect();
    let skipped = number(arguments, "from").unwrap_or(0) as usize;
    let mut text = match grep {
        Some(_) => format!("{named}: {} of {} calls\n", calls.len(), on_node.len()),
        None => format!("{named}: {} calls\n", calls.len()),
    };
    let short = calls.len() > CALLS_IN_FULL;
    let mut shown = Vec::new();
    let mut node = "";
    for (at, entry) in calls.iter().enumerate().skip(skipped) {
        let mut line = call_line(at, entry, short);
        if selection.is_wide() && entry.node_id != node {
            line.insert_str(0, &format!("{}\n", entry.node_id));
        }
        node = &entry.node_id;
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
    Ok(answer(text, json!({"node_id": named, "calls": calls.len(), "entries": shown})))
}

fn call_line(at: usize, entry: &Entry, short: bool) -> String {
    let summary = if entry.summary.is_empty() { "no output" } else { &entry.summary };
    if short {
        return format!("{}. {} -> {} | {}\n", at + 1, shorten(&entry.call_line, SHORT_CALL_CHARS), shorten(summary, SHORT_SUMMARY_CHARS), entry.result_ref);
    }
    let arguments = entry.arguments_ref.as_ref().map_or(String::new(), |path| format!(" | arguments: {path}"));
    format!("{}. {} -> {summary} | ref: {} ({} bytes){arguments}\n", at + 1, entry.call_line, entry.result_ref, entry.result_bytes)
}

/// Returns whether a call is about `needle`, which is in lower case.
fn mentions(entry: &Entry, needle: &str) -> bool {
    let texts = [&entry.call_line, &entry.summary, &entry.digest].into_iter().chain(entry.target.as_ref()).chain(&entry.names_used);
    texts.into_iter().any(|text| text.to_lowercase().contains(needle))
}

fn unknown(named: &str) -> String {
    format!("there is no node {named}; canvas_read shows the nodes, and node_read takes `001-N3`, `001-N1..N4,N6` or the task `001`")
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
