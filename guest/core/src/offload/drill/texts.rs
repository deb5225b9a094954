//! `ref_read`: a text by lines, by characters, or what of all texts contains a word.

use super::selection::Selection;
use super::{ANSWER_MAX_CHARS, answer, number, refused, unknown};
use crate::contract::{Answer, Result};
use crate::l0::SessionId;
use crate::offload::intake::Desk;
use crate::offload::ledger::Entry;
use crate::offload::rows;
use crate::offload::summary::names::clip;
use crate::store::failure;
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Lines of a text without a range.
const DEFAULT_LINES: usize = 200;
/// Matches of one grep.
const MATCHES_MAX: usize = 40;
/// Matches that every text of many may show.
const MATCHES_A_TEXT: usize = 3;
/// Characters of a line around a match.
const MATCH_LINE_CHARS: usize = 300;

/// `ref_read`.
pub(super) fn ref_read(desk: &mut Desk<'_>, id: SessionId, arguments: &Value) -> Result<Answer> {
    let grep = arguments.get("grep").and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let path = arguments.get("ref").or_else(|| arguments.get("path")).and_then(Value::as_str);
    let Some(path) = path else {
        return match grep {
            Some(needle) => grep_all(desk, id, needle, arguments.get("node_id").and_then(Value::as_str)),
            None => Ok(refused("give a ref, or a text to grep for in all refs")),
        };
    };
    let path = path.trim().trim_end_matches(".gz");
    if !may_read(desk.store.db(), id, path)? {
        return Ok(refused(&format!("there is no {path} in this conversation; node_read lists the refs of a node")));
    }
    let content = rows::read_text(desk.store.db(), desk.store.disk(), path)?;
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

/// Greps every text of the session, or of the nodes that `named` selects, the newest first.
fn grep_all(desk: &mut Desk<'_>, id: SessionId, needle: &str, named: Option<&str>) -> Result<Answer> {
    let session = desk.sessions.get(desk.store.db(), id)?;
    let selection = match named {
        Some(named) => match Selection::parse(named, &session.contexts) {
            Some(selection) => Some(selection),
            None => return Ok(refused(&unknown(named))),
        },
        None => None,
    };
    let mut of_entries: BTreeMap<&str, &Entry> = BTreeMap::new();
    for entry in session.ledger.entries() {
        of_entries.insert(&entry.result_ref, entry);
        if let Some(path) = &entry.arguments_ref {
            of_entries.insert(path, entry);
        }
    }
    let mut paths = rows::paths(desk.store.db(), id)?;
    paths.retain(|path| selection.as_ref().is_none_or(|selection| of_entries.get(path.as_str()).is_some_and(|entry| selection.holds(entry))));
    paths.sort_by_key(|path| Reverse(of_entries.get(path.as_str()).map(|entry| entry.ordinal)));
    let mut found: Vec<(&str, Vec<(usize, String)>)> = Vec::new();
    for path in &paths {
        let lines = matches(&rows::read_text(desk.store.db(), desk.store.disk(), path)?, needle);
        if !lines.is_empty() {
            found.push((path.as_str(), lines));
        }
    }
    let total: usize = found.iter().map(|(_, lines)| lines.len()).sum();
    // A text full of matches must not hide the others.
    let each = (MATCHES_MAX / found.len().max(1)).max(MATCHES_A_TEXT);
    let mut text = String::new();
    let mut shown = Vec::new();
    for (path, lines) in &found {
        let node = of_entries.get(path).map_or("", |entry| entry.node_id.as_str());
        for (number, line) in lines.iter().take(each) {
            if shown.len() < MATCHES_MAX && text.len() < ANSWER_MAX_CHARS {
                text.push_str(&format!("{path}:{number}: {line} ({node})\n"));
                shown.push(json!({"ref": path, "line": number, "text": line, "node_id": node}));
            }
        }
    }
    let more = if total > shown.len() {
        format!("; {} are shown, the newest texts first; grep for something longer, or in one ref", shown.len())
    } else {
        String::new()
    };
    let head = format!("{total} lines in {} of {} texts contain it{more}\n", found.len(), paths.len());
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
