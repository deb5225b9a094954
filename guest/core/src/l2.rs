//! L2: scenes. Atoms that no scene has taken yet become operations on pages.
//!
//! A model answers with operations, which are checked whole and applied in the transaction that ends
//! the batch; an answer with one bad operation changes nothing. It never touches files. Without a
//! model `rules` groups the atoms. Limits and heat are this module's, not the prompt's.

mod answer;
mod apply;
mod choose;
pub(crate) mod language;
mod prompt;
mod rules;

pub(crate) use answer::object;
pub(crate) use choose::is_wide;
pub(crate) use prompt::struck;

use crate::calendar::Calendar;
use crate::contract::{Instant, LlmRequest, Result};
use crate::l0::ScopeId;
use crate::pages::{self, Page, PageId, block};
use crate::settings::Settings;
use crate::store::failure;
use crate::work::{self, Batch, BatchId, Job, Step};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::{Deserialize, Serialize};

/// Characters of a scene's body, ids included (the reference system's bound on a file).
pub const MAX_SCENE_CHARS: usize = 1_500;

/// Characters of a scene's summary: 40 words with room.
pub const MAX_SUMMARY_CHARS: usize = 320;

/// New scenes of one batch (the reference system's bound).
pub const MAX_NEW_SCENES: usize = 1;

/// Atoms that one batch takes: with 200 characters each they fill a quarter of a small model's window.
pub const MAX_BATCH_ATOMS: u32 = 40;

/// Scenes shown in full at first.
pub const MAX_SHOWN: usize = 5;

/// How often a model may ask for more scene text in one batch,
pub const MAX_ROUNDS: u32 = 2;

/// and how many scenes each time.
pub const MAX_NEEDED: usize = 5;

/// Bound on the answer, in tokens: five rewritten scenes.
const MAX_ANSWER_TOKENS: u32 = 4_096;

/// How long the host may take (the reference system's 300 s).
const TIMEOUT_MS: u32 = 300_000;

/// An atom as scenes see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The row.
    pub id: i64,
    /// The public id.
    pub uid: String,
    /// `persona`, `episodic`, `instruction`.
    pub kind: String,
    /// The words.
    pub text: String,
    /// The scene that L1 named.
    pub scene: String,
    /// Who said it.
    pub origin: String,
    /// 0 to 100, or -1.
    pub priority: i64,
    /// When it happened, for episodes.
    pub event_start: Option<Instant>,
    /// It is still believed.
    pub believed: bool,
}

/// The columns of a [`Fact`].
pub const FACT: &str = "id, uid, kind, text, scene, origin, priority, event_start, believed_to IS NULL";

/// Reads a [`Fact`].
pub fn fact(row: &Row<'_>) -> rusqlite::Result<Fact> {
    Ok(Fact {
        id: row.get(0)?,
        uid: row.get(1)?,
        kind: row.get(2)?,
        text: row.get(3)?,
        scene: row.get(4)?,
        origin: row.get(5)?,
        priority: row.get(6)?,
        event_start: row.get(7)?,
        believed: row.get(8)?,
    })
}

/// What a batch has worked out so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Draft {
    /// Public ids of the scenes shown in full, and the revision that was shown.
    shown: Vec<(String, u32)>,
    /// How often more scene text was asked for.
    rounds: u32,
    /// Public ids of the atoms that were shown.
    facts: Vec<String>,
}

/// What waits for L2 in a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Whose.
    pub scope: ScopeId,
    /// Atoms that no batch has taken, counted up to a full batch.
    pub atoms: u32,
    /// When the oldest of them was written; absent if only upkeep waits.
    pub since: Option<Instant>,
    /// When the last L2 batch of the scope ended.
    pub last: Option<Instant>,
    /// A full batch waits, or atoms that the last batch left for the next one: no need to wait.
    pub backlog: bool,
    /// Some scene states what is no longer believed.
    pub upkeep: bool,
    /// The latest event of any session of the scope.
    pub active_at: Instant,
}

