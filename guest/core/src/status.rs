//! The operator's view: what is there, what waits for what since when, what failed, what was dropped.

use crate::contract::Result;
use crate::engine::Models;
use crate::l0::SessionId;
use crate::settings::Settings;
use crate::store::{SCHEMA_VERSION, failure};
use crate::{forget, l1, retention, schedule, vectors};
use rusqlite::Connection;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Failed batches that are listed; all are counted.
const MAX_LISTED: i64 = 20;

/// `lifecycle.status` as a document; its keys are described in `docs/documents.md`.
pub fn status(db: &Connection, settings: &Settings, models: &Models, drawings_behind: &BTreeSet<SessionId>) -> Result<Value> {
    let count = |sql: &str| -> Result<u64> { db.prepare_cached(sql).and_then(|mut query| query.query_row([], |row| row.get(0))).map_err(failure) };
    let backlog = schedule::backlog(db, settings)?;
    let tallies = Tallies::read(db)?;
    let mut batches = Map::new();
    let mut dead_batches = 0;
    for (part, number) in tallies.of("batches") {
        let (layer, state) = part.split_once(' ').unwrap_or((part, ""));
        let layer = batches.entry(layer).or_insert_with(|| json!({}));
        layer[state] = number.into();
        dead_batches += if state == "dead" { number } else { 0 };
    }
    let pages = schedule::waiting_pages(db, settings, models.llm.available)?;
    Ok(json!({
        "messages": tallies.one("messages", ""),
        "sessions": tallies.one("sessions", ""),
        "atoms": tallies.of("atoms-by-kind").map(|(_, count)| count).sum::<u64>(),
        "atoms-replaced": tallies.one("atoms-replaced", ""),
        "atoms-by-kind": tallies.document("atoms-by-kind"),
        "atoms-by-origin": tallies.document("atoms-by-origin"),
        "waiting": {
            "l1": {"messages": tallies.one("messages-waiting", ""), "since": backlog.since, "due-at": backlog.due_at},
            "l2": pages["l2"],
            "l3": pages["l3"],
            "reexamination": reexamination(db, settings, tallies.one("batches-to-reexamine", ""))?,
            "requests": waiting_requests(db)?,
            "retries": waiting_retries(db)?,
        },
        "scenes": tallies.one("pages", "scene"),
        "scenes-archived": tallies.one("pages", "scene archived"),
        "personas": tallies.one("pages", "persona") + tallies.one("pages", "persona archived"),
        "files": {
            "behind": count("SELECT count(*) FROM projections WHERE stale = 1")? + drawings_behind.len() as u64,
            "edits-by-humans": tallies.one("revisions", "human"),
            "conflicts": listed(
                db,
                "SELECT uid || '@' || number, uid || '@' || beats, revisions.at FROM revisions JOIN pages ON pages.id = page
                  WHERE beats IS NOT NULL ORDER BY revisions.at DESC LIMIT ?1",
                |row| Ok(json!({"kept": row.get::<_, String>(0)?, "set-aside": row.get::<_, String>(1)?, "at": row.get::<_, i64>(2)?})),
            )?,
        },
        "embedding": vectors::status(db)?,
        "forgotten": tallies.one("forgotten", ""),
        "forgetting": forget::status(db)?,
        "retention": retention::last(db)?,
        "database-bytes": count("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")?,
        "batches": batches,
        "failed": {
            "dead": dead_batches,
            "list": dead(db)?,
        },
        "dropped": {
            "messages": tallies.document("drops"),
            "atoms": tallies.document("refusals"),
        },
        "model": models.llm.model,
        "model-calls": tallies.document("requests"),
        "timezone": settings.timezone.0,
        "schema-version": SCHEMA_VERSION,
    }))
}

/// Returns what the rules distilled and a model has yet to look at again. `next-at` is set where a day's
/// share is used up; status has no time of its own, so the day ends with the newest look.
fn reexamination(db: &Connection, settings: &Settings, waiting: u64) -> Result<Value> {
    let newest: i64 = db.query_row("SELECT coalesce(max(created_at), 0) FROM batches WHERE again IS NOT NULL", [], |row| row.get(0)).map_err(failure)?;
    let next_at = l1::next_look(db, &settings.extraction, newest as u64)?.filter(|at| *at > newest as u64);
    Ok(json!({"batches": waiting, "per-day": settings.extraction.reexaminations_per_day, "next-at": next_at}))
}

/// The counts that triggers keep, by what and part; see `store/migrations/009_tallies.sql`.
struct Tallies(BTreeMap<(String, String), u64>);

impl Tallies {
    fn read(db: &Connection) -> Result<Self> {
        db.prepare_cached("SELECT what, part, count FROM tallies WHERE count > 0")
            .and_then(|mut query| query.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?.collect())
            .map(Self)
            .map_err(failure)
    }

    fn one(&self, what: &str, part: &str) -> u64 {
        self.of(what).find(|(known, _)| *known == part).map_or(0, |(_, count)| count)
    }

    fn of(&self, what: &str) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().filter(move |((known, _), _)| known == what).map(|((_, part), count)| (part.as_str(), *count))
    }

    fn document(&self, what: &str) -> Value {
        Value::Object(self.of(what).map(|(part, count)| (part.to_owned(), count.into())).collect())
    }
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
