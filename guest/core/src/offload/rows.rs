//! Rows of the offload tables.

use super::assemble::RefKind;
use super::canvas::{Board, NodeNote, Status};
use super::ledger::{Entry, Ledger};
use super::refs;
use super::summary::command::Intent;
use super::token_estimate::Calibration;
use crate::contract::{Instant, Result};
use crate::disk::Disk;
use crate::l0::{SessionId, uid};
use crate::store::failure;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use std::collections::BTreeMap;

/// A stored text as its row tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRef {
    /// Path relative to the data directory.
    pub path: String,
    /// SHA-256 of the content in hex.
    pub sha256: String,
    /// Bytes of the content.
    pub bytes: u64,
    /// Bytes of the file; 0 while there is none.
    pub disk_bytes: u64,
    /// The text itself, where its row keeps it until it has a file.
    pub content: Option<String>,
}

impl RefKind {
    /// Returns the word in the rows.
    pub fn word(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Arguments => "arguments",
            Self::Reasoning => "reasoning",
            Self::Said => "said",
        }
    }

    /// Returns the title in the file's header.
    pub fn title(self) -> &'static str {
        match self {
            Self::Result => "Tool Result",
            Self::Arguments => "Tool Arguments",
            Self::Reasoning => "Reasoning",
            Self::Said => "Message",
        }
    }
}

/// Returns the entries of a session in the order of delivery.
pub fn ledger(db: &Connection, session: SessionId) -> Result<Ledger> {
    let mut query = db
        .prepare_cached(
            "SELECT ordinal, call_id, result_print, result_bytes, node_id, placed_node, call_line, intent, target, result_ref, arguments_ref, summary, digest, failed, score,
                    names_used, tool, uid, at, shown
             FROM offload_entries WHERE session = ?1 ORDER BY ordinal",
        )
        .map_err(failure)?;
    let entries = query
        .query_map([session.0], |row| {
            let names: String = row.get(15)?;
            let intent: String = row.get(7)?;
            Ok(Entry {
                ordinal: row.get(0)?,
                call_id: row.get(1)?,
                result_print: row.get::<_, i64>(2)? as u64,
                result_bytes: row.get(3)?,
                node_id: row.get(4)?,
                placed_node: row.get(5)?,
                call_line: row.get(6)?,
                intent: Intent::of_word(&intent),
                target: row.get(8)?,
                result_ref: row.get(9)?,
                arguments_ref: row.get(10)?,
                summary: row.get(11)?,
                digest: row.get(12)?,
                failed: row.get(13)?,
                score: row.get(14)?,
                // The column is written by `insert_entry` only.
                names_used: serde_json::from_str(&names).unwrap_or_default(),
                tool: row.get(16)?,
                uid: row.get(17)?,
                at_ms: row.get(18)?,
                shown: row.get(19)?,
            })
        })
        .map_err(failure)?;
    let mut ledger = Ledger::default();
    for entry in entries {
        ledger.push(entry.map_err(failure)?);
    }
    Ok(ledger)
}

/// Returns the public id of an entry.
pub fn entry_uid(session: SessionId, call_id: &str, result_print: u64) -> String {
    uid("o_", &[&session.0.to_be_bytes(), call_id.as_bytes(), &result_print.to_be_bytes()])
}

/// Stores an entry, with the part of its result that a model would be shown.
pub fn insert_entry(tx: &Transaction<'_>, session: SessionId, entry: &Entry, excerpt: &str) -> Result<()> {
    let names = serde_json::to_string(&entry.names_used).expect("strings serialize");
    tx.prepare_cached(
        "INSERT INTO offload_entries (uid, session, ordinal, call_id, result_print, result_bytes, node_id, placed_node, tool, call_line, intent, target, result_ref,
                                      arguments_ref, summary, summary_by, digest, failed, score, names_used, at, excerpt)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, 'rules', ?16, ?17, ?18, ?19, ?20, ?21)",
    )
    .and_then(|mut insert| {
        insert.execute(params![
            entry.uid,
            session.0,
            entry.ordinal,
            entry.call_id,
            entry.result_print as i64,
            entry.result_bytes,
            entry.node_id,
            entry.placed_node,
            entry.tool,
            entry.call_line,
            entry.intent.word(),
            entry.target,
            entry.result_ref,
            entry.arguments_ref,
            entry.summary,
            entry.digest,
            entry.failed,
            entry.score,
            names,
            entry.at_ms,
            excerpt
        ])
    })
    .map(|_| ())
    .map_err(failure)
}

/// Keeps the summary that a context shows for the first time.
pub fn freeze_summary(tx: &Transaction<'_>, session: SessionId, ordinal: u32, summary: &str) -> Result<()> {
    tx.prepare_cached("UPDATE offload_entries SET shown = ?3 WHERE session = ?1 AND ordinal = ?2 AND shown IS NULL")
        .and_then(|mut update| update.execute(params![session.0, ordinal, summary]))
        .map(|_| ())
        .map_err(failure)
}

/// Returns the row of a stored text, without the text.
pub fn stored_ref(db: &Connection, path: &str) -> Result<Option<StoredRef>> {
    db.prepare_cached("SELECT path, sha256, bytes, disk_bytes FROM offload_refs WHERE path = ?1")
        .and_then(|mut query| {
            query
                .query_row([path], |row| Ok(StoredRef { path: row.get(0)?, sha256: row.get(1)?, bytes: row.get(2)?, disk_bytes: row.get(3)?, content: None }))
                .optional()
        })
        .map_err(failure)
}

