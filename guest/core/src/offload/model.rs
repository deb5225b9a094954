//! Summaries, boundaries and canvases by a model: three questions about a batch of at most five calls.
//!
//! The rules have answered already when a batch begins, so that nothing waits and a batch that is
//! dead leaves what the rules said. What a context shows of an entry is frozen then; a later answer
//! changes the canvas and the log, never a placeholder.

use super::boundary::Boundary;
use super::canvas::{NodeNote, Status};
use super::ledger::Entry;
use super::rows;
use super::summary::SUMMARY_MAX_CHARS;
use super::summary::command::{one_line, shorten};
use crate::contract::{Abilities, Instant, LlmRequest, Result};
use crate::l0::{ScopeId, SessionId};
use crate::store::failure;
use crate::work::{self, Batch, BatchId, Job, Step};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const SUMMARY_PROMPT: &str = include_str!("../../prompts/offload-summary.md");
const BOUNDARY_PROMPT: &str = include_str!("../../prompts/offload-boundary.md");
const CANVAS_PROMPT: &str = include_str!("../../prompts/offload-canvas.md");

/// Calls of one batch at most (the contract of this layer).
const BATCH_MAX: u32 = 5;
/// Characters of a call that a model sees (the reference's figure).
const ARGUMENTS_VIEW_CHARS: usize = 500;
/// Characters of a result that a model sees (the reference's figure).
pub const RESULT_VIEW_CHARS: usize = 2_000;
/// Calls that arrived longer ago are not summarized again when a model appears.
const FRESH_MS: u64 = 24 * 60 * 60 * 1_000;
/// Nodes that one question about a canvas shows.
const NODES_MAX: usize = 8;
const LABEL_MAX_CHARS: usize = 60;
const NODE_SUMMARY_MAX_CHARS: usize = 150;
/// Longest id of a call or node that the schema allows: a small model that loops inside of a string ends there.
const ID_MAX_CHARS: usize = 200;
const ANSWER_MAX_TOKENS: u32 = 2_048;
/// A question that takes longer has failed (the reference's figure for its summaries).
const TIMEOUT_MS: u32 = 120_000;

/// Returns a session whose calls make a batch: enough of them wait, or the task has changed.
pub fn waiting(db: &Connection, threshold: u32, at: Instant) -> Result<Option<(ScopeId, SessionId)>> {
    db.prepare_cached(
        "SELECT sessions.scope, session FROM offload_entries JOIN sessions ON sessions.id = session
         WHERE batch IS NULL AND shown IS NULL AND summary_by = 'rules' AND at > ?2
         GROUP BY session
         HAVING count(*) >= ?1 OR max(substr(node_id, 1, 3)) <> min(substr(node_id, 1, 3)) OR max(ended_at) IS NOT NULL
         ORDER BY min(offload_entries.id) LIMIT 1",
    )
    .and_then(|mut query| {
        query.query_row(params![threshold, (at.saturating_sub(FRESH_MS)) as i64], |row| Ok((ScopeId(row.get(0)?), SessionId(row.get(1)?)))).optional()
    })
    .map_err(failure)
}

/// Takes the oldest waiting calls of a session into a batch.
pub fn open(job: &Job<'_>, scope: ScopeId, session: SessionId) -> Result<BatchId> {
    let batch = work::create(job.tx, "offload", scope, Some(session), job.at)?;
    let size = job.settings.offload.max_pairs_per_batch.clamp(1, BATCH_MAX);
    job.tx
        .prepare_cached(
            "UPDATE offload_entries SET batch = ?2 WHERE id IN (SELECT id FROM offload_entries WHERE session = ?1 AND batch IS NULL AND shown IS NULL
                                                                AND summary_by = 'rules' AND at > ?3 ORDER BY ordinal LIMIT ?4)",
        )
        .and_then(|mut update| update.execute(params![session.0, batch.0, (job.at.saturating_sub(FRESH_MS)) as i64, size]))
        .map_err(failure)?;
    Ok(batch)
}

