//! The rows of a forgetting, in one transaction: what rests on doomed rows goes with them, what
//! stands on its own stays.
//!
//! An atom that rests on a doomed message goes even if it rests on others too, because its words may
//! be the forgotten ones; those other messages are distilled again. A page loses the blocks that name
//! a doomed atom, in every revision; its title, summary and name are made anew if they could tell.

mod pages;

use super::needles::Needles;
use super::select::{Doomed, has_terms};
use crate::calendar::Calendar;
use crate::contract::{Instant, Outgoing, Result};
use crate::l0;
use crate::projections::mirrors::{self, Layer};
use crate::store::failure;
use crate::vectors;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What a cascade did.
#[derive(Clone, Debug, Default)]
pub(super) struct Cascade {
    /// How much went, by kind.
    pub counts: BTreeMap<&'static str, u64>,
    /// Public ids of messages, atoms and pages that went or lost text.
    pub uids: BTreeSet<String>,
    /// What to look for in files.
    pub needles: Needles,
    /// Requests that the host need not answer any more.
    pub cancelled: Vec<Outgoing>,
}

impl Cascade {
    pub(super) fn count(&mut self, kind: &'static str, number: usize) {
        if number > 0 {
            *self.counts.entry(kind).or_insert(0) += number as u64;
        }
    }

    /// Returns the counts as a document.
    pub(super) fn document(&self) -> Value {
        json!(self.counts)
    }
}

/// Carries the cascade out.
pub(super) fn run(tx: &Transaction<'_>, calendar: &Calendar, doomed: &Doomed, at: Instant) -> Result<Cascade> {
    let mut cascade = Cascade::default();
    let mut doomed = doomed.clone();
    spread(tx, &mut doomed)?;
    // The messages of an atom may stay, and records of an export still tell of it and of scenes: neither a rebuild nor an
    // import may make it again.
    // A persona that is written later has the id of the one before.
    let scenes = uids(tx, "pages", &doomed.pages)?.into_iter().filter(|uid| uid.starts_with("s_"));
    for uid in uids(tx, "atoms", &doomed.atoms)?.into_iter().chain(scenes) {
        execute(tx, "INSERT OR IGNORE INTO forgotten (identity, at) VALUES (?1, ?2)", params![uid, at as i64])?;
    }
    collect(tx, &doomed, &mut cascade)?;
    cascade.cancelled.extend(vectors::forget(tx, &doomed.messages, &doomed.atoms)?);
    mirrors(tx, calendar, &doomed)?;
    pages_are_given(tx, &doomed)?;
    pages::rewrite_all(tx, &doomed, &mut cascade)?;
    ledger(tx, &doomed, &mut cascade, at)?;
    atoms(tx, &doomed, &mut cascade)?;
    messages(tx, &doomed, &mut cascade, at)?;
    empty_places(tx, &mut cascade)?;
    Ok(cascade)
}

pub(super) fn list<T: rusqlite::types::FromSql>(db: &Connection, sql: &str, values: impl rusqlite::Params) -> Result<Vec<T>> {
    db.prepare_cached(sql).and_then(|mut query| query.query_map(values, |row| row.get(0))?.collect()).map_err(failure)
}

pub(super) fn execute(db: &Connection, sql: &str, values: impl rusqlite::Params) -> Result<usize> {
    db.prepare_cached(sql).and_then(|mut statement| statement.execute(values)).map_err(failure)
}

/// Adds the atoms that hold the words of doomed rows.
fn spread(tx: &Transaction<'_>, doomed: &mut Doomed) -> Result<()> {
    let mut open: Vec<i64> = doomed.atoms.iter().copied().collect();
    for &message in &doomed.messages {
        open.extend(list::<i64>(tx, "SELECT atom FROM evidence WHERE message = ?1", [message])?);
    }
    let mut seen: BTreeSet<i64> = BTreeSet::new();
    // Ends because each atom is looked at once.
    while let Some(atom) = open.pop() {
        if !seen.insert(atom) {
            continue;
        }
        doomed.atoms.insert(atom);
        // A merged fact holds the words of its parts; a fact that replaced another has its own.
        open.extend(list::<i64>(tx, "SELECT newer FROM links WHERE older = ?1 AND kind = 'merges'", [atom])?);
    }
    Ok(())
}

