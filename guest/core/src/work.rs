//! Requests in flight: rows of `batches` and `requests`, and the way from an answer to its layer.
//!
//! A batch is a unit of slow work; a request is one question to a model about it. Both are rows, so
//! a crash repeats a question and loses none. A batch goes `due -> asked -> … -> done`; a failed
//! attempt puts it back to `due` later and later, and after [`MAX_ATTEMPTS`] it is `dead` until
//! somebody asks for `retry`.

use crate::contract::{Failure, Instant, LlmAnswer, LlmRequest, Outcome, Outgoing, Result};
use crate::engine::Models;
use crate::index::Index;
use crate::l0::{ScopeId, SessionId};
use crate::settings::Settings;
use crate::store::failure;
use crate::{l1, l2, l3, offload, schedule, vectors};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

/// Attempts of one step before a batch is dead (the reference system retries five times).
pub const MAX_ATTEMPTS: u32 = 5;

/// How long a host may be late with the report of a timeout, in milliseconds.
const TIMEOUT_GRACE_MS: u64 = 60_000;

/// Longest reason that is kept of a failure, in bytes.
const MAX_REASON: usize = 500;

/// A row of `batches`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BatchId(pub i64);

/// A unit of slow work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The row.
    pub id: BatchId,
    /// `l1`, `l2`, ...
    pub layer: String,
    /// Whose.
    pub scope: ScopeId,
    /// Of which session, for layers that work by session.
    pub session: Option<SessionId>,
    /// Which step of the layer comes next.
    pub stage: String,
    /// JSON: what earlier steps worked out.
    pub draft: String,
    /// Failed attempts of this step.
    pub attempts: u32,
}

/// What a step of slow work has at hand.
#[derive(Debug)]
pub struct Job<'a> {
    /// All changes of the step.
    pub tx: &'a Transaction<'a>,
    /// The search index, as it was before the step.
    pub index: &'a Index,
    /// The settings.
    pub settings: &'a Settings,
    /// The host's models.
    pub models: &'a Models,
    /// Now.
    pub at: Instant,
    /// What goes to the host once the transaction is durable.
    pub out: &'a mut Vec<Outgoing>,
}

/// How a step of a batch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The result is stored; ids of what was made or ended.
    Done(Vec<String>),
    /// A question to a model is on its way.
    Asked,
    /// The next step waits for its turn at once.
    Next,
    /// The model's answer could not be used, with the reason.
    Failed(String),
}

/// Stores a new unit of work, due at once.
pub fn create(tx: &Transaction<'_>, layer: &str, scope: ScopeId, session: Option<SessionId>, at: Instant) -> Result<BatchId> {
    tx.prepare_cached("INSERT INTO batches (layer, scope, session, state, due_at, created_at) VALUES (?1, ?2, ?3, 'due', ?4, ?4) RETURNING id")
        .and_then(|mut insert| insert.query_row(params![layer, scope.0, session.map(|session| session.0), at as i64], |row| row.get(0)))
        .map(BatchId)
        .map_err(failure)
}

/// Returns a batch.
pub fn batch(db: &Connection, id: BatchId) -> Result<Batch> {
    db.prepare_cached("SELECT id, layer, scope, session, stage, draft, attempts FROM batches WHERE id = ?1")
        .and_then(|mut query| query.query_row([id.0], read_batch))
        .map_err(failure)
}

fn read_batch(row: &Row<'_>) -> rusqlite::Result<Batch> {
    Ok(Batch {
        id: BatchId(row.get(0)?),
        layer: row.get(1)?,
        scope: ScopeId(row.get(2)?),
        session: row.get::<_, Option<i64>>(3)?.map(SessionId),
        stage: row.get(4)?,
        draft: row.get(5)?,
        attempts: row.get(6)?,
    })
}

/// Returns the oldest batch that is due, leaving out layers that `blocked` names.
pub fn next_due(db: &Connection, layer: &str, at: Instant) -> Result<Option<Batch>> {
    db.prepare_cached(
        "SELECT id, layer, scope, session, stage, draft, attempts FROM batches WHERE state = 'due' AND layer = ?1 AND due_at <= ?2 ORDER BY due_at, id LIMIT 1",
    )
    .and_then(|mut query| query.query_row(params![layer, at as i64], read_batch).optional())
    .map_err(failure)
}

/// Sets the step that comes next and what it builds on; attempts start over.
pub fn set_stage(tx: &Transaction<'_>, batch: BatchId, stage: &str, draft: &str) -> Result<()> {
    tx.prepare_cached("UPDATE batches SET stage = ?2, draft = ?3, attempts = 0, reason = '' WHERE id = ?1")
        .and_then(|mut update| update.execute(params![batch.0, stage, draft]))
        .map(|_| ())
        .map_err(failure)
}

