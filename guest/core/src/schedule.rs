//! The schedule of all layers: the one table of times, and the one place that looks at it.
//!
//! Due work is derived from rows: messages without a batch, batches that are due. Nothing is counted
//! beside them and no timer is armed, so a restart loses and repeats nothing.

use crate::contract::{Instant, Result};
use crate::l0::{ScopeId, SessionId};
use crate::settings::Pipeline;
use crate::store::failure;
use crate::work::{self, Batch, Job};
use crate::{l1, l2, l3, offload, settings, vectors};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

/// Steps of slow work that one tick starts; more makes the next tick due at once.
const STEPS_PER_TICK: u32 = 16;

/// L1 questions in flight at a time. A host may have fewer at the model; then they queue there.
const L1_IN_FLIGHT: u32 = 4;

/// L2 and L3 questions in flight at a time, a layer (the reference system's queues are serial).
const PAGES_IN_FLIGHT: u32 = 1;

/// First pause after a failed attempt, in milliseconds (the reference system's figure); it doubles.
const FIRST_BACKOFF_MS: u64 = 30_000;

/// Longest pause between attempts, in milliseconds.
const LONGEST_BACKOFF_MS: u64 = 3_600_000;

/// Returns the pause after the `attempts`-th failed attempt, in milliseconds.
pub fn backoff_ms(attempts: u32) -> u64 {
    FIRST_BACKOFF_MS.saturating_mul(1 << attempts.saturating_sub(1).min(16)).min(LONGEST_BACKOFF_MS)
}

/// Does what is due, a bounded slice of it. Returns when to look again: now if more is due, nothing if
/// only an event can make work due.
pub fn tick(job: &mut Job<'_>) -> Result<Option<Instant>> {
    let mut next = Next(work::expire(job)?);
    // One line a layer, in the order of the flow.
    next.at(l1_tick(job)?);
    next.at(l2_tick(job)?);
    next.at(l3_tick(job)?);
    next.at(offload_tick(job)?);
    next.at(vectors::tick(job)?);
    Ok(next.0)
}

/// The earliest of several instants.
#[derive(Clone, Copy, Debug, Default)]
struct Next(Option<Instant>);

