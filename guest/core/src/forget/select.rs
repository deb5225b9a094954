//! Which rows a selector means.

use crate::contract::{Failure, Result, Selector};
use crate::pages;
use crate::store::failure;
use rusqlite::{Connection, OptionalExtension};
use std::collections::BTreeSet;

/// What is to go, by row; the cascade adds what rests on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Doomed {
    pub messages: BTreeSet<i64>,
    pub atoms: BTreeSet<i64>,
    /// Whole pages.
    pub pages: BTreeSet<i64>,
    /// Single revisions.
    pub revisions: BTreeSet<(i64, u32)>,
    /// Offload entries, canvases and refs, by public id or path.
    pub other: BTreeSet<String>,
    /// Words that must not be left together in any text.
    pub terms: Vec<String>,
    /// Scopes whose texts the words must not be left in; all if there is none.
    pub owners: Option<BTreeSet<i64>>,
    /// Sessions whose offload goes whole.
    pub sessions: BTreeSet<i64>,
}

/// The words of a query, and the user whose texts it means if it names one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    pub terms: Vec<String>,
    pub user: Option<String>,
}

impl Doomed {
    /// Looks for the words of a query, too, in texts that are neither messages nor atoms.
    pub(super) fn look_for(&mut self, db: &Connection, query: Query) -> Result<()> {
        self.owners = match query.user {
            Some(user) => Some(
                db.prepare_cached("SELECT id FROM scopes WHERE user = ?1")
                    .and_then(|mut scopes| scopes.query_map([user], |row| row.get(0))?.collect())
                    .map_err(failure)?,
            ),
            None => None,
        };
        self.terms = query.terms;
        Ok(())
    }

    /// Returns the words that must not be left in the texts of a scope.
    pub(super) fn terms_in(&self, scope: i64) -> &[String] {
        if self.owners.as_ref().is_none_or(|owners| owners.contains(&scope)) { &self.terms } else { &[] }
    }
}

/// Returns the lower-case terms of a query.
pub(super) fn terms(query: &str) -> Vec<String> {
    query.split_whitespace().map(str::to_lowercase).collect()
}

/// Returns whether a text holds every term.
pub(super) fn has_terms(text: &str, terms: &[String]) -> bool {
    if terms.is_empty() {
        return false;
    }
    let text = text.to_lowercase();
    terms.iter().all(|term| text.contains(term.as_str()))
}

/// Resolves a selector. Members limit each other; an empty selector is `invalid-argument`, an
/// unknown id is `not-found`.
pub(super) fn select(db: &Connection, which: &Selector) -> Result<Doomed> {
    let filtered = which.query.is_some() || which.session.is_some() || which.user.is_some() || which.since.is_some() || which.until.is_some();
    if which.ids.is_empty() && !filtered {
        return Err(Failure::invalid("a selector that limits nothing would forget everything; name ids, a query, a session, a user or a time"));
    }
    let named = by_ids(db, which)?;
    if !which.ids.is_empty() && !filtered {
        return Ok(named);
    }
    let terms = which.query.as_deref().map(terms).unwrap_or_default();
    if which.query.is_some() && terms.is_empty() {
        return Err(Failure::invalid("the query has no words"));
    }
    let mut doomed = Doomed::default();
    each_message(db, which, |id, text| {
        if terms.is_empty() || has_terms(text, &terms) {
            doomed.messages.insert(id);
        }
    })?;
    each_atom(db, which, |id, text| {
        if terms.is_empty() || has_terms(text, &terms) {
            doomed.atoms.insert(id);
        }
    })?;
    if !which.ids.is_empty() {
        return limited(db, which, &terms, named, &doomed);
    }
    let by_time = which.since.is_some() || which.until.is_some();
    if terms.is_empty() && !by_time {
        doomed.sessions = sessions(db, which)?;
    }
    if which.session.is_none() && !by_time {
        doomed.look_for(db, Query { terms, user: which.user.clone() })?;
    }
    Ok(doomed)
}

/// Returns what ids name of what the other members of a selector mean. `fitting` holds the messages and atoms that those mean;
/// entries and refs are limited with the offload.
fn limited(db: &Connection, which: &Selector, terms: &[String], mut named: Doomed, fitting: &Doomed) -> Result<Doomed> {
    named.messages.retain(|row| fitting.messages.contains(row));
    named.atoms.retain(|row| fitting.atoms.contains(row));
    let mut limited = Doomed { messages: named.messages, atoms: named.atoms, other: named.other, ..Doomed::default() };
    for page in named.pages {
        if revision_fits(db, which, terms, page, pages::load(db, pages::PageId(page))?.number)? {
            limited.pages.insert(page);
        }
    }
    for (page, number) in named.revisions {
        if revision_fits(db, which, terms, page, number)? {
            limited.revisions.insert((page, number));
        }
    }
    Ok(limited)
}

