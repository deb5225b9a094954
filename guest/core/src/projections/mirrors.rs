//! Mirrors: messages and atoms as JSON Lines, one file a local day, in the reference system's shape.
//!
//! A file is appended to and synced before the rows say so; what is beyond the noted length is the
//! ruin of a crash and cut off. A line holds only what never changes of its row, so a file that was
//! grown and one that is rebuilt are the same bytes.

use crate::calendar::Calendar;
use crate::contract::{Instant, Result};
use crate::disk::{self, DiskError, OpenMode};
use crate::store::{Store, disk_failure, failure};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Rows that are appended in one step.
const STEP: i64 = 1_000;

/// Steps of one call; the next call goes on.
const MAX_STEPS: usize = 64;

/// A length that says: rebuild the file.
const REBUILD: i64 = -1;

/// Which rows are mirrored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// L0, in `conversations/`.
    Messages,
    /// L1, in `records/`.
    Atoms,
}

impl Layer {
    fn folder(self) -> &'static str {
        match self {
            Self::Messages => "conversations",
            Self::Atoms => "records",
        }
    }

    fn cursor(self) -> &'static str {
        match self {
            Self::Messages => "mirror-messages",
            Self::Atoms => "mirror-atoms",
        }
    }

    /// The rows with what decides the day, in order; `{}` takes a condition.
    fn rows(self) -> &'static str {
        match self {
            Self::Messages => "SELECT id, recorded_at FROM messages WHERE {} ORDER BY id",
            Self::Atoms => "SELECT id, believed_from FROM atoms WHERE {} ORDER BY id",
        }
    }

    fn day_column(self) -> &'static str {
        match self {
            Self::Messages => "recorded_at",
            Self::Atoms => "believed_from",
        }
    }
}

/// Brings the mirrors up to date; returns the lines written.
pub fn settle(store: &mut Store, calendar: &Calendar) -> Result<u64> {
    rebuild_marked(store, calendar)?;
    let mut lines = 0;
    for layer in [Layer::Messages, Layer::Atoms] {
        for _ in 0..MAX_STEPS {
            let written = step(store, calendar, layer)?;
            lines += written;
            if written < STEP as u64 {
                break;
            }
        }
    }
    Ok(lines)
}

fn cursor(db: &Connection, layer: Layer) -> Result<i64> {
    let value: Option<String> = db
        .prepare_cached("SELECT value FROM space WHERE key = ?1")
        .and_then(|mut query| query.query_row([layer.cursor()], |row| row.get(0)).optional())
        .map_err(failure)?;
    Ok(value.and_then(|value| value.parse().ok()).unwrap_or(0))
}