/// Stores a question to the language model about a batch and queues it for the host.
pub fn ask(job: &mut Job<'_>, batch: BatchId, request: LlmRequest) -> Result<()> {
    let body = serde_json::to_string(&request).expect("a request of strings and numbers serializes");
    let id: i64 = job
        .tx
        .prepare_cached("INSERT INTO requests (batch, kind, purpose, body, state, asked_at) VALUES (?1, 'llm', ?2, ?3, 'asked', ?4) RETURNING id")
        .and_then(|mut insert| insert.query_row(params![batch.0, request.purpose, body, job.at as i64], |row| row.get(0)))
        .map_err(failure)?;
    set_state(job.tx, batch, "asked", job.at)?;
    job.out.push(Outgoing::AskModel { id: format!("r{id}"), request });
    Ok(())
}

fn set_state(tx: &Transaction<'_>, batch: BatchId, state: &str, due_at: Instant) -> Result<()> {
    tx.prepare_cached("UPDATE batches SET state = ?2, due_at = ?3 WHERE id = ?1")
        .and_then(|mut update| update.execute(params![batch.0, state, due_at as i64]))
        .map(|_| ())
        .map_err(failure)
}

/// Starts the next step of a batch.
pub fn start(job: &mut Job<'_>, batch: &Batch) -> Result<()> {
    let step = match batch.layer.as_str() {
        "l1" => l1::start(job, batch)?,
        "l2" => l2::start(job, batch)?,
        "l3" => l3::start(job, batch)?,
        "offload" => offload::model::start(job, batch)?,
        layer => Step::Failed(format!("this build does not work on layer `{layer}`")),
    };
    finish(job, batch, None, step)
}

/// Takes an answer. Returns false if the request is not in flight.
pub fn complete(job: &mut Job<'_>, request_id: &str, outcome: &Outcome) -> Result<bool> {
    if request_id.starts_with('e') {
        return vectors::complete(job, request_id, outcome);
    }
    let Some(request) = request_id.strip_prefix('r').and_then(|id| id.parse::<i64>().ok()) else { return Ok(false) };
    let asked: Option<(i64, String)> = job
        .tx
        .prepare_cached("SELECT batch, kind FROM requests WHERE id = ?1 AND state = 'asked'")
        .and_then(|mut query| query.query_row([request], |row| Ok((row.get(0)?, row.get(1)?))).optional())
        .map_err(failure)?;
    let Some((batch, _kind)) = asked else { return Ok(false) };
    let batch = self::batch(job.tx, BatchId(batch))?;
    let step = match outcome {
        Outcome::Text(answer) => {
            record_answer(job, request, answer)?;
            match batch.layer.as_str() {
                "l1" => l1::answered(job, &batch, &answer.text)?,
                "l2" => l2::answered(job, &batch, &answer.text)?,
                "l3" => l3::answered(job, &batch, &answer.text)?,
                "offload" => offload::model::answered(job, &batch, &answer.text)?,
                layer => Step::Failed(format!("this build does not work on layer `{layer}`")),
            }
        }
        Outcome::Vectors(_) => Step::Failed("vectors came where a text was asked for".into()),
        Outcome::Failed(reason) => Step::Failed(reason.clone()),
    };
    if let Step::Failed(reason) = &step {
        // An answer that arrived but cannot be used stays in the ledger beside the reason.
        job.tx
            .prepare_cached("UPDATE requests SET state = 'failed', reason = ?2, answered_at = ?3 WHERE id = ?1")
            .and_then(|mut update| update.execute(params![request, cut(reason), job.at as i64]))
            .map_err(failure)?;
    }
    finish(job, &batch, Some(request), step)?;
    Ok(true)
}

fn record_answer(job: &Job<'_>, request: i64, answer: &LlmAnswer) -> Result<()> {
    job.tx
        .prepare_cached(
            "UPDATE requests SET state = 'answered', answered_at = ?2, answer = ?3, model = ?4, input_tokens = ?5, output_tokens = ?6 WHERE id = ?1",
        )
        .and_then(|mut update| update.execute(params![request, job.at as i64, answer.text, answer.model, answer.input_tokens, answer.output_tokens]))
        .map(|_| ())
        .map_err(failure)
}

fn finish(job: &mut Job<'_>, batch: &Batch, request: Option<i64>, step: Step) -> Result<()> {
    match step {
        Step::Asked => Ok(()),
        Step::Next => set_state(job.tx, batch.id, "due", job.at),
        Step::Done(changed) => {
            if let Some(request) = request {
                let changed = serde_json::to_string(&changed).expect("a list of strings serializes");
                job.tx
                    .prepare_cached("UPDATE requests SET changed = ?2 WHERE id = ?1")
                    .and_then(|mut update| update.execute(params![request, changed]))
                    .map_err(failure)?;
            }
            job.tx
                .prepare_cached(
                    "UPDATE batches SET state = 'done', reason = '', done_at = ?2, applied = (SELECT coalesce(max(applied), 0) + 1 FROM batches WHERE applied IS NOT NULL) WHERE id = ?1",
                )
                .and_then(|mut update| update.execute(params![batch.id.0, job.at as i64]))
                .map(|_| ())
                .map_err(failure)
        }
        Step::Failed(reason) => fail(job, batch, &reason),
    }
}

