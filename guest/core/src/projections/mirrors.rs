//! Mirrors: messages and atoms as JSON Lines, one file a local day, in the reference system's shape.
//!
//! A file is appended to and synced before the rows say so; what is beyond the noted length is the
//! ruin of a crash and cut off. A line holds only what never changes of its row, so a file that was
//! grown and one that is rebuilt are the same bytes.

use crate::calendar::Calendar;
use crate::contract::{Failure, Instant, Result};
use crate::disk::{self, DiskError, OpenMode};
use crate::store::{Store, disk_failure, failure};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Range;

/// Rows that are appended in one step, and bytes of lines after which a step ends: each step syncs the files it touched.
const STEP: u64 = 8_192;
const STEP_BYTES: usize = 8 << 20;

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

    /// The rows with all that a line holds, the row and what decides the day first.
    fn rows(self) -> &'static str {
        // Each row once, in order, whatever the planner thinks of the tables: hence CROSS.
        match self {
            Self::Messages => {
                "SELECT messages.id, recorded_at, uid, team, user, agent, name, role, speaker, text, said_at
                   FROM messages CROSS JOIN sessions ON sessions.id = session CROSS JOIN scopes ON scopes.id = messages.scope"
            }
            Self::Atoms => {
                "SELECT atoms.id, believed_from, uid, team, user, agent, name, text, kind, priority, scene, metadata, event_start, event_end, origin,
                        EXISTS (SELECT 1 FROM evidence WHERE atom = atoms.id), EXISTS (SELECT 1 FROM links WHERE newer = atoms.id)
                   FROM atoms CROSS JOIN sessions ON sessions.id = session CROSS JOIN scopes ON scopes.id = atoms.scope"
            }
        }
    }

    fn table(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Atoms => "atoms",
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
            if written == 0 {
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

/// Calls `take` with the time and the line of each row that `condition` selects, in order, until it returns false.
fn each_line(db: &Connection, layer: Layer, condition: &str, values: impl rusqlite::Params, mut take: impl FnMut(i64, Instant, &[u8]) -> bool) -> Result<()> {
    let table = layer.table();
    let mut query = db.prepare_cached(&format!("{} WHERE {condition} ORDER BY {table}.id", layer.rows())).map_err(failure)?;
    let mut rows = query.query(values).map_err(failure)?;
    let mut line = Vec::new();
    while let Some(row) = rows.next().map_err(failure)? {
        line.clear();
        match layer {
            Layer::Messages => message_line(row, &mut line),
            Layer::Atoms => atom_line(db, row, &mut line),
        }?;
        line.push(b'\n');
        if !take(row.get(0).map_err(failure)?, row.get::<_, i64>(1).map_err(failure)? as Instant, &line) {
            break;
        }
    }
    Ok(())
}

/// The file of the day that was asked for last: rows of a day follow each other.
struct Days<'a> {
    calendar: &'a Calendar,
    layer: Layer,
    bounds: Range<Instant>,
    path: String,
}

impl Days<'_> {
    fn path(&mut self, at: Instant) -> &str {
        if !self.bounds.contains(&at) {
            let day = self.calendar.day(at);
            self.bounds = self.calendar.bounds(&day).map_or(0..0, |(start, end)| start..end);
            self.path = format!("{}/{day}.jsonl", self.layer.folder());
        }
        &self.path
    }
}

