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
use crate::contract::{Failure, FailureCode, Instant, LogLevel, Outgoing, Result};
use crate::l0::{self, Message, SessionId};
use crate::settings::Extraction;
use crate::store::failure;
use crate::work::{self, Batch, BatchId, Job, Step};
use apply::Decision;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde::{Deserialize, Serialize};

/// Messages of users and assistants in one batch (the reference system's figure).
pub const BATCH_MESSAGES: usize = 10;

/// Messages shown before the batch, for understanding only (the reference system's figure).
pub const BACKGROUND_MESSAGES: usize = 5;

/// Attempts to have new atoms settled by the model before the rules settle them.
const SETTLE_ATTEMPTS: u32 = 3;

/// The span in which second looks are counted, in milliseconds.
const DAY_MS: u64 = 86_400_000;

/// Stage: the atoms are known and wait for, or are in, settlement.
const SETTLE: &str = "settle";
/// Stage: the rules distilled the batch; a model looks again when there is one.
const RULES: &str = "rules";
/// Stage: the rules distilled the batch, and a later batch has a model look at its messages.
const REEXAMINED: &str = "reexamined";

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
    /// The batch of the rules whose messages a model looks at again.
    #[serde(default)]
    again: Option<i64>,
}

impl Draft {
    fn text(&self) -> String {
        serde_json::to_string(self).expect("atoms serialize")
    }
}

/// Starts the next step of a batch.
pub fn start(job: &mut Job<'_>, batch: &Batch) -> Result<Step> {
    let draft = draft(batch);
    let input = input(job, batch, &draft)?;
    if batch.stage == SETTLE {
        return settle_or_store(job, batch, &input, draft);
    }
    if input.new.iter().all(|message| message.role == "tool") {
        return Ok(Step::Done(Vec::new()));
    }
    if !job.models.llm.available {
        if let Some(by_rules) = draft.again {
            // The model that was to look again has gone; the next one will.
            job.tx
                .prepare_cached("UPDATE batches SET stage = ?2 WHERE id = ?1")
                .and_then(|mut update| update.execute(params![by_rules, RULES]))
                .map_err(failure)?;
            return Ok(Step::Done(Vec::new()));
        }
        work::set_stage(job.tx, batch.id, RULES, "")?;
        let draft = Draft { atoms: rules::distill(&input), ..Draft::default() };
        return store(job, batch, &input, &draft, &[]);
    }
    let request = extract::request(&input, &job.models.llm);
    work::ask(job, batch.id, request)?;
    Ok(Step::Asked)
}

