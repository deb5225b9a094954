//! What the offload holds of forgotten text: refs, entries, canvases, contexts.
//!
//! An entry that tells goes blank but keeps its place, because contexts and canvases count by it. A
//! ref whose content tells goes, whoever points at it.

use super::cascade::{Cascade, execute, holds, list};
use super::select::{Doomed, times};
use crate::contract::{Result, Selector};
use crate::disk::Disk;
use crate::l0::SessionId;
use crate::offload::canvas::{CANVAS_MAX_CHARS, draw};
use crate::offload::{mirror, refs, rows};
use crate::store::{Store, failure};
use rusqlite::{Connection, Transaction, params};
use serde_json::Value;
use std::collections::BTreeSet;

/// What stands where text was.
const BLANK: &str = "[forgotten]";

/// Adds the entries that a selector means by id, session, user or time. A copy need not know every id.
pub(super) fn select(db: &Connection, which: &Selector, doomed: &mut Doomed, in_copy: bool) -> Result<()> {
    for id in std::mem::take(&mut doomed.other) {
        let known = !list::<i64>(db, "SELECT id FROM offload_entries WHERE uid = ?1", [&id])?.is_empty()
            || !list::<i64>(db, "SELECT 1 FROM offload_refs WHERE path = ?1", [&id])?.is_empty();
        if !known && in_copy {
            continue;
        }
        if !known {
            return Err(crate::Failure::not_found(format!("nothing has the id `{id}`")));
        }
        doomed.other.insert(id);
    }
    let (since, until) = times(which);
    if !which.ids.is_empty() {
        return limit(db, which, doomed);
    }
    if (which.since.is_some() || which.until.is_some()) && which.query.is_none() {
        let entries: Vec<String> = list(
            db,
            "SELECT uid FROM offload_entries JOIN sessions ON sessions.id = session JOIN scopes ON scopes.id = sessions.scope
              WHERE (?1 IS NULL OR name = ?1) AND (?2 IS NULL OR user = ?2) AND at BETWEEN ?3 AND ?4 AND summary <> '[forgotten]'",
            params![which.session, which.user, since, until],
        )?;
        doomed.other.extend(entries);
    }
    Ok(())
}

/// Leaves the entries and refs that ids name only where the other members of the selector mean them too. A ref is meant if all
/// that point at it are.
fn limit(db: &Connection, which: &Selector, doomed: &mut Doomed) -> Result<()> {
    const MEANT: &str = "(?2 IS NULL OR name = ?2) AND (?3 IS NULL OR user = ?3) AND at BETWEEN ?4 AND ?5";
    if which.query.is_some() && !doomed.other.is_empty() {
        return Err(crate::Failure::invalid("entries and refs are named by their ids or found by a query, not both"));
    }
    let (since, until) = times(which);
    let entries = format!("SELECT 1 FROM offload_entries JOIN sessions ON sessions.id = session JOIN scopes ON scopes.id = scope WHERE uid = ?1 AND {MEANT}");
    let refs = format!(
        "SELECT min({MEANT}) FROM offload_uses JOIN sessions ON sessions.id = session JOIN scopes ON scopes.id = scope WHERE path = ?1 HAVING count(*) > 0"
    );
    for id in std::mem::take(&mut doomed.other) {
        let values = params![id, which.session, which.user, since, until];
        if which.session.is_none() && which.user.is_none() && since == i64::MIN && until == i64::MAX
            || !list::<i64>(db, &entries, values)?.is_empty()
            || list::<i64>(db, &refs, values)? == [1]
        {
            doomed.other.insert(id);
        }
    }
    Ok(())
}

/// Files that go when the rows have gone.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    /// Refs.
    pub refs: BTreeSet<String>,
    /// Sessions whose log and canvases are written anew.
    pub redraw: BTreeSet<i64>,
    /// Logs and canvases that go: the slugs of their sessions.
    pub slugs: BTreeSet<String>,
}

/// Takes the offload's rows.
pub(super) fn rows(tx: &Transaction<'_>, disk: &dyn Disk, doomed: &Doomed, cascade: &mut Cascade) -> Result<Files> {
    let mut files = Files::default();
    whole_sessions(tx, doomed, cascade, &mut files)?;
    telling_refs(tx, disk, doomed, cascade, &mut files)?;
    telling_entries(tx, doomed, cascade, &mut files)?;
    telling_drawings(tx, doomed, cascade, &mut files)?;
    for path in &files.refs {
        execute(tx, "DELETE FROM offload_uses WHERE path = ?1", [path])?;
        cascade.count("refs", execute(tx, "DELETE FROM offload_refs WHERE path = ?1", [path])?);
    }
    for session in &files.redraw {
        execute(tx, "DELETE FROM offload_contexts WHERE session = ?1", [session])?;
    }
    Ok(files)
}