fn uids(db: &Connection, table: &str, rows: &BTreeSet<i64>) -> Result<BTreeSet<String>> {
    let sql = format!("SELECT uid FROM {table} WHERE id = ?1");
    let mut uids = BTreeSet::new();
    for &row in rows {
        uids.extend(list::<String>(db, &sql, [row])?);
    }
    Ok(uids)
}

fn collect(tx: &Transaction<'_>, doomed: &Doomed, cascade: &mut Cascade) -> Result<()> {
    for (table, rows) in [("messages", &doomed.messages), ("atoms", &doomed.atoms)] {
        let sql = format!("SELECT text FROM {table} WHERE id = ?1");
        for &row in rows {
            for text in list::<String>(tx, &sql, [row])? {
                cascade.needles.add(&text);
            }
        }
        cascade.uids.extend(uids(tx, table, rows)?);
    }
    for &atom in &doomed.atoms {
        for quote in list::<String>(tx, "SELECT quote FROM evidence WHERE atom = ?1", [atom])? {
            cascade.needles.add_made(&quote);
        }
    }
    // Words of one user may stay in texts of another.
    for term in doomed.terms.iter().filter(|term| term.len() >= 4 && doomed.owners.is_none()) {
        cascade.needles.add(term);
    }
    Ok(())
}

fn mirrors(tx: &Transaction<'_>, calendar: &Calendar, doomed: &Doomed) -> Result<()> {
    for (layer, rows, sql) in [
        (Layer::Messages, &doomed.messages, "SELECT recorded_at FROM messages WHERE id = ?1"),
        (Layer::Atoms, &doomed.atoms, "SELECT believed_from FROM atoms WHERE id = ?1"),
    ] {
        let mut times: BTreeSet<i64> = BTreeSet::new();
        for &row in rows {
            times.extend(list::<i64>(tx, sql, [row])?);
        }
        mirrors::mark_days(tx, calendar, layer, times.into_iter().map(|at| at as u64))?;
        // Lines of atoms name the messages that they rest on and the atoms that they replaced.
        if layer == Layer::Atoms {
            for &atom in &doomed.atoms {
                let near: Vec<i64> =
                    list(tx, "SELECT believed_from FROM atoms JOIN links ON atoms.id = newer OR atoms.id = older WHERE newer = ?1 OR older = ?1", [atom])?;
                mirrors::mark_days(tx, calendar, layer, near.into_iter().map(|at| at as u64))?;
            }
        }
    }
    Ok(())
}

