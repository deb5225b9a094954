//! `memory.trace` of short-term memory: from a placeholder, an entry or a node of a canvas to the stored texts.

use super::refs::REFS_DIR;
use super::rows;
use crate::calendar::Calendar;
use crate::contract::{Result, Scope};
use crate::disk::Disk;
use crate::l0::ScopeId;
use crate::store::failure;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

/// Characters of a text that a trace shows; `ref_read` reads on from there.
const TEXT_MAX_CHARS: usize = 12_000;
/// Entries of one node, or of one text, that a trace lists.
const ENTRIES_MAX: usize = 200;

/// Who asks, if it is not the owner of the space.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    /// Only what belongs to this scope is there.
    pub row: ScopeId,
    /// Its session, in which nodes are looked for: each session has a node `001-N1`.
    pub scope: &'a Scope,
}

/// Returns what an entry (`o_…`), a text (`refs/….md`) or a node (`001-N1`) is and rests on; nothing if there is none.
pub fn trace(db: &Connection, disk: &dyn Disk, calendar: &Calendar, asker: Option<Asker<'_>>, id: &str) -> Result<Option<Value>> {
    if id.starts_with(REFS_DIR) {
        return text(db, disk, calendar, asker, id.trim_end_matches(".gz"));
    }
    if is_node_id(id) {
        return node(db, disk, calendar, asker, id);
    }
    let Some(entry) = entries(db, asker, "uid = ?1", id)?.pop() else { return Ok(None) };
    let mut document = entry.document(calendar);
    document["rests-on"] = entry.texts(db, disk, true)?;
    Ok(Some(document))
}

/// Returns whether `id` looks like `001-N1`.
fn is_node_id(id: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    id.split_once("-N").is_some_and(|(task, node)| is_number(task) && is_number(node))
}

fn node(db: &Connection, disk: &dyn Disk, calendar: &Calendar, asker: Option<Asker<'_>>, id: &str) -> Result<Option<Value>> {
    let mut calls = Vec::new();
    // A placeholder names the node on which its call was placed first.
    for entry in entries(db, asker, "(node_id = ?1 OR placed_node = ?1) AND (?3 IS NULL OR sessions.name = ?3)", id)? {
        let mut document = entry.document(calendar);
        document["rests-on"] = entry.texts(db, disk, false)?;
        calls.push(document);
    }
    Ok((!calls.is_empty()).then(|| json!({"id": id, "layer": "node", "rests-on": calls})))
}

fn text(db: &Connection, disk: &dyn Disk, calendar: &Calendar, asker: Option<Asker<'_>>, path: &str) -> Result<Option<Value>> {
    let is_there = db
        .prepare_cached("SELECT 1 FROM offload_uses JOIN sessions ON sessions.id = session WHERE path = ?1 AND (?2 IS NULL OR scope = ?2)")
        .and_then(|mut query| query.exists(params![path, asker.map(|asker| asker.row.0)]))
        .map_err(failure)?;
    if !is_there {
        return Ok(None);
    }
    let Some(mut document) = text_document(db, disk, path, true)? else { return Ok(None) };
    let within = "session IN (SELECT session FROM offload_uses WHERE path = ?1) AND (result_ref = ?1 OR arguments_ref = ?1)";
    document["built-on-it"] = entries(db, asker, within, path)?.iter().map(|entry| entry.document(calendar)).collect();
    Ok(Some(document))
}

fn text_document(db: &Connection, disk: &dyn Disk, path: &str, whole: bool) -> Result<Option<Value>> {
    let Some(stored) = rows::stored_ref(db, path)? else { return Ok(None) };
    let mut document = json!({"id": path, "layer": "ref", "bytes": stored.bytes, "sha256": stored.sha256});
    if whole {
        match rows::read_text(db, disk, path) {
            Ok(content) => {
                let shown: String = content.chars().take(TEXT_MAX_CHARS).collect();
                document["cut"] = (shown.len() < content.len()).into();
                document["text"] = shown.into();
            }
            // The way down is right all the same.
            Err(refused) => document["unreadable"] = refused.message.into(),
        }
    }
    Ok(Some(document))
}

struct Row {
    document: Value,
    at: u64,
    result_ref: String,
    arguments_ref: Option<String>,
}

impl Row {
    fn document(&self, calendar: &Calendar) -> Value {
        let mut document = self.document.clone();
        document["at"] = calendar.iso(self.at).into();
        document
    }

    fn texts(&self, db: &Connection, disk: &dyn Disk, whole: bool) -> Result<Value> {
        let mut texts = Vec::new();
        for (kind, path) in [("result", Some(&self.result_ref)), ("arguments", self.arguments_ref.as_ref())] {
            let Some(path) = path else { continue };
            let mut document = text_document(db, disk, path, whole)?.unwrap_or_else(|| json!({"id": path, "layer": "ref", "expired": true}));
            document["kind"] = kind.into();
            texts.push(document);
        }
        Ok(texts.into())
    }
}

/// Returns the entries that `condition` on `?1` selects, the oldest first.
fn entries(db: &Connection, asker: Option<Asker<'_>>, condition: &str, id: &str) -> Result<Vec<Row>> {
    let sql = format!(
        "SELECT uid, sessions.name, tool, call_line, summary, node_id, call_id, result_bytes, failed, score, result_ref, arguments_ref, at
           FROM offload_entries JOIN sessions ON sessions.id = session
          WHERE {condition} AND (?2 IS NULL OR scope = ?2) ORDER BY offload_entries.id LIMIT ?4"
    );
    let session = asker.map(|asker| if asker.scope.session.is_empty() { "default" } else { &asker.scope.session });
    db.prepare_cached(&sql)
        .and_then(|mut query| {
            query
                .query_map(params![id, asker.map(|asker| asker.row.0), session, ENTRIES_MAX as i64], |row| {
                    let text = |place| row.get::<_, String>(place);
                    let document = json!({
                        "id": text(0)?, "layer": "entry", "session": text(1)?, "tool": text(2)?, "call": text(3)?, "summary": text(4)?, "node": text(5)?,
                        "call-id": text(6)?, "result-bytes": row.get::<_, i64>(7)?, "failed": row.get::<_, bool>(8)?, "score": row.get::<_, i64>(9)?,
                    });
                    Ok(Row { document, result_ref: text(10)?, arguments_ref: row.get(11)?, at: row.get(12)? })
                })?
                .collect()
        })
        .map_err(failure)
}