fn ids(db: &Connection, layer: Layer, condition: &str, values: impl rusqlite::Params) -> Result<Vec<(i64, Instant)>> {
    db.prepare_cached(&layer.rows().replace("{}", condition))
        .and_then(|mut query| query.query_map(values, |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .map_err(failure)
}

fn step(store: &mut Store, calendar: &Calendar, layer: Layer) -> Result<u64> {
    let after = cursor(store.db(), layer)?;
    let rows = ids(
        store.db(),
        layer,
        "id > ?1 AND id <= (SELECT max(id) FROM (SELECT id FROM SOURCE WHERE id > ?1 ORDER BY id LIMIT ?2))".replace("SOURCE", source(layer)).as_str(),
        params![after, STEP],
    )?;
    let Some(&(last, _)) = rows.last() else { return Ok(0) };
    let mut by_file: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for &(id, at) in &rows {
        let path = format!("{}/{}.jsonl", layer.folder(), calendar.day(at));
        let text = by_file.entry(path).or_default();
        text.extend_from_slice(line(store.db(), layer, id)?.to_string().as_bytes());
        text.push(b'\n');
    }
    let mut lengths = Vec::new();
    for (path, bytes) in &by_file {
        match append(store, path, bytes)? {
            Some(length) => lengths.push((path.clone(), length as i64)),
            // Somebody cut or removed the file: its day is written anew, these rows included.
            None => lengths.push((path.clone(), REBUILD)),
        }
    }
    let rebuild = lengths.iter().any(|(_, length)| *length == REBUILD);
    store.write(|tx| {
        for (path, length) in &lengths {
            note(tx, path, *length)?;
        }
        tx.prepare_cached("INSERT INTO space (key, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value")
            .and_then(|mut upsert| upsert.execute(params![layer.cursor(), last.to_string()]))
            .map(|_| ())
            .map_err(failure)
    })?;
    if rebuild {
        rebuild_marked(store, calendar)?;
    }
    Ok(rows.len() as u64)
}

fn source(layer: Layer) -> &'static str {
    match layer {
        Layer::Messages => "messages",
        Layer::Atoms => "atoms",
    }
}

fn note(db: &Connection, path: &str, length: i64) -> Result<()> {
    db.prepare_cached("INSERT INTO mirrors (path, bytes) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET bytes = excluded.bytes")
        .and_then(|mut upsert| upsert.execute(params![path, length]))
        .map(|_| ())
        .map_err(failure)
}

/// Appends behind the noted length; returns the new length, or nothing if the file is shorter than noted.
fn append(store: &Store, path: &str, bytes: &[u8]) -> Result<Option<u64>> {
    let noted: Option<i64> = store
        .db()
        .prepare_cached("SELECT bytes FROM mirrors WHERE path = ?1")
        .and_then(|mut query| query.query_row([path], |row| row.get(0)).optional())
        .map_err(failure)?;
    let noted = noted.unwrap_or(0);
    if noted == REBUILD {
        return Ok(None);
    }
    let noted = noted as u64;
    let refused = |error: DiskError| disk_failure(path, error);
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    store.disk().create_dir(parent).map_err(refused)?;
    let existed = store.disk().exists(path).map_err(refused)?;
    let mut file = store.disk().open(path, OpenMode::Create).map_err(refused)?;
    let length = file.len().map_err(refused)?;
    if length < noted {
        return Ok(None);
    }
    if length > noted {
        file.set_len(noted).map_err(refused)?;
    }
    file.write_at(bytes, noted).map_err(refused)?;
    file.sync().map_err(refused)?;
    if !existed {
        store.disk().sync_dir(parent).map_err(refused)?;
    }
    Ok(Some(noted + bytes.len() as u64))
}

/// Marks the days of rows to be written anew, in the transaction that changes the rows.
pub fn mark_days(db: &Connection, calendar: &Calendar, layer: Layer, times: impl IntoIterator<Item = Instant>) -> Result<()> {
    for at in times {
        note(db, &format!("{}/{}.jsonl", layer.folder(), calendar.day(at)), REBUILD)?;
    }
    Ok(())
}

/// Marks every day to be written anew: after an import, a restore, or by `export`.
pub fn mark_all(db: &Connection, calendar: &Calendar) -> Result<()> {
    db.execute("UPDATE mirrors SET bytes = ?1", [REBUILD]).map_err(failure)?;
    for layer in [Layer::Messages, Layer::Atoms] {
        let times: Vec<Instant> = ids(db, layer, "1", [])?.into_iter().map(|(_, at)| at).collect();
        let mut days: Vec<(String, Instant)> = times.into_iter().map(|at| (calendar.day(at), at)).collect();
        days.sort_unstable();
        days.dedup_by(|a, b| a.0 == b.0);
        mark_days(db, calendar, layer, days.into_iter().map(|(_, at)| at))?;
    }
    Ok(())
}

fn rebuild_marked(store: &mut Store, calendar: &Calendar) -> Result<()> {
    let paths: Vec<String> = store
        .db()
        .prepare_cached("SELECT path FROM mirrors WHERE bytes = ?1 ORDER BY path")
        .and_then(|mut query| query.query_map([REBUILD], |row| row.get(0))?.collect())
        .map_err(failure)?;
    for path in paths {
        rebuild(store, calendar, &path)?;
    }
    Ok(())
}

/// Writes a day's file anew from the rows that the cursor has passed; a day without rows loses its file.
fn rebuild(store: &mut Store, calendar: &Calendar, path: &str) -> Result<()> {
    let layer = if path.starts_with(Layer::Messages.folder()) { Layer::Messages } else { Layer::Atoms };
    let day = path.rsplit_once('/').map_or(path, |(_, file)| file).trim_end_matches(".jsonl");
    let mut text = Vec::new();
    if let Some((start, end)) = calendar.bounds(day) {
        let column = layer.day_column();
        let until = cursor(store.db(), layer)?;
        let rows = ids(store.db(), layer, &format!("{column} >= ?1 AND {column} < ?2 AND id <= ?3"), params![start as i64, end as i64, until])?;
        for (id, _) in rows {
            text.extend_from_slice(line(store.db(), layer, id)?.to_string().as_bytes());
            text.push(b'\n');
        }
    }
    if text.is_empty() {
        super::remove_if_there(store, path)?;
        return store.write(|tx| tx.execute("DELETE FROM mirrors WHERE path = ?1", [path]).map(|_| ()).map_err(failure));
    }
    disk::replace(store.disk(), path, &text).map_err(|error| disk_failure(path, error))?;
    store.write(|tx| note(tx, path, text.len() as i64))
}

fn iso(at: i64) -> String {
    let timestamp = jiff::Timestamp::from_millisecond(at).unwrap_or(jiff::Timestamp::MAX);
    format!("{timestamp:.3}")
}

fn line(db: &Connection, layer: Layer, id: i64) -> Result<Value> {
    match layer {
        Layer::Messages => message_line(db, id),
        Layer::Atoms => atom_line(db, id),
    }
}

fn message_line(db: &Connection, id: i64) -> Result<Value> {
    db.prepare_cached(
        "SELECT uid, team, user, agent, name, role, speaker, text, said_at, recorded_at
           FROM messages JOIN sessions ON sessions.id = session JOIN scopes ON scopes.id = messages.scope WHERE messages.id = ?1",
    )
    .and_then(|mut query| {
        query.query_row([id], |row| {
            Ok(json!({
                "sessionKey": row.get::<_, String>(4)?,
                "sessionId": row.get::<_, String>(4)?,
                "recordedAt": iso(row.get(9)?),
                "id": row.get::<_, String>(0)?,
                "role": row.get::<_, String>(5)?,
                "speaker": row.get::<_, Option<String>>(6)?,
                "content": row.get::<_, String>(7)?,
                "timestamp": row.get::<_, i64>(8)?,
                "teamId": row.get::<_, String>(1)?,
                "userId": row.get::<_, String>(2)?,
                "agentId": row.get::<_, String>(3)?,
            }))
        })
    })
    .map_err(failure)
}

fn atom_line(db: &Connection, id: i64) -> Result<Value> {
    let list =
        |sql: &str| -> Result<Vec<String>> { db.prepare_cached(sql).and_then(|mut query| query.query_map([id], |row| row.get(0))?.collect()).map_err(failure) };
    let sources = list("SELECT uid FROM evidence JOIN messages ON messages.id = message WHERE atom = ?1 ORDER BY message")?;
    let supersedes = list("SELECT uid FROM links JOIN atoms ON atoms.id = older WHERE newer = ?1 ORDER BY older")?;
    db.prepare_cached(
        "SELECT atoms.uid, atoms.text, kind, priority, scene, metadata, believed_from, event_start, event_end, team, user, agent, name, origin
           FROM atoms JOIN sessions ON sessions.id = session JOIN scopes ON scopes.id = atoms.scope WHERE atoms.id = ?1",
    )
    .and_then(|mut query| {
        query.query_row([id], |row| {
            let metadata: String = row.get(5)?;
            let at: i64 = row.get(6)?;
            let times: Vec<String> = [row.get::<_, Option<i64>>(7)?, row.get::<_, Option<i64>>(8)?].into_iter().flatten().map(iso).collect();
            Ok(json!({
                "id": row.get::<_, String>(0)?,
                "content": row.get::<_, String>(1)?,
                "type": row.get::<_, String>(2)?,
                "priority": row.get::<_, i64>(3)?,
                "scene_name": row.get::<_, String>(4)?,
                "source_message_ids": sources,
                "metadata": serde_json::from_str::<Value>(&metadata).unwrap_or_else(|_| json!({})),
                "timestamps": times,
                "createdAt": iso(at),
                "updatedAt": iso(at),
                "sessionKey": row.get::<_, String>(12)?,
                "sessionId": row.get::<_, String>(12)?,
                "origin": row.get::<_, String>(13)?,
                "supersedes": supersedes,
                "teamId": row.get::<_, String>(9)?,
                "userId": row.get::<_, String>(10)?,
                "agentId": row.get::<_, String>(11)?,
            }))
        })
    })
    .map_err(failure)
}
