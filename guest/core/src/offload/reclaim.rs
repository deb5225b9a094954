//! Gives disk back: texts of sessions that are over, by age and by size.
//!
//! A session goes as a whole, because its canvas points at its nodes, they at entries, and those at
//! texts. It may go when it has ended, or has been quiet for [`QUIET_MS`]; and never while a stored
//! message names one of its texts. All rows go in one transaction, then the files: a crash between the
//! two leaves files that no row names, and those are removed by the next run.

use super::intake::Desk;
use super::{mirror, refs};
use crate::contract::{Instant, Result};
use crate::disk::Disk;
use crate::l0::SessionId;
use crate::settings::Offload;
use crate::store::{Store, disk_failure, failure};
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A session without an event for so long is over even if nobody said so.
const QUIET_MS: u64 = 24 * 60 * 60 * 1_000;
/// Pause between two runs.
const PAUSE_MS: u64 = 60 * 60 * 1_000;
/// Sessions that one run takes, which bounds its time.
const SESSIONS_MAX: usize = 200;
/// The row of `space` that holds the last report.
const REPORT_KEY: &str = "offload_reclaimed";

/// Exactly what a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Sessions whose offload was removed.
    pub sessions: u64,
    /// Their entries.
    pub entries: u64,
    /// Texts removed with them.
    pub refs: u64,
    /// Bytes of files given back.
    pub disk_bytes: u64,
    /// Files that no row named.
    pub orphans: u64,
    /// Sessions that were old enough and stayed, because a stored message names one of their texts.
    pub kept: u64,
}

impl Report {
    /// Returns the report as `status` shows it.
    pub fn document(&self, at: Instant) -> Value {
        json!({"at": at, "sessions": self.sessions, "entries": self.entries, "refs": self.refs, "disk-bytes": self.disk_bytes, "orphans": self.orphans, "kept": self.kept})
    }
}

/// Runs if a bound is set and the last run is long enough ago. Returns the report of a run that did
/// something, and when to look again.
pub fn tick(desk: &mut Desk<'_>, settings: &Offload, now: Instant) -> Result<(Option<Report>, Option<Instant>)> {
    if settings.retention_days == 0 && settings.max_size_mb == 0 {
        return Ok((None, None));
    }
    let last = last_run(desk.store.db())?;
    let due = last.map_or(now, |at| at + PAUSE_MS);
    if due > now {
        return Ok((None, Some(due)));
    }
    let report = reclaim(desk, settings, now)?;
    Ok(((report != Report { kept: report.kept, ..Report::default() }).then_some(report), Some(now + PAUSE_MS)))
}

/// Removes what the bounds of `settings` allow to be removed at `now`.
pub fn reclaim(desk: &mut Desk<'_>, settings: &Offload, now: Instant) -> Result<Report> {
    let disk = desk.store.shared_disk();
    let mut report = Report::default();
    let mut gone: Vec<String> = Vec::new();
    let taken = desk.store.write(|tx| {
        let taken = take(tx, settings, now, &mut gone, &mut report)?;
        let document = report.document(now).to_string();
        tx.execute("INSERT OR REPLACE INTO space (key, value) VALUES (?1, ?2)", params![REPORT_KEY, document]).map_err(failure)?;
        Ok(taken)
    })?;
    for id in &taken {
        desk.sessions.drop_cached(*id);
    }
    mirror::discard(desk, &taken);
    for path in &gone {
        refs::remove(disk.as_ref(), path)?;
    }
    report.orphans = remove_orphans(desk.store, disk.as_ref())?;
    Ok(report)
}

/// Takes the rows of the sessions that may go, the oldest first; a session that stays does not hold up the next.
fn take(tx: &Transaction<'_>, settings: &Offload, now: Instant, gone: &mut Vec<String>, report: &mut Report) -> Result<Vec<SessionId>> {
    let over: Vec<(SessionId, u64)> = tx
        .prepare_cached(
            "SELECT id, active_at FROM sessions
              WHERE (ended_at IS NOT NULL OR active_at <= ?1) AND EXISTS (SELECT 1 FROM offload_uses WHERE session = sessions.id)
              ORDER BY active_at, id",
        )
        .and_then(|mut query| query.query_map([now.saturating_sub(QUIET_MS) as i64], |row| Ok((SessionId(row.get(0)?), row.get(1)?)))?.collect())
        .map_err(failure)?;
    let size: u64 = tx.query_row("SELECT coalesce(sum(disk_bytes), 0) FROM offload_refs", [], |row| row.get(0)).map_err(failure)?;
    let bound = u64::from(settings.max_size_mb) << 20;
    let oldest = now.saturating_sub(u64::from(settings.retention_days) * 24 * 60 * 60 * 1_000);
    let mut named: Option<BTreeSet<String>> = None;
    let mut taken = Vec::new();
    for (id, active_at) in over {
        let too_old = settings.retention_days > 0 && active_at <= oldest;
        let too_large = settings.max_size_mb > 0 && size.saturating_sub(report.disk_bytes) > bound;
        // Those that follow are younger, and the size falls by what is taken alone.
        if taken.len() >= SESSIONS_MAX || !(too_old || too_large) {
            break;
        }
        let named = match &named {
            Some(known) => known,
            None => named.insert(named_refs(tx)?),
        };
        if is_named(tx, id, named)? {
            report.kept += 1;
            continue;
        }
        remove_rows(tx, id, gone, report)?;
        taken.push(id);
    }
    Ok(taken)
}

