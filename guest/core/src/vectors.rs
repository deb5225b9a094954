//! Vectors by the host's embedding model: generations, their filling in the background, and the cosines of a query.
//!
//! A model's name and dimensions name a generation. While it is filled the built-in embedder serves; once every row has
//! had a vector the generation serves, and those of other models go. One request is in flight at a time. It holds row
//! numbers, not texts, so what is forgotten is in no request. A request that fails is asked again later and later, and
//! recall goes on with what it has.
//!
//! One text that a model refuses must not keep the others waiting. After a second failure fewer texts are asked at a time,
//! down to one. If that one fails too, another text is asked: if the service answers it and refuses the first one again, the
//! first is marked as refused, by an empty vector, and `status` counts it. A service that is down refuses no text.

mod doubt;

pub use doubt::retry;

use crate::contract::{EmbeddingModel, Instant, Outcome, Outgoing, Result};
use crate::embed::dot;
use crate::index::Kind;
use crate::store::failure;
use crate::text;
use crate::work::Job;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Texts of one request, whatever a model takes.
const MAX_BATCH: u32 = 64;

/// Longest text that is sent, in characters: what `query-text` gives of a prompt at most.
const MAX_TEXT: usize = crate::inject::MAX_QUERY;

/// Longest vector that is taken.
const MAX_DIMENSIONS: u32 = 8192;

/// How long a host may take to answer, in milliseconds: its own limit of a minute, and another one.
const PATIENCE_MS: u64 = 120_000;

/// A row of `generations`.
#[derive(Clone, Debug)]
struct Generation {
    id: i64,
    dimensions: u32,
    serves: bool,
    asked: i64,
    asked_at: Instant,
    asked_kind: i64,
    asked_rows: Vec<i64>,
    requests: i64,
    attempts: u32,
    due_at: Instant,
    doubt: doubt::Doubt,
}

const COLUMNS: &str = "id, dimensions, serves, asked, asked_at, asked_kind, asked_rows, requests, attempts, due_at, doubt";

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Generation> {
    Ok(Generation {
        id: row.get(0)?,
        dimensions: row.get(1)?,
        serves: row.get(2)?,
        asked: row.get(3)?,
        asked_at: row.get::<_, i64>(4)? as Instant,
        asked_kind: row.get(5)?,
        asked_rows: serde_json::from_str(&row.get::<_, String>(6)?).unwrap_or_default(),
        requests: row.get(7)?,
        attempts: row.get(8)?,
        due_at: row.get::<_, i64>(9)? as Instant,
        doubt: doubt::Doubt::of(row.get(10)?),
    })
}

/// Returns the model that the host describes, if its vectors can be taken.
fn described(model: Option<&EmbeddingModel>) -> Option<&EmbeddingModel> {
    model.filter(|model| (1..=MAX_DIMENSIONS).contains(&model.dimensions))
}

/// Lets no generation of another model serve than the one that the host describes now: vectors of two models are not alike
/// even where they are of one length. Call when the space is opened; ticks do it.
pub fn describe(tx: &Transaction<'_>, model: Option<&EmbeddingModel>) -> Result<()> {
    let Some(model) = described(model) else { return Ok(()) };
    tx.prepare_cached("UPDATE generations SET serves = 0 WHERE serves = 1 AND NOT (model = ?1 AND dimensions = ?2)")
        .and_then(|mut update| update.execute(params![model.name, model.dimensions]))
        .map(|_| ())
        .map_err(failure)
}

/// Asks for the next vectors that the host's model has not given yet. Returns when to look again.
pub fn tick(job: &mut Job<'_>) -> Result<Option<Instant>> {
    let model = described(job.models.embedding.as_ref()).cloned();
    describe(job.tx, model.as_ref())?;
    let current = match &model {
        Some(model) => Some(generation(job.tx, model)?),
        None => None,
    };
    cancel_others(job, current.as_ref().map(|current| current.id))?;
    let (Some(mut current), Some(model)) = (current, model) else { return Ok(None) };
    if current.asked != 0 {
        let deadline = current.asked_at + PATIENCE_MS;
        if deadline > job.at {
            return Ok(Some(deadline));
        }
        job.out.push(Outgoing::CancelEmbed { id: format!("e{}", current.asked) });
        doubt::fail(job, &current, "the host never answered")?;
        current = generation(job.tx, &model)?;
    }
    if current.due_at > job.at {
        return Ok(Some(current.due_at));
    }
    for kind in [Kind::Messages, Kind::Atoms] {
        let waiting = waiting(job.tx, &current, kind, doubt::size(&model, current.attempts))?;
        if !waiting.is_empty() {
            match doubt::other(job.tx, &current, kind, &model)? {
                Some(other) => ask(job, &current, kind, vec![other], doubt::Doubt::AskedOther)?,
                None => ask(job, &current, kind, waiting, current.doubt)?,
            }
            return Ok(Some(job.at + PATIENCE_MS));
        }
    }
    if !current.serves {
        job.tx.execute("UPDATE generations SET serves = 1 WHERE id = ?1", [current.id]).map_err(failure)?;
        job.tx.execute("DELETE FROM host_vectors WHERE generation <> ?1", [current.id]).map_err(failure)?;
        job.tx.execute("DELETE FROM generations WHERE id <> ?1", [current.id]).map_err(failure)?;
    }
    Ok(None)
}