/// Puts a batch back after a failed attempt, or among the dead.
fn fail(job: &mut Job<'_>, batch: &Batch, reason: &str) -> Result<()> {
    let attempts = batch.attempts + 1;
    let (state, due_at) = if attempts >= MAX_ATTEMPTS { ("dead", job.at) } else { ("due", job.at + schedule::backoff_ms(attempts)) };
    job.tx
        .prepare_cached("UPDATE batches SET state = ?2, attempts = ?3, due_at = ?4, reason = ?5 WHERE id = ?1")
        .and_then(|mut update| update.execute(params![batch.id.0, state, attempts, due_at as i64, cut(reason)]))
        .map(|_| ())
        .map_err(failure)
}

fn cut(reason: &str) -> &str {
    &reason[..reason.floor_char_boundary(MAX_REASON)]
}

/// Gives up requests that the host has never reported on; their batches count a failed attempt.
/// Returns when the next one would be given up.
pub fn expire(job: &mut Job<'_>) -> Result<Option<Instant>> {
    let asked: Vec<(i64, i64, i64, String)> = job
        .tx
        .prepare_cached("SELECT id, batch, asked_at, body FROM requests WHERE state = 'asked' ORDER BY id")
        .and_then(|mut query| query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?.collect())
        .map_err(failure)?;
    let mut next = None;
    for (request, batch, asked_at, body) in asked {
        let timeout_ms = serde_json::from_str::<LlmRequest>(&body).map_or(0, |request| u64::from(request.timeout_ms));
        let deadline = asked_at as u64 + timeout_ms + TIMEOUT_GRACE_MS;
        if deadline > job.at {
            next = Some(next.map_or(deadline, |earlier: u64| earlier.min(deadline)));
            continue;
        }
        let reason = "the host never answered";
        job.tx.execute("UPDATE requests SET state = 'failed', reason = ?2 WHERE id = ?1", params![request, reason]).map_err(failure)?;
        job.out.push(Outgoing::CancelModel { id: format!("r{request}") });
        let batch = self::batch(job.tx, BatchId(batch))?;
        fail(job, &batch, reason)?;
    }
    Ok(next)
}

/// Returns how many requests to the language model are in flight for a layer.
pub fn in_flight(db: &Connection, layer: &str) -> Result<u32> {
    db.prepare_cached("SELECT count(*) FROM requests JOIN batches ON batches.id = batch WHERE requests.state = 'asked' AND layer = ?1")
        .and_then(|mut query| query.query_row([layer], |row| row.get(0)))
        .map_err(failure)
}

/// Puts batches that a previous run had asked about back to due; returns how many.
pub fn resume(tx: &Transaction<'_>) -> Result<u32> {
    vectors::resume(tx)?;
    tx.execute("UPDATE requests SET state = 'abandoned', reason = 'the engine was closed' WHERE state = 'asked'", []).map_err(failure)?;
    let batches = tx.execute("UPDATE batches SET state = 'due' WHERE state IN ('due', 'asked') AND state = 'asked'", []).map_err(failure)?;
    Ok(u32::try_from(batches).unwrap_or(u32::MAX))
}

/// The layers that have batches.
const LAYERS: &[&str] = &["l1", "l2", "l3", "offload"];

/// The layer of vectors by the host's model, which has no batches.
const EMBEDDING: &str = "embedding";

/// Makes dead and backing-off work of a layer (all layers: empty) due at `at`; returns how many. Refuses a layer that has
/// no work.
pub fn retry(tx: &Transaction<'_>, layer: &str, at: Instant) -> Result<u64> {
    if !layer.is_empty() && layer != EMBEDDING && !LAYERS.contains(&layer) {
        return Err(Failure::invalid(format!("there is no layer `{layer}`; it is one of {}, {EMBEDDING}", LAYERS.join(", "))));
    }
    let vectors = if layer.is_empty() || layer == EMBEDDING { vectors::retry(tx, at)? } else { 0 };
    tx.prepare_cached(
        "UPDATE batches SET state = 'due', attempts = 0, due_at = ?2
         WHERE (state = 'dead' OR (state = 'due' AND attempts > 0)) AND (?1 = '' OR layer = ?1)",
    )
    .and_then(|mut update| update.execute(params![layer, at as i64]))
    .map(|rows| rows as u64 + vectors)
    .map_err(failure)
}
