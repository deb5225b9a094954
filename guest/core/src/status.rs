//! The operator's view: what is there, what waits for what since when, what failed, what was dropped.

use crate::contract::Result;
use crate::engine::Models;
use crate::settings::Settings;
use crate::store::{SCHEMA_VERSION, failure};
use crate::{l1, retention, schedule, vectors, work};
use rusqlite::Connection;
use serde_json::{Map, Value, json};

/// Failed batches that are listed; all are counted.
const MAX_LISTED: i64 = 20;

/// `lifecycle.status` as a document; its keys are described in `docs/documents.md`.
pub fn status(db: &Connection, settings: &Settings, models: &Models) -> Result<Value> {
    let count = |sql: &str| -> Result<u64> { db.prepare_cached(sql).and_then(|mut query| query.query_row([], |row| row.get(0))).map_err(failure) };
    let backlog = schedule::backlog(db, settings)?;
    let mut batches = Map::new();
    for (layer, state, number) in work::counts(db)? {
        let layer = batches.entry(layer).or_insert_with(|| json!({}));
        layer[state] = number.into();
    }
    let pages = schedule::waiting_pages(db, settings, models.llm.available)?;
    Ok(json!({
        "messages": count("SELECT count(*) FROM messages")?,
        "sessions": count("SELECT count(*) FROM sessions")?,
        "atoms": count("SELECT count(*) FROM atoms WHERE believed_to IS NULL")?,
        "atoms-replaced": count("SELECT count(*) FROM atoms WHERE believed_to IS NOT NULL")?,
        "atoms-by-kind": tally(db, "SELECT kind, count(*) FROM atoms WHERE believed_to IS NULL GROUP BY kind ORDER BY kind")?,
        "atoms-by-origin": tally(db, "SELECT origin, count(*) FROM atoms WHERE believed_to IS NULL GROUP BY origin ORDER BY origin")?,
        "waiting": {
            "l1": {"messages": backlog.messages, "since": backlog.since, "due-at": backlog.due_at},
            "l2": pages["l2"],
            "l3": pages["l3"],
            "reexamination": reexamination(db, settings)?,
            "requests": waiting_requests(db)?,
            "retries": waiting_retries(db)?,
        },
        "scenes": count("SELECT count(*) FROM pages WHERE kind = 'scene' AND archived_at IS NULL")?,
        "scenes-archived": count("SELECT count(*) FROM pages WHERE kind = 'scene' AND archived_at IS NOT NULL")?,
        "personas": count("SELECT count(*) FROM pages WHERE kind = 'persona'")?,
        "files": {
            "behind": count("SELECT count(*) FROM projections WHERE stale = 1")?,
            "edits-by-humans": count("SELECT count(*) FROM revisions WHERE author = 'human'")?,
            "conflicts": listed(
                db,
                "SELECT uid || '@' || number, uid || '@' || beats, revisions.at FROM revisions JOIN pages ON pages.id = page
                  WHERE beats IS NOT NULL ORDER BY revisions.at DESC LIMIT ?1",
                |row| Ok(json!({"kept": row.get::<_, String>(0)?, "set-aside": row.get::<_, String>(1)?, "at": row.get::<_, i64>(2)?})),
            )?,
        },
        "embedding": vectors::status(db)?,
        "forgotten": count("SELECT count(*) FROM forgotten")?,
        "retention": retention::last(db)?,
        "database-bytes": count("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")?,
        "batches": batches,
        "failed": {
            "dead": count("SELECT count(*) FROM batches WHERE state = 'dead'")?,
            "list": dead(db)?,
        },
        "dropped": {
            "messages": tally(db, "SELECT reason, count(*) FROM drops GROUP BY reason ORDER BY reason")?,
            "atoms": tally(db, "SELECT reason, sum(count) FROM refusals GROUP BY reason ORDER BY reason")?,
        },
        "model": models.llm.model,
        "model-calls": tally(db, "SELECT purpose, count(*) FROM requests GROUP BY purpose ORDER BY purpose")?,
        "timezone": settings.timezone.0,
        "schema-version": SCHEMA_VERSION,
    }))
}

/// Returns what the rules distilled and a model has yet to look at again. `next-at` is set where a day's
/// share is used up; status has no time of its own, so the day ends with the newest look.
fn reexamination(db: &Connection, settings: &Settings) -> Result<Value> {
    let waiting: u64 =
        db.query_row("SELECT count(*) FROM batches WHERE layer = 'l1' AND state = 'done' AND stage = 'rules'", [], |row| row.get(0)).map_err(failure)?;
    let newest: i64 = db.query_row("SELECT coalesce(max(created_at), 0) FROM batches WHERE again IS NOT NULL", [], |row| row.get(0)).map_err(failure)?;
    let next_at = l1::next_look(db, &settings.extraction, newest as u64)?.filter(|at| *at > newest as u64);
    Ok(json!({"batches": waiting, "per-day": settings.extraction.reexaminations_per_day, "next-at": next_at}))
}

fn tally(db: &Connection, sql: &str) -> Result<Value> {
    let rows: Vec<(String, u64)> =
        db.prepare_cached(sql).and_then(|mut query| query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()).map_err(failure)?;
    Ok(Value::Object(rows.into_iter().map(|(name, count)| (name, count.into())).collect()))
}

fn waiting_requests(db: &Connection) -> Result<Value> {
    listed(db, "SELECT requests.id, purpose, asked_at FROM requests WHERE state = 'asked' ORDER BY id LIMIT ?1", |row| {
        Ok(json!({"request": format!("r{}", row.get::<_, i64>(0)?), "purpose": row.get::<_, String>(1)?, "since": row.get::<_, i64>(2)?}))
    })
}

fn waiting_retries(db: &Connection) -> Result<Value> {
    listed(db, "SELECT id, layer, attempts, due_at, reason FROM batches WHERE state = 'due' AND attempts > 0 ORDER BY due_at, id LIMIT ?1", |row| {
        Ok(json!({
            "batch": row.get::<_, i64>(0)?, "layer": row.get::<_, String>(1)?, "attempts": row.get::<_, i64>(2)?,
            "due-at": row.get::<_, i64>(3)?, "reason": row.get::<_, String>(4)?
        }))
    })
}

fn dead(db: &Connection) -> Result<Value> {
    listed(db, "SELECT id, layer, created_at, due_at, reason FROM batches WHERE state = 'dead' ORDER BY id DESC LIMIT ?1", |row| {
        Ok(json!({
            "batch": row.get::<_, i64>(0)?, "layer": row.get::<_, String>(1)?, "since": row.get::<_, i64>(2)?,
            "given-up-at": row.get::<_, i64>(3)?, "reason": row.get::<_, String>(4)?
        }))
    })
}

fn listed(db: &Connection, sql: &str, document: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<Value>) -> Result<Value> {
    db.prepare_cached(sql)
        .and_then(|mut query| query.query_map([MAX_LISTED], |row| document(row))?.collect::<rusqlite::Result<Vec<_>>>())
        .map(Value::Array)
        .map_err(failure)
}