/// Empties requests, answers and drafts that hold what is forgotten; those under way are asked again.
fn ledger(tx: &Transaction<'_>, doomed: &Doomed, cascade: &mut Cascade, at: Instant) -> Result<()> {
    let mut related: BTreeSet<i64> = BTreeSet::new();
    for &message in &doomed.messages {
        // The batch that took it, and the next of its session, which had it as background.
        related.extend(list::<i64>(
            tx,
            "SELECT batches.id FROM messages JOIN batches ON batches.id IN (messages.batch,
               (SELECT min(id) FROM batches WHERE layer = 'l1' AND session = messages.session AND id > messages.batch)) WHERE messages.id = ?1",
            [message],
        )?);
    }
    let ids: Vec<i64> = list(tx, "SELECT id FROM requests WHERE state <> 'forgotten' ORDER BY id", [])?;
    for id in ids {
        let (body, answer, reason, state, batch, scope): (String, String, String, String, i64, i64) = tx
            .prepare_cached(
                "SELECT body, coalesce(answer, ''), requests.reason, requests.state, batch, scope FROM requests JOIN batches ON batches.id = batch
                  WHERE requests.id = ?1",
            )
            .and_then(|mut query| query.query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?))))
            .map_err(failure)?;
        let prompt = serde_json::from_str::<Value>(&body)
            .ok()
            .and_then(|body| body.get("prompt").and_then(Value::as_str).map(str::to_owned))
            .unwrap_or_else(|| body.clone());
        let hit =
            related.contains(&batch) || [prompt.as_str(), answer.as_str(), reason.as_str()].iter().any(|text| holds(text, doomed.terms_in(scope), cascade));
        if !hit {
            continue;
        }
        cascade.count("requests", 1);
        execute(tx, "UPDATE requests SET body = '', answer = NULL, reason = '', state = 'forgotten', changed = '[]' WHERE id = ?1", [id])?;
        if state == "asked" {
            cascade.cancelled.push(Outgoing::CancelModel { id: format!("r{id}") });
            execute(tx, "UPDATE batches SET state = 'due', due_at = ?2 WHERE id = ?1 AND state = 'asked'", params![batch, at as i64])?;
        }
    }
    let drafts: Vec<i64> = list(tx, "SELECT id FROM batches WHERE draft <> '' OR reason <> '' ORDER BY id", [])?;
    for id in drafts {
        let (draft, reason, scope): (String, String, i64) = tx
            .prepare_cached("SELECT draft, reason, scope FROM batches WHERE id = ?1")
            .and_then(|mut query| query.query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))))
            .map_err(failure)?;
        if holds(&draft, doomed.terms_in(scope), cascade) {
            cascade.count("drafts", 1);
            // A batch that is not done starts over from its rows; one that is done cannot be derived again, and its results
            // are taken as given.
            execute(tx, "UPDATE batches SET draft = '', stage = CASE state WHEN 'done' THEN stage ELSE '' END WHERE id = ?1", [id])?;
            take_as_given(tx, id)?;
        }
        if holds(&reason, doomed.terms_in(scope), cascade) {
            execute(tx, "UPDATE batches SET reason = 'forgotten' WHERE id = ?1", [id])?;
        }
    }
    if !cascade.uids.is_empty() {
        // The reason may be a model's words about what is forgotten.
        execute(tx, "UPDATE persona_states SET requested = 'asked for before something was forgotten' WHERE requested IS NOT NULL", [])?;
    }
    Ok(())
}

/// Scenes and personas of before were made beside what is gone now: with less on a page there is room for something else, so
/// that no batch of the scope's pages is sure to come out the same.
fn pages_are_given(tx: &Transaction<'_>, doomed: &Doomed) -> Result<()> {
    let mut scopes: BTreeSet<i64> = BTreeSet::new();
    for (table, rows) in [("messages", &doomed.messages), ("atoms", &doomed.atoms), ("pages", &doomed.pages)] {
        let sql = format!("SELECT scope FROM {table} WHERE id = ?1");
        for &row in rows {
            scopes.extend(list::<i64>(tx, &sql, [row])?);
        }
    }
    for &(page, _) in &doomed.revisions {
        scopes.extend(list::<i64>(tx, "SELECT scope FROM pages WHERE id = ?1", [page])?);
    }
    for scope in scopes {
        for batch in list::<i64>(tx, "SELECT id FROM batches WHERE layer IN ('l2', 'l3') AND scope = ?1 AND state = 'done'", [scope])? {
            take_as_given(tx, batch)?;
        }
    }
    Ok(())
}

/// Marks a batch that is done as one that cannot be derived again from its answer: what it was about, or what it made, has
/// changed. A rebuild takes its results as given.
fn take_as_given(tx: &Transaction<'_>, batch: i64) -> Result<()> {
    let sql =
        "UPDATE batches SET draft = json_set(CASE WHEN json_valid(draft) THEN draft ELSE '{}' END, '$.given', json('true')) WHERE id = ?1 AND state = 'done'";
    execute(tx, sql, [batch]).map(|_| ())
}

/// Returns whether a text tells of what is forgotten: by the words of a query, by texts or by ids.
pub(super) fn holds(text: &str, terms: &[String], cascade: &Cascade) -> bool {
    !text.is_empty() && (has_terms(text, terms) || cascade.needles.found_in(text.as_bytes()) || super::names(text, &cascade.uids))
}