/// Takes an answer. Returns false if the request is not in flight.
pub fn complete(job: &mut Job<'_>, request_id: &str, outcome: &Outcome) -> Result<bool> {
    let Some(asked) = request_id.strip_prefix('e').and_then(|id| id.parse::<i64>().ok()).filter(|asked| *asked > 0) else { return Ok(false) };
    let current = job
        .tx
        .prepare_cached(&format!("SELECT {COLUMNS} FROM generations WHERE asked = ?1"))
        .and_then(|mut query| query.query_row([asked], read).optional())
        .map_err(failure)?;
    let Some(current) = current else { return Ok(false) };
    match usable(&current, outcome) {
        Ok(vectors) => store(job, &current, vectors)?,
        Err(reason) => {
            doubt::fail(job, &current, &reason)?;
        }
    }
    tick(job)?;
    Ok(true)
}

/// Forgets what a previous run had in flight; it is asked for again.
pub fn resume(tx: &Transaction<'_>) -> Result<()> {
    tx.execute("UPDATE generations SET asked = 0, doubt = 0 WHERE asked <> 0 OR doubt <> 0", []).map(|_| ()).map_err(failure)
}

/// Takes back the requests that hold a row that is about to be forgotten; the rest of their rows is asked for again. Returns
/// what the host must be told.
pub fn forget(tx: &Transaction<'_>, messages: &BTreeSet<i64>, atoms: &BTreeSet<i64>) -> Result<Vec<Outgoing>> {
    let asked: Vec<Generation> = tx
        .prepare_cached(&format!("SELECT {COLUMNS} FROM generations WHERE asked <> 0 ORDER BY id"))
        .and_then(|mut query| query.query_map([], read)?.collect())
        .map_err(failure)?;
    let mut cancelled = Vec::new();
    for generation in asked {
        let doomed = if generation.asked_kind == Kind::Messages as i64 { messages } else { atoms };
        if generation.asked_rows.iter().any(|row| doomed.contains(row)) {
            tx.execute("UPDATE generations SET asked = 0, doubt = 0 WHERE id = ?1", [generation.id]).map_err(failure)?;
            cancelled.push(Outgoing::CancelEmbed { id: format!("e{}", generation.asked) });
        }
    }
    Ok(cancelled)
}

/// Returns the cosine of each row that has a vector with a query's, by row; nothing if no generation of the query's length
/// serves.
pub fn cosines(db: &Connection, kind: Kind, query: &[f32]) -> Result<Vec<(i64, f32)>> {
    let serving: Option<i64> = db
        .prepare_cached("SELECT id FROM generations WHERE serves = 1 AND dimensions = ?1")
        .and_then(|mut select| select.query_row([query.len() as i64], |row| row.get(0)).optional())
        .map_err(failure)?;
    let Some(serving) = serving else { return Ok(Vec::new()) };
    let (codes, scale) = quantized(query);
    let mut select = db.prepare_cached("SELECT row, vector FROM host_vectors WHERE generation = ?1 AND kind = ?2 ORDER BY row").map_err(failure)?;
    let mut rows = select.query(params![serving, kind as i64]).map_err(failure)?;
    let mut cosines = Vec::new();
    while let Some(row) = rows.next().map_err(failure)? {
        let bytes = row.get_ref(1).and_then(|value| Ok(value.as_blob()?)).map_err(failure)?;
        let Some((own, values)) = bytes.split_first_chunk::<4>().filter(|(_, values)| values.len() == codes.len()) else { continue };
        let values: Vec<i8> = values.iter().map(|byte| *byte as i8).collect();
        cosines.push((row.get(0).map_err(failure)?, product(&values, &codes) as f32 * scale * f32::from_le_bytes(*own)));
    }
    Ok(cosines)
}

