//! `vectors.db`: rows, and vectors out of the shadow tables of `sqlite-vec`, which are ordinary tables.

use super::super::{Problem, Sink, time_text};
use super::files::{L0Line, L1Line, event, kind, scope};
use anyhow::{Context, Result};
use jiff::tz::TimeZone;
use rusqlite::{Connection, OptionalExtension, Row};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Tables that are read, and the prefixes of tables that hold indexes over them.
const READ: [&str; 3] = ["embedding_meta", "l0_conversations", "l1_records"];
const INDEXES: [&str; 6] = ["l0_vec", "l1_vec", "l0_fts", "l1_fts", "sqlite_", "skill_fts"];

/// What a database holds; empty if there is none.
#[derive(Debug, Default)]
pub(super) struct Database {
    pub messages: Vec<L0Line>,
    /// The table of atoms exists: it is the set of those that are alive.
    pub has_atoms: bool,
    pub atoms: Vec<L1Line>,
    /// The embedding model of the vectors.
    pub model: String,
    /// Row id and vector.
    pub vectors: Vec<(String, Vec<f32>)>,
    /// Rows of every other table.
    pub other_tables: BTreeMap<String, u64>,
}

impl Database {
    /// Reads the database, if it exists. What is damaged is reported; the rest is read.
    pub(super) fn read(path: &Path, sink: &mut dyn Sink) -> Result<Self> {
        let mut found = Self::default();
        if !path.exists() {
            return Ok(found);
        }
        let (_copy, db) = open_copy(path)?;
        let mut report = |what: &str, error: &dyn std::fmt::Display| {
            sink.problem(Problem { file: path.display().to_string(), line: 0, reason: format!("{what}: {error}") });
        };
        let tables = match tables(&db) {
            Ok(tables) => tables,
            Err(error) => {
                report("not readable", &error);
                return Ok(found);
            }
        };
        if tables.contains("l0_conversations") {
            match rows(&db, "SELECT * FROM l0_conversations ORDER BY timestamp, rowid", message) {
                Ok(rows) => found.messages = rows,
                Err(error) => report("l0_conversations", &error),
            }
        }
        if tables.contains("l1_records") {
            match rows(&db, "SELECT * FROM l1_records ORDER BY created_time, rowid", atom) {
                Ok(rows) => (found.atoms, found.has_atoms) = (rows, true),
                Err(error) => report("l1_records", &error),
            }
        }
        if tables.contains("embedding_meta") {
            match db.query_row("SELECT value FROM embedding_meta WHERE key = 'embedding_provider_info'", [], |row| row.get::<_, String>(0)).optional() {
                Ok(info) => found.model = info.and_then(|info| model(&info)).unwrap_or_default(),
                Err(error) => report("embedding_meta", &error),
            }
        }
        for table in ["l0_vec", "l1_vec"].into_iter().filter(|table| tables.contains(&format!("{table}_rowids"))) {
            match vectors(&db, table) {
                Ok(mut vectors) => found.vectors.append(&mut vectors),
                Err(error) => report(table, &error),
            }
        }
        for table in tables.iter().filter(|table| !READ.contains(&table.as_str()) && !INDEXES.iter().any(|prefix| table.starts_with(prefix))) {
            match count(&db, table) {
                Ok(rows) => drop(found.other_tables.insert(table.clone(), rows)),
                Err(error) => report(table, &error),
            }
        }
        Ok(found)
    }
}

/// Returns the rows of each table of a database.
pub(super) fn row_counts(path: &Path, sink: &mut dyn Sink) -> Result<BTreeMap<String, u64>> {
    let (_copy, db) = open_copy(path)?;
    let counted = tables(&db).and_then(|tables| tables.into_iter().map(|table| Ok((table.clone(), count(&db, &table)?))).collect());
    counted.or_else(|error| {
        sink.problem(Problem { file: path.display().to_string(), line: 0, reason: error.to_string() });
        Ok(BTreeMap::new())
    })
}

/// Opens a copy, with what the write-ahead log still holds, so that the original is not touched.
fn open_copy(path: &Path) -> Result<(tempfile::TempDir, Connection)> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let name = path.file_name().context("a database has a name")?.to_os_string();
    for end in ["", "-wal"] {
        let mut from = path.as_os_str().to_os_string();
        from.push(end);
        let mut to = name.clone();
        to.push(end);
        if Path::new(&from).exists() {
            std::fs::copy(&from, folder.path().join(to)).with_context(|| super::reading(Path::new(&from)))?;
        }
    }
    let db = Connection::open(folder.path().join(name)).with_context(|| super::reading(path))?;
    Ok((folder, db))
}

fn tables(db: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?.query_map([], |row| row.get(0))?.collect()
}

