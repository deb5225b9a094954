//! L3: one persona a scope, made from the scenes that changed since the last one.
//!
//! Why it is due is a function of rows, looked at in the reference system's order. Statements name
//! the atoms they rest on, and at least one of those must be something that the user said or edited.
//! What a human wrote on the page stays on it.

mod answer;
mod prompt;
mod rules;

use crate::calendar::Calendar;
use crate::contract::{Instant, LlmRequest, Result};
use crate::l0::ScopeId;
use crate::l2::{self, Fact};
use crate::pages::{self, Author, Kind, NewPage, Page, Write, block};
use crate::settings::Settings;
use crate::store::failure;
use crate::work::{self, Batch, BatchId, Job, Step};
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde::{Deserialize, Serialize};

/// Characters of the persona's body, ids included (the reference system's bound).
pub const MAX_PERSONA_CHARS: usize = 2_000;

/// Instructions shown beside the scenes.
const MAX_INSTRUCTIONS: u32 = 20;

/// Characters of changed scenes that one question carries: all fifteen at their bound.
const MAX_SCENE_TEXT: usize = 24_000;

/// Bound on the answer, in tokens.
const MAX_ANSWER_TOKENS: u32 = 3_072;

/// How long the host may take (the reference system's 180 s).
const TIMEOUT_MS: u32 = 180_000;

/// Longest reason of a request for a new persona, in characters.
const MAX_WHY: usize = 300;

/// Why a persona is due, in the order in which the reasons are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// Somebody asked.
    Requested,
    /// There are scenes and no persona.
    ColdStart,
    /// The persona's body is empty.
    BodyLost,
    /// The first scenes beside a persona that was there before them.
    FirstScenes,
    /// So many atoms are new (`persona.triggerEveryN`).
    NewAtoms,
}

impl Trigger {
    /// Returns the word that documents use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::ColdStart => "cold-start",
            Self::BodyLost => "body-lost",
            Self::FirstScenes => "first-scenes",
            Self::NewAtoms => "new-atoms",
        }
    }
}

#[derive(Clone, Debug, Default)]
struct State {
    requested: Option<String>,
    asked_at: Option<Instant>,
    lost_at: Option<Instant>,
    seen_atom: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Draft {
    trigger: Option<Trigger>,
    /// The persona's revision that the question showed; 0 if there was none.
    revision: u32,
    /// Public ids and revisions of the scenes that it showed.
    scenes: Vec<(String, u32)>,
    /// The newest atom then.
    newest_atom: i64,
}

fn state(db: &Connection, scope: ScopeId) -> Result<State> {
    db.prepare_cached("SELECT requested, asked_at, lost_at, seen_atom FROM persona_states WHERE scope = ?1")
        .and_then(|mut query| {
            query
                .query_row([scope.0], |row| Ok(State { requested: row.get(0)?, asked_at: row.get(1)?, lost_at: row.get(2)?, seen_atom: row.get(3)? }))
                .optional()
        })
        .map(Option::unwrap_or_default)
        .map_err(failure)
}

/// Asks for a new persona; the first reason is kept until it is made.
pub fn request(tx: &Transaction<'_>, scope: ScopeId, why: &str, at: Instant) -> Result<()> {
    tx.prepare_cached(
        "INSERT INTO persona_states (scope, requested, asked_at) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET requested = coalesce(requested, excluded.requested), asked_at = coalesce(asked_at, excluded.asked_at)",
    )
    .and_then(|mut upsert| upsert.execute(params![scope.0, pages::one_line(why, MAX_WHY), at as i64]))
    .map(|_| ())
    .map_err(failure)
}

/// Notes that the persona's body was found empty.
pub fn lost(tx: &Transaction<'_>, scope: ScopeId, at: Instant) -> Result<()> {
    tx.prepare_cached("INSERT INTO persona_states (scope, lost_at) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET lost_at = coalesce(lost_at, excluded.lost_at)")
        .and_then(|mut upsert| upsert.execute(params![scope.0, at as i64]))
        .map(|_| ())
        .map_err(failure)
}

/// Returns the persona of a scope for a prompt: its text without ids; `memory_trace` of `persona` has them.
pub fn section(db: &Connection, scope: ScopeId) -> Result<String> {
    let Some(persona) = pages::persona(db, scope)? else { return Ok(String::new()) };
    let blocks: Vec<pages::Block> = block::parse(&persona.body).into_iter().map(|block| pages::Block::new(block.text, Vec::new())).collect();
    Ok(block::render(&blocks))
}

/// What waits for L3 in a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Whose.
    pub scope: ScopeId,
    /// Why.
    pub trigger: Trigger,
    /// Since when.
    pub since: Instant,
}

