//! Forgetting: rows, everything built on them, and every byte of their text in the data directory.
//!
//! The rows go in one transaction, which also leaves a note of what files may still hold: hashes and
//! ids, no text. Then the files go: projections, mirrors, refs, canvases, exports, backups, free pages
//! and the WAL. A crash in between is made good at the next open, because the note is still there.
//! At last every file is searched, and the receipt says what was found.

mod backups;
mod cascade;
mod copies;
mod needles;
mod offload;
mod select;

use crate::calendar::Calendar;
use crate::contract::{Failure, Instant, LogLevel, Outgoing, Result, Selector};
use crate::disk::{self, Disk};
use crate::engine::Engine;
use crate::offload::reclaim;
use crate::projections;
use crate::store::{Store, failure};
use cascade::Cascade;
use needles::Needles;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
pub(crate) use select::Query;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The key in `space` under which unfinished file work is noted.
const NOTE: &str = "forgetting";

/// Databases up to so many bytes are rebuilt after a forgetting. Beyond, overwriting by
/// `secure_delete` alone has to do: a rebuild needs the database's size in memory.
const MAX_VACUUM_BYTES: u64 = 128 << 20;

/// Ids that a receipt lists.
const MAX_LISTED: usize = 100;

/// What files may still hold.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Note {
    /// What the cascade began with; copies begin with the same.
    roots: BTreeSet<String>,
    /// Ids whose mention tells.
    uids: BTreeSet<String>,
    needles: Needles,
    terms: Vec<String>,
    /// Whose texts the terms are looked for in, if not in all.
    user: Option<String>,
    refs: BTreeSet<String>,
    redraw: BTreeSet<i64>,
    slugs: BTreeSet<String>,
    at: Instant,
}

/// Returns whether a text names one of the ids.
fn names(text: &str, uids: &BTreeSet<String>) -> bool {
    /// `m_`, `a_`, `s_`, `p_` and 16 hex digits.
    const LENGTH: usize = 18;
    let bytes = text.as_bytes();
    bytes.windows(LENGTH).any(|window| {
        window[1] == b'_'
            && matches!(window[0], b'm' | b'a' | b's' | b'p')
            && window[2..].iter().all(u8::is_ascii_hexdigit)
            && std::str::from_utf8(window).is_ok_and(|id| uids.contains(id))
    })
}

impl Engine {
    /// `memory.forget`.
    pub fn forget(&mut self, which: &Selector, confirmed: bool, at: Instant) -> Result<String> {
        // The note has room for one forgetting: one that was cut short ends first.
        self.finish_forgetting()?;
        self.finish_in_backups()?;
        // What a human has written in the files takes part.
        self.look(at);
        let mut done: Option<(Cascade, BTreeSet<String>)> = None;
        let disk = self.store.shared_disk();
        let calendar = &self.calendar;
        let outcome = self.store.write(|tx| {
            let mut doomed = select::select(tx, which)?;
            offload::select(tx, which, &mut doomed, false)?;
            let roots = select::roots(tx, &doomed)?;
            let mut cascade = cascade::run(tx, calendar, &doomed, at)?;
            let files = offload::rows(tx, disk.as_ref(), &doomed, &mut cascade)?;
            let listed: BTreeSet<String> = cascade.uids.iter().take(MAX_LISTED).cloned().collect();
            let nothing = cascade.counts.is_empty();
            let note = Note {
                roots,
                uids: cascade.uids.clone(),
                needles: cascade.needles.clone(),
                terms: doomed.terms.clone(),
                user: which.user.clone(),
                refs: files.refs,
                redraw: files.redraw,
                slugs: files.slugs,
                at,
            };
            let text = serde_json::to_string(&note).map_err(|error| Failure::invalid(format!("the note of a forgetting: {error}")))?;
            tx.execute("INSERT INTO space (key, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value", params![NOTE, text])
                .map_err(failure)?;
            done = Some((cascade, listed));
            // A preview runs the whole cascade and takes it back; so does one that finds nothing.
            if confirmed && !nothing { Ok(()) } else { Err(Failure::invalid("taken back")) }
        });
        let Some((cascade, listed)) = done else { return Err(outcome.expect_err("a cascade that gave nothing has failed")) };
        let counts = cascade.document();
        if !confirmed || cascade.counts.is_empty() {
            if confirmed {
                // What no row tells of may still lie in what a crash has left.
                copies::ruins(&self.store)?;
            }
            return Ok(json!({"confirmed": confirmed, "would-remove": if confirmed { json!({}) } else { counts }, "removed": {}, "ids": listed}).to_string());
        }
        outcome?;
        self.outgoing.extend(cascade.cancelled.iter().cloned());
        self.offload_sessions.clear();
        let mut receipt = self.finish_forgetting()?.unwrap_or_else(|| json!({}));
        receipt["confirmed"] = json!(true);
        receipt["removed"] = counts;
        receipt["ids"] = json!(listed);
        receipt["at"] = json!(at);
        Ok(receipt.to_string())
    }

