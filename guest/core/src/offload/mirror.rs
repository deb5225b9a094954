//! Files that people and other tools read: `offload/offload-<session>.jsonl` with the reference's
//! fields, and `canvases/<session>-NNN.mmd`. The rows are the truth; these are projections that are
//! written after the commit. A refused file is no reason to refuse what is committed: the session is
//! noted as behind, people are told, and its files are written anew at the next tick or open.

use super::canvas::{CANVAS_MAX_CHARS, draw};
use super::intake::Desk;
use super::ledger::Entry;
use super::session::MUST_REWRITE;
use crate::calendar::Calendar;
use crate::contract::{Result, Scope};
use crate::disk::{Disk, OpenMode, read_all, replace};
use crate::l0::{SessionId, uid};
use crate::store::{disk_failure, failure};
use rusqlite::{Connection, OptionalExtension};
use serde_json::json;
use std::collections::BTreeSet;

/// Directory of the offload logs.
pub const LOG_DIR: &str = "offload";
/// Directory of the canvases.
pub const CANVAS_DIR: &str = "canvases";
/// The rows of `space` that name sessions whose files are behind: this and the session's row.
const BEHIND: &str = "offload_behind/";
/// Characters of a session's name that stay in file names.
const SLUG_MAX_CHARS: usize = 48;

/// Returns the name of a session's files: what is safe of its name, and a hash that tells apart
/// sessions of different scopes or with unsafe names.
pub fn slug(scope: &Scope) -> String {
    let part = |text: &'_ str| -> String { if text.is_empty() { "default".to_owned() } else { text.to_owned() } };
    let (team, user, agent, name) = (part(&scope.team), part(&scope.user), part(&scope.agent), part(&scope.session));
    let safe: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' }).take(SLUG_MAX_CHARS).collect();
    let hash = uid("", &[team.as_bytes(), user.as_bytes(), agent.as_bytes(), name.as_bytes()]);
    format!("{safe}-{}", &hash[..8])
}

/// Returns the path of a session's offload log.
pub fn log_path(scope: &Scope) -> String {
    format!("{LOG_DIR}/offload-{}.jsonl", slug(scope))
}

/// Returns the path of a canvas.
pub fn canvas_path(scope: &Scope, task: u32) -> String {
    format!("{CANVAS_DIR}/{}-{task:03}.mmd", slug(scope))
}

/// Returns one line of the log, with the reference's fields.
pub fn line(calendar: &Calendar, scope: &Scope, entry: &Entry) -> String {
    let mut line = json!({
        "timestamp": calendar.iso(u64::try_from(entry.at_ms).unwrap_or(0)),
        "node_id": entry.node_id,
        "tool_call": entry.call_line,
        "summary": entry.summary,
        "result_ref": entry.result_ref,
        "tool_call_id": entry.call_id,
        "score": entry.score,
        "session_key": scope.session,
    });
    if let Some(path) = &entry.arguments_ref {
        line["arguments_ref"] = json!(path);
    }
    let mut text = line.to_string();
    text.push('\n');
    text
}

/// Appends the entries from ordinal `first` to the log. A log that does not hold exactly the
/// entries before them is written anew.
pub fn append(desk: &mut Desk<'_>, id: SessionId, scope: &Scope, first: usize) -> Result<()> {
    let path = log_path(scope);
    let disk = desk.store.shared_disk();
    let session = desk.sessions.get(desk.store.db(), id)?;
    let mirrored = match session.mirrored {
        Some(lines) => lines,
        None => lines_of(disk.as_ref(), &path)?,
    };
    let entries = session.ledger.entries();
    // Until this has gone well nobody knows what the file holds.
    session.mirrored = Some(MUST_REWRITE);
    if mirrored == first as u64 && first > 0 {
        let text: String = entries[first..].iter().map(|entry| line(desk.calendar, scope, entry)).collect();
        let failed = |error| disk_failure(&path, error);
        let mut file = disk.open(&path, OpenMode::Write).map_err(failed)?;
        let end = file.len().map_err(failed)?;
        file.write_at(text.as_bytes(), end).map_err(failed)?;
    } else {
        let text: String = entries.iter().map(|entry| line(desk.calendar, scope, entry)).collect();
        replace(disk.as_ref(), &path, text.as_bytes()).map_err(|error| disk_failure(&path, error))?;
    }
    session.mirrored = Some(entries.len() as u64);
    Ok(())
}

/// Brings the files of a session up to date after a commit: the entries from ordinal `first` on, and the canvases of
/// `tasks`.
pub fn follow(desk: &mut Desk<'_>, id: SessionId, scope: &Scope, first: usize, tasks: &BTreeSet<u32>) {
    let outcome = append(desk, id, scope, first).and_then(|()| canvases(desk, id, scope, tasks));
    note(desk, &[id], outcome);
}

/// Removes the files of sessions whose rows are gone.
pub fn discard(desk: &mut Desk<'_>, ids: &[SessionId]) {
    let slugs = ids.iter().filter_map(|id| scope_of(desk.store.db(), *id).map(|scope| scope.map(|scope| slug(&scope))).transpose()).collect::<Result<_>>();
    let outcome = slugs.and_then(|slugs| remove(desk.store.disk(), &slugs));
    note(desk, ids, outcome);
}