fn whole_sessions(tx: &Transaction<'_>, doomed: &Doomed, cascade: &mut Cascade, files: &mut Files) -> Result<()> {
    for &session in &doomed.sessions {
        let paths: Vec<String> = list(
            tx,
            "SELECT DISTINCT path FROM offload_uses WHERE session = ?1 AND path NOT IN (SELECT path FROM offload_uses WHERE session <> ?1)",
            [session],
        )?;
        files.refs.extend(paths);
        execute(tx, "DELETE FROM offload_uses WHERE session = ?1", [session])?;
        cascade.count("entries", execute(tx, "DELETE FROM offload_entries WHERE session = ?1", [session])?);
        for table in ["offload_boards", "offload_nodes", "offload_contexts"] {
            execute(tx, &format!("DELETE FROM {table} WHERE session = ?1"), [session])?;
        }
        if let Some(scope) = mirror::scope_of(tx, SessionId(session))? {
            files.slugs.insert(mirror::slug(&scope));
        }
    }
    Ok(())
}

/// Returns the words that must not be left in the offload of a session.
fn terms_of<'d>(db: &Connection, doomed: &'d Doomed, session: i64) -> Result<&'d [String]> {
    let scopes: Vec<i64> = list(db, "SELECT scope FROM sessions WHERE id = ?1", [session])?;
    Ok(scopes.first().map_or(&[][..], |scope| doomed.terms_in(*scope)))
}

/// Returns the words that must not be left in a ref. What sessions of others point at, too, is theirs.
fn terms_of_ref<'d>(db: &Connection, doomed: &'d Doomed, path: &str) -> Result<&'d [String]> {
    if doomed.owners.is_none() {
        return Ok(&doomed.terms);
    }
    let scopes: Vec<i64> = list(db, "SELECT DISTINCT scope FROM offload_uses JOIN sessions ON sessions.id = session WHERE path = ?1", [path])?;
    let own = !scopes.is_empty() && scopes.iter().all(|scope| !doomed.terms_in(*scope).is_empty());
    Ok(if own { &doomed.terms } else { &[] })
}

fn telling_refs(tx: &Transaction<'_>, disk: &dyn Disk, doomed: &Doomed, cascade: &mut Cascade, files: &mut Files) -> Result<()> {
    for id in &doomed.other {
        files.refs.extend(list::<String>(tx, "SELECT path FROM offload_refs WHERE path = ?1", [id])?);
        files.refs.extend(list::<String>(tx, "SELECT result_ref FROM offload_entries WHERE uid = ?1 AND result_ref <> ''", [id])?);
        files.refs.extend(list::<String>(tx, "SELECT arguments_ref FROM offload_entries WHERE uid = ?1 AND arguments_ref IS NOT NULL", [id])?);
    }
    for path in list::<String>(tx, "SELECT path FROM offload_refs ORDER BY path", [])? {
        // A ref that is damaged cannot be read by anybody; its bytes are looked at by the search afterwards.
        let Ok(content) = rows::read_text(tx, disk, &path) else { continue };
        if files.refs.contains(&path) {
            cascade.needles.add_made(&content);
        } else if holds(&content, terms_of_ref(tx, doomed, &path)?, cascade) {
            files.refs.insert(path);
        }
    }
    Ok(())
}

fn telling_entries(tx: &Transaction<'_>, doomed: &Doomed, cascade: &mut Cascade, files: &mut Files) -> Result<()> {
    let entries: Vec<(i64, i64, String, String, Option<String>)> = tx
        .prepare_cached(
            "SELECT id, session, call_line || char(10) || coalesce(target, '') || char(10) || summary || char(10) || digest || char(10) || names_used
                    || char(10) || excerpt || char(10) || coalesce(shown, ''),
                    result_ref, arguments_ref FROM offload_entries WHERE summary <> '[forgotten]' ORDER BY id",
        )
        .and_then(|mut query| query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))?.collect())
        .map_err(failure)?;
    for (id, session, text, result, arguments) in entries {
        let named =
            doomed.other.iter().any(|other| list::<i64>(tx, "SELECT id FROM offload_entries WHERE uid = ?1", [other]).is_ok_and(|ids| ids.contains(&id)));
        let pointed = files.refs.contains(&result) || arguments.as_ref().is_some_and(|path| files.refs.contains(path));
        if !named && !pointed && !holds(&text, terms_of(tx, doomed, session)?, cascade) {
            continue;
        }
        cascade.count(
            "entries",
            execute(
                tx,
                "UPDATE offload_entries SET call_line = ?2, target = NULL, summary = ?2, digest = '', names_used = '[]', arguments_ref = NULL, excerpt = '',
                        shown = CASE WHEN shown IS NULL THEN NULL ELSE ?2 END,
                        result_ref = CASE WHEN ?3 THEN '' ELSE result_ref END WHERE id = ?1",
                params![id, BLANK, files.refs.contains(&result)],
            )?,
        );
        files.redraw.insert(session);
    }
    Ok(())
}

