//! L1: from a batch of messages to atoms.
//!
//! With a model: one question extracts ([`extract`]), the answer is parsed ([`answer`]) and checked
//! ([`check`]), a second question settles the new atoms against what is believed ([`settle`]).
//! Without one, [`rules`] extract. Either way [`apply`] stores, as a function of the messages and the
//! answers alone.

pub mod answer;
pub mod apply;
pub mod atom;
pub mod check;
pub mod extract;
pub mod rules;
pub mod settle;

use crate::calendar::Calendar;
use crate::contract::Result;
use crate::l0::{self, Message, SessionId};
use crate::store::failure;
use crate::work::{self, Batch, BatchId, Job, Step};
use apply::Decision;
use rusqlite::{Transaction, params};
use serde::{Deserialize, Serialize};

/// Messages of users and assistants in one batch (the reference system's figure).
pub const BATCH_MESSAGES: usize = 10;

/// Messages shown before the batch, for understanding only (the reference system's figure).
pub const BACKGROUND_MESSAGES: usize = 5;

/// Attempts to have new atoms settled by the model before the rules settle them.
const SETTLE_ATTEMPTS: u32 = 3;

/// Stage: the atoms are known and wait for, or are in, settlement.
const SETTLE: &str = "settle";
/// Stage: the rules distilled the batch; a model looks again when there is one.
const RULES: &str = "rules";
/// Stage: a model looks at a batch of the rules.
const REEXAMINE: &str = "reexamine";

/// What a batch works on.
#[derive(Clone, Debug)]
pub struct Input {
    /// The session.
    pub session: SessionId,
    /// Messages before the batch.
    pub background: Vec<Message>,
    /// The messages of the batch that may be distilled.
    pub new: Vec<Message>,
    /// The scene of the session's previous batch.
    pub last_scene: String,
    /// The zone of dates in texts.
    pub calendar: Calendar,
    /// Bound on the atoms.
    pub max_atoms: usize,
}

/// What the first step leaves to the second.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Draft {
    /// The checked atoms.
    atoms: Vec<atom::NewAtom>,
    /// Public ids of the atoms that the settlement may name, in the order of their labels.
    pool: Vec<String>,
    /// A model looks again at what the rules had made.
    #[serde(default)]
    again: bool,
}

/// Starts the next step of a batch.
pub fn start(job: &mut Job<'_>, batch: &Batch) -> Result<Step> {
    let session = batch.session.expect("an L1 batch is made for a session");
    let input = input(job, batch.id, session)?;
    if batch.stage == SETTLE {
        let draft: Draft = serde_json::from_str(&batch.draft).unwrap_or_default();
        return settle_or_store(job, batch, &input, draft);
    }
    if input.new.iter().all(|message| message.role == "tool") {
        return Ok(Step::Done(Vec::new()));
    }
    if !job.models.llm.available {
        if batch.stage != RULES {
            work::set_stage(job.tx, batch.id, RULES, "")?;
        }
        let atoms = rules::distill(&input);
        return store(job, batch, &input, &Draft { atoms, ..Draft::default() }, &[]);
    }
    let request = extract::request(&input, &job.models.llm);
    work::ask(job, batch.id, request)?;
    Ok(Step::Asked)
}

/// Takes a model's answer to the batch's last question.
pub fn answered(job: &mut Job<'_>, batch: &Batch, text: &str) -> Result<Step> {
    let session = batch.session.expect("an L1 batch is made for a session");
    let input = input(job, batch.id, session)?;
    if batch.stage == SETTLE {
        let draft: Draft = serde_json::from_str(&batch.draft).unwrap_or_default();
        return match settle::parse(text, draft.atoms.len(), &draft.pool) {
            Ok(decisions) => store(job, batch, &input, &draft, &decisions),
            Err(reason) if batch.attempts + 1 >= SETTLE_ATTEMPTS => {
                refuse(job.tx, batch.id, &[("settled by rules: ".to_owned() + &reason, 1)])?;
                store(job, batch, &input, &draft, &[])
            }
            Err(reason) => Ok(Step::Failed(reason)),
        };
    }
    let extracted = match answer::parse(text) {
        Ok(extracted) => extracted,
        Err(reason) => return Ok(Step::Failed(reason)),
    };
    let checked = check::check(&input, extracted);
    refuse(job.tx, batch.id, &checked.refused)?;
    if let Some(scene) = &checked.last_scene {
        job.tx
            .prepare_cached("UPDATE sessions SET last_scene = ?2 WHERE id = ?1")
            .and_then(|mut update| update.execute(params![session.0, scene]))
            .map_err(failure)?;
    }
    let draft = Draft { atoms: checked.atoms, pool: Vec::new(), again: batch.stage == REEXAMINE };
    let text = serde_json::to_string(&draft).expect("atoms serialize");
    work::set_stage(job.tx, batch.id, SETTLE, &text)?;
    settle_or_store(job, batch, &input, draft)
}