/// Returns whether a revision is one that the other members of a selector mean. A page belongs to no session.
fn revision_fits(db: &Connection, which: &Selector, terms: &[String], page: i64, number: u32) -> Result<bool> {
    let (since, until) = times(which);
    let sql = "SELECT body || ' ' || summary FROM pages JOIN revisions ON page = pages.id JOIN scopes ON scopes.id = scope
                WHERE pages.id = ?1 AND number = ?2 AND ?3 IS NULL AND (?4 IS NULL OR user = ?4) AND at BETWEEN ?5 AND ?6";
    let text: Option<String> = db
        .prepare_cached(sql)
        .and_then(|mut query| query.query_row(rusqlite::params![page, number, which.session, which.user, since, until], |row| row.get(0)).optional())
        .map_err(failure)?;
    Ok(text.is_some_and(|text| terms.is_empty() || has_terms(&text, terms)))
}

fn by_ids(db: &Connection, which: &Selector) -> Result<Doomed> {
    let mut doomed = Doomed::default();
    for id in &which.ids {
        let row = |sql: &str| -> Result<Option<i64>> {
            db.prepare_cached(sql).and_then(|mut query| query.query_row([id], |row| row.get(0)).optional()).map_err(failure)
        };
        if let Some(message) = row("SELECT id FROM messages WHERE uid = ?1")? {
            doomed.messages.insert(message);
        } else if let Some(atom) = row("SELECT id FROM atoms WHERE uid = ?1")? {
            doomed.atoms.insert(atom);
        } else if let Some(page) = pages::by_uid(db, id)? {
            doomed.pages.insert(page.id.0);
        } else if let Some((page, number)) = revision(db, id)? {
            doomed.revisions.insert((page, number));
        } else {
            doomed.other.insert(id.clone());
        }
    }
    Ok(doomed)
}

/// Returns the page and number that `s_…@3` names.
fn revision(db: &Connection, id: &str) -> Result<Option<(i64, u32)>> {
    let Some((uid, number)) = id.rsplit_once('@') else { return Ok(None) };
    let (Some(page), Ok(number)) = (pages::by_uid(db, uid)?, number.parse()) else { return Ok(None) };
    if pages::revision(db, page.id, number)?.is_none() {
        return Ok(None);
    }
    if number == page.number {
        return Err(Failure::invalid(format!("{id} is the current revision; roll back first, or forget the page {uid}")));
    }
    Ok(Some((page.id.0, number)))
}

const SCOPED: &str = "(?1 IS NULL OR sessions.name = ?1) AND (?2 IS NULL OR scopes.user = ?2)";

pub(super) fn times(which: &Selector) -> (i64, i64) {
    let clamp = |at: Option<u64>, otherwise: i64| at.map_or(otherwise, |at| i64::try_from(at).unwrap_or(i64::MAX));
    (clamp(which.since, i64::MIN), clamp(which.until, i64::MAX))
}

fn each_message(db: &Connection, which: &Selector, take: impl FnMut(i64, &str)) -> Result<()> {
    each(db, which, "messages", "said_at", take)
}

fn each_atom(db: &Connection, which: &Selector, take: impl FnMut(i64, &str)) -> Result<()> {
    each(db, which, "atoms", "valid_from", take)
}

/// Shows every row of `table` that a selector's session, user and times name, by id. `time` is the column that the times limit.
fn each(db: &Connection, which: &Selector, table: &str, time: &str, mut take: impl FnMut(i64, &str)) -> Result<()> {
    let (since, until) = times(which);
    let sql = format!(
        "SELECT {table}.id, {table}.text FROM {table} JOIN sessions ON sessions.id = {table}.session JOIN scopes ON scopes.id = {table}.scope
          WHERE {SCOPED} AND {time} BETWEEN ?3 AND ?4 ORDER BY {table}.id"
    );
    let mut query = db.prepare(&sql).map_err(failure)?;
    let mut rows = query.query(rusqlite::params![which.session, which.user, since, until]).map_err(failure)?;
    while let Some(row) = rows.next().map_err(failure)? {
        let text: String = row.get(1).map_err(failure)?;
        take(row.get(0).map_err(failure)?, &text);
    }
    Ok(())
}

fn sessions(db: &Connection, which: &Selector) -> Result<BTreeSet<i64>> {
    db.prepare(&format!("SELECT sessions.id FROM sessions JOIN scopes ON scopes.id = scope WHERE {SCOPED}"))
        .and_then(|mut query| query.query_map(rusqlite::params![which.session, which.user], |row| row.get(0))?.collect())
        .map_err(failure)
}

/// Returns the public ids of what a forgetting begins with, so that it can begin with the same in a copy.
pub(super) fn roots(db: &Connection, doomed: &Doomed) -> Result<BTreeSet<String>> {
    let mut roots = doomed.other.clone();
    for (table, rows) in [("messages", &doomed.messages), ("atoms", &doomed.atoms), ("pages", &doomed.pages)] {
        let sql = format!("SELECT uid FROM {table} WHERE id = ?1");
        for &row in rows {
            roots.insert(db.prepare_cached(&sql).and_then(|mut query| query.query_row([row], |row| row.get(0))).map_err(failure)?);
        }
    }
    Ok(roots)
}