/// Returns what waits for L3, by scope. Scopes in which L2 or L3 is under way are left out: their turn comes after it.
pub fn waiting(db: &Connection, settings: &Settings, has_model: bool) -> Result<Vec<Waiting>> {
    let scopes: Vec<i64> = db
        .prepare_cached(
            "SELECT id FROM scopes
              WHERE (EXISTS (SELECT 1 FROM folders WHERE scope = scopes.id) OR EXISTS (SELECT 1 FROM persona_states WHERE scope = scopes.id))
                AND NOT EXISTS (SELECT 1 FROM batches WHERE layer IN ('l2', 'l3') AND scope = scopes.id AND state IN ('due', 'asked')) ORDER BY id",
        )
        .and_then(|mut query| query.query_map([], |row| row.get(0))?.collect())
        .map_err(failure)?;
    let mut waiting = Vec::new();
    for scope in scopes {
        if let Some(found) = trigger(db, settings, ScopeId(scope), has_model)?
            && !is_given_up(db, &found)?
        {
            waiting.push(found);
        }
    }
    Ok(waiting)
}

/// Returns whether a dead batch has tried the same: nothing has asked and no scene has changed since.
/// It waits for `retry`; a change makes a new batch.
fn is_given_up(db: &Connection, waiting: &Waiting) -> Result<bool> {
    db.prepare_cached(
        "SELECT 1 FROM batches WHERE layer = 'l3' AND scope = ?1 AND state = 'dead' AND created_at >= ?2
            AND created_at >= (SELECT coalesce(max(updated_at), 0) FROM pages WHERE scope = ?1 AND kind = 'scene')",
    )
    .and_then(|mut query| query.exists(params![waiting.scope.0, waiting.since as i64]))
    .map_err(failure)
}

/// Returns why the persona of a scope is due, if it is. Without a model a persona costs nothing, so
/// one new atom is enough.
pub fn trigger(db: &Connection, settings: &Settings, scope: ScopeId, has_model: bool) -> Result<Option<Waiting>> {
    let state = state(db, scope)?;
    let persona = pages::persona(db, scope)?;
    let scenes = pages::live(db, scope)?;
    let due = |trigger, since| Ok(Some(Waiting { scope, trigger, since }));
    let newest_scene = scenes.iter().map(|scene| scene.updated_at).max().unwrap_or(0);
    if state.requested.is_some() {
        return due(Trigger::Requested, state.asked_at.unwrap_or(0));
    }
    let Some(persona) = persona else {
        return match scenes.iter().map(|scene| scene.created_at).min() {
            Some(first) => due(Trigger::ColdStart, first),
            None => Ok(None),
        };
    };
    if state.lost_at.is_some() || persona.body.trim().is_empty() {
        return due(Trigger::BodyLost, state.lost_at.unwrap_or(persona.updated_at));
    }
    let knows_scenes = db.prepare_cached("SELECT 1 FROM persona_seen WHERE scope = ?1").and_then(|mut query| query.exists([scope.0])).map_err(failure)?;
    if !knows_scenes && !scenes.is_empty() {
        return due(Trigger::FirstScenes, newest_scene);
    }
    let every = if has_model { settings.persona.trigger_every_n } else { settings.persona.trigger_every_n.min(1) };
    let (count, since): (u32, Option<i64>) = db
        .prepare_cached(
            "SELECT count(*), max(believed_from) FROM
               (SELECT believed_from FROM atoms WHERE scope = ?1 AND id > ?2 AND believed_to IS NULL ORDER BY id LIMIT ?3)",
        )
        .and_then(|mut query| query.query_row(params![scope.0, state.seen_atom, every], |row| Ok((row.get(0)?, row.get(1)?))))
        .map_err(failure)?;
    if every > 0 && count >= every && !scenes.is_empty() {
        return due(Trigger::NewAtoms, since.unwrap_or(0) as u64);
    }
    Ok(None)
}

/// Opens a batch for the persona of a scope.
pub fn open(tx: &Transaction<'_>, waiting: &Waiting, at: Instant) -> Result<BatchId> {
    let batch = work::create(tx, "l3", waiting.scope, None, at)?;
    let draft = Draft { trigger: Some(waiting.trigger), ..Draft::default() };
    keep_draft(tx, batch, &draft)?;
    Ok(batch)
}