fn telling_drawings(tx: &Transaction<'_>, doomed: &Doomed, cascade: &mut Cascade, files: &mut Files) -> Result<()> {
    for session in list::<i64>(tx, "SELECT session FROM offload_boards ORDER BY session", [])? {
        for text in list::<String>(tx, "SELECT board FROM offload_boards WHERE session = ?1", [session])? {
            let Ok(mut board) = serde_json::from_str::<Value>(&text) else { continue };
            if blank(&mut board, terms_of(tx, doomed, session)?, cascade) {
                execute(tx, "UPDATE offload_boards SET board = ?2 WHERE session = ?1", params![session, board.to_string()])?;
                files.redraw.insert(session);
                cascade.count("canvases", 1);
            }
        }
    }
    let nodes: Vec<(i64, String, String)> = tx
        .prepare_cached("SELECT session, node_id, label || ' ' || summary FROM offload_nodes ORDER BY session, node_id")
        .and_then(|mut query| query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect())
        .map_err(failure)?;
    for (session, node, text) in nodes {
        if holds(&text, terms_of(tx, doomed, session)?, cascade) {
            execute(tx, "DELETE FROM offload_nodes WHERE session = ?1 AND node_id = ?2", params![session, node])?;
            files.redraw.insert(session);
        }
    }
    let contexts: Vec<(i64, String)> = tx
        .prepare_cached("SELECT session, text FROM offload_contexts ORDER BY session, covered")
        .and_then(|mut query| query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .map_err(failure)?;
    for (session, text) in contexts {
        if holds(&text, terms_of(tx, doomed, session)?, cascade) {
            files.redraw.insert(session);
        }
    }
    Ok(())
}

/// Blanks the strings of a JSON value that tell; returns whether there were any.
fn blank(value: &mut Value, terms: &[String], cascade: &Cascade) -> bool {
    match value {
        Value::String(text) if holds(text, terms, cascade) => {
            *text = BLANK.into();
            true
        }
        Value::Array(items) => items.iter_mut().fold(false, |any, item| blank(item, terms, cascade) | any),
        Value::Object(members) => members.values_mut().fold(false, |any, member| blank(member, terms, cascade) | any),
        _ => false,
    }
}

/// Takes the files of what the rows have lost, and draws anew what stays.
pub(super) fn files(store: &Store, calendar: &crate::calendar::Calendar, files: &Files) -> Result<u64> {
    let disk = store.disk();
    for path in &files.refs {
        refs::remove(disk, path)?;
    }
    if !files.refs.is_empty() {
        refs::sync_names(disk)?;
    }
    let mut slugs = files.slugs.clone();
    let mut redraw = Vec::new();
    for &session in &files.redraw {
        if let Some(scope) = mirror::scope_of(store.db(), SessionId(session))? {
            slugs.insert(mirror::slug(&scope));
            redraw.push((session, scope));
        }
    }
    let mut removed = 0;
    for (folder, prefix) in [(mirror::LOG_DIR, "offload-"), (mirror::CANVAS_DIR, "")] {
        if !disk.exists(folder).map_err(|error| crate::store::disk_failure(folder, error))? {
            continue;
        }
        for name in disk.list(folder).map_err(|error| crate::store::disk_failure(folder, error))? {
            if slugs.iter().any(|slug| name.starts_with(&format!("{prefix}{slug}"))) {
                crate::projections::remove(store, &format!("{folder}/{name}"))?;
                removed += 1;
            }
        }
    }
    for (session, scope) in redraw {
        let id = SessionId(session);
        let ledger = rows::ledger(store.db(), id)?;
        let lines: String = ledger.entries().iter().map(|entry| mirror::line(calendar, &scope, entry)).collect();
        let path = mirror::log_path(&scope);
        crate::disk::replace(disk, &path, lines.as_bytes()).map_err(|error| crate::store::disk_failure(&path, error))?;
        let notes = rows::notes(store.db(), id)?;
        for task in &rows::board(store.db(), id)?.tasks {
            let path = mirror::canvas_path(&scope, task.number);
            let drawing = draw(task, ledger.entries(), true, &notes, CANVAS_MAX_CHARS);
            crate::disk::replace(disk, &path, drawing.text.as_bytes()).map_err(|error| crate::store::disk_failure(&path, error))?;
        }
    }
    Ok(removed)
}
