//! Export: the whole space as JSON Lines, in the records that `import` takes.
//!
//! The file is written under another name and renamed, so an export is whole or absent.

use crate::backup::check_name;
use crate::contract::{Failure, FailureCode, Instant, Result};
use crate::disk::{self, Disk, OpenMode};
use crate::engine::Engine;
use crate::pages;
use crate::projections::mirrors;
use crate::store::{Store, disk_failure, failure};
use rusqlite::{Connection, Row};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Where exports lie.
const FOLDER: &str = "exports";

/// The file of an export.
const FILE: &str = "space.jsonl";

/// Bytes that are gathered before they are written.
const CHUNK: usize = 1 << 20;

impl Engine {
    /// `memory.export`.
    pub fn export(&mut self, name: &str, at: Instant) -> Result<String> {
        check_name(name)?;
        self.look(at);
        let calendar = &self.calendar;
        self.store.write(|tx| mirrors::mark_all(tx, calendar))?;
        self.show(at);
        let path = format!("{FOLDER}/{name}/{FILE}");
        if self.store.disk().exists(&path).map_err(|error| disk_failure(&path, error))? {
            return Err(Failure::new(FailureCode::Conflict, format!("there is an export `{name}` already; choose another name")));
        }
        let counts = write(&self.store, &path)?;
        let mirrors: u64 = self.store.db().query_row("SELECT count(*) FROM mirrors", [], |row| row.get(0)).map_err(failure)?;
        Ok(json!({"name": name, "path": path, "records": counts, "mirrors": mirrors}).to_string())
    }
}

/// A file under construction.
struct Sink<'a> {
    disk: &'a dyn Disk,
    file: Box<dyn disk::DiskFile>,
    path: String,
    offset: u64,
    buffer: Vec<u8>,
    counts: BTreeMap<String, u64>,
}