fn keep_draft(tx: &Transaction<'_>, batch: BatchId, draft: &Draft) -> Result<()> {
    let draft = serde_json::to_string(draft).expect("a draft of strings and numbers serializes");
    tx.prepare_cached("UPDATE batches SET draft = ?2 WHERE id = ?1").and_then(|mut update| update.execute(params![batch.0, draft])).map(|_| ()).map_err(failure)
}

/// Returns the scenes whose current revision the persona has not seen, all of them if it has to start over.
fn changed(db: &Connection, scope: ScopeId, over: bool) -> Result<Vec<Page>> {
    let mut scenes = pages::live(db, scope)?;
    if over {
        return Ok(scenes);
    }
    let seen: std::collections::BTreeMap<i64, u32> = db
        .prepare_cached("SELECT page, revision FROM persona_seen WHERE scope = ?1")
        .and_then(|mut query| query.query_map([scope.0], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .map_err(failure)?;
    scenes.retain(|scene| seen.get(&scene.id.0) != Some(&scene.number));
    Ok(scenes)
}

fn instructions(db: &Connection, scope: ScopeId) -> Result<Vec<Fact>> {
    db.prepare_cached(&format!(
        "SELECT {} FROM atoms WHERE scope = ?1 AND kind = 'instruction' AND believed_to IS NULL AND origin IN ('user', 'human', 'rules')
          ORDER BY priority < 0 DESC, priority DESC, id DESC LIMIT ?2",
        l2::FACT
    ))
    .and_then(|mut query| query.query_map(params![scope.0, MAX_INSTRUCTIONS], l2::fact)?.collect())
    .map_err(failure)
}

fn newest_atom(db: &Connection, scope: ScopeId) -> Result<i64> {
    db.prepare_cached("SELECT coalesce(max(id), 0) FROM atoms WHERE scope = ?1")
        .and_then(|mut query| query.query_row([scope.0], |row| row.get(0)))
        .map_err(failure)
}

/// Starts a batch, or asks again after a failure.
pub fn start(job: &mut Job<'_>, batch: &Batch) -> Result<Step> {
    let mut draft: Draft = serde_json::from_str(&batch.draft).unwrap_or_default();
    let persona = pages::persona(job.tx, batch.scope)?;
    let over = persona.as_ref().is_none_or(|persona| persona.body.trim().is_empty()) || draft.trigger == Some(Trigger::BodyLost);
    let scenes = changed(job.tx, batch.scope, over)?;
    let instructions = instructions(job.tx, batch.scope)?;
    draft.revision = persona.as_ref().map_or(0, |persona| persona.number);
    draft.scenes = scenes.iter().map(|scene| (scene.uid.clone(), scene.number)).collect();
    draft.newest_atom = newest_atom(job.tx, batch.scope)?;
    if scenes.is_empty() && (!over || instructions.is_empty()) {
        // Nothing new to say: the reasons are met all the same, or they would come back for ever.
        settle(job.tx, batch.scope, &draft, job.at)?;
        return Ok(Step::Done(Vec::new()));
    }
    if !job.models.llm.available {
        return rules::run(job, batch, &draft, persona.as_ref()).map(Step::Done);
    }
    let calendar = Calendar::new(&job.settings.timezone.0)?;
    let problem = l2::last_problem(job.tx, batch)?;
    let input = prompt::Input {
        now: job.at,
        calendar: &calendar,
        trigger: draft.trigger,
        persona: persona.as_ref(),
        scenes: &scenes,
        instructions: &instructions,
        problem: &problem,
    };
    let request = LlmRequest {
        purpose: "l3-persona".into(),
        system: prompt::SYSTEM.trim_end().to_owned(),
        prompt: prompt::build(job.tx, &input)?,
        schema_json: answer::schema(),
        max_tokens: MAX_ANSWER_TOKENS,
        timeout_ms: TIMEOUT_MS,
    };
    keep_draft(job.tx, batch.id, &draft)?;
    work::ask(job, batch.id, request)?;
    Ok(Step::Asked)
}

/// Takes a model's answer.
pub fn answered(job: &mut Job<'_>, batch: &Batch, text: &str) -> Result<Step> {
    let draft: Draft = serde_json::from_str(&batch.draft).unwrap_or_default();
    let persona = pages::persona(job.tx, batch.scope)?;
    if persona.as_ref().map_or(0, |persona| persona.number) != draft.revision {
        return Ok(Step::Failed("the persona was changed by somebody else in the meantime".into()));
    }
    let shown = shown_atoms(job.tx, batch.scope, &draft, persona.as_ref())?;
    let body = match answer::body(job.tx, text, &shown, persona.as_ref())? {
        Ok(body) => body,
        Err(reason) => return Ok(Step::Failed(reason)),
    };
    let changed = write(job.tx, batch, job.settings, persona.as_ref(), &body, Author::Model, job.at)?;
    settle(job.tx, batch.scope, &draft, job.at)?;
    Ok(Step::Done(changed))
}

/// Derives a batch's persona again from the stored answer (none: the rules), without asking anybody.
pub fn derive(job: &mut Job<'_>, batch: &Batch, answer: Option<&str>) -> Result<Step> {
    match answer {
        Some(text) => answered(job, batch, text),
        None => start(job, batch),
    }
}

/// Notes what a batch had seen whose result a rebuild takes as given.
pub fn given(tx: &Transaction<'_>, scope: ScopeId, at: Instant) -> Result<()> {
    let scenes = changed(tx, scope, false)?.iter().map(|scene| (scene.uid.clone(), scene.number)).collect();
    settle(tx, scope, &Draft { scenes, newest_atom: newest_atom(tx, scope)?, ..Draft::default() }, at)
}

/// Returns the atoms that a question showed: those of the scenes, the persona and the instructions.
fn shown_atoms(db: &Connection, scope: ScopeId, draft: &Draft, persona: Option<&Page>) -> Result<Vec<String>> {
    let mut atoms: Vec<String> = instructions(db, scope)?.into_iter().map(|fact| fact.uid).collect();
    for (uid, number) in &draft.scenes {
        if let Some(page) = pages::by_uid(db, uid)?
            && let Some(revision) = pages::revision(db, page.id, *number)?
        {
            atoms.extend(block::parse(&revision.body).into_iter().flat_map(|block| block.atoms));
        }
    }
    if let Some(persona) = persona {
        atoms.extend(block::parse(&persona.body).into_iter().flat_map(|block| block.atoms));
    }
    atoms.sort_unstable();
    atoms.dedup();
    Ok(atoms)
}

/// Writes a new body, hand-written blocks kept; returns what changed.
fn write(tx: &Transaction<'_>, batch: &Batch, settings: &Settings, persona: Option<&Page>, body: &str, author: Author, at: Instant) -> Result<Vec<String>> {
    let hand: Vec<String> = persona.map(|persona| persona.hand.clone()).unwrap_or_default();
    let write = Write {
        body,
        summary: "",
        heat: 0,
        author,
        how: if persona.is_some() { "update" } else { "create" },
        hand: &hand,
        beats: None,
        batch: Some(batch.id),
        at,
    };
    let id = match persona {
        Some(page) if page.body == body => {
            // Its file may have been emptied.
            tx.prepare_cached("UPDATE projections SET stale = 1 WHERE page = ?1").and_then(|mut update| update.execute([page.id.0])).map_err(failure)?;
            return Ok(Vec::new());
        }
        Some(page) => {
            pages::save(tx, page.id, &write)?;
            page.id
        }
        None => pages::create(tx, &NewPage { scope: batch.scope, kind: Kind::Persona, stem: "", created_at: at }, &write)?,
    };
    pages::retire_bodies(tx, id, settings.persona.backup_count)?;
    let page = pages::load(tx, id)?;
    Ok(vec![format!("{}@{}", page.uid, page.number)])
}

/// Notes what the persona has seen and that its reasons are met.
fn settle(tx: &Transaction<'_>, scope: ScopeId, draft: &Draft, at: Instant) -> Result<()> {
    tx.prepare_cached(
        "INSERT INTO persona_states (scope, seen_atom, ran_at) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET requested = NULL, asked_at = NULL, lost_at = NULL, seen_atom = excluded.seen_atom, ran_at = excluded.ran_at",
    )
    .and_then(|mut upsert| upsert.execute(params![scope.0, draft.newest_atom, at as i64]))
    .map_err(failure)?;
    for (uid, number) in &draft.scenes {
        tx.prepare_cached(
            "INSERT INTO persona_seen (scope, page, revision) SELECT ?1, id, ?3 FROM pages WHERE uid = ?2
             ON CONFLICT DO UPDATE SET revision = excluded.revision",
        )
        .and_then(|mut upsert| upsert.execute(params![scope.0, uid, number]))
        .map_err(failure)?;
    }
    Ok(())
}
