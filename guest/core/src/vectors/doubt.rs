//! Failures of an embedding model: is it the service or one text? See the head of `vectors.rs`.

use super::{Generation, MAX_BATCH, waiting};
use crate::contract::{EmbeddingModel, Instant, Result};
use crate::index::Kind;
use crate::schedule;
use crate::store::failure;
use crate::work::Job;
use rusqlite::{OptionalExtension, Transaction, params};

/// Longest reason that is kept of a failure, in bytes.
const MAX_REASON: usize = 500;

/// The longest pause while fewer and fewer texts are asked at a time, as a number of attempts.
const SHORT_PAUSE: u32 = 2;

/// What is known of a first text that failed alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// Nothing: it may be the service.
    No = 0,
    /// Another text was asked.
    AskedOther = 1,
    /// The service answered the other text just now.
    ServiceAnswers = 2,
}

impl Doubt {
    pub(super) fn of(number: i64) -> Self {
        match number {
            1 => Self::AskedOther,
            2 => Self::ServiceAnswers,
            _ => Self::No,
        }
    }
}

fn batch(model: Option<&EmbeddingModel>) -> u32 {
    model.map_or(1, |model| model.batch.clamp(1, MAX_BATCH))
}

/// Returns after how many failures a single text is asked.
fn single(batch: u32) -> u32 {
    1 + batch.ilog2()
}

/// Returns how many texts are asked at a time after `attempts` failures: all at first, since most failures are the service's,
/// then half of it each time.
pub(super) fn size(model: &EmbeddingModel, attempts: u32) -> u32 {
    batch(Some(model)).checked_shr(attempts.saturating_sub(1)).unwrap_or(0).max(1)
}

/// Returns the row and text to ask instead of the first that waits, if that one has failed alone: one that has a vector, else
/// another that waits.
pub(super) fn other(tx: &Transaction<'_>, current: &Generation, kind: Kind, model: &EmbeddingModel) -> Result<Option<(i64, String)>> {
    if current.attempts <= single(batch(Some(model))) || current.doubt != Doubt::No {
        return Ok(None);
    }
    let sql = match kind {
        Kind::Messages => {
            "SELECT id, text FROM messages JOIN host_vectors ON row = id WHERE generation = ?1 AND kind = 0 AND vector <> x'' ORDER BY row LIMIT 1"
        }
        Kind::Atoms => {
            "SELECT id, text FROM atoms JOIN host_vectors ON row = atoms.id WHERE generation = ?1 AND host_vectors.kind = 1 AND vector <> x'' ORDER BY row LIMIT 1"
        }
    };
    let known: Option<(i64, String)> =
        tx.prepare_cached(sql).and_then(|mut query| query.query_row([current.id], |row| Ok((row.get(0)?, row.get(1)?))).optional()).map_err(failure)?;
    if known.is_some() {
        return Ok(known);
    }
    // Each time another one: it may be refused as well.
    let mut others = waiting(tx, current, kind, MAX_BATCH)?.split_off(1);
    Ok((!others.is_empty()).then(|| others.swap_remove(current.attempts as usize % others.len())))
}

/// Notes that the service answers: the row in doubt is asked at once.
pub(super) fn answered_other(tx: &Transaction<'_>, current: &Generation) -> Result<()> {
    tx.prepare_cached("UPDATE generations SET asked = 0, due_at = 0, doubt = ?2 WHERE id = ?1")
        .and_then(|mut update| update.execute(params![current.id, Doubt::ServiceAnswers as i64]))
        .map(|_| ())
        .map_err(failure)
}

/// Notes a failed attempt: the next one is due later, or the text that was asked alone is refused and the others go on.
pub(super) fn fail(job: &mut Job<'_>, current: &Generation, reason: &str) -> Result<()> {
    let reason = &reason[..reason.floor_char_boundary(MAX_REASON)];
    let (attempts, due_at) = match (current.doubt, current.asked_rows.as_slice()) {
        (Doubt::ServiceAnswers, [row]) => {
            job.tx
                .prepare_cached("INSERT INTO host_vectors (generation, kind, row, vector) VALUES (?1, ?2, ?3, x'') ON CONFLICT DO NOTHING")
                .and_then(|mut insert| insert.execute(params![current.id, current.asked_kind, row]))
                .map_err(failure)?;
            (0, job.at)
        }
        _ => {
            let attempts = current.attempts + 1;
            (attempts, job.at + pause_ms(attempts, single(batch(job.models.embedding.as_ref()))))
        }
    };
    job.tx
        .prepare_cached("UPDATE generations SET asked = 0, attempts = ?2, due_at = ?3, reason = ?4, doubt = 0 WHERE id = ?1")
        .and_then(|mut update| update.execute(params![current.id, attempts, due_at as i64, reason]))
        .map(|_| ())
        .map_err(failure)
}

/// Returns the pause after a failure, in milliseconds: it grows from the attempt on at which nothing is left to halve.
fn pause_ms(attempts: u32, single: u32) -> u64 {
    schedule::backoff_ms(attempts.min((attempts + SHORT_PAUSE).saturating_sub(single).max(SHORT_PAUSE)))
}

/// Makes what failed due at `at`, and forgets which texts were refused; returns how many models and texts that were.
pub fn retry(tx: &Transaction<'_>, at: Instant) -> Result<u64> {
    let failed = tx.execute("UPDATE generations SET attempts = 0, due_at = ?1, doubt = 0 WHERE attempts > 0 AND asked = 0", [at as i64]).map_err(failure)?;
    // What is in flight would move the marks beyond the refused rows again: it is asked once more.
    for (column, kind) in [("messages_to", 0), ("atoms_to", 1)] {
        let sql = format!(
            "UPDATE generations SET asked = 0, doubt = 0, {column} = min({column}, first - 1)
               FROM (SELECT generation, min(row) AS first FROM host_vectors WHERE vector = x'' AND kind = {kind} GROUP BY generation) WHERE id = generation"
        );
        tx.execute(&sql, []).map_err(failure)?;
    }
    let refused = tx.execute("DELETE FROM host_vectors WHERE vector = x''", []).map_err(failure)?;
    Ok((failed + refused) as u64)
}