    /// Does what a forgetting has left to do at opening. What cannot be done is said, noted still, and tried again at the
    /// next opening: the space itself is whole.
    pub(crate) fn catch_up_forgetting(&mut self) {
        let text = match self.finish_forgetting().and_then(|_| self.finish_in_backups()) {
            Ok(left) if left.is_empty() => return,
            Ok(left) => format!("backups that cannot be opened may still hold what was forgotten: {}; mend or remove them", left.join(", ")),
            Err(failure) => format!("files may still hold what was forgotten: {}; it is tried again at the next opening", failure.message),
        };
        self.outgoing.push(Outgoing::Log { level: LogLevel::Warn, text });
    }

    /// Does the file work of a forgetting that is not done yet; returns what it did.
    pub(crate) fn finish_forgetting(&mut self) -> Result<Option<Value>> {
        let Some(mut note) = note(&self.store)? else { return Ok(None) };
        let disk = self.store.shared_disk();
        projections::settle(&mut self.store, &self.calendar, note.at)?;
        projections::mirrors::settle(&mut self.store, &self.calendar)?;
        let files = offload::Files { refs: note.refs.clone(), redraw: note.redraw.clone(), slugs: note.slugs.clone() };
        let drawings = offload::files(&self.store, &self.calendar, &files)?;
        let ruins = copies::ruins(&self.store)?;
        let exports = copies::exports(disk.as_ref(), &note)?;
        let (backups, unsearched) = backups::forget_in_all(&disk, &self.calendar, &note)?;
        // The words of a query leave the note before the pages are purged: after the note itself has
        // gone nobody would purge again.
        note.terms.clear();
        self.store.write(|tx| keep_note(tx, &note))?;
        let vacuumed = purge_pages(&mut self.store)?;
        self.store.write(|tx| {
            backups::note_unsearched(tx, &unsearched, &note)?;
            tx.execute("DELETE FROM space WHERE key = ?1", [NOTE]).map(|_| ()).map_err(failure)
        })?;
        checkpoint(&mut self.store)?;
        let mut found = search(disk.as_ref(), &note)?;
        if found.found > 0 {
            found.found = legitimate(&self.store, disk.as_ref(), &mut found)?;
        }
        Ok(Some(json!({
            "export-lines": exports, "backups": backups, "unsearched-backups": backups::document(&unsearched), "ruined-copies": ruins, "drawings": drawings, "vacuumed": vacuumed,
            "searched": {"files": found.files, "bytes": found.bytes, "found": found.found, "where": found.paths}
        })))
    }
}

/// Returns what forgettings have left to do, as `status` shows it.
pub(crate) fn status(db: &Connection) -> Result<Value> {
    let unfinished = db.prepare_cached("SELECT 1 FROM space WHERE key = ?1").and_then(|mut query| query.exists([NOTE])).map_err(failure)?;
    Ok(json!({"unfinished": unfinished, "backups": backups::pending_names(db)?}))
}

fn keep_note(tx: &Transaction<'_>, note: &Note) -> Result<()> {
    let text = serde_json::to_string(note).map_err(|error| Failure::invalid(format!("the note of a forgetting: {error}")))?;
    tx.execute("INSERT INTO space (key, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value", params![NOTE, text])
        .map(|_| ())
        .map_err(failure)
}

fn note(store: &Store) -> Result<Option<Note>> {
    let text: Option<String> = store
        .db()
        .prepare_cached("SELECT value FROM space WHERE key = ?1")
        .and_then(|mut query| query.query_row([NOTE], |row| row.get(0)).optional())
        .map_err(failure)?;
    text.map(|text| serde_json::from_str(&text).map_err(|error| Failure::new(crate::FailureCode::Corrupt, format!("the note of a forgetting: {error}"))))
        .transpose()
}

pub(crate) use cascade::clamp_cursors;

/// Folds the WAL into the database and empties it.
pub(crate) fn checkpoint(store: &mut Store) -> Result<()> {
    store.db().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(failure)
}