/// Asks the next question about a batch.
pub fn start(job: &mut Job<'_>, batch: &Batch) -> Result<Step> {
    // Without a model the rules have the last word; a model that comes back finds what is fresh.
    if !job.models.llm.available {
        return Ok(Step::Done(Vec::new()));
    }
    let Some(session) = batch.session else { return Ok(Step::Done(Vec::new())) };
    let entries = entries_of(job.tx, session, batch.id)?;
    if entries.is_empty() {
        return Ok(Step::Done(Vec::new()));
    }
    let board = rows::board(job.tx, session)?;
    let request = match batch.stage.as_str() {
        "boundary" => {
            let tasks: Vec<Value> = board.tasks.iter().map(|task| json!({"task": task.number, "goal": task.goal})).collect();
            let calls: Vec<&str> = entries.iter().map(|entry| entry.call_line.as_str()).collect();
            let words = board.tasks.iter().find(|task| task.number == board.current).map_or("", |task| task.goal.as_str());
            let body = json!({"tasks": tasks, "running": board.current, "user": words, "calls": calls});
            question("offload-boundary", BOUNDARY_PROMPT, body.to_string(), &boundary_schema(), &job.models.llm)
        }
        "canvas" => {
            let shown = nodes_of(job.tx, session, &entries)?;
            let body = json!({"task": board.tasks.iter().find(|task| task.number == board.current).map(|task| &task.goal), "nodes": shown});
            question("offload-canvas", CANVAS_PROMPT, body.to_string(), &canvas_schema(), &job.models.llm)
        }
        _ => {
            let mut prompt = String::from("Calls\n");
            for (at, entry) in entries.iter().enumerate() {
                let result = view(&excerpt(job.tx, &entry.uid)?, RESULT_VIEW_CHARS);
                let line = json!({"id": label(at), "call": view(&entry.call_line, ARGUMENTS_VIEW_CHARS), "failed": entry.failed, "rules": entry.summary, "result": result});
                prompt.push_str(&line.to_string());
                prompt.push('\n');
            }
            question("offload-summary", SUMMARY_PROMPT, prompt, &summary_schema(), &job.models.llm)
        }
    };
    work::ask(job, batch.id, request)?;
    Ok(Step::Asked)
}

/// Applies an answer. What in it does not fit is left out, and the rules' word stays.
pub fn answered(job: &mut Job<'_>, batch: &Batch, text: &str) -> Result<Step> {
    let Some(session) = batch.session else { return Ok(Step::Done(Vec::new())) };
    let Some(answer) = json_of(text) else { return Ok(Step::Failed("the answer holds no JSON object".into())) };
    let entries = entries_of(job.tx, session, batch.id)?;
    match batch.stage.as_str() {
        "boundary" => {
            apply_boundary(job, session, &entries, &answer)?;
            work::set_stage(job.tx, batch.id, "canvas", "")?;
            Ok(Step::Next)
        }
        "canvas" => Ok(Step::Done(apply_canvas(job, session, &answer)?)),
        _ => {
            let applied = apply_summaries(job, &entries, &answer)?;
            if applied == 0 {
                return Ok(Step::Failed("no summary in the answer names a call of the batch".into()));
            }
            let tasks: BTreeSet<&str> = entries.iter().filter_map(|entry| entry.node_id.split('-').next()).collect();
            let begins = entries.first().is_some_and(|entry| entry.node_id.ends_with("-N1"));
            let next = if tasks.len() > 1 || begins { "boundary" } else { "canvas" };
            work::set_stage(job.tx, batch.id, next, "")?;
            Ok(Step::Next)
        }
    }
}

/// Returns the session that a request is about, if it is one of this layer.
pub fn session_of(db: &Connection, request_id: &str) -> Result<Option<SessionId>> {
    let Some(id) = request_id.strip_prefix('r').and_then(|id| id.parse::<i64>().ok()) else { return Ok(None) };
    db.prepare_cached("SELECT session FROM requests JOIN batches ON batches.id = requests.batch WHERE requests.id = ?1 AND layer = 'offload'")
        .and_then(|mut query| query.query_row([id], |row| row.get::<_, Option<i64>>(0)).optional())
        .map(|session| session.flatten().map(SessionId))
        .map_err(failure)
}

fn apply_summaries(job: &Job<'_>, entries: &[Entry], answer: &Value) -> Result<usize> {
    let mut applied = 0;
    for item in answer.get("summaries").and_then(Value::as_array).into_iter().flatten() {
        let named = item.get("id").and_then(Value::as_str).and_then(|id| (0..entries.len()).find(|at| label(*at) == id));
        let said = item.get("summary").and_then(Value::as_str).map(one_line).filter(|text| !text.is_empty());
        let (Some(at), Some(said)) = (named, said) else { continue };
        let score = item.get("score").and_then(Value::as_u64).map_or(entries[at].score, |score| score.min(10) as u8);
        job.tx
            .prepare_cached("UPDATE offload_entries SET summary = ?2, score = ?3, summary_by = 'model' WHERE uid = ?1")
            .and_then(|mut update| update.execute(params![entries[at].uid, shorten(&said, SUMMARY_MAX_CHARS), score]))
            .map_err(failure)?;
        applied += 1;
    }
    Ok(applied)
}