/// Returns the first atom that stays in the line of those that replaced a doomed one.
fn successor(tx: &Transaction<'_>, doomed: &Doomed, atom: i64) -> Result<Option<i64>> {
    let mut seen = BTreeSet::from([atom]);
    let mut open = vec![atom];
    // Ends because each atom is looked at once.
    while let Some(atom) = open.pop() {
        for newer in list::<i64>(tx, "SELECT newer FROM links WHERE older = ?1 ORDER BY at, newer", [atom])? {
            if !doomed.atoms.contains(&newer) {
                return Ok(Some(newer));
            }
            if seen.insert(newer) {
                open.push(newer);
            }
        }
    }
    Ok(None)
}

fn atoms(tx: &Transaction<'_>, doomed: &Doomed, cascade: &mut Cascade) -> Result<()> {
    // A belief that only doomed atoms had ended holds again.
    for &atom in &doomed.atoms {
        for older in list::<i64>(tx, "SELECT older FROM links WHERE newer = ?1", [atom])? {
            if doomed.atoms.contains(&older) {
                continue;
            }
            let others: Vec<i64> = list(tx, "SELECT newer FROM links WHERE older = ?1", [older])?;
            if !others.iter().all(|newer| doomed.atoms.contains(newer)) {
                continue;
            }
            match successor(tx, doomed, atom)? {
                // What ended the doomed atom later ends what the doomed atom had ended.
                Some(newer) => {
                    execute(
                        tx,
                        "INSERT OR IGNORE INTO links (newer, older, kind, at) SELECT id, ?2, 'supersedes', believed_from FROM atoms WHERE id = ?1",
                        [newer, older],
                    )?;
                    execute(
                        tx,
                        "UPDATE atoms SET (believed_to, valid_to) = (SELECT believed_from, valid_from FROM atoms WHERE id = ?1) WHERE id = ?2",
                        [newer, older],
                    )?;
                }
                None => {
                    let sql = "UPDATE atoms SET believed_to = NULL, valid_to = NULL, scene_batch = NULL WHERE id = ?1 AND believed_to IS NOT NULL";
                    let restored = execute(tx, sql, [older])?;
                    cascade.count("atoms-restored", restored);
                }
            }
        }
    }
    // Other messages behind doomed atoms are distilled again.
    let mut again: BTreeSet<i64> = BTreeSet::new();
    for &atom in &doomed.atoms {
        for message in list::<i64>(tx, "SELECT message FROM evidence WHERE atom = ?1", [atom])? {
            // Forgetting an atom alone does not bring it back from its own messages.
            if !doomed.messages.contains(&message) && !doomed.messages.is_empty() {
                again.insert(message);
            }
        }
    }
    for message in again {
        // Nor can a batch be derived that looked at the same messages again.
        for batch in list::<i64>(
            tx,
            "SELECT batches.id FROM batches JOIN messages ON batches.id = messages.batch OR batches.again = messages.batch WHERE messages.id = ?1",
            [message],
        )? {
            take_as_given(tx, batch)?;
        }
        cascade.count("messages-requeued", execute(tx, "UPDATE messages SET batch = NULL WHERE id = ?1", [message])?);
    }
    for &atom in &doomed.atoms {
        cascade.count("evidence", execute(tx, "DELETE FROM evidence WHERE atom = ?1", [atom])?);
        cascade.count("links", execute(tx, "DELETE FROM links WHERE newer = ?1 OR older = ?1", [atom])?);
        cascade.count("atoms", execute(tx, "DELETE FROM atoms WHERE id = ?1", [atom])?);
    }
    clamp_cursors(tx)
}

/// Moves cursors back to rows that exist: the numbers of the newest rows may be given again, and
/// nothing may count as seen that was not.
pub(crate) fn clamp_cursors(tx: &Transaction<'_>) -> Result<()> {
    execute(tx, "UPDATE persona_states SET seen_atom = min(seen_atom, coalesce((SELECT max(id) FROM atoms), 0))", [])?;
    clamp_cursor(tx, "mirror-atoms", "atoms")?;
    clamp_cursor(tx, "mirror-messages", "messages")
}