/// Leaves no old text in free space. Returns whether the database was rebuilt.
fn purge_pages(store: &mut Store) -> Result<bool> {
    checkpoint(store)?;
    let bytes: u64 = store.db().query_row("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", [], |row| row.get(0)).map_err(failure)?;
    let vacuum = bytes <= MAX_VACUUM_BYTES;
    if vacuum {
        store.db().execute_batch("VACUUM").map_err(failure)?;
        checkpoint(store)?;
    }
    Ok(vacuum)
}

/// What a search of the data directory found.
#[derive(Clone, Debug, Default)]
struct Found {
    files: u64,
    bytes: u64,
    found: u64,
    paths: Vec<String>,
    needles: Needles,
}

/// Searches every file of the data directory.
fn search(disk: &dyn Disk, note: &Note) -> Result<Found> {
    let mut found = Found::default();
    let needles = note.needles.for_files();
    for path in copies::files(disk)? {
        let Ok(bytes) = disk::read_all(disk, &path) else { continue };
        found.files += 1;
        found.bytes += bytes.len() as u64;
        let hits = needles.all_in(&bytes);
        if !hits.is_empty() {
            found.found += 1;
            found.paths.push(path);
            found.needles.extend(hits);
        }
    }
    Ok(found)
}

/// Returns how many files hold what no remaining row says: text that somebody else said too is theirs.
fn legitimate(store: &Store, disk: &dyn Disk, found: &mut Found) -> Result<u64> {
    for sql in [
        "SELECT text FROM messages",
        "SELECT text FROM atoms",
        "SELECT body || ' ' || summary FROM revisions",
        "SELECT body || coalesce(answer, '') FROM requests",
    ] {
        let mut query = store.db().prepare(sql).map_err(failure)?;
        let mut rows = query.query([]).map_err(failure)?;
        while let Some(row) = rows.next().map_err(failure)? {
            let text: String = row.get(0).map_err(failure)?;
            found.needles.discount(text.as_bytes());
            if found.needles.is_empty() {
                found.paths.clear();
                return Ok(0);
            }
        }
    }
    let needles = &found.needles;
    found.paths.retain(|path| disk::read_all(disk, path).is_ok_and(|bytes| needles.found_in(&bytes)));
    Ok(found.paths.len() as u64)
}

/// Forgets in a copy of the space: rows, refs and free pages. Returns whether anything was there.
pub(crate) fn forget_in_copy(store: &mut Store, calendar: &Calendar, which: &Selector, query: &Query, at: Instant) -> Result<bool> {
    let disk = store.shared_disk();
    let mut files = offload::Files::default();
    let changed = store.write(|tx| {
        let mut doomed = select::select(tx, which)?;
        offload::select(tx, which, &mut doomed, true)?;
        doomed.look_for(tx, query.clone())?;
        let mut cascade = cascade::run(tx, calendar, &doomed, at)?;
        files = offload::rows(tx, disk.as_ref(), &doomed, &mut cascade)?;
        // A copy has no files to remove, only their names.
        tx.execute("DELETE FROM projections WHERE page IS NULL", []).map_err(failure)?;
        Ok(!cascade.counts.is_empty())
    })?;
    // Copies hold refs and the database, no drawings.
    for path in &files.refs {
        crate::offload::refs::remove(disk.as_ref(), path)?;
    }
    reclaim::remove_orphans(store, disk.as_ref())?;
    purge_pages(store)?;
    Ok(changed)
}

/// Draws the canvases and offload logs of all sessions anew.
pub(crate) fn redraw_all(store: &Store, calendar: &Calendar) -> Result<()> {
    let redraw: BTreeSet<i64> = store
        .db()
        .prepare_cached("SELECT session FROM offload_boards")
        .and_then(|mut query| query.query_map([], |row| row.get(0))?.collect())
        .map_err(failure)?;
    offload::files(store, calendar, &offload::Files { redraw, ..offload::Files::default() }).map(|_| ())
}
/// Returns whether something besides messages and atoms still belongs to a session.
fn session_in_use(db: &Connection, session: i64) -> Result<bool> {
    db.prepare_cached(
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM offload_entries WHERE session = ?1) OR EXISTS (SELECT 1 FROM offload_uses WHERE session = ?1)
            OR EXISTS (SELECT 1 FROM batches WHERE session = ?1 AND state <> 'done')",
    )
    .and_then(|mut query| query.exists([session]))
    .map_err(failure)
}
