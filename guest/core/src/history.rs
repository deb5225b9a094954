//! What people ask of a thing's past, and the corrections that they make: history, diff, rollback,
//! edit, pin, and the call or rule that made it.

use crate::contract::{Failure, FailureCode, Instant, Result};
use crate::engine::Engine;
use crate::l0::{ScopeId, SessionId};
use crate::l1::atom::{self, Atom, AtomId, NewAtom, Origin};
use crate::pages::{self, Author, Kind, Page, Write, diff, hand};
use crate::store::failure;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Longest text that an edit may set, in bytes.
const MAX_EDIT: usize = 1 << 20;

/// Longest text of an atom, in bytes.
const MAX_ATOM: usize = 4_096;

/// Atoms of one chain that a history follows.
const MAX_CHAIN: usize = 1_000;

/// What an id means.
enum Thing {
    Atom(Atom),
    Page(Page),
}

fn thing(db: &Connection, id: &str) -> Result<Thing> {
    let bare = id.split_once('@').map_or(id, |(bare, _)| bare);
    if let Some(atom) = atom::by_uid(db, bare)? {
        return Ok(Thing::Atom(atom));
    }
    match pages::by_uid(db, bare)? {
        Some(page) => Ok(Thing::Page(page)),
        None => Err(Failure::not_found(format!("no atom, scene or persona has the id `{id}`"))),
    }
}

impl Engine {
    /// `memory.history`.
    pub fn history(&self, id: &str) -> Result<String> {
        let db = self.store.db();
        match thing(db, id)? {
            Thing::Page(page) => page_history(db, &page),
            Thing::Atom(atom) => atom_history(db, &atom),
        }
        .map(|document| document.to_string())
    }

    /// `memory.diff`.
    pub fn diff(&self, id: &str, before: u32, after: u32) -> Result<String> {
        let db = self.store.db();
        let (old, new) = match thing(db, id)? {
            Thing::Page(page) => (text_of_revision(db, &page, before)?, text_of_revision(db, &page, after)?),
            Thing::Atom(atom) => {
                let chain = chain(db, atom.id)?;
                let text = |number: u32| -> Result<String> {
                    let atom = number.checked_sub(1).and_then(|index| chain.get(index as usize)).ok_or_else(|| no_revision(id, number))?;
                    Ok(atom.text.clone())
                };
                (text(before)?, text(after)?)
            }
        };
        Ok(diff::unified(&format!("{id}@{before}"), &old, &format!("{id}@{after}"), &new))
    }

    /// `memory.rollback`.
    pub fn rollback(&mut self, id: &str, revision: u32, at: Instant) -> Result<String> {
        self.look(at);
        let done = match thing(self.store.db(), id)? {
            Thing::Page(page) => {
                let Some(old) = pages::revision(self.store.db(), page.id, revision)? else { return Err(no_revision(id, revision)) };
                if old.pruned {
                    return Err(Failure::new(
                        FailureCode::NotFound,
                        format!("the text of {id}@{revision} was dropped (`persona.backupCount`, `persona.sceneBackupCount`)"),
                    ));
                }
                let number = self.store.write(|tx| {
                    let write = Write {
                        body: &old.body,
                        summary: &old.summary,
                        heat: page.heat,
                        author: Author::Human,
                        how: "rollback",
                        hand: &old.hand,
                        beats: None,
                        batch: None,
                        at,
                    };
                    pages::save(tx, page.id, &write)
                })?;
                json!({"id": page.uid, "revision": number, "as": revision, "changed": old.body != page.body})
            }
            Thing::Atom(atom) => {
                let chain = chain(self.store.db(), atom.id)?;
                let old = revision.checked_sub(1).and_then(|index| chain.get(index as usize)).ok_or_else(|| no_revision(id, revision))?.clone();
                let current = chain.last().cloned().unwrap_or(atom);
                if current.text == old.text {
                    json!({"id": current.uid, "revision": chain.len(), "as": revision, "changed": false})
                } else {
                    let uid = self.store.write(|tx| replace_atom(tx, &current, &old.text, at))?;
                    json!({"id": uid, "revision": chain.len() + 1, "as": revision, "changed": true, "replaces": current.uid})
                }
            }
        };
        self.show(at);
        Ok(done.to_string())
    }