/// Returns what `status` says of the host's model: nothing if there never was one.
pub fn status(db: &Connection) -> Result<Value> {
    db.prepare_cached(
        "SELECT model, dimensions, serves, coalesce((SELECT count FROM tallies WHERE what = 'vectors' AND part = generations.id), 0), asked, attempts, reason,
                coalesce((SELECT count FROM tallies WHERE what = 'vectors-refused' AND part = generations.id), 0)
           FROM generations ORDER BY id",
    )
    .and_then(|mut query| {
        query
            .query_map([], |row| {
                Ok(json!({"model": row.get::<_, String>(0)?, "dimensions": row.get::<_, i64>(1)?, "serves": row.get::<_, bool>(2)?,
                          "vectors": row.get::<_, i64>(3)?, "in-flight": row.get::<_, i64>(4)? != 0, "failed-attempts": row.get::<_, i64>(5)?,
                          "reason": row.get::<_, String>(6)?, "refused": row.get::<_, i64>(7)?}))
            })?
            .collect::<rusqlite::Result<Vec<Value>>>()
    })
    .map(Value::Array)
    .map_err(failure)
}

/// Returns the generation of a model, making it if needed.
fn generation(tx: &Transaction<'_>, model: &EmbeddingModel) -> Result<Generation> {
    tx.prepare_cached("INSERT INTO generations (model, dimensions) VALUES (?1, ?2) ON CONFLICT DO NOTHING")
        .and_then(|mut insert| insert.execute(params![model.name, model.dimensions]))
        .map_err(failure)?;
    tx.prepare_cached(&format!("SELECT {COLUMNS} FROM generations WHERE model = ?1 AND dimensions = ?2"))
        .and_then(|mut query| query.query_row(params![model.name, model.dimensions], read))
        .map_err(failure)
}