/// Moves the batch's calls of the running task where the model says that they belong.
fn apply_boundary(job: &Job<'_>, session: SessionId, entries: &[Entry], answer: &Value) -> Result<()> {
    let mut board = rows::board(job.tx, session)?;
    let prefix = format!("{:03}-", board.current);
    let moved: Vec<&Entry> = entries.iter().filter(|entry| entry.node_id.starts_with(&prefix)).collect();
    let decision = match answer.get("decision").and_then(Value::as_str) {
        Some("new") => Boundary::New,
        Some("return") => match answer.get("task").and_then(Value::as_u64).and_then(|task| u32::try_from(task).ok()) {
            Some(task) if task != board.current && board.tasks.iter().any(|known| known.number == task) => Boundary::Return(task),
            _ => return Ok(()),
        },
        _ => return Ok(()),
    };
    // A task that holds nothing but these calls is new already: only its goal can be said better.
    let alone: i64 = job
        .tx
        .prepare_cached("SELECT count(*) FROM offload_entries WHERE session = ?1 AND node_id LIKE ?2")
        .and_then(|mut query| query.query_row(params![session.0, format!("{prefix}%")], |row| row.get(0)))
        .map_err(failure)?;
    let goal = answer.get("goal").and_then(Value::as_str).unwrap_or("");
    if decision == Boundary::New && alone as usize <= moved.len() {
        board.rename_current(goal);
    } else if !moved.is_empty() {
        board.apply(&decision, goal, job.at as i64);
        let mut nodes: BTreeMap<&str, String> = BTreeMap::new();
        for entry in moved {
            let target = match nodes.get(entry.node_id.as_str()) {
                Some(known) => known.clone(),
                None => {
                    let fresh = board.fresh_node();
                    nodes.insert(&entry.node_id, fresh.clone());
                    fresh
                }
            };
            job.tx
                .prepare_cached("UPDATE offload_entries SET node_id = ?2 WHERE uid = ?1")
                .and_then(|mut update| update.execute(params![entry.uid, target]))
                .map_err(failure)?;
        }
    }
    rows::store_board(job.tx, session, &board, job.at)
}

fn apply_canvas(job: &Job<'_>, session: SessionId, answer: &Value) -> Result<Vec<String>> {
    let ledger = rows::ledger(job.tx, session)?;
    let known: BTreeSet<&str> = ledger.entries().iter().map(|entry| entry.node_id.as_str()).collect();
    let mut changed = Vec::new();
    for item in answer.get("nodes").and_then(Value::as_array).into_iter().flatten() {
        let text = |key: &str| item.get(key).and_then(Value::as_str).map(one_line).unwrap_or_default();
        let node = text("node");
        // A node that the model made up holds no call; its calls stay where they are.
        if !known.contains(node.as_str()) {
            continue;
        }
        let note = NodeNote {
            label: shorten(&text("label"), LABEL_MAX_CHARS),
            status: Status::of_word(&text("status")),
            summary: shorten(&text("summary"), NODE_SUMMARY_MAX_CHARS),
        };
        rows::store_note(job.tx, session, &node, &note)?;
        for call in item.get("calls").and_then(Value::as_array).into_iter().flatten() {
            let ordinal = call.as_str().and_then(|id| id.strip_prefix('e')).and_then(|id| id.parse::<usize>().ok());
            let Some(entry) = ordinal.and_then(|ordinal| ledger.entries().get(ordinal)) else { continue };
            // Within the task only: between tasks the boundary decides. Being one column, a call has one node.
            if entry.node_id != node && entry.node_id.split('-').next() == node.split('-').next() {
                job.tx
                    .prepare_cached("UPDATE offload_entries SET node_id = ?2 WHERE uid = ?1")
                    .and_then(|mut update| update.execute(params![entry.uid, node]))
                    .map_err(failure)?;
            }
        }
        changed.push(node);
    }
    Ok(changed)
}