impl Sink<'_> {
    fn put(&mut self, record: &Value) -> Result<()> {
        let kind = record["record"].as_str().unwrap_or_default().to_owned();
        *self.counts.entry(kind).or_insert(0) += 1;
        self.buffer.extend_from_slice(record.to_string().as_bytes());
        self.buffer.push(b'\n');
        if self.buffer.len() >= CHUNK { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write_at(&self.buffer, self.offset).map_err(|error| disk_failure(&self.path, error))?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

fn write(store: &Store, path: &str) -> Result<BTreeMap<String, u64>> {
    let disk = store.disk();
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    let fresh = format!("{path}{}", disk::FRESH);
    let refused = |error| disk_failure(path, error);
    disk.create_dir(parent).map_err(refused)?;
    let mut file = disk.open(&fresh, OpenMode::Create).map_err(refused)?;
    file.set_len(0).map_err(refused)?;
    let mut sink = Sink { disk, file, path: fresh.clone(), offset: 0, buffer: Vec::new(), counts: BTreeMap::new() };
    let db = store.db();
    each(db, MESSAGES, message, &mut sink)?;
    each(db, ATOMS, |row| atom(db, row), &mut sink)?;
    for kind in ["scene", "persona"] {
        for id in ids(db, kind)? {
            sink.put(&page(db, id)?)?;
        }
    }
    each(db, REQUESTS, request, &mut sink)?;
    sink.flush()?;
    sink.file.sync().map_err(refused)?;
    sink.disk.rename(&fresh, path).map_err(refused)?;
    disk.sync_dir(parent).map_err(refused)?;
    disk.sync_dir(FOLDER).map_err(refused)?;
    disk.sync_dir("").map_err(refused)?;
    Ok(sink.counts)
}

fn each(db: &Connection, sql: &str, record: impl Fn(&Row<'_>) -> rusqlite::Result<Value>, sink: &mut Sink<'_>) -> Result<()> {
    let mut query = db.prepare(sql).map_err(failure)?;
    let mut rows = query.query([]).map_err(failure)?;
    while let Some(row) = rows.next().map_err(failure)? {
        sink.put(&record(row).map_err(failure)?)?;
    }
    Ok(())
}

const MESSAGES: &str = "SELECT uid, host_id, name, role, speaker, text, said_at, recorded_at, occurrence, team, user, agent, batch IS NOT NULL
   FROM messages JOIN sessions ON sessions.id = session JOIN scopes ON scopes.id = messages.scope ORDER BY messages.id";

fn message(row: &Row<'_>) -> rusqlite::Result<Value> {
    Ok(json!({
        "record": "message",
        "id": row.get::<_, Option<String>>(1)?,
        "uid": row.get::<_, String>(0)?,
        "session": row.get::<_, String>(2)?,
        "role": row.get::<_, String>(3)?,
        "speaker": row.get::<_, Option<String>>(4)?,
        "text": row.get::<_, String>(5)?,
        "said-at": row.get::<_, i64>(6)?,
        "recorded-at": row.get::<_, i64>(7)?,
        "occurrence": row.get::<_, u32>(8)?,
        "distilled": row.get::<_, bool>(12)?,
        "scope": {"team": row.get::<_, String>(9)?, "user": row.get::<_, String>(10)?, "agent": row.get::<_, String>(11)?},
    }))
}

const ATOMS: &str = "SELECT atoms.id, uid, name, kind, text, priority, scene, origin, attribute, valid_from, valid_to, believed_from, believed_to,
   event_start, event_end, pinned, metadata, team, user, agent
   FROM atoms JOIN sessions ON sessions.id = session JOIN scopes ON scopes.id = atoms.scope ORDER BY atoms.id";

fn atom(db: &Connection, row: &Row<'_>) -> rusqlite::Result<Value> {
    let id: i64 = row.get(0)?;
    let sources: Vec<(String, String)> = db
        .prepare_cached("SELECT uid, quote FROM evidence JOIN messages ON messages.id = message WHERE atom = ?1 ORDER BY message")?
        .query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let replaced: Vec<(String, String)> = db
        .prepare_cached("SELECT uid, links.kind FROM links JOIN atoms ON atoms.id = older WHERE newer = ?1 ORDER BY older")?
        .query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let metadata: String = row.get(16)?;
    Ok(json!({
        "record": "atom",
        "id": row.get::<_, String>(1)?,
        "session": row.get::<_, String>(2)?,
        "kind": row.get::<_, String>(3)?,
        "text": row.get::<_, String>(4)?,
        "priority": row.get::<_, i64>(5)?,
        "scene": row.get::<_, String>(6)?,
        "origin": row.get::<_, String>(7)?,
        "attribute": row.get::<_, Option<String>>(8)?,
        "messages": sources.iter().map(|(uid, _)| uid).collect::<Vec<_>>(),
        "quotes": sources.iter().map(|(_, quote)| quote).collect::<Vec<_>>(),
        "replaces": replaced.iter().map(|(uid, kind)| json!({"id": uid, "how": kind})).collect::<Vec<_>>(),
        "valid-from": row.get::<_, i64>(9)?,
        "valid-to": row.get::<_, Option<i64>>(10)?,
        "created-at": row.get::<_, i64>(11)?,
        "believed-to": row.get::<_, Option<i64>>(12)?,
        "event-start": row.get::<_, Option<i64>>(13)?,
        "event-end": row.get::<_, Option<i64>>(14)?,
        "pinned": row.get::<_, bool>(15)?,
        "metadata": serde_json::from_str::<Value>(&metadata).unwrap_or_else(|_| json!({})),
        "scope": {"team": row.get::<_, String>(17)?, "user": row.get::<_, String>(18)?, "agent": row.get::<_, String>(19)?},
    }))
}

fn ids(db: &Connection, kind: &str) -> Result<Vec<i64>> {
    db.prepare("SELECT id FROM pages WHERE kind = ?1 ORDER BY id").and_then(|mut query| query.query_map([kind], |row| row.get(0))?.collect()).map_err(failure)
}

fn page(db: &Connection, id: i64) -> Result<Value> {
    let page = pages::load(db, pages::PageId(id))?;
    let (team, user, agent) = pages::scope_names(db, page.scope)?;
    let mut revisions = Vec::new();
    for revision in pages::revisions(db, page.id)? {
        revisions.push(json!({
            "revision": revision.number, "text": revision.body, "summary": revision.summary, "heat": revision.heat, "origin": revision.author,
            "how": revision.how, "hand": revision.hand, "at": revision.at, "pruned": revision.pruned
        }));
    }
    let atoms: Vec<String> = db
        .prepare_cached("SELECT DISTINCT atom FROM grounds WHERE page = ?1 AND revision = ?2 ORDER BY atom")
        .and_then(|mut query| query.query_map(rusqlite::params![id, page.number], |row| row.get(0))?.collect())
        .map_err(failure)?;
    Ok(json!({
        "record": if page.kind == pages::Kind::Scene { "scene" } else { "persona" },
        "id": page.uid,
        "name": page.file().trim_end_matches(".md"),
        "text": page.body,
        "summary": page.summary,
        "heat": page.heat,
        "created-at": page.created_at,
        "updated-at": page.updated_at,
        "archived-at": page.archived_at,
        "origin": page.author,
        "hand": page.hand,
        "atoms": atoms,
        "revisions": revisions,
        "scope": {"team": team, "user": user, "agent": agent},
    }))
}

const REQUESTS: &str = "SELECT requests.id, batch, layer, kind, purpose, body, requests.state, asked_at, answered_at, answer, requests.reason, model,
   input_tokens, output_tokens, changed FROM requests JOIN batches ON batches.id = batch ORDER BY requests.id";

fn request(row: &Row<'_>) -> rusqlite::Result<Value> {
    let body: String = row.get(5)?;
    let changed: String = row.get(14)?;
    Ok(json!({
        "record": "request",
        "id": format!("r{}", row.get::<_, i64>(0)?),
        "batch": row.get::<_, i64>(1)?,
        "layer": row.get::<_, String>(2)?,
        "kind": row.get::<_, String>(3)?,
        "purpose": row.get::<_, String>(4)?,
        "question": serde_json::from_str::<Value>(&body).unwrap_or(Value::Null),
        "state": row.get::<_, String>(6)?,
        "asked-at": row.get::<_, i64>(7)?,
        "answered-at": row.get::<_, Option<i64>>(8)?,
        "answer": row.get::<_, Option<String>>(9)?,
        "reason": row.get::<_, String>(10)?,
        "model": row.get::<_, String>(11)?,
        "input-tokens": row.get::<_, Option<i64>>(12)?,
        "output-tokens": row.get::<_, Option<i64>>(13)?,
        "changed": serde_json::from_str::<Value>(&changed).unwrap_or(Value::Null),
    }))
}