fn clamp_cursor(tx: &Transaction<'_>, key: &str, table: &str) -> Result<()> {
    let sql = format!("UPDATE space SET value = min(CAST(value AS INTEGER), coalesce((SELECT max(id) FROM {table}), 0)) WHERE key = ?1");
    execute(tx, &sql, [key]).map(|_| ())
}

fn messages(tx: &Transaction<'_>, doomed: &Doomed, cascade: &mut Cascade, at: Instant) -> Result<()> {
    let mut sessions: BTreeSet<i64> = BTreeSet::new();
    for &message in &doomed.messages {
        let found: Option<(String, i64, Option<String>)> = tx
            .prepare_cached("SELECT uid, session, host_id FROM messages WHERE id = ?1")
            .and_then(|mut query| query.query_row([message], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional())
            .map_err(failure)?;
        let Some((uid, session, host_id)) = found else { continue };
        sessions.insert(session);
        // A host that tells the session again must not bring it back: identities stay, as hashes.
        l0::note_forgotten(tx, l0::SessionId(session), &uid, host_id.as_deref(), at)?;
        cascade.count("evidence", execute(tx, "DELETE FROM evidence WHERE message = ?1", [message])?);
        cascade.count("messages", execute(tx, "DELETE FROM messages WHERE id = ?1", [message])?);
    }
    for session in sessions {
        // The scene's name is a model's words about the messages.
        execute(tx, "UPDATE sessions SET last_scene = '' WHERE id = ?1", [session])?;
    }
    clamp_cursors(tx)
}

/// Removes sessions and scopes in which nothing is left, names included.
fn empty_places(tx: &Transaction<'_>, cascade: &mut Cascade) -> Result<()> {
    if !cascade.counts.contains_key("messages") && !cascade.counts.contains_key("atoms") {
        return Ok(());
    }
    let sessions: Vec<i64> = list(
        tx,
        "SELECT id FROM sessions WHERE NOT EXISTS (SELECT 1 FROM messages WHERE session = sessions.id)
           AND NOT EXISTS (SELECT 1 FROM atoms WHERE session = sessions.id)",
        [],
    )?;
    for session in sessions {
        if super::session_in_use(tx, session)? {
            continue;
        }
        execute(tx, "DELETE FROM drops WHERE session = ?1", [session])?;
        execute(tx, "UPDATE batches SET session = NULL WHERE session = ?1 AND state = 'done'", [session])?;
        execute(tx, "DELETE FROM requests WHERE batch IN (SELECT id FROM batches WHERE session = ?1)", [session])?;
        execute(tx, "DELETE FROM refusals WHERE batch IN (SELECT id FROM batches WHERE session = ?1)", [session])?;
        execute(tx, "DELETE FROM batches WHERE session = ?1", [session])?;
        cascade.count("sessions", execute(tx, "DELETE FROM sessions WHERE id = ?1", [session])?);
    }
    let scopes: Vec<i64> = list(
        tx,
        "SELECT id FROM scopes WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE scope = scopes.id) AND NOT EXISTS (SELECT 1 FROM pages WHERE scope = scopes.id)",
        [],
    )?;
    for scope in scopes {
        execute(tx, "DELETE FROM requests WHERE batch IN (SELECT id FROM batches WHERE scope = ?1)", [scope])?;
        execute(tx, "DELETE FROM refusals WHERE batch IN (SELECT id FROM batches WHERE scope = ?1)", [scope])?;
        execute(tx, "DELETE FROM batches WHERE scope = ?1", [scope])?;
        execute(tx, "DELETE FROM persona_states WHERE scope = ?1", [scope])?;
        execute(tx, "DELETE FROM folders WHERE scope = ?1", [scope])?;
        cascade.count("scopes", execute(tx, "DELETE FROM scopes WHERE id = ?1", [scope])?);
    }
    Ok(())
}