/// Takes a model's answer to the batch's last question.
pub fn answered(job: &mut Job<'_>, batch: &Batch, text: &str) -> Result<Step> {
    let draft = draft(batch);
    let input = input(job, batch, &draft)?;
    if batch.stage == SETTLE {
        return match settle::parse(text, draft.atoms.len(), &draft.pool) {
            Ok(decisions) => store(job, batch, &input, &draft, &decisions),
            Err(reason) if batch.attempts + 1 >= SETTLE_ATTEMPTS => {
                refuse(job.tx, batch.id, &[("settled-by-rules".into(), u32::try_from(draft.atoms.len()).unwrap_or(u32::MAX))])?;
                job.out.push(Outgoing::Log { level: LogLevel::Warn, text: format!("batch {}: settled by rules: {reason}", batch.id.0) });
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
    if let Some(scene) = checked.last_scene.as_ref().filter(|_| draft.again.is_none()) {
        job.tx
            .prepare_cached("UPDATE sessions SET last_scene = ?2 WHERE id = ?1")
            .and_then(|mut update| update.execute(params![input.session.0, scene]))
            .map_err(failure)?;
    }
    let draft = Draft { atoms: checked.atoms, ..draft };
    work::set_stage(job.tx, batch.id, SETTLE, &draft.text())?;
    settle_or_store(job, batch, &input, draft)
}

/// What a batch's requests were answered, for [`derive`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Answers<'a> {
    /// The last readable answer to the extraction; none if the rules distilled the batch.
    pub extract: Option<&'a str>,
    /// The answer by which the atoms were settled, if there was one.
    pub settle: Option<&'a str>,
}

/// Derives a batch's atoms again from its messages and the stored answers, without asking anybody.
/// Batches derived in the order in which they were applied, each at its own time (`job.at`), give the
/// same rows under the same public ids. Returns the ids of what was made, ended or confirmed.
pub fn derive(job: &mut Job<'_>, batch: &Batch, answers: &Answers<'_>) -> Result<Vec<String>> {
    let draft = draft(batch);
    let input = input(job, batch, &draft)?;
    let atoms = match answers.extract {
        Some(text) => check::check(&input, answer::parse(text).unwrap_or_default()).atoms,
        None if batch.stage == RULES || batch.stage == REEXAMINED => rules::distill(&input),
        None => Vec::new(),
    };
    let decisions = answers.settle.and_then(|text| settle::parse(text, atoms.len(), &draft.pool).ok()).unwrap_or_default();
    apply_all(job, batch, &input, &Draft { atoms, ..draft }, &decisions)
}

/// Asks the model to settle the new atoms if there is anything to settle them against.
fn settle_or_store(job: &mut Job<'_>, batch: &Batch, input: &Input, mut draft: Draft) -> Result<Step> {
    if draft.atoms.is_empty() || !job.settings.extraction.enable_dedup || !job.models.llm.available {
        return store(job, batch, input, &draft, &[]);
    }
    let pool = settle::pool(job.tx, job.index, batch.scope, &draft.atoms)?;
    if pool.is_empty() && !settle::overlap(&draft.atoms) {
        return store(job, batch, input, &draft, &[]);
    }
    if settle::is_in_flight(job.tx, batch.scope)? {
        // One settlement at a time in a scope: each sees what the one before has stored.
        return Ok(Step::Next);
    }
    draft.pool = pool.iter().map(|atom| atom.uid.clone()).collect();
    save_draft(job.tx, batch.id, &draft)?;
    let request = settle::request(&draft.atoms, &pool, &input.calendar, &job.models.llm);
    work::ask(job, batch.id, request)?;
    Ok(Step::Asked)
}

fn store(job: &mut Job<'_>, batch: &Batch, input: &Input, draft: &Draft, decisions: &[Decision]) -> Result<Step> {
    let changed = apply_all(job, batch, input, draft, decisions)?;
    // The atoms have rows now; what they were offered beside is kept for a rebuild.
    save_draft(job.tx, batch.id, &Draft { atoms: Vec::new(), ..draft.clone() })?;
    Ok(Step::Done(changed))
}

fn apply_all(job: &Job<'_>, batch: &Batch, input: &Input, draft: &Draft, decisions: &[Decision]) -> Result<Vec<String>> {
    let place = apply::Place { scope: batch.scope, session: input.session, batch: batch.id, at: job.at };
    let mut changed = apply::apply(job.tx, &place, &draft.atoms, decisions)?;
    if let Some(by_rules) = draft.again {
        changed.extend(apply::replace_rules(job.tx, &place, BatchId(by_rules))?);
    }
    Ok(changed)
}

fn draft(batch: &Batch) -> Draft {
    // A draft is ours; one that cannot be read was cut by nobody but a fault, and the step starts over.
    serde_json::from_str(&batch.draft).unwrap_or_default()
}

fn save_draft(tx: &Transaction<'_>, batch: BatchId, draft: &Draft) -> Result<()> {
    tx.prepare_cached("UPDATE batches SET draft = ?2 WHERE id = ?1")
        .and_then(|mut update| update.execute(params![batch.0, draft.text()]))
        .map(|_| ())
        .map_err(failure)
}

fn input(job: &Job<'_>, batch: &Batch, draft: &Draft) -> Result<Input> {
    let Some(session) = batch.session else {
        return Err(Failure::new(FailureCode::Corrupt, format!("batch {} of L1 has lost its session", batch.id.0)));
    };
    let new = l0::messages_of_batch(job.tx, draft.again.unwrap_or(batch.id.0))?;
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

/// Returns when a model may take its next second look at what the rules distilled; nothing if nothing
/// waits or the setting forbids it. The share of a day is derived from the batches of the last 24
/// hours, so a restart neither grants nor takes any.
pub fn next_look(db: &Connection, settings: &Extraction, at: Instant) -> Result<Option<Instant>> {
    let Some(last) = settings.reexaminations_per_day.checked_sub(1) else { return Ok(None) };
    let waits = db
        .prepare_cached("SELECT 1 FROM batches INDEXED BY batches_by_rules WHERE layer = 'l1' AND state = 'done' AND stage = 'rules' LIMIT 1")
        .and_then(|mut query| query.exists([]))
        .map_err(failure)?;
    if !waits {
        return Ok(None);
    }
    // The look that has to be a day old before one more fits.
    db.prepare_cached("SELECT created_at FROM batches WHERE again IS NOT NULL AND created_at > ?1 ORDER BY created_at DESC LIMIT 1 OFFSET ?2")
        .and_then(|mut query| query.query_row(params![at.saturating_sub(DAY_MS) as i64, last], |row| row.get::<_, i64>(0)).optional())
        .map(|oldest| Some(oldest.map_or(at, |oldest| oldest as u64 + DAY_MS)))
        .map_err(failure)
}

/// Makes a batch in which the model looks at the messages of the oldest batch of the rules.
pub fn reexamine(job: &Job<'_>) -> Result<Option<BatchId>> {
    let by_rules: Option<(i64, i64, i64)> = job
        .tx
        .prepare_cached(
            "UPDATE batches SET stage = ?1
             WHERE id = (SELECT id FROM batches INDEXED BY batches_by_rules WHERE layer = 'l1' AND state = 'done' AND stage = 'rules' ORDER BY id LIMIT 1) RETURNING id, scope, session",
        )
        .and_then(|mut update| update.query_row([REEXAMINED], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional())
        .map_err(failure)?;
    let Some((by_rules, scope, session)) = by_rules else { return Ok(None) };
    let batch = work::create(job.tx, "l1", l0::ScopeId(scope), Some(SessionId(session)), job.at)?;
    save_draft(job.tx, batch, &Draft { again: Some(by_rules), ..Draft::default() })?;
    job.tx.prepare_cached("UPDATE batches SET again = ?2 WHERE id = ?1").and_then(|mut update| update.execute(params![batch.0, by_rules])).map_err(failure)?;
    Ok(Some(batch))
}