/// Stores the row of a text whose file is durable, or which the row itself keeps.
pub fn insert_ref(tx: &Transaction<'_>, stored: &StoredRef, at: Instant) -> Result<()> {
    tx.prepare_cached("INSERT INTO offload_refs (path, sha256, bytes, disk_bytes, created_at, content) VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING")
        .and_then(|mut insert| insert.execute(params![stored.path, stored.sha256, stored.bytes, stored.disk_bytes, at as i64, stored.content]))
        .map(|_| ())
        .map_err(failure)
}

/// Returns a stored text exactly, from its row or its file.
pub fn read_text(db: &Connection, disk: &dyn Disk, path: &str) -> Result<String> {
    let kept: Option<Option<String>> = db
        .prepare_cached("SELECT content FROM offload_refs WHERE path = ?1")
        .and_then(|mut query| query.query_row([path], |row| row.get(0)).optional())
        .map_err(failure)?;
    match kept.flatten() {
        Some(content) => Ok(content),
        None => refs::read(disk, path),
    }
}

/// Notes that a session points at a text.
pub fn use_ref(tx: &Transaction<'_>, session: SessionId, path: &str, kind: RefKind, call_id: &str, at: Instant) -> Result<()> {
    tx.prepare_cached(
        "INSERT INTO offload_uses (session, path, kind, call_id, at) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO UPDATE SET at = max(at, excluded.at)",
    )
    .and_then(|mut insert| insert.execute(params![session.0, path, kind.word(), call_id, at as i64]))
    .map(|_| ())
    .map_err(failure)
}

/// Returns the paths that a session may read, in their order.
pub fn paths(db: &Connection, session: SessionId) -> Result<Vec<String>> {
    db.prepare_cached("SELECT DISTINCT path FROM offload_uses WHERE session = ?1 ORDER BY path")
        .and_then(|mut query| query.query_map([session.0], |row| row.get(0))?.collect())
        .map_err(failure)
}

/// Returns the board of a session.
pub fn board(db: &Connection, session: SessionId) -> Result<Board> {
    let json: Option<String> = db
        .prepare_cached("SELECT board FROM offload_boards WHERE session = ?1")
        .and_then(|mut query| query.query_row([session.0], |row| row.get(0)).optional())
        .map_err(failure)?;
    // The column is written by `store_board` only; a board that an older build wrote starts anew.
    Ok(json.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default())
}

/// Stores the board of a session.
pub fn store_board(tx: &Transaction<'_>, session: SessionId, board: &Board, at: Instant) -> Result<()> {
    let json = serde_json::to_string(board).expect("a board serializes");
    tx.prepare_cached(
        "INSERT INTO offload_boards (session, board, updated_at) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET board = excluded.board, updated_at = excluded.updated_at",
    )
    .and_then(|mut insert| insert.execute(params![session.0, json, at as i64]))
    .map(|_| ())
    .map_err(failure)
}

/// Returns what a model said of the nodes of a session.
pub fn notes(db: &Connection, session: SessionId) -> Result<BTreeMap<String, NodeNote>> {
    db.prepare_cached("SELECT node_id, label, status, summary FROM offload_nodes WHERE session = ?1")
        .and_then(|mut query| {
            query
                .query_map([session.0], |row| {
                    let status: String = row.get(2)?;
                    Ok((row.get(0)?, NodeNote { label: row.get(1)?, status: Status::of_word(&status), summary: row.get(3)? }))
                })?
                .collect()
        })
        .map_err(failure)
}

/// Stores what a model said of a node.
pub fn store_note(tx: &Transaction<'_>, session: SessionId, node_id: &str, note: &NodeNote) -> Result<()> {
    tx.prepare_cached("INSERT OR REPLACE INTO offload_nodes (session, node_id, label, status, summary) VALUES (?1, ?2, ?3, ?4, ?5)")
        .and_then(|mut insert| insert.execute(params![session.0, node_id, note.label, note.status.map_or("", Status::word), note.summary]))
        .map(|_| ())
        .map_err(failure)
}

/// Returns the context messages that were handed out in a session, by the ordinal that they cover.
pub fn contexts(db: &Connection, session: SessionId) -> Result<BTreeMap<u32, String>> {
    db.prepare_cached("SELECT covered, text FROM offload_contexts WHERE session = ?1")
        .and_then(|mut query| query.query_map([session.0], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .map_err(failure)
}

/// Stores a context message that is about to be handed out.
pub fn store_context(tx: &Transaction<'_>, session: SessionId, covered: u32, text: &str, at: Instant) -> Result<()> {
    tx.prepare_cached("INSERT OR REPLACE INTO offload_contexts (session, covered, text, at) VALUES (?1, ?2, ?3, ?4)")
        .and_then(|mut insert| insert.execute(params![session.0, covered, text, at as i64]))
        .map(|_| ())
        .map_err(failure)
}

/// Returns what is known of a model's token counts.
pub fn calibration(db: &Connection, model: &str) -> Result<Calibration> {
    db.prepare_cached("SELECT reported_tokens, estimated_tokens FROM offload_calibration WHERE model = ?1")
        .and_then(|mut query| query.query_row([model], |row| Ok(Calibration { reported_tokens: row.get(0)?, estimated_tokens: row.get(1)? })).optional())
        .map(Option::unwrap_or_default)
        .map_err(failure)
}

/// Stores what is known of a model's token counts.
pub fn store_calibration(tx: &Transaction<'_>, model: &str, calibration: Calibration) -> Result<()> {
    tx.prepare_cached("INSERT OR REPLACE INTO offload_calibration (model, reported_tokens, estimated_tokens) VALUES (?1, ?2, ?3)")
        .and_then(|mut insert| insert.execute(params![model, calibration.reported_tokens, calibration.estimated_tokens]))
        .map(|_| ())
        .map_err(failure)
}