impl Next {
    fn at(&mut self, other: Option<Instant>) {
        self.0 = match (self.0, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
}

fn l1_tick(job: &mut Job<'_>) -> Result<Option<Instant>> {
    if !job.settings.extraction.enabled {
        return Ok(None);
    }
    let mut steps = 0;
    while let Some(batch) = next_l1(job.tx, job.at)? {
        if !has_room(job)? {
            return Ok(None);
        }
        if steps == STEPS_PER_TICK {
            return Ok(Some(job.at));
        }
        steps += 1;
        work::start(job, &batch)?;
    }
    let mut next = Next(next_attempt(job.tx, "l1", job.at)?);
    let mut session = SessionId(0);
    while let Some(waiting) = next_waiting(job.tx, session, &job.settings.pipeline)? {
        session = waiting.session;
        let due_at = waiting.due_at(&job.settings.pipeline);
        if due_at > job.at {
            next.at(Some(due_at));
            continue;
        }
        if waiting.is_working {
            continue;
        }
        if !has_room(job)? {
            return Ok(next.0);
        }
        if steps == STEPS_PER_TICK {
            return Ok(Some(job.at));
        }
        steps += 1;
        let batch = l1::take(job, waiting.scope, session)?;
        let batch = work::batch(job.tx, batch)?;
        work::start(job, &batch)?;
        // The session may hold more than one batch; it is looked at again.
        session = SessionId(session.0 - 1);
    }
    while job.models.llm.available && has_room(job)? {
        let Some(due_at) = l1::next_look(job.tx, &job.settings.extraction, job.at)? else { break };
        if due_at > job.at {
            next.at(Some(due_at));
            break;
        }
        if steps == STEPS_PER_TICK {
            return Ok(Some(job.at));
        }
        steps += 1;
        let Some(batch) = l1::reexamine(job)? else { break };
        let batch = work::batch(job.tx, batch)?;
        work::start(job, &batch)?;
    }
    Ok(next.0)
}

fn has_room(job: &Job<'_>) -> Result<bool> {
    Ok(!job.models.llm.available || work::in_flight(job.tx, "l1")? < L1_IN_FLIGHT)
}

/// Starts batches of a layer that are due again. Returns whether there is room for new ones.
fn restart(job: &mut Job<'_>, layer: &str, steps: &mut u32) -> Result<bool> {
    loop {
        if *steps == STEPS_PER_TICK || (job.models.llm.available && work::in_flight(job.tx, layer)? >= PAGES_IN_FLIGHT) {
            return Ok(false);
        }
        let Some(batch) = work::next_due(job.tx, layer, job.at)? else { return Ok(true) };
        *steps += 1;
        work::start(job, &batch)?;
    }
}

fn l2_tick(job: &mut Job<'_>) -> Result<Option<Instant>> {
    let mut steps = 0;
    let mut room = restart(job, "l2", &mut steps)?;
    let mut next = Next(next_attempt(job.tx, "l2", job.at)?);
    // Rules end a batch at once and may leave atoms for the next one: the scopes are looked at again.
    while room {
        room = false;
        for waiting in l2::waiting(job.tx)? {
            let Some(due_at) = scenes_due_at(job.tx, &waiting, &job.settings.pipeline, job.at)? else { continue };
            if due_at > job.at {
                next.at(Some(due_at));
                continue;
            }
            if steps == STEPS_PER_TICK {
                return Ok(Some(job.at));
            }
            if job.models.llm.available && work::in_flight(job.tx, "l2")? >= PAGES_IN_FLIGHT {
                return Ok(next.0);
            }
            steps += 1;
            let batch = l2::open(job.tx, waiting.scope, job.at)?;
            let batch = work::batch(job.tx, batch)?;
            work::start(job, &batch)?;
            room = true;
        }
    }
    if steps == STEPS_PER_TICK {
        next.at(Some(job.at));
    }
    settle_flushes(job.tx)?;
    Ok(next.0)
}

/// Returns when the scenes of a scope are due; nothing while a flush waits for L1.
///
/// New atoms: `l2DelayAfterL1Seconds` after the first of them, but not sooner than
/// `l2MinIntervalSeconds` after the last batch, and not later than `l2MaxIntervalSeconds` after it
/// while a session is active. A full batch, and what an older batch left behind newer atoms, does not
/// wait for the interval. Scenes that state what is no longer believed are due at the ceiling alone.
fn scenes_due_at(db: &Connection, waiting: &l2::Waiting, pipeline: &Pipeline, now: Instant) -> Result<Option<Instant>> {
    if is_flushed(db, waiting.scope)? {
        return Ok((!l1_under_way(db, waiting.scope)?).then_some(0));
    }
    let active_until = waiting.active_at + pipeline.session_active_window_hours * 3_600_000;
    let ceiling = waiting.last.map(|last| last + pipeline.l2_max_interval_seconds * 1000).filter(|_| now <= active_until);
    let Some(since) = waiting.since else {
        return Ok(if waiting.upkeep { ceiling } else { None });
    };
    let delay = since + pipeline.l2_delay_after_l1_seconds * 1000;
    let floor = waiting.last.filter(|_| !waiting.backlog).map_or(0, |last| last + pipeline.l2_min_interval_seconds * 1000);
    let due_at = delay.max(floor);
    Ok(Some(ceiling.map_or(due_at, |ceiling| due_at.min(ceiling.max(delay)))))
}

fn flush_key(scope: ScopeId) -> String {
    format!("flushed-scenes-{}", scope.0)
}

fn is_flushed(db: &Connection, scope: ScopeId) -> Result<bool> {
    db.prepare_cached("SELECT 1 FROM space WHERE key = ?1").and_then(|mut query| query.exists([flush_key(scope)])).map_err(failure)
}

/// Makes the scenes of a scope due as soon as its L1 has nothing more to bring.
fn flush_scenes(tx: &Transaction<'_>, scope: ScopeId, at: Instant) -> Result<()> {
    tx.prepare_cached("INSERT INTO space (key, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING")
        .and_then(|mut insert| insert.execute(params![flush_key(scope), at.to_string()]))
        .map(|_| ())
        .map_err(failure)
}

/// Returns whether L1 of a scope still works on what a flush asked for. A batch that backs off does not hold it up.
fn l1_under_way(db: &Connection, scope: ScopeId) -> Result<bool> {
    db.prepare_cached(
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM batches WHERE layer = 'l1' AND scope = ?1 AND state IN ('due', 'asked') AND (state = 'asked' OR attempts = 0))
            OR EXISTS (SELECT 1 FROM messages INDEXED BY messages_waiting CROSS JOIN sessions ON sessions.id = session
                        WHERE batch IS NULL AND worth = 1 AND sessions.scope = ?1 AND messages.id <= flushed)",
    )
    .and_then(|mut query| query.exists([scope.0]))
    .map_err(failure)
}

/// Ends the flushes that have brought everything through.
fn settle_flushes(tx: &Transaction<'_>) -> Result<()> {
    let scopes: Vec<i64> = tx
        .prepare_cached("SELECT scopes.id FROM space JOIN scopes ON key = 'flushed-scenes-' || scopes.id")
        .and_then(|mut query| query.query_map([], |row| row.get(0))?.collect())
        .map_err(failure)?;
    let waiting = if scopes.is_empty() { Vec::new() } else { l2::waiting(tx)? };
    for scope in scopes.into_iter().map(ScopeId) {
        if !waiting.iter().any(|waiting| waiting.scope == scope) && !l1_under_way(tx, scope)? {
            tx.prepare_cached("DELETE FROM space WHERE key = ?1").and_then(|mut delete| delete.execute([flush_key(scope)])).map_err(failure)?;
        }
    }
    Ok(())
}

fn l3_tick(job: &mut Job<'_>) -> Result<Option<Instant>> {
    let mut steps = 0;
    let room = restart(job, "l3", &mut steps)?;
    let mut next = Next(next_attempt(job.tx, "l3", job.at)?);
    if room {
        for waiting in l3::waiting(job.tx, job.settings, job.models.llm.available)? {
            if steps == STEPS_PER_TICK {
                return Ok(Some(job.at));
            }
            if job.models.llm.available && work::in_flight(job.tx, "l3")? >= PAGES_IN_FLIGHT {
                return Ok(next.0);
            }
            steps += 1;
            let batch = l3::open(job.tx, &waiting, job.at)?;
            let batch = work::batch(job.tx, batch)?;
            work::start(job, &batch)?;
        }
    } else if steps == STEPS_PER_TICK {
        next.at(Some(job.at));
    }
    Ok(next.0)
}

/// Short-term memory asks a model only; the rules have done their part when a result arrived.
fn offload_tick(job: &mut Job<'_>) -> Result<Option<Instant>> {
    let mut steps = 0;
    if !job.models.llm.available || !job.settings.offload.enabled {
        return Ok(None);
    }
    while restart(job, "offload", &mut steps)? {
        let Some((scope, session)) = offload::model::waiting(job.tx, job.settings.offload.force_trigger_threshold, job.at)? else { break };
        let batch = offload::model::open(job, scope, session)?;
        let batch = work::batch(job.tx, batch)?;
        steps += 1;
        work::start(job, &batch)?;
    }
    if steps == STEPS_PER_TICK {
        return Ok(Some(job.at));
    }
    next_attempt(job.tx, "offload", job.at)
}

/// Returns the oldest L1 batch whose next step is due and possible: a settlement waits while another
/// one of its scope is under way.
fn next_l1(db: &Connection, at: Instant) -> Result<Option<Batch>> {
    let id: Option<i64> = db
        .prepare_cached(
            "SELECT id FROM batches AS b WHERE state = 'due' AND layer = 'l1' AND due_at <= ?1
               AND NOT (stage = 'settle' AND EXISTS (
                 SELECT 1 FROM requests JOIN batches AS o ON o.id = requests.batch
                 WHERE requests.state = 'asked' AND purpose = 'l1-settle' AND o.scope = b.scope))
             ORDER BY due_at, id LIMIT 1",
        )
        .and_then(|mut query| query.query_row([at as i64], |row| row.get(0)).optional())
        .map_err(failure)?;
    id.map(|id| work::batch(db, work::BatchId(id))).transpose()
}

/// Returns when the next batch of a layer that backs off is due.
fn next_attempt(db: &Connection, layer: &str, after: Instant) -> Result<Option<Instant>> {
    db.prepare_cached("SELECT min(due_at) FROM batches WHERE state = 'due' AND layer = ?1 AND due_at > ?2")
        .and_then(|mut query| query.query_row(params![layer, after as i64], |row| row.get::<_, Option<i64>>(0)))
        .map(|at| at.map(|at| at as Instant))
        .map_err(failure)
}

/// A session with messages that no batch has taken.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    session: SessionId,
    scope: ScopeId,
    /// User turns that wait, counted up to the threshold.
    turns: u32,
    /// Batches that the session has had.
    batches: u32,
    /// The session's latest event.
    active_at: Instant,
    /// Session end or flush has asked for the oldest waiting message.
    is_flushed: bool,
    /// A batch of the session is under way; one that backs off does not count.
    is_working: bool,
}