    /// `memory.edit`.
    pub fn edit(&mut self, id: &str, text: &str, at: Instant) -> Result<String> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Failure::invalid("the text is empty; to remove something use `forget`"));
        }
        if text.len() > MAX_EDIT {
            return Err(Failure::new(FailureCode::TooLarge, format!("the text has {} bytes, the limit is {MAX_EDIT}", text.len())));
        }
        self.look(at);
        let done = match thing(self.store.db(), id)? {
            Thing::Page(page) if page.body == text => json!({"id": page.uid, "revision": page.number, "changed": false}),
            Thing::Page(page) => {
                let number = self.store.write(|tx| edit_page(tx, &page, text, at))?;
                json!({"id": page.uid, "revision": number, "changed": true})
            }
            Thing::Atom(atom) => {
                if text.len() > MAX_ATOM {
                    return Err(Failure::new(FailureCode::TooLarge, format!("the text has {} bytes, an atom takes {MAX_ATOM}", text.len())));
                }
                if atom.believed_to.is_some() {
                    return Err(Failure::new(FailureCode::Conflict, format!("{id} was replaced; edit the atom that took its place (`history` names it)")));
                }
                if atom.text == text {
                    json!({"id": atom.uid, "changed": false})
                } else {
                    let uid = self.store.write(|tx| replace_atom(tx, &atom, text, at))?;
                    json!({"id": uid, "changed": true, "replaces": atom.uid})
                }
            }
        };
        self.show(at);
        Ok(done.to_string())
    }

    /// `memory.pin`.
    pub fn pin(&mut self, id: &str, pinned: bool, _at: Instant) -> Result<String> {
        let Thing::Atom(atom) = thing(self.store.db(), id)? else {
            return Err(Failure::invalid(format!("`{id}` is a page; only atoms are pinned")));
        };
        if atom.believed_to.is_some() {
            return Err(Failure::new(FailureCode::Conflict, format!("{id} was replaced; pin the atom that took its place (`history` names it)")));
        }
        self.store.write(|tx| tx.execute("UPDATE atoms SET pinned = ?2 WHERE id = ?1", params![atom.id.0, pinned]).map(|_| ()).map_err(failure))?;
        Ok(json!({"id": atom.uid, "pinned": pinned, "changed": atom.pinned != pinned}).to_string())
    }

    /// `memory.why`.
    pub fn why(&self, id: &str) -> Result<String> {
        why(self.store.db(), id).map(|document| document.to_string())
    }
}

fn no_revision(id: &str, number: u32) -> Failure {
    Failure::not_found(format!("{id} has no revision {number}; `history` lists them"))
}

fn text_of_revision(db: &Connection, page: &Page, number: u32) -> Result<String> {
    pages::revision(db, page.id, number)?.map(|revision| revision.body).ok_or_else(|| no_revision(&page.uid, number))
}

fn page_history(db: &Connection, page: &Page) -> Result<Value> {
    let mut revisions = Vec::new();
    for revision in pages::revisions(db, page.id)? {
        revisions.push(json!({
            "revision": revision.number,
            "current": revision.number == page.number,
            "at": revision.at,
            "by": revision.author,
            "how": revision.how,
            "summary": revision.summary,
            "heat": revision.heat,
            "characters": pages::chars(&revision.body),
            "sha256": revision.hash,
            "set-aside": revision.beats,
            "pruned": revision.pruned,
            "batch": revision.batch,
            "text": revision.body,
        }));
    }
    let layer = if page.kind == Kind::Scene { "scene" } else { "persona" };
    Ok(json!({"id": page.uid, "layer": layer, "path": page.path, "archived-at": page.archived_at, "revisions": revisions}))
}

/// Returns the atoms that led to one and followed it, oldest first.
fn chain(db: &Connection, id: AtomId) -> Result<Vec<Atom>> {
    let mut rows: BTreeSet<i64> = BTreeSet::new();
    let mut open = vec![id.0];
    while let Some(row) = open.pop() {
        if rows.len() >= MAX_CHAIN || !rows.insert(row) {
            continue;
        }
        let near: Vec<i64> = db
            .prepare_cached("SELECT older FROM links WHERE newer = ?1 UNION SELECT newer FROM links WHERE older = ?1")
            .and_then(|mut query| query.query_map([row], |row| row.get(0))?.collect())
            .map_err(failure)?;
        open.extend(near);
    }
    let mut atoms = Vec::new();
    for row in rows {
        atoms.push(atom::by_id(db, AtomId(row))?);
    }
    // The one that is believed stands last; the others in the order in which their validity ended.
    atoms.sort_by_key(|atom| (atom.believed_to.unwrap_or(Instant::MAX), atom.believed_from, atom.id));
    Ok(atoms)
}

fn atom_history(db: &Connection, atom: &Atom) -> Result<Value> {
    let mut revisions = Vec::new();
    for (index, atom) in chain(db, atom.id)?.iter().enumerate() {
        let replaced_by: Option<(String, String)> = db
            .prepare_cached("SELECT uid, links.kind FROM links JOIN atoms ON atoms.id = newer WHERE older = ?1 ORDER BY newer DESC LIMIT 1")
            .and_then(|mut query| query.query_row([atom.id.0], |row| Ok((row.get(0)?, row.get(1)?))).optional())
            .map_err(failure)?;
        revisions.push(json!({
            "revision": index + 1,
            "current": atom.believed_to.is_none(),
            "id": atom.uid,
            "text": atom.text,
            "by": atom.origin.to_string(),
            "at": atom.believed_from,
            "believed-to": atom.believed_to,
            "valid-from": atom.valid_from,
            "valid-to": atom.valid_to,
            "replaced-by": replaced_by.as_ref().map(|(uid, _)| uid),
            "how": replaced_by.as_ref().map(|(_, kind)| kind),
        }));
    }
    Ok(json!({"id": atom.uid, "layer": "atom", "revisions": revisions}))
}