fn entries_of(db: &Connection, session: SessionId, batch: BatchId) -> Result<Vec<Entry>> {
    let ordinals: BTreeSet<u32> = db
        .prepare_cached("SELECT ordinal FROM offload_entries WHERE session = ?1 AND batch = ?2 ORDER BY ordinal")
        .and_then(|mut query| query.query_map(params![session.0, batch.0], |row| row.get(0))?.collect())
        .map_err(failure)?;
    Ok(rows::ledger(db, session)?.entries().iter().filter(|entry| ordinals.contains(&entry.ordinal)).cloned().collect())
}

/// Returns the nodes of the batch and the ones before them, with their calls, for the question.
fn nodes_of(db: &Connection, session: SessionId, entries: &[Entry]) -> Result<Vec<Value>> {
    let ledger = rows::ledger(db, session)?;
    let Some(task) = entries.last().and_then(|entry| entry.node_id.split('-').next().map(str::to_owned)) else { return Ok(Vec::new()) };
    let mut order: Vec<&str> = Vec::new();
    let mut calls: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for entry in ledger.entries().iter().filter(|entry| entry.node_id.split('-').next() == Some(task.as_str())) {
        calls
            .entry(&entry.node_id)
            .or_insert_with(|| {
                order.push(&entry.node_id);
                Vec::new()
            })
            .push(json!({"id": format!("e{}", entry.ordinal), "call": shorten(&entry.call_line, 100), "summary": entry.summary, "failed": entry.failed}));
    }
    let skipped = order.len().saturating_sub(NODES_MAX);
    Ok(order[skipped..].iter().map(|node| json!({"node": node, "calls": calls.get(node)})).collect())
}

/// Returns the head and tail of a result, which the row keeps while its summary waits for a model.
fn excerpt(db: &Connection, uid: &str) -> Result<String> {
    db.prepare_cached("SELECT excerpt FROM offload_entries WHERE uid = ?1").and_then(|mut query| query.query_row([uid], |row| row.get(0))).map_err(failure)
}

fn label(at: usize) -> String {
    format!("e{}", at + 1)
}

/// Returns the head and the tail of `text` in about `chars` characters.
pub fn view(text: &str, chars: usize) -> String {
    let count = text.chars().count();
    if count <= chars {
        return text.to_owned();
    }
    let head: String = text.chars().take(chars * 2 / 3).collect();
    let tail: String = text.chars().skip(count - chars / 3).collect();
    format!("{head}\n[…]\n{tail}")
}

/// Returns the JSON object in an answer, which may stand in prose or in a fence.
fn json_of(text: &str) -> Option<Value> {
    let start = text.find('{')?;
    let end = text.rfind('}')?;
    serde_json::from_str::<Value>(text.get(start..=end)?).ok().filter(Value::is_object)
}

fn question(purpose: &str, system: &str, prompt: String, schema: &Value, model: &Abilities) -> LlmRequest {
    LlmRequest {
        purpose: purpose.into(),
        system: system.into(),
        prompt,
        schema_json: if model.json_schema { schema.to_string() } else { String::new() },
        max_tokens: ANSWER_MAX_TOKENS,
        timeout_ms: TIMEOUT_MS,
    }
}

fn summary_schema() -> Value {
    json!({"type": "object", "required": ["summaries"], "properties": {"summaries": {"type": "array", "items": {"type": "object",
        "required": ["id", "summary", "score"], "properties": {"id": {"type": "string", "maxLength": ID_MAX_CHARS}, "summary": {"type": "string", "maxLength": SUMMARY_MAX_CHARS}, "score": {"type": "integer"}}}}}})
}

fn boundary_schema() -> Value {
    json!({"type": "object", "required": ["decision"], "properties": {"decision": {"enum": ["same", "new", "return"]}, "task": {"type": "integer"}, "goal": {"type": "string", "maxLength": NODE_SUMMARY_MAX_CHARS}}})
}

fn canvas_schema() -> Value {
    json!({"type": "object", "required": ["nodes"], "properties": {"nodes": {"type": "array", "items": {"type": "object",
        "required": ["node", "label", "status", "summary"], "properties": {"node": {"type": "string", "maxLength": ID_MAX_CHARS}, "label": {"type": "string", "maxLength": LABEL_MAX_CHARS},
        "status": {"enum": ["done", "doing", "paused", "blocked"]}, "summary": {"type": "string", "maxLength": NODE_SUMMARY_MAX_CHARS}, "calls": {"type": "array", "items": {"type": "string", "maxLength": ID_MAX_CHARS}}}}}}})
}