impl Waiting {
    /// Returns when the session's next batch is due, which may be in the past.
    fn due_at(&self, pipeline: &Pipeline) -> Instant {
        if self.is_flushed || self.turns >= threshold(pipeline, self.batches) { 0 } else { self.active_at + pipeline.l1_idle_timeout_seconds * 1000 }
    }
}

/// Returns how many user turns make a session's next batch due: 1, 2, 4, … while it warms up, then N.
fn threshold(pipeline: &Pipeline, batches: u32) -> u32 {
    let all = pipeline.every_n_conversations.max(1);
    if pipeline.enable_warmup { all.min(1_u32.checked_shl(batches).unwrap_or(all)) } else { all }
}

/// Returns the first session after `after` that has waiting messages.
fn next_waiting(db: &Connection, after: SessionId, pipeline: &Pipeline) -> Result<Option<Waiting>> {
    let first: Option<(i64, i64)> = db
        .prepare_cached("SELECT session, id FROM messages WHERE batch IS NULL AND worth = 1 AND session > ?1 ORDER BY session, id LIMIT 1")
        .and_then(|mut query| query.query_row([after.0], |row| Ok((row.get(0)?, row.get(1)?))).optional())
        .map_err(failure)?;
    let Some((session, first)) = first else { return Ok(None) };
    let turns = db
        .prepare_cached("SELECT count(*) FROM (SELECT 1 FROM messages WHERE session = ?1 AND batch IS NULL AND worth = 1 AND role = 'user' LIMIT ?2)")
        .and_then(|mut query| query.query_row(params![session, pipeline.every_n_conversations.max(1)], |row| row.get(0)))
        .map_err(failure)?;
    // Named, for the index by layer would read all batches of the past.
    let is_working = db
        .prepare_cached("SELECT 1 FROM batches INDEXED BY batches_session WHERE session = ?1 AND layer = 'l1' AND state IN ('due', 'asked') AND (state = 'asked' OR attempts = 0)")
        .and_then(|mut query| query.exists([session]))
        .map_err(failure)?;
    db.prepare_cached("SELECT scope, l1_batches, active_at, flushed FROM sessions WHERE id = ?1")
        .and_then(|mut query| {
            query.query_row([session], |row| {
                Ok(Waiting {
                    session: SessionId(session),
                    scope: ScopeId(row.get(0)?),
                    turns,
                    batches: row.get(1)?,
                    active_at: row.get::<_, i64>(2)? as Instant,
                    is_flushed: row.get::<_, i64>(3)? >= first,
                    is_working,
                })
            })
        })
        .map(Some)
        .map_err(failure)
}