/// Takes back what was asked of models that the host does not describe any more.
fn cancel_others(job: &mut Job<'_>, current: Option<i64>) -> Result<()> {
    let others: Vec<(i64, i64)> = job
        .tx
        .prepare_cached("SELECT id, asked FROM generations WHERE asked <> 0 AND id <> ?1 ORDER BY id")
        .and_then(|mut query| query.query_map([current.unwrap_or(0)], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .map_err(failure)?;
    for (id, asked) in others {
        job.out.push(Outgoing::CancelEmbed { id: format!("e{asked}") });
        job.tx.execute("UPDATE generations SET asked = 0, doubt = 0 WHERE id = ?1", [id]).map_err(failure)?;
    }
    Ok(())
}

/// Returns the first rows, with their texts, that have no vector yet.
fn waiting(tx: &Transaction<'_>, current: &Generation, kind: Kind, limit: u32) -> Result<Vec<(i64, String)>> {
    let sql = match kind {
        Kind::Messages => {
            "SELECT id, text FROM messages WHERE id > (SELECT messages_to FROM generations WHERE id = ?1)
                AND NOT EXISTS (SELECT 1 FROM host_vectors WHERE generation = ?1 AND kind = 0 AND row = messages.id) ORDER BY id LIMIT ?2"
        }
        Kind::Atoms => {
            "SELECT id, text FROM atoms WHERE id > (SELECT atoms_to FROM generations WHERE id = ?1)
                AND NOT EXISTS (SELECT 1 FROM host_vectors WHERE generation = ?1 AND kind = 1 AND row = atoms.id) ORDER BY id LIMIT ?2"
        }
    };
    tx.prepare_cached(sql).and_then(|mut query| query.query_map(params![current.id, limit], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()).map_err(failure)
}

fn ask(job: &mut Job<'_>, current: &Generation, kind: Kind, waiting: Vec<(i64, String)>, doubt: doubt::Doubt) -> Result<()> {
    let (rows, texts): (Vec<i64>, Vec<String>) = waiting
        .into_iter()
        .map(|(row, text)| {
            let told = if kind == Kind::Atoms { text::without_subject(&text) } else { &text };
            (row, told.chars().take(MAX_TEXT).collect())
        })
        .unzip();
    // Numbers go on over all generations, so that a late answer meets no other request.
    let asked: i64 = job.tx.query_row("SELECT coalesce(sum(requests), 0) + 1 FROM generations", [], |row| row.get(0)).map_err(failure)?;
    let asked = asked.max(last_asked(job.tx)? + 1);
    job.tx
        .prepare_cached("UPDATE generations SET asked = ?2, asked_at = ?3, asked_kind = ?4, asked_rows = ?5, requests = ?6, doubt = ?7 WHERE id = ?1")
        .and_then(|mut update| {
            update.execute(params![current.id, asked, job.at as i64, kind as i64, json!(rows).to_string(), current.requests + 1, doubt as i64])
        })
        .map_err(failure)?;
    job.tx
        .prepare_cached("INSERT OR REPLACE INTO space (key, value) VALUES ('last-embedding-request', ?1)")
        .and_then(|mut insert| insert.execute([asked.to_string()]))
        .map_err(failure)?;
    job.out.push(Outgoing::Embed { id: format!("e{asked}"), texts });
    Ok(())
}

fn last_asked(tx: &Transaction<'_>) -> Result<i64> {
    tx.prepare_cached("SELECT value FROM space WHERE key = 'last-embedding-request'")
        .and_then(|mut query| query.query_row([], |row| row.get::<_, String>(0)).optional())
        .map(|value| value.and_then(|value| value.parse().ok()).unwrap_or(0))
        .map_err(failure)
}

/// Returns an answer's vectors, or why they cannot be used.
fn usable<'a>(current: &Generation, outcome: &'a Outcome) -> std::result::Result<&'a [Vec<f32>], String> {
    let vectors = match outcome {
        Outcome::Vectors(vectors) => vectors,
        Outcome::Text(_) => return Err("a text came where vectors were asked for".into()),
        Outcome::Failed(reason) => return Err(reason.clone()),
    };
    if vectors.len() != current.asked_rows.len() {
        return Err(format!("{} vectors came for {} texts", vectors.len(), current.asked_rows.len()));
    }
    match vectors.iter().find(|vector| vector.len() != current.dimensions as usize || vector.iter().any(|value| !value.is_finite())) {
        Some(vector) => Err(format!("a vector of {} numbers came, or one that is no number, where {} were described", vector.len(), current.dimensions)),
        None => Ok(vectors),
    }
}

fn store(job: &mut Job<'_>, current: &Generation, vectors: &[Vec<f32>]) -> Result<()> {
    let exists = if current.asked_kind == Kind::Messages as i64 { "SELECT 1 FROM messages WHERE id = ?1" } else { "SELECT 1 FROM atoms WHERE id = ?1" };
    for (row, vector) in current.asked_rows.iter().zip(vectors) {
        // What was forgotten meanwhile does not come back.
        if !job.tx.prepare_cached(exists).and_then(|mut query| query.exists([row])).map_err(failure)? {
            continue;
        }
        let (codes, scale) = quantized(vector);
        let mut bytes = scale.to_le_bytes().to_vec();
        bytes.extend(codes.iter().map(|code| *code as u8));
        job.tx
            .prepare_cached(
                "INSERT INTO host_vectors (generation, kind, row, vector) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET vector = excluded.vector",
            )
            .and_then(|mut insert| insert.execute(params![current.id, current.asked_kind, row, bytes]))
            .map_err(failure)?;
    }
    if current.doubt == doubt::Doubt::AskedOther {
        // The row that is in doubt comes next; what is before it has its vectors, what is behind it may not.
        return doubt::answered_other(job.tx, current);
    }
    let reached = if current.asked_kind == Kind::Messages as i64 {
        "UPDATE generations SET asked = 0, attempts = 0, due_at = 0, reason = '', doubt = 0, messages_to = max(messages_to, ?2) WHERE id = ?1"
    } else {
        "UPDATE generations SET asked = 0, attempts = 0, due_at = 0, reason = '', doubt = 0, atoms_to = max(atoms_to, ?2) WHERE id = ?1"
    };
    job.tx
        .prepare_cached(reached)
        .and_then(|mut update| update.execute(params![current.id, current.asked_rows.last().copied().unwrap_or(0)]))
        .map(|_| ())
        .map_err(failure)
}

/// Returns a vector's codes at length one, and what a code of one stands for.
fn quantized(vector: &[f32]) -> (Vec<i8>, f32) {
    let mut unit = vector.to_vec();
    dot::normalize(&mut unit);
    let mut codes = vec![0; unit.len()];
    let scale = dot::quantize(&unit, &mut codes);
    (codes, scale)
}

/// Returns the dot product of two vectors of codes; a host's model may have any length.
fn product(one: &[i8], other: &[i8]) -> i32 {
    one.iter().zip(other).map(|(one, other)| i32::from(*one) * i32::from(*other)).sum()
}