fn count(db: &Connection, table: &str) -> rusqlite::Result<u64> {
    db.query_row(&format!("SELECT count(*) FROM \"{}\"", table.replace('"', "\"\"")), [], |row| row.get(0))
}

fn rows<T>(db: &Connection, sql: &str, read: fn(&Row<'_>) -> rusqlite::Result<T>) -> rusqlite::Result<Vec<T>> {
    db.prepare(sql)?.query_map([], read)?.collect()
}

/// Returns a column as text, if the table has it: v3 added some.
fn column(row: &Row<'_>, name: &str) -> Option<String> {
    let value = row.get::<_, rusqlite::types::Value>(name).ok()?;
    match value {
        rusqlite::types::Value::Text(text) if !text.is_empty() => Some(text),
        rusqlite::types::Value::Integer(number) => Some(number.to_string()),
        rusqlite::types::Value::Real(number) => Some(number.to_string()),
        _ => None,
    }
}

fn time(row: &Row<'_>, name: &str) -> Option<u64> {
    column(row, name).and_then(|text| time_text::parse(&text, &TimeZone::UTC))
}

fn row_scope(row: &Row<'_>) -> Option<Value> {
    let parts: BTreeMap<&str, String> = ["team_id", "user_id", "agent_id"].into_iter().filter_map(|name| Some((name, column(row, name)?))).collect();
    scope(|name| parts.get(name).map(String::as_str))
}

fn message(row: &Row<'_>) -> rusqlite::Result<L0Line> {
    Ok(L0Line {
        id: row.get("record_id")?,
        session: column(row, "session_key").or_else(|| column(row, "session_id")).unwrap_or_default(),
        role: row.get("role")?,
        text: row.get("message_text")?,
        said_at: time(row, "timestamp"),
        recorded_at: time(row, "recorded_at"),
        scope: row_scope(row),
    })
}

fn atom(row: &Row<'_>) -> rusqlite::Result<L1Line> {
    let metadata: Map<String, Value> = column(row, "metadata_json").and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    Ok(L1Line {
        id: row.get("record_id")?,
        session: column(row, "session_key").or_else(|| column(row, "session_id")).unwrap_or_default(),
        kind: kind(&row.get::<_, String>("type")?),
        text: row.get("content")?,
        priority: row.get("priority").unwrap_or(50),
        scene: column(row, "scene_name").unwrap_or_default(),
        messages: Vec::new(),
        event: event(&metadata, &TimeZone::UTC),
        metadata,
        created_at: time(row, "created_time"),
        updated_at: time(row, "updated_time"),
        scope: row_scope(row),
    })
}

fn model(info: &str) -> Option<String> {
    serde_json::from_str::<Value>(info).ok()?.get("model")?.as_str().map(str::to_owned)
}

/// Reads the vectors of a `vec0` table: `<t>_rowids` says in which chunk and where, `<t>_vector_chunks00` has the floats,
/// `<t>_chunks` which places are in use. The number in `float[N]` of the table's definition is the length.
fn vectors(db: &Connection, table: &str) -> Result<Vec<(String, Vec<f32>)>> {
    let sql: String = db.query_row("SELECT sql FROM sqlite_master WHERE name = ?1", [table], |row| row.get(0))?;
    let length: usize = sql
        .split_once("float[")
        .and_then(|(_, rest)| rest.split_once(']'))
        .and_then(|(number, _)| number.trim().parse().ok())
        .with_context(|| format!("{table} does not say how long its vectors are"))?;
    let mut places: BTreeMap<i64, Vec<(String, usize)>> = BTreeMap::new();
    let mut query = db.prepare(&format!("SELECT id, chunk_id, chunk_offset FROM {table}_rowids WHERE chunk_id IS NOT NULL ORDER BY rowid"))?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        places.entry(row.get(1)?).or_default().push((row.get(0)?, row.get::<_, u32>(2)? as usize));
    }
    let mut found = Vec::new();
    for (chunk, ids) in places {
        let floats: Vec<u8> = db.query_row(&format!("SELECT vectors FROM {table}_vector_chunks00 WHERE rowid = ?1"), [chunk], |row| row.get(0))?;
        let valid: Vec<u8> = db.query_row(&format!("SELECT validity FROM {table}_chunks WHERE chunk_id = ?1"), [chunk], |row| row.get(0))?;
        for (id, place) in ids {
            let in_use = valid.get(place / 8).is_some_and(|byte| byte >> (place % 8) & 1 == 1);
            let bytes = floats.get(place * length * 4..(place + 1) * length * 4).filter(|_| in_use);
            if let Some(bytes) = bytes {
                found.push((id, bytes.as_chunks().0.iter().map(|four| f32::from_le_bytes(*four)).collect()));
            }
        }
    }
    Ok(found)
}