/// Makes the waiting messages of a session due, and ends the session if a reason is given.
pub fn end_session(tx: &Transaction<'_>, scope: ScopeId, name: &str, reason: &str, at: Instant) -> Result<()> {
    tx.prepare_cached(
        "UPDATE sessions SET ended_at = ?3, end_reason = ?4, active_at = max(active_at, ?3),
           flushed = coalesce((SELECT max(id) FROM messages WHERE session = sessions.id), 0)
         WHERE scope = ?1 AND name = ?2",
    )
    .and_then(|mut update| update.execute(params![scope.0, if name.is_empty() { "default" } else { name }, at as i64, reason]))
    .map_err(failure)?;
    flush_scenes(tx, scope, at)
}

/// Makes all waiting messages and all backing-off batches due.
pub fn flush(tx: &Transaction<'_>, at: Instant) -> Result<()> {
    tx.execute(
        "UPDATE sessions SET flushed = (SELECT max(id) FROM messages WHERE session = sessions.id)
         WHERE id IN (SELECT DISTINCT session FROM messages WHERE batch IS NULL AND worth = 1)",
        [],
    )
    .map_err(failure)?;
    tx.execute("UPDATE batches SET due_at = ?1 WHERE state = 'due' AND due_at > ?1", [at as i64]).map_err(failure)?;
    let scopes: Vec<i64> =
        tx.prepare_cached("SELECT id FROM scopes ORDER BY id").and_then(|mut query| query.query_map([], |row| row.get(0))?.collect()).map_err(failure)?;
    for scope in scopes {
        flush_scenes(tx, ScopeId(scope), at)?;
    }
    Ok(())
}