fn step(store: &mut Store, calendar: &Calendar, layer: Layer) -> Result<u64> {
    let after = cursor(store.db(), layer)?;
    let mut days = Days { calendar, layer, bounds: 0..0, path: String::new() };
    let mut by_file: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let (mut last, mut lines, mut bytes) = (after, 0, 0);
    each_line(store.db(), layer, &format!("{}.id > ?1", layer.table()), [after], |id, at, line| {
        let path = days.path(at);
        match by_file.get_mut(path) {
            Some(text) => text.extend_from_slice(line),
            None => drop(by_file.insert(path.to_owned(), line.to_vec())),
        }
        last = id;
        lines += 1;
        bytes += line.len();
        lines < STEP && bytes < STEP_BYTES
    })?;
    if lines == 0 {
        return Ok(0);
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
    Ok(lines)
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
        let times: Vec<Instant> = db
            .prepare(&format!("SELECT {} FROM {}", layer.day_column(), layer.table()))
            .and_then(|mut query| query.query_map([], |row| row.get(0))?.collect())
            .map_err(failure)?;
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
        let condition = format!("{column} >= ?1 AND {column} < ?2 AND {}.id <= ?3", layer.table());
        each_line(store.db(), layer, &condition, params![start as i64, end as i64, until], |_, _, line| {
            text.extend_from_slice(line);
            true
        })?;
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

/// A line of `conversations/`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MessageLine<'a> {
    session_key: &'a str,
    session_id: &'a str,
    recorded_at: String,
    id: &'a str,
    role: &'a str,
    speaker: Option<&'a str>,
    content: &'a str,
    timestamp: i64,
    team_id: &'a str,
    user_id: &'a str,
    agent_id: &'a str,
}

/// A line of `records/`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AtomLine<'a> {
    id: &'a str,
    content: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    priority: i64,
    #[serde(rename = "scene_name")]
    scene_name: &'a str,
    #[serde(rename = "source_message_ids")]
    source_message_ids: Vec<String>,
    metadata: Value,
    timestamps: Vec<String>,
    created_at: &'a str,
    updated_at: &'a str,
    session_key: &'a str,
    session_id: &'a str,
    origin: &'a str,
    supersedes: Vec<String>,
    team_id: &'a str,
    user_id: &'a str,
    agent_id: &'a str,
}

fn write(line: &mut Vec<u8>, value: &impl Serialize) -> Result<()> {
    serde_json::to_writer(line, value).map_err(|error| Failure::invalid(format!("a mirror's line: {error}")))
}

fn message_line(row: &Row<'_>, line: &mut Vec<u8>) -> Result<()> {
    let text = |place| row.get_ref(place).and_then(|value| Ok(value.as_str()?)).map_err(failure);
    let session = text(6)?;
    let value = MessageLine {
        session_key: session,
        session_id: session,
        recorded_at: iso(row.get(1).map_err(failure)?),
        id: text(2)?,
        role: text(7)?,
        speaker: row.get_ref(8).and_then(|value| Ok(value.as_str_or_null()?)).map_err(failure)?,
        content: text(9)?,
        timestamp: row.get(10).map_err(failure)?,
        team_id: text(3)?,
        user_id: text(4)?,
        agent_id: text(5)?,
    };
    write(line, &value)
}

fn atom_line(db: &Connection, row: &Row<'_>, line: &mut Vec<u8>) -> Result<()> {
    let text = |place| row.get_ref(place).and_then(|value| Ok(value.as_str()?)).map_err(failure);
    let id: i64 = row.get(0).map_err(failure)?;
    let list = |exists: usize, sql: &str| -> Result<Vec<String>> {
        if !row.get::<_, bool>(exists).map_err(failure)? {
            return Ok(Vec::new());
        }
        db.prepare_cached(sql).and_then(|mut query| query.query_map([id], |row| row.get(0))?.collect()).map_err(failure)
    };
    let time = |place| row.get::<_, Option<i64>>(place).map_err(failure);
    let created_at = iso(row.get(1).map_err(failure)?);
    let session = text(6)?;
    let value = AtomLine {
        id: text(2)?,
        content: text(7)?,
        kind: text(8)?,
        priority: row.get(9).map_err(failure)?,
        scene_name: text(10)?,
        source_message_ids: list(15, "SELECT uid FROM evidence JOIN messages ON messages.id = message WHERE atom = ?1 ORDER BY message")?,
        metadata: serde_json::from_str(text(11)?).unwrap_or_else(|_| json!({})),
        timestamps: [time(12)?, time(13)?].into_iter().flatten().map(iso).collect(),
        created_at: &created_at,
        updated_at: &created_at,
        session_key: session,
        session_id: session,
        origin: text(14)?,
        supersedes: list(16, "SELECT uid FROM links JOIN atoms ON atoms.id = older WHERE newer = ?1 ORDER BY older")?,
        team_id: text(3)?,
        user_id: text(4)?,
        agent_id: text(5)?,
    };
    write(line, &value)
}