/// Returns what waits for L2, by scope. Scopes with a batch under way are left out: their turn comes after it.
pub fn waiting(db: &Connection) -> Result<Vec<Waiting>> {
    // The index is named, for any other by scope would read every atom once all have their scene.
    let scopes: Vec<(i64, i64)> = db
        .prepare_cached(
            "SELECT scopes.id, coalesce((SELECT max(active_at) FROM sessions WHERE scope = scopes.id), 0) FROM scopes
             WHERE NOT EXISTS (SELECT 1 FROM batches WHERE layer = 'l2' AND scope = scopes.id AND state IN ('due', 'asked'))
               AND (EXISTS (SELECT 1 FROM atoms INDEXED BY atoms_unscened WHERE scope = scopes.id AND scene_batch IS NULL AND believed_to IS NULL)
                 OR EXISTS (SELECT 1 FROM pages WHERE scope = scopes.id AND kind = 'scene' AND archived_at IS NULL))
             ORDER BY scopes.id",
        )
        .and_then(|mut query| query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .map_err(failure)?;
    let mut waiting = Vec::new();
    for (scope, active_at) in scopes {
        let (atoms, since): (u32, Option<i64>) = db
            .prepare_cached(
                "SELECT count(*), min(believed_from) FROM
                   (SELECT believed_from FROM atoms INDEXED BY atoms_unscened WHERE scope = ?1 AND scene_batch IS NULL AND believed_to IS NULL ORDER BY id LIMIT ?2)",
            )
            .and_then(|mut query| query.query_row(params![scope, MAX_BATCH_ATOMS], |row| Ok((row.get(0)?, row.get(1)?))))
            .map_err(failure)?;
        let upkeep = needs_upkeep(db, ScopeId(scope))?;
        if atoms > 0 || upkeep {
            waiting.push(Waiting {
                scope: ScopeId(scope),
                atoms,
                since: since.map(|since| since as u64),
                last: last_run(db, "l2", ScopeId(scope))?,
                backlog: atoms >= MAX_BATCH_ATOMS || left_over(db, ScopeId(scope))?,
                upkeep,
                active_at: active_at as u64,
            });
        }
    }
    Ok(waiting)
}

/// Returns whether an atom waits that is older than one that a batch has taken.
fn left_over(db: &Connection, scope: ScopeId) -> Result<bool> {
    db.prepare_cached(
        "SELECT 1 FROM atoms INDEXED BY atoms_unscened WHERE scope = ?1 AND scene_batch IS NULL AND believed_to IS NULL AND id <
           (SELECT max(id) FROM atoms WHERE scene_batch = (SELECT max(id) FROM batches WHERE layer = 'l2' AND scope = ?1 AND state = 'done')) LIMIT 1",
    )
    .and_then(|mut query| query.exists([scope.0]))
    .map_err(failure)
}

/// Returns when a layer's last batch of a scope ended well.
pub fn last_run(db: &Connection, layer: &str, scope: ScopeId) -> Result<Option<Instant>> {
    db.prepare_cached("SELECT max(done_at) FROM batches WHERE layer = ?1 AND scope = ?2 AND state = 'done'")
        .and_then(|mut query| query.query_row(params![layer, scope.0], |row| row.get::<_, Option<i64>>(0)))
        .map(|at| at.map(|at| at as u64))
        .map_err(failure)
}

/// Returns the live scenes whose current revision has a block that rests only on atoms that are no longer believed, other
/// than blocks written by hand, which only a hand changes.
fn outdated(db: &Connection, scope: ScopeId) -> Result<Vec<i64>> {
    let places: Vec<(i64, usize)> = db
        .prepare_cached(
            "SELECT grounds.page, grounds.place
               FROM pages JOIN grounds ON grounds.page = pages.id AND grounds.revision = pages.revision
               LEFT JOIN atoms ON atoms.uid = grounds.atom
              WHERE pages.scope = ?1 AND pages.kind = 'scene' AND pages.archived_at IS NULL
              GROUP BY grounds.page, grounds.place HAVING max(coalesce(atoms.believed_to IS NULL, 1)) = 0 ORDER BY grounds.page",
        )
        .and_then(|mut query| query.query_map([scope.0], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .map_err(failure)?;
    let mut outdated = Vec::new();
    for (row, place) in places {
        if outdated.last() == Some(&row) {
            continue;
        }
        let page = pages::load(db, PageId(row))?;
        if block::parse(&page.body).get(place).is_none_or(|block| !page.hand.contains(&block.text)) {
            outdated.push(row);
        }
    }
    Ok(outdated)
}

/// Returns whether a live scene states what is no longer believed and no batch has tried it since: what it left, another
/// like it would leave too. A dead one waits for `retry`; what changes on the page, or under it, makes a new one.
fn needs_upkeep(db: &Connection, scope: ScopeId) -> Result<bool> {
    let (begun_at, ended_at): (i64, i64) = db
        .prepare_cached(
            "SELECT coalesce(max(created_at), -1), coalesce(max(iif(state = 'done', done_at, created_at)), -1) FROM batches
              WHERE layer = 'l2' AND scope = ?1 AND state IN ('done', 'dead')",
        )
        .and_then(|mut query| query.query_row([scope.0], |row| Ok((row.get(0)?, row.get(1)?))))
        .map_err(failure)?;
    for page in outdated(db, scope)? {
        // The batch itself may have written the page.
        let is_new = db
            .prepare_cached(
                "SELECT pages.updated_at > ?3 OR coalesce(max(atoms.believed_to), 0) > ?2 FROM pages
                   LEFT JOIN grounds ON grounds.page = pages.id AND grounds.revision = pages.revision
                   LEFT JOIN atoms ON atoms.uid = grounds.atom WHERE pages.id = ?1",
            )
            .and_then(|mut query| query.query_row(params![page, begun_at, ended_at], |row| row.get(0)))
            .map_err(failure)?;
        if is_new {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Opens a batch over what waits in a scope.
pub fn open(tx: &Transaction<'_>, scope: ScopeId, at: Instant) -> Result<BatchId> {
    let batch = work::create(tx, "l2", scope, None, at)?;
    tx.prepare_cached(
        "UPDATE atoms SET scene_batch = ?2 WHERE id IN
           (SELECT id FROM atoms INDEXED BY atoms_unscened WHERE scope = ?1 AND scene_batch IS NULL AND believed_to IS NULL ORDER BY id LIMIT ?3)",
    )
    .and_then(|mut update| update.execute(params![scope.0, batch.0, MAX_BATCH_ATOMS]))
    .map_err(failure)?;
    Ok(batch)
}

/// Starts a batch, or asks again after a failure.
pub fn start(job: &mut Job<'_>, batch: &Batch) -> Result<Step> {
    let facts = taken(job.tx, batch.id)?;
    if facts.is_empty() && outdated(job.tx, batch.scope)?.is_empty() {
        // An earlier attempt may have noted facts that have ended since: a rebuild must not take them up.
        keep_draft(job.tx, batch.id, &Draft::default())?;
        return Ok(Step::Done(Vec::new()));
    }
    let mut draft: Draft = serde_json::from_str(&batch.draft).unwrap_or_default();
    draft.facts = facts.iter().map(|fact| fact.uid.clone()).collect();
    if !job.models.llm.available {
        // A rebuild asks which facts the rules had before them.
        keep_draft(job.tx, batch.id, &draft)?;
        return rules::run(job, batch, &facts).map(Step::Done);
    }
    let scenes = pages::live(job.tx, batch.scope)?;
    let asked_for: Vec<&Page> = scenes.iter().filter(|scene| draft.shown.iter().any(|(uid, _)| *uid == scene.uid)).collect();
    let shown = if draft.rounds > 0 { asked_for } else { choose::scenes(job.tx, &scenes, &facts, &outdated(job.tx, batch.scope)?)? };
    draft.shown = shown.iter().map(|scene| (scene.uid.clone(), scene.number)).collect();
    ask(job, batch, &facts, &scenes, &draft)
}

fn ask(job: &mut Job<'_>, batch: &Batch, facts: &[Fact], scenes: &[Page], draft: &Draft) -> Result<Step> {
    let calendar = Calendar::new(&job.settings.timezone.0)?;
    let problem = last_problem(job.tx, batch)?;
    let shown: Vec<&Page> = scenes.iter().filter(|scene| draft.shown.iter().any(|(uid, _)| *uid == scene.uid)).collect();
    let input = prompt::Input {
        now: job.at,
        calendar: &calendar,
        max_scenes: job.settings.persona.max_scenes as usize,
        facts,
        scenes,
        shown: &shown,
        rounds_left: MAX_ROUNDS.saturating_sub(draft.rounds),
        problem: &problem,
    };
    let request = LlmRequest {
        purpose: "l2-scenes".into(),
        system: prompt::SYSTEM.trim_end().to_owned(),
        prompt: prompt::build(job.tx, &input)?,
        schema_json: answer::schema(),
        max_tokens: MAX_ANSWER_TOKENS,
        timeout_ms: TIMEOUT_MS,
    };
    keep_draft(job.tx, batch.id, draft)?;
    work::ask(job, batch.id, request)?;
    Ok(Step::Asked)
}

/// Returns why the last attempt failed, so that the model can do better.
pub(crate) fn last_problem(db: &Connection, batch: &Batch) -> Result<String> {
    if batch.attempts == 0 {
        return Ok(String::new());
    }
    db.prepare_cached("SELECT reason FROM requests WHERE batch = ?1 AND state = 'failed' AND answer IS NOT NULL ORDER BY id DESC LIMIT 1")
        .and_then(|mut query| query.query_row([batch.id.0], |row| row.get(0)).optional())
        .map(Option::unwrap_or_default)
        .map_err(failure)
}

/// Keeps a draft without starting the attempts over.
fn keep_draft(tx: &Transaction<'_>, batch: BatchId, draft: &Draft) -> Result<()> {
    let draft = serde_json::to_string(draft).expect("a draft of strings and numbers serializes");
    tx.prepare_cached("UPDATE batches SET draft = ?2 WHERE id = ?1").and_then(|mut update| update.execute(params![batch.0, draft])).map(|_| ()).map_err(failure)
}

/// Takes a model's answer.
pub fn answered(job: &mut Job<'_>, batch: &Batch, text: &str) -> Result<Step> {
    let mut draft: Draft = serde_json::from_str(&batch.draft).unwrap_or_default();
    let facts = shown_facts(job.tx, &draft)?;
    let scenes = pages::live(job.tx, batch.scope)?;
    let parsed = match answer::parse(text) {
        Ok(parsed) => parsed,
        Err(reason) => return Ok(Step::Failed(reason)),
    };
    if parsed.operations.is_empty() && !parsed.need.is_empty() {
        return more(job, batch, &facts, &scenes, &mut draft, &parsed.need);
    }
    let plan = match apply::check(job.tx, batch, job.settings, &facts, &scenes, &draft.shown, &parsed) {
        Ok(plan) => plan,
        Err(apply::Refusal::Answer(reason)) => return Ok(Step::Failed(reason)),
        Err(apply::Refusal::Store(failure)) => return Err(failure),
    };
    let changed = apply::apply(job.tx, batch, &plan, job.settings, job.at)?;
    if let Some(why) = &parsed.persona_update {
        crate::l3::request(job.tx, batch.scope, why, job.at)?;
    }
    Ok(Step::Done(changed))
}

/// Derives a batch's scenes again from what it was shown and the stored answer (none: the rules),
/// without asking anybody. Batches derived in the order in which they were applied give the same pages.
pub fn derive(job: &mut Job<'_>, batch: &Batch, answer: Option<&str>) -> Result<Step> {
    match answer {
        Some(text) => answered(job, batch, text),
        None => {
            let draft: Draft = serde_json::from_str(&batch.draft).unwrap_or_default();
            let facts = shown_facts(job.tx, &draft)?;
            rules::run(job, batch, &facts).map(Step::Done)
        }
    }
}

/// Returns the facts that a question showed, whether they are still believed or not.
fn shown_facts(db: &Connection, draft: &Draft) -> Result<Vec<Fact>> {
    let mut facts = Vec::new();
    for uid in &draft.facts {
        facts.extend(fact_by_uid(db, uid)?);
    }
    Ok(facts)
}

/// Answers a request for more scene text within the bound.
fn more(job: &mut Job<'_>, batch: &Batch, facts: &[Fact], scenes: &[Page], draft: &mut Draft, need: &[String]) -> Result<Step> {
    if draft.rounds >= MAX_ROUNDS {
        return Ok(Step::Failed(format!("asked for scene text more than {MAX_ROUNDS} times")));
    }
    let mut added = false;
    for name in need.iter().take(MAX_NEEDED) {
        if let Some(scene) = apply::find(scenes, name)
            && !draft.shown.iter().any(|(uid, _)| *uid == scene.uid)
        {
            draft.shown.push((scene.uid.clone(), scene.number));
            added = true;
        }
    }
    if !added {
        return Ok(Step::Failed("asked for scenes that do not exist or were shown already".into()));
    }
    draft.rounds += 1;
    ask(job, batch, facts, scenes, draft)
}

/// Returns the atoms of a batch that are still believed, oldest first.
fn taken(db: &Connection, batch: BatchId) -> Result<Vec<Fact>> {
    db.prepare_cached(&format!("SELECT {FACT} FROM atoms WHERE scene_batch = ?1 AND believed_to IS NULL ORDER BY id"))
        .and_then(|mut query| query.query_map([batch.0], fact)?.collect())
        .map_err(failure)
}

/// Returns an atom by its public id.
pub fn fact_by_uid(db: &Connection, uid: &str) -> Result<Option<Fact>> {
    db.prepare_cached(&format!("SELECT {FACT} FROM atoms WHERE uid = ?1")).and_then(|mut query| query.query_row([uid], fact).optional()).map_err(failure)
}

/// Returns the scenes of a scope for a prompt: file and summary, by path, so that the text changes
/// only when a summary does.
pub fn navigation(db: &Connection, scope: ScopeId) -> Result<String> {
    let mut scenes = pages::live(db, scope)?;
    scenes.sort_by(|a, b| a.path.cmp(&b.path));
    let lines: Vec<String> = scenes.iter().map(|scene| format!("- {}: {}", scene.path, scene.summary)).collect();
    Ok(lines.join("\n"))
}

/// Drops the bodies of old revisions of a scene after a change.
fn retire(tx: &Transaction<'_>, page: pages::PageId, settings: &Settings) -> Result<()> {
    pages::retire_bodies(tx, page, settings.persona.scene_backup_count).map(|_| ())
}