/// Asks the model to settle the new atoms if there is anything to settle them against.
fn settle_or_store(job: &mut Job<'_>, batch: &Batch, input: &Input, mut draft: Draft) -> Result<Step> {
    if draft.atoms.is_empty() || !job.settings.extraction.enable_dedup || !job.models.llm.available {
        return store(job, batch, input, &draft, &[]);
    }
    let pool = settle::pool(job.tx, batch.scope, &draft.atoms)?;
    if pool.is_empty() && !settle::overlap(&draft.atoms) {
        return store(job, batch, input, &draft, &[]);
    }
    if settle::is_in_flight(job.tx, batch.scope)? {
        // One settlement at a time in a scope: each sees what the one before has stored.
        return Ok(Step::Next);
    }
    draft.pool = pool.iter().map(|atom| atom.uid.clone()).collect();
    let text = serde_json::to_string(&draft).expect("atoms serialize");
    job.tx.prepare_cached("UPDATE batches SET draft = ?2 WHERE id = ?1").and_then(|mut update| update.execute(params![batch.id.0, text])).map_err(failure)?;
    let request = settle::request(&draft.atoms, &pool, &input.calendar, &job.models.llm);
    work::ask(job, batch.id, request)?;
    Ok(Step::Asked)
}

fn store(job: &mut Job<'_>, batch: &Batch, input: &Input, draft: &Draft, decisions: &[Decision]) -> Result<Step> {
    let mut changed = apply::apply(job.tx, &apply::Place { scope: batch.scope, session: input.session, batch: batch.id, at: job.at }, &draft.atoms, decisions)?;
    if draft.again {
        changed.extend(apply::replace_rules(job.tx, batch.scope, batch.id, job.at)?);
    }
    Ok(Step::Done(changed))
}

fn input(job: &Job<'_>, batch: BatchId, session: SessionId) -> Result<Input> {
    let new = l0::messages_of_batch(job.tx, batch.0)?;
    let background = match new.first() {
        Some(first) => l0::messages_before(job.tx, session, first.id, BACKGROUND_MESSAGES)?,
        None => Vec::new(),
    };
    let last_scene = job
        .tx
        .prepare_cached("SELECT last_scene FROM sessions WHERE id = ?1")
        .and_then(|mut query| query.query_row([session.0], |row| row.get(0)))
        .map_err(failure)?;
    Ok(Input {
        session,
        background,
        new,
        last_scene,
        calendar: Calendar::new(&job.settings.timezone.0)?,
        max_atoms: job.settings.extraction.max_memories_per_session as usize,
    })
}

/// Counts what the checks did not take.
fn refuse(tx: &Transaction<'_>, batch: BatchId, refused: &[(String, u32)]) -> Result<()> {
    for (reason, count) in refused {
        tx.prepare_cached("INSERT INTO refusals (batch, reason, count) VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET count = count + excluded.count")
            .and_then(|mut insert| insert.execute(params![batch.0, reason, count]))
            .map_err(failure)?;
    }
    Ok(())
}

/// Takes up to [`BATCH_MESSAGES`] waiting messages of a session into a new batch, oldest first.
pub fn take(job: &Job<'_>, scope: l0::ScopeId, session: SessionId) -> Result<BatchId> {
    let batch = work::create(job.tx, "l1", scope, Some(session), job.at)?;
    let last: i64 = job
        .tx
        .prepare_cached(
            "SELECT max(id) FROM (SELECT id FROM messages WHERE session = ?1 AND batch IS NULL AND worth = 1 AND role <> 'tool' ORDER BY id LIMIT ?2)",
        )
        .and_then(|mut query| query.query_row(params![session.0, BATCH_MESSAGES as i64], |row| row.get::<_, Option<i64>>(0)))
        .map(|last| last.unwrap_or(i64::MAX))
        .map_err(failure)?;
    job.tx
        .prepare_cached("UPDATE messages SET batch = ?2 WHERE session = ?1 AND batch IS NULL AND id <= ?3")
        .and_then(|mut update| update.execute(params![session.0, batch.0, last]))
        .map_err(failure)?;
    job.tx
        .prepare_cached("UPDATE sessions SET l1_batches = l1_batches + 1 WHERE id = ?1")
        .and_then(|mut update| update.execute([session.0]))
        .map_err(failure)?;
    Ok(batch)
}

/// Puts the oldest batch of the rules back to due, to be looked at by the model.
pub fn reexamine(tx: &Transaction<'_>, at: crate::contract::Instant) -> Result<Option<BatchId>> {
    use rusqlite::OptionalExtension;
    tx.prepare_cached(
        "UPDATE batches SET state = 'due', stage = ?1, attempts = 0, due_at = ?2
         WHERE id = (SELECT id FROM batches WHERE layer = 'l1' AND state = 'done' AND stage = 'rules' ORDER BY id LIMIT 1) RETURNING id",
    )
    .and_then(|mut update| update.query_row(params![REEXAMINE, at as i64], |row| row.get(0)).optional())
    .map(|id| id.map(BatchId))
    .map_err(failure)
}