/// Writes the log and the running canvas of a session anew, after a model's answer.
pub fn redraw(desk: &mut Desk<'_>, id: SessionId) {
    let outcome = rewrite(desk, id, false);
    note(desk, &[id], outcome);
}

/// Writes the files of the sessions that are behind.
pub fn catch_up(desk: &mut Desk<'_>) {
    for id in desk.sessions.behind.clone() {
        let outcome = rewrite(desk, id, true).and_then(|()| {
            desk.store.write(|tx| tx.execute("DELETE FROM space WHERE key = ?1", [behind_key(id)]).map(|_| ()).map_err(failure))?;
            desk.sessions.behind.remove(&id);
            Ok(())
        });
        note(desk, &[id], outcome);
    }
}

/// Returns the sessions that were behind when the space was last open.
pub fn behind(db: &Connection) -> Result<BTreeSet<SessionId>> {
    db.prepare_cached("SELECT CAST(substr(key, length(?1) + 1) AS INTEGER) FROM space WHERE substr(key, 1, length(?1)) = ?1")
        .and_then(|mut query| query.query_map([BEHIND], |row| row.get(0).map(SessionId))?.collect())
        .map_err(failure)
}

fn behind_key(id: SessionId) -> String {
    format!("{BEHIND}{}", id.0)
}

/// Notes sessions as behind if their files were refused. Where the note is refused too, it holds until the space is closed.
fn note(desk: &mut Desk<'_>, ids: &[SessionId], outcome: Result<()>) {
    let Err(refused) = outcome else { return };
    desk.sessions.refusals.push(refused.message);
    let fresh: Vec<SessionId> = ids.iter().copied().filter(|id| desk.sessions.behind.insert(*id)).collect();
    if fresh.is_empty() {
        return;
    }
    let noted = desk.store.write(|tx| {
        let mut insert = tx.prepare_cached("INSERT OR REPLACE INTO space (key, value) VALUES (?1, '')").map_err(failure)?;
        fresh.iter().try_for_each(|id| insert.execute([behind_key(*id)]).map(|_| ()).map_err(failure))
    });
    if let Err(refused) = noted {
        desk.sessions.refusals.push(format!("and it could not be noted: {}", refused.message));
    }
}

/// Writes the log and the running canvas of a session anew, or `all` canvases. A session without entries loses
/// its files.
fn rewrite(desk: &mut Desk<'_>, id: SessionId, all: bool) -> Result<()> {
    let Some(scope) = scope_of(desk.store.db(), id)? else { return Ok(()) };
    let session = desk.sessions.get(desk.store.db(), id)?;
    if session.ledger.entries().is_empty() {
        return remove(desk.store.disk(), &BTreeSet::from([slug(&scope)]));
    }
    session.mirrored = Some(MUST_REWRITE);
    let current = session.board.current;
    let tasks = session.board.tasks.iter().map(|task| task.number).filter(|number| all || *number == current).collect();
    append(desk, id, &scope, 0)?;
    canvases(desk, id, &scope, &tasks)
}

fn remove(disk: &dyn Disk, slugs: &BTreeSet<String>) -> Result<()> {
    for (folder, prefix) in [(LOG_DIR, "offload-"), (CANVAS_DIR, "")] {
        if slugs.is_empty() || !disk.exists(folder).map_err(|error| disk_failure(folder, error))? {
            continue;
        }
        for name in disk.list(folder).map_err(|error| disk_failure(folder, error))? {
            if slugs.iter().any(|slug| name.starts_with(&format!("{prefix}{slug}"))) {
                let path = format!("{folder}/{name}");
                disk.remove(&path).map_err(|error| disk_failure(&path, error))?;
            }
        }
    }
    Ok(())
}

/// Returns the scope of a session that exists.
pub fn scope_of(db: &Connection, id: SessionId) -> Result<Option<Scope>> {
    db.prepare_cached("SELECT team, user, agent, name FROM sessions JOIN scopes ON scopes.id = scope WHERE sessions.id = ?1")
        .and_then(|mut query| {
            query.query_row([id.0], |row| Ok(Scope { team: row.get(0)?, user: row.get(1)?, agent: row.get(2)?, session: row.get(3)? })).optional()
        })
        .map_err(failure)
}

/// Writes the canvases of `tasks`.
pub fn canvases(desk: &mut Desk<'_>, id: SessionId, scope: &Scope, tasks: &BTreeSet<u32>) -> Result<()> {
    let disk = desk.store.shared_disk();
    let session = desk.sessions.get(desk.store.db(), id)?;
    for task in session.board.tasks.iter().filter(|task| tasks.contains(&task.number)) {
        let running = task.number == session.board.current;
        let drawing = draw(task, session.ledger.entries(), running, &session.notes, CANVAS_MAX_CHARS);
        let path = canvas_path(scope, task.number);
        replace(disk.as_ref(), &path, drawing.text.as_bytes()).map_err(|error| disk_failure(&path, error))?;
    }
    Ok(())
}

fn lines_of(disk: &dyn Disk, path: &str) -> Result<u64> {
    if !disk.exists(path).map_err(|error| disk_failure(path, error))? {
        return Ok(0);
    }
    let bytes = read_all(disk, path).map_err(|error| disk_failure(path, error))?;
    // A torn last line makes the count wrong on purpose: the log is then written anew.
    let whole = bytes.last().is_none_or(|byte| *byte == b'\n');
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    Ok(if whole { lines } else { MUST_REWRITE })
}