/// Stores a human's text in the place of an atom, resting on the same messages.
fn replace_atom(tx: &Transaction<'_>, old: &Atom, text: &str, at: Instant) -> Result<String> {
    let (scope, session): (i64, i64) =
        tx.query_row("SELECT scope, session FROM atoms WHERE id = ?1", [old.id.0], |row| Ok((row.get(0)?, row.get(1)?))).map_err(failure)?;
    let new = NewAtom {
        kind: old.kind,
        text: text.split_whitespace().collect::<Vec<_>>().join(" "),
        priority: old.priority,
        scene: old.scene.clone(),
        origin: Origin::Human,
        attribute: old.attribute.clone(),
        valid_from: old.valid_from,
        event_start: old.event_start,
        event_end: old.event_end,
        evidence: atom::evidence(tx, old.id)?,
    };
    let (id, uid) = atom::insert(tx, ScopeId(scope), SessionId(session), None, &new, at)?;
    // A correction says that the old words were never right: its truth ends where it began.
    atom::supersede(tx, old.id, id, old.valid_from, at)?;
    tx.execute("UPDATE atoms SET pinned = ?2 WHERE id = ?1", params![id.0, old.pinned]).map_err(failure)?;
    Ok(uid)
}

/// Stores a human's text as a page's current revision.
fn edit_page(tx: &Transaction<'_>, page: &Page, text: &str, at: Instant) -> Result<u32> {
    let theirs = hand::written(&page.body, &page.hand, text);
    for atom in hand::struck(&page.body, text) {
        tx.execute("INSERT OR IGNORE INTO struck (page, atom) VALUES (?1, ?2)", params![page.id.0, atom]).map_err(failure)?;
    }
    let write = Write { body: text, summary: &page.summary, heat: page.heat, author: Author::Human, how: "edit", hand: &theirs, beats: None, batch: None, at };
    pages::save(tx, page.id, &write)
}

fn why(db: &Connection, id: &str) -> Result<Value> {
    let (uid, by, how, batch, at) = match thing(db, id)? {
        Thing::Atom(atom) => {
            let batch: Option<i64> = db.query_row("SELECT batch FROM atoms WHERE id = ?1", [atom.id.0], |row| row.get(0)).map_err(failure)?;
            (atom.uid, atom.origin.to_string(), "extracted".to_owned(), batch, atom.believed_from)
        }
        Thing::Page(page) => {
            let number = id.split_once('@').and_then(|(_, number)| number.parse().ok()).unwrap_or(page.number);
            let revision = pages::revision(db, page.id, number)?.ok_or_else(|| no_revision(id, number))?;
            (format!("{}@{number}", page.uid), revision.author, revision.how, revision.batch, revision.at)
        }
    };
    let mut document = json!({"id": uid, "by": by, "how": how, "at": at, "batch": batch, "calls": []});
    let Some(batch) = batch else { return Ok(document) };
    let calls: Vec<Value> = db
        .prepare_cached("SELECT id, purpose, state, asked_at, answered_at, model, input_tokens, output_tokens, body, answer, reason, changed FROM requests WHERE batch = ?1 ORDER BY id")
        .and_then(|mut query| {
            query
                .query_map([batch], |row| {
                    let body: String = row.get(8)?;
                    let changed: String = row.get(11)?;
                    Ok(json!({
                        "request": format!("r{}", row.get::<_, i64>(0)?),
                        "purpose": row.get::<_, String>(1)?,
                        "state": row.get::<_, String>(2)?,
                        "asked-at": row.get::<_, i64>(3)?,
                        "answered-at": row.get::<_, Option<i64>>(4)?,
                        "model": row.get::<_, String>(5)?,
                        "input-tokens": row.get::<_, Option<i64>>(6)?,
                        "output-tokens": row.get::<_, Option<i64>>(7)?,
                        "question": serde_json::from_str::<Value>(&body).unwrap_or(Value::Null),
                        "answer": row.get::<_, Option<String>>(9)?,
                        "reason": row.get::<_, String>(10)?,
                        "changed": serde_json::from_str::<Value>(&changed).unwrap_or(Value::Null),
                    }))
                })?
                .collect()
        })
        .map_err(failure)?;
    // No call means that the rules made it; their layer says which.
    document["rules"] = json!(calls.is_empty());
    document["layer"] = db.query_row("SELECT layer FROM batches WHERE id = ?1", [batch], |row| row.get::<_, String>(0)).optional().map_err(failure)?.into();
    document["calls"] = calls.into();
    Ok(document)
}
