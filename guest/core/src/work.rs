//! Requests in flight: rows of `batches` and `requests`, and the way from an answer to its layer.
//!
//! A batch is a unit of slow work; a request is one question to a model about it. Both are rows, so
//! a crash repeats a question and loses none.

use crate::contract::{Instant, LlmRequest, Outgoing, Result};
use crate::store::failure;
use rusqlite::{Connection, Transaction, params};

/// A row of `batches`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BatchId(pub i64);

/// Stores a question to the language model about a batch and returns what to send.
pub fn ask(tx: &Transaction<'_>, batch: BatchId, request: LlmRequest, at: Instant) -> Result<Outgoing> {
    let body = serde_json::to_string(&request).expect("a request of strings and numbers serializes");
    let id: i64 = tx
        .prepare_cached("INSERT INTO requests (batch, kind, purpose, body, state, asked_at) VALUES (?1, 'llm', ?2, ?3, 'asked', ?4) RETURNING id")
        .and_then(|mut insert| insert.query_row(params![batch.0, request.purpose, body, at as i64], |row| row.get(0)))
        .map_err(failure)?;
    tx.prepare_cached("UPDATE batches SET state = 'asked' WHERE id = ?1").and_then(|mut update| update.execute([batch.0])).map_err(failure)?;
    Ok(Outgoing::AskModel { id: format!("r{id}"), request })
}

/// Puts batches that a previous run had asked about back to due; returns how many.
pub fn resume(tx: &Transaction<'_>) -> Result<u32> {
    tx.execute("UPDATE requests SET state = 'abandoned', reason = 'the engine was closed' WHERE state = 'asked'", []).map_err(failure)?;
    let batches = tx.execute("UPDATE batches SET state = 'due' WHERE state = 'asked'", []).map_err(failure)?;
    Ok(u32::try_from(batches).unwrap_or(u32::MAX))
}

/// Returns how many batches are in each state, for `status`.
pub fn counts(db: &Connection) -> Result<Vec<(String, String, u64)>> {
    db.prepare_cached("SELECT layer, state, count(*) FROM batches GROUP BY layer, state ORDER BY layer, state")
        .and_then(|mut query| query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect())
        .map_err(failure)
}
