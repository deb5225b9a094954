//! Forgetting in backups, one by one: a backup that cannot be opened stops neither the others nor the space.
//!
//! What is still to be forgotten in such a backup is noted in `space` by its name, as ids. It is tried again at every
//! opening, forgetting and restore, until the backup can be opened or is gone.

use super::{Note, Query};
use crate::backup;
use crate::calendar::Calendar;
use crate::contract::{Instant, Result, Selector};
use crate::disk::Disk;
use crate::engine::Engine;
use crate::store::{Store, failure};
use crate::{Failure, FailureCode};
use rusqlite::{Connection, Transaction, params};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::rc::Rc;

/// What the keys of such notes in `space` begin with; the name of the backup follows.
const PENDING: &str = "forgetting in ";

/// What is still to be forgotten in a backup: public ids and paths of refs, no text.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Pending {
    ids: BTreeSet<String>,
    at: Instant,
}

impl Pending {
    fn selector(&self) -> Selector {
        Selector { ids: self.ids.iter().cloned().collect(), ..Selector::default() }
    }
}

/// A backup in which nothing could be forgotten.
#[derive(Clone, Debug)]
pub(super) struct Unsearched {
    name: String,
    reason: Failure,
}

/// Forgets the same rows in every backup; returns how many changed, and which could not be opened.
pub(super) fn forget_in_all(disk: &Rc<dyn Disk>, calendar: &Calendar, note: &Note) -> Result<(u64, Vec<Unsearched>)> {
    let (mut changed, mut unsearched) = (0, Vec::new());
    let which = pending(note).selector();
    let query = Query { terms: note.terms.clone(), user: note.user.clone() };
    for name in backup::names(disk.as_ref())? {
        match backup::forget_in(disk, &name, &which, &query, calendar, note.at) {
            Ok(held) => changed += u64::from(held),
            Err(reason) => unsearched.push(Unsearched { name, reason }),
        }
    }
    Ok((changed, unsearched))
}

fn pending(note: &Note) -> Pending {
    Pending { ids: note.roots.union(&note.refs).cloned().collect(), at: note.at }
}

/// Returns the backups that could not be opened, as the receipt lists them.
pub(super) fn document(unsearched: &[Unsearched]) -> Value {
    unsearched.iter().map(|one| json!({"name": one.name, "reason": one.reason.message})).collect()
}

/// Notes what is still to be forgotten in the backups that could not be opened.
pub(super) fn note_unsearched(tx: &Transaction<'_>, unsearched: &[Unsearched], note: &Note) -> Result<()> {
    let mut known = noted(tx)?;
    for one in unsearched {
        let mut all = pending(note);
        if let Some((_, before)) = known.iter_mut().find(|(name, _)| *name == one.name) {
            all.ids.append(&mut before.ids);
        }
        let text = serde_json::to_string(&all).map_err(|error| Failure::invalid(format!("the note of a forgetting: {error}")))?;
        tx.prepare_cached("INSERT INTO space (key, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value")
            .and_then(|mut insert| insert.execute(params![format!("{PENDING}{}", one.name), text]))
            .map_err(failure)?;
    }
    Ok(())
}

fn noted(db: &Connection) -> Result<Vec<(String, Pending)>> {
    let rows: Vec<(String, String)> = db
        .prepare_cached("SELECT key, value FROM space WHERE substr(key, 1, length(?1)) = ?1 ORDER BY key")
        .and_then(|mut query| query.query_map([PENDING], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .map_err(failure)?;
    rows.into_iter()
        .map(|(key, text)| {
            let pending = serde_json::from_str(&text).map_err(|error| Failure::new(FailureCode::Corrupt, format!("the note `{key}`: {error}")))?;
            Ok((key[PENDING.len()..].to_owned(), pending))
        })
        .collect()
}

/// Returns the names of the backups that may still hold what was forgotten.
pub(super) fn pending_names(db: &Connection) -> Result<Vec<String>> {
    noted(db).map(|noted| noted.into_iter().map(|(name, _)| name).collect())
}

impl Engine {
    /// Tries again to forget in backups that could not be opened; returns the names of those that still cannot.
    pub(crate) fn finish_in_backups(&mut self) -> Result<Vec<String>> {
        let waiting = noted(self.store.db())?;
        if waiting.is_empty() {
            return Ok(Vec::new());
        }
        let disk = self.store.shared_disk();
        let there = backup::names(disk.as_ref())?;
        let mut left = Vec::new();
        for (name, pending) in waiting {
            // What the words of a query alone found is not noted: a note holds no text.
            if there.contains(&name) && backup::forget_in(&disk, &name, &pending.selector(), &Query::default(), &self.calendar, pending.at).is_err() {
                left.push(name);
            } else {
                drop_note(&mut self.store, &name)?;
            }
        }
        Ok(left)
    }
}

fn drop_note(store: &mut Store, name: &str) -> Result<()> {
    store.write(|tx| tx.execute("DELETE FROM space WHERE key = ?1", [format!("{PENDING}{name}")]).map(|_| ()).map_err(failure))
}
