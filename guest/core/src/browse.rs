//! Browsing: the rows of a layer a page at a time, newest last.

use crate::contract::{Failure, Result, Selector};
use crate::engine::Engine;
use crate::store::failure;
use rusqlite::{Connection, Row};
use serde_json::{Value, json};

/// Rows of one page.
const MAX_LIMIT: u32 = 1_000;

/// Rows that one call looks at when it filters by words; `next` goes on from there.
const MAX_LOOKED_AT: u32 = 10_000;

impl Engine {
    /// `memory.browse`.
    pub fn browse(&self, layer: &str, filter: &Selector, after: Option<&str>, limit: u32) -> Result<String> {
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Err(Failure::invalid(format!("limit: {limit} is not 1 to {MAX_LIMIT}")));
        }
        let after: i64 = match after {
            None | Some("") => 0,
            Some(cursor) => cursor.parse().map_err(|_| Failure::invalid("after: not a cursor that `next` gave"))?,
        };
        browse(self.store.db(), layer, filter, after, limit).map(|document| document.to_string())
    }
}

/// How a layer is read: SQL whose first columns are a row number, a public id and the text that words
/// are looked for in; `{filter}` stands for the conditions.
struct Layer {
    sql: &'static str,
    document: fn(&Row<'_>) -> rusqlite::Result<Value>,
}

const SCOPED: &str = "(?2 IS NULL OR sessions.name = ?2) AND (?3 IS NULL OR scopes.user = ?3)";

fn layer(name: &str) -> Option<Layer> {
    Some(match name {
        "messages" => Layer {
            sql: "SELECT messages.id, uid, text, role, speaker, said_at, recorded_at, sessions.name, worth, batch FROM messages
                  JOIN sessions ON sessions.id = session JOIN scopes ON scopes.id = messages.scope
                  WHERE messages.id > ?1 AND {scoped} AND said_at BETWEEN ?4 AND ?5 ORDER BY messages.id LIMIT ?6",
            document: |row| {
                Ok(json!({"id": row.get::<_, String>(1)?, "text": row.get::<_, String>(2)?, "role": row.get::<_, String>(3)?,
                    "speaker": row.get::<_, Option<String>>(4)?, "said-at": row.get::<_, i64>(5)?, "recorded-at": row.get::<_, i64>(6)?,
                    "session": row.get::<_, String>(7)?, "worth": row.get::<_, bool>(8)?, "batch": row.get::<_, Option<i64>>(9)?}))
            },
        },
        "atoms" => Layer {
            sql: "SELECT atoms.id, uid, text, kind, priority, atoms.scene, origin, valid_from, valid_to, believed_from, believed_to, pinned, sessions.name, batch
                  FROM atoms JOIN sessions ON sessions.id = session JOIN scopes ON scopes.id = atoms.scope
                  WHERE atoms.id > ?1 AND {scoped} AND valid_from BETWEEN ?4 AND ?5 ORDER BY atoms.id LIMIT ?6",
            document: |row| {
                Ok(json!({"id": row.get::<_, String>(1)?, "text": row.get::<_, String>(2)?, "kind": row.get::<_, String>(3)?,
                    "priority": row.get::<_, i64>(4)?, "scene": row.get::<_, String>(5)?, "origin": row.get::<_, String>(6)?,
                    "valid-from": row.get::<_, i64>(7)?, "valid-to": row.get::<_, Option<i64>>(8)?, "believed-from": row.get::<_, i64>(9)?,
                    "believed-to": row.get::<_, Option<i64>>(10)?, "pinned": row.get::<_, bool>(11)?, "session": row.get::<_, String>(12)?,
                    "batch": row.get::<_, Option<i64>>(13)?}))
            },
        },
        "scenes" | "persona" => Layer {
            sql: if name == "scenes" { SCENES } else { PERSONAS },
            document: |row| {
                Ok(json!({"id": row.get::<_, String>(1)?, "text": row.get::<_, String>(2)?, "path": row.get::<_, String>(3)?,
                    "revision": row.get::<_, u32>(4)?, "summary": row.get::<_, String>(5)?, "heat": row.get::<_, u32>(6)?, "by": row.get::<_, String>(7)?,
                    "created-at": row.get::<_, i64>(8)?, "updated-at": row.get::<_, i64>(9)?, "archived-at": row.get::<_, Option<i64>>(10)?}))
            },
        },
        "entries" => Layer {
            sql: "SELECT offload_entries.id, uid, call_line || char(10) || summary, tool, call_id, node_id, result_ref, result_bytes, failed, score, at, sessions.name,
                  call_line, summary FROM offload_entries JOIN sessions ON sessions.id = session JOIN scopes ON scopes.id = sessions.scope
                  WHERE offload_entries.id > ?1 AND {scoped} AND at BETWEEN ?4 AND ?5 ORDER BY offload_entries.id LIMIT ?6",
            document: |row| {
                Ok(json!({"id": row.get::<_, String>(1)?, "tool": row.get::<_, String>(3)?, "call": row.get::<_, String>(12)?,
                    "summary": row.get::<_, String>(13)?, "call-id": row.get::<_, String>(4)?, "node": row.get::<_, String>(5)?,
                    "result-ref": row.get::<_, String>(6)?, "result-bytes": row.get::<_, i64>(7)?, "failed": row.get::<_, bool>(8)?,
                    "score": row.get::<_, i64>(9)?, "at": row.get::<_, i64>(10)?, "session": row.get::<_, String>(11)?}))
            },
        },
        "canvases" => Layer {
            sql: "SELECT sessions.id, sessions.name, board, updated_at FROM offload_boards
                  JOIN sessions ON sessions.id = session JOIN scopes ON scopes.id = sessions.scope
                  WHERE sessions.id > ?1 AND {scoped} AND updated_at BETWEEN ?4 AND ?5 ORDER BY sessions.id LIMIT ?6",
            document: |row| {
                let board: String = row.get(2)?;
                let board: Value = serde_json::from_str(&board).unwrap_or(Value::Null);
                Ok(json!({"id": row.get::<_, String>(1)?, "session": row.get::<_, String>(1)?, "tasks": board["tasks"], "current": board["current"],
                    "updated-at": row.get::<_, i64>(3)?}))
            },
        },
        "requests" => Layer {
            sql: "SELECT requests.id, 'r' || requests.id, body || coalesce(answer, ''), purpose, requests.state, asked_at, answered_at, requests.reason, model,
                  input_tokens, output_tokens, batch, changed FROM requests JOIN batches ON batches.id = batch
                  LEFT JOIN sessions ON sessions.id = batches.session LEFT JOIN scopes ON scopes.id = batches.scope
                  WHERE requests.id > ?1 AND {scoped} AND asked_at BETWEEN ?4 AND ?5 ORDER BY requests.id LIMIT ?6",
            document: |row| {
                let changed: String = row.get(12)?;
                Ok(json!({"id": row.get::<_, String>(1)?, "purpose": row.get::<_, String>(3)?, "state": row.get::<_, String>(4)?,
                    "asked-at": row.get::<_, i64>(5)?, "answered-at": row.get::<_, Option<i64>>(6)?, "reason": row.get::<_, String>(7)?,
                    "model": row.get::<_, String>(8)?, "input-tokens": row.get::<_, Option<i64>>(9)?, "output-tokens": row.get::<_, Option<i64>>(10)?,
                    "batch": row.get::<_, i64>(11)?, "changed": serde_json::from_str::<Value>(&changed).unwrap_or(Value::Null)}))
            },
        },
        "batches" => Layer {
            sql: "SELECT batches.id, CAST(batches.id AS TEXT), batches.reason, layer, state, stage, attempts, due_at, batches.created_at, done_at, sessions.name FROM batches
                  LEFT JOIN sessions ON sessions.id = batches.session LEFT JOIN scopes ON scopes.id = batches.scope
                  WHERE batches.id > ?1 AND {scoped} AND batches.created_at BETWEEN ?4 AND ?5 ORDER BY batches.id LIMIT ?6",
            document: |row| {
                Ok(json!({"id": row.get::<_, String>(1)?, "reason": row.get::<_, String>(2)?, "layer": row.get::<_, String>(3)?,
                    "state": row.get::<_, String>(4)?, "stage": row.get::<_, String>(5)?, "attempts": row.get::<_, u32>(6)?, "due-at": row.get::<_, i64>(7)?,
                    "created-at": row.get::<_, i64>(8)?, "done-at": row.get::<_, Option<i64>>(9)?, "session": row.get::<_, Option<String>>(10)?}))
            },
        },
        _ => return None,
    })
}

const SCENES: &str = "SELECT pages.id, uid, body, path, revision, summary, heat, author, created_at, updated_at, archived_at
    FROM pages JOIN revisions ON page = pages.id AND number = revision JOIN scopes ON scopes.id = scope
    WHERE pages.id > ?1 AND kind = 'scene' AND ?2 IS NULL AND (?3 IS NULL OR scopes.user = ?3) AND updated_at BETWEEN ?4 AND ?5 ORDER BY pages.id LIMIT ?6";

const PERSONAS: &str = "SELECT pages.id, uid, body, path, revision, summary, heat, author, created_at, updated_at, archived_at
    FROM pages JOIN revisions ON page = pages.id AND number = revision JOIN scopes ON scopes.id = scope
    WHERE pages.id > ?1 AND kind = 'persona' AND ?2 IS NULL AND (?3 IS NULL OR scopes.user = ?3) AND updated_at BETWEEN ?4 AND ?5 ORDER BY pages.id LIMIT ?6";

fn browse(db: &Connection, name: &str, filter: &Selector, after: i64, limit: u32) -> Result<Value> {
    let Some(layer) = layer(name) else {
        return Err(Failure::invalid(format!("layer: `{name}` is none of messages, atoms, scenes, persona, entries, canvases, requests, batches")));
    };
    let terms: Vec<String> = filter.query.as_deref().unwrap_or_default().split_whitespace().map(str::to_lowercase).collect();
    let filters = !terms.is_empty() || !filter.ids.is_empty();
    let rows = if filters { MAX_LOOKED_AT } else { limit };
    let clamp = |at: Option<u64>, otherwise: i64| at.map_or(otherwise, |at| i64::try_from(at).unwrap_or(i64::MAX));
    let mut query = db.prepare_cached(&layer.sql.replace("{scoped}", SCOPED)).map_err(failure)?;
    let mut found = query
        .query(rusqlite::params![after, filter.session, filter.user, clamp(filter.since, i64::MIN), clamp(filter.until, i64::MAX), rows])
        .map_err(failure)?;
    let mut items = Vec::new();
    let (mut looked_at, mut last) = (0, after);
    while let Some(row) = found.next().map_err(failure)? {
        if items.len() == limit as usize {
            break;
        }
        looked_at += 1;
        last = row.get(0).map_err(failure)?;
        let id: String = row.get(1).map_err(failure)?;
        let text: String = row.get::<_, String>(2).map_err(failure)?.to_lowercase();
        let wanted = (filter.ids.is_empty() || filter.ids.contains(&id)) && terms.iter().all(|term| text.contains(term.as_str()));
        if wanted {
            items.push((layer.document)(row).map_err(failure)?);
        }
    }
    let more = items.len() == limit as usize || looked_at == rows;
    Ok(json!({"layer": name, "items": items, "next": more.then(|| last.to_string())}))
}