/// Returns the refs that stored messages name.
fn named_refs(db: &Connection) -> Result<BTreeSet<String>> {
    let mut named = BTreeSet::new();
    let mut query = db.prepare_cached("SELECT text FROM messages WHERE instr(text, 'refs/') > 0").map_err(failure)?;
    let mut rows = query.query([]).map_err(failure)?;
    while let Some(row) = rows.next().map_err(failure)? {
        let text = row.get_ref(0).and_then(|value| Ok(value.as_str()?)).map_err(failure)?;
        named.extend(text.match_indices(refs::REFS_DIR).filter_map(|(at, _)| text[at..].get(..refs::REF_PATH_CHARS)).map(str::to_owned));
    }
    Ok(named)
}

fn is_named(db: &Connection, session: SessionId, named: &BTreeSet<String>) -> Result<bool> {
    if named.is_empty() {
        return Ok(false);
    }
    let paths: Vec<String> = db
        .prepare_cached("SELECT path FROM offload_uses WHERE session = ?1")
        .and_then(|mut query| query.query_map([session.0], |row| row.get(0))?.collect())
        .map_err(failure)?;
    Ok(paths.iter().any(|path| named.contains(path)))
}

fn remove_rows(tx: &Transaction<'_>, id: SessionId, gone: &mut Vec<String>, report: &mut Report) -> Result<()> {
    let own: Vec<(String, u64)> = tx
        .prepare_cached(
            "SELECT path, disk_bytes FROM offload_refs WHERE path IN (SELECT path FROM offload_uses WHERE session = ?1)
                AND path NOT IN (SELECT path FROM offload_uses WHERE session <> ?1) ORDER BY path",
        )
        .and_then(|mut query| query.query_map([id.0], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .map_err(failure)?;
    let remove = |table: &str| tx.execute(&format!("DELETE FROM {table} WHERE session = ?1"), [id.0]).map_err(failure);
    remove("offload_uses")?;
    report.entries += remove("offload_entries")? as u64;
    for table in ["offload_boards", "offload_nodes", "offload_contexts"] {
        remove(table)?;
    }
    for (path, disk_bytes) in own {
        tx.execute("DELETE FROM offload_refs WHERE path = ?1", [&path]).map_err(failure)?;
        report.refs += 1;
        report.disk_bytes += disk_bytes;
        gone.push(path);
    }
    report.sessions += 1;
    Ok(())
}

/// Removes files of `refs/` that no row names, which a crash between a file and its row leaves; returns how many.
pub(crate) fn remove_orphans(store: &Store, disk: &dyn Disk) -> Result<u64> {
    if !disk.exists(refs::REFS_DIR).map_err(|error| disk_failure(refs::REFS_DIR, error))? {
        return Ok(0);
    }
    let mut orphans = 0;
    for name in disk.list(refs::REFS_DIR).map_err(|error| disk_failure(refs::REFS_DIR, error))? {
        let file = format!("{}/{name}", refs::REFS_DIR);
        let known = store
            .db()
            .prepare_cached("SELECT 1 FROM offload_refs WHERE path = ?1")
            .and_then(|mut query| query.exists([file.trim_end_matches(".gz")]))
            .map_err(failure)?;
        if !known && name.contains(".md") {
            disk.remove(&file).map_err(|error| disk_failure(&file, error))?;
            orphans += 1;
        }
    }
    if orphans > 0 {
        refs::sync_names(disk)?;
    }
    Ok(orphans)
}

fn last_run(db: &Connection) -> Result<Option<Instant>> {
    let document: Option<String> = db.query_row("SELECT value FROM space WHERE key = ?1", [REPORT_KEY], |row| row.get(0)).optional().map_err(failure)?;
    Ok(document.and_then(|text| serde_json::from_str::<Value>(&text).ok()?.get("at")?.as_u64()))
}