/// What waits, for `status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// Since when the oldest message waits that no L1 batch has taken.
    pub since: Option<Instant>,
    /// When the next session with such messages is due at the latest.
    pub due_at: Option<Instant>,
}

/// Returns what waits for L1.
pub fn backlog(db: &Connection, settings: &settings::Settings) -> Result<Backlog> {
    let since: Option<i64> = db
        .prepare_cached("SELECT min(recorded_at) FROM messages WHERE batch IS NULL AND worth = 1")
        .and_then(|mut query| query.query_row([], |row| row.get(0)))
        .map_err(failure)?;
    let mut due = Next::default();
    let mut session = SessionId(0);
    while let Some(waiting) = next_waiting(db, session, &settings.pipeline)? {
        session = waiting.session;
        due.at(Some(waiting.due_at(&settings.pipeline)));
    }
    Ok(Backlog { since: since.map(|at| at as Instant), due_at: due.0 })
}

/// Returns what waits for L2 and L3 and since when, for `status`. Sessions count as active.
pub fn waiting_pages(db: &Connection, settings: &settings::Settings, has_model: bool) -> Result<serde_json::Value> {
    let mut scenes = Vec::new();
    for waiting in l2::waiting(db)? {
        scenes.push(serde_json::json!({
            "scope": waiting.scope.0,
            "atoms": waiting.atoms,
            "since": waiting.since,
            "due-at": scenes_due_at(db, &waiting, &settings.pipeline, waiting.active_at)?,
            "upkeep": waiting.upkeep,
        }));
    }
    let mut personas = Vec::new();
    for waiting in l3::waiting(db, settings, has_model)? {
        personas.push(serde_json::json!({"scope": waiting.scope.0, "trigger": waiting.trigger.word(), "since": waiting.since}));
    }
    Ok(serde_json::json!({"l2": scenes, "l3": personas}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_up_doubles_up_to_the_setting() {
        let pipeline = Pipeline::default();
        assert_eq!((0..6).map(|batches| threshold(&pipeline, batches)).collect::<Vec<_>>(), [1, 2, 4, 5, 5, 5]);
        assert_eq!(threshold(&pipeline, 1000), 5);
        let cold = Pipeline { enable_warmup: false, ..Pipeline::default() };
        assert_eq!(threshold(&cold, 0), 5);
    }

    #[test]
    fn pauses_double_and_end() {
        assert_eq!((1..5).map(backoff_ms).collect::<Vec<_>>(), [30_000, 60_000, 120_000, 240_000]);
        assert_eq!(backoff_ms(u32::MAX), LONGEST_BACKOFF_MS);
    }
}
