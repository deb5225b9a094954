//! The way from an id down to messages, and up to what rests on them.

use crate::calendar::Calendar;
use crate::contract::{Failure, Result};
use crate::disk::Disk;
use crate::l0::{self, Message, MessageId};
use crate::l1::atom::{self, Atom, AtomId};
use crate::offload::trace::{self as offload, Asker};
use crate::pages::{self, block};
use crate::store::failure;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

/// Returns what an id is, what it rests on and what rests on it.
pub fn trace(db: &Connection, disk: &dyn Disk, calendar: &Calendar, id: &str) -> Result<Value> {
    if let Some(atom) = atom::by_uid(db, id)? {
        let mut document = atom_json(calendar, &atom);
        document["layer"] = "atom".into();
        document["rests-on"] = sources(db, calendar, atom.id)?;
        document["built-on-it"] = pages_on(db, &atom.uid)?;
        document["replaces"] = links(db, "SELECT older, kind FROM links WHERE newer = ?1 ORDER BY older", atom.id)?;
        document["replaced-by"] = links(db, "SELECT newer, kind FROM links WHERE older = ?1 ORDER BY newer", atom.id)?;
        return Ok(document);
    }
    if let Some(message) = l0::message_by_uid(db, id)? {
        let atoms: Vec<i64> = db
            .prepare_cached("SELECT atom FROM evidence WHERE message = ?1 ORDER BY atom")
            .and_then(|mut query| query.query_map([message.id.0], |row| row.get(0))?.collect())
            .map_err(failure)?;
        let mut built = Vec::new();
        for row in atoms {
            let atom = atom::by_id(db, AtomId(row))?;
            let mut document = atom_json(calendar, &atom);
            document["built-on-it"] = pages_on(db, &atom.uid)?;
            built.push(document);
        }
        let mut document = message_json(db, calendar, &message)?;
        document["layer"] = "message".into();
        document["built-on-it"] = built.into();
        return Ok(document);
    }
    if let Some(document) = page(db, calendar, id)? {
        return Ok(document);
    }
    if let Some(named) = pages::named(db, None, id)?
        && let Some(document) = page(db, calendar, &named.uid)?
    {
        return Ok(document);
    }
    offload::trace(db, disk, calendar, None, id)?.ok_or_else(|| unknown(id))
}

/// Returns what [`trace`] does if the id belongs to the scope of who asks; `persona` is the scope's own, scenes have
/// their files' names too, and nodes are those of the session.
pub fn trace_within(db: &Connection, disk: &dyn Disk, calendar: &Calendar, asker: Asker<'_>, id: &str) -> Result<Value> {
    let scope = asker.row;
    let (name, revision) = match pages::named(db, Some(scope), id)? {
        Some(_) => (id, ""),
        None => id.split_once('@').map_or((id, ""), |(name, _)| (name, &id[name.len()..])),
    };
    let uid = pages::named(db, Some(scope), name)?.map_or_else(|| name.to_owned(), |page| page.uid);
    let is_within = db
        .prepare_cached(
            "SELECT 1 FROM atoms WHERE uid = ?1 AND scope = ?2 UNION ALL SELECT 1 FROM messages WHERE uid = ?1 AND scope = ?2
             UNION ALL SELECT 1 FROM pages WHERE uid = ?1 AND scope = ?2",
        )
        .and_then(|mut query| query.exists(params![uid, scope.0]))
        .map_err(failure)?;
    if is_within {
        return trace(db, disk, calendar, &format!("{uid}{revision}"));
    }
    offload::trace(db, disk, calendar, Some(asker), id)?.ok_or_else(|| unknown(id))
}

/// Returns the failure for an id that nothing has.
pub fn unknown(id: &str) -> Failure {
    Failure::not_found(format!("nothing has the id `{id}`"))
}

/// Returns what a scene or the persona rests on, block by block, down to the messages.
fn page(db: &Connection, calendar: &Calendar, id: &str) -> Result<Option<Value>> {
    let (uid, number) = id.split_once('@').map_or((id, None), |(uid, number)| (uid, number.parse::<u32>().ok()));
    let Some(page) = pages::by_uid(db, uid)? else { return Ok(None) };
    let number = number.unwrap_or(page.number);
    let Some(revision) = pages::revision(db, page.id, number)? else {
        return Err(Failure::not_found(format!("{uid} has no revision {number}; `history` lists them")));
    };
    let mut statements = Vec::new();
    for (place, block) in block::parse(&revision.body).into_iter().enumerate() {
        if block.is_heading() {
            continue;
        }
        let mut atoms = Vec::new();
        for uid in pages::grounds_at(db, page.id, number, place)? {
            atoms.push(match atom::by_uid(db, &uid)? {
                Some(atom) => {
                    let mut document = atom_json(calendar, &atom);
                    document["rests-on"] = sources(db, calendar, atom.id)?;
                    document
                }
                // Retention removes atoms before the pages that rest on them.
                None => json!({"id": uid, "expired": true}),
            });
        }
        statements.push(json!({"text": block.text, "by-hand": revision.hand.contains(&block.text), "rests-on": atoms}));
    }
    Ok(Some(json!({
        "id": page.uid,
        "layer": if page.kind == pages::Kind::Scene { "scene" } else { "persona" },
        "path": page.path,
        "revision": number,
        "by": revision.author,
        "at": calendar.iso(revision.at),
        "statements": statements,
    })))
}

/// Returns the scenes and personas whose current revision rests on an atom.
fn pages_on(db: &Connection, uid: &str) -> Result<Value> {
    db.prepare_cached(
        "SELECT DISTINCT pages.uid, kind, path, pages.revision FROM grounds JOIN pages ON pages.id = grounds.page
          WHERE atom = ?1 AND grounds.revision = pages.revision AND archived_at IS NULL ORDER BY kind DESC, path",
    )
    .and_then(|mut query| {
        query
            .query_map([uid], |row| {
                Ok(json!({"id": row.get::<_, String>(0)?, "layer": row.get::<_, String>(1)?, "path": row.get::<_, String>(2)?, "revision": row.get::<_, u32>(3)?}))
            })?
            .collect::<rusqlite::Result<Vec<_>>>()
    })
    .map(Value::Array)
    .map_err(failure)
}

fn sources(db: &Connection, calendar: &Calendar, id: AtomId) -> Result<Value> {
    let mut sources = Vec::new();
    for part in atom::evidence(db, id)? {
        let mut source = message_json(db, calendar, &l0::message(db, MessageId(part.message))?)?;
        source["quote"] = part.quote.into();
        sources.push(source);
    }
    Ok(sources.into())
}

fn links(db: &Connection, sql: &str, id: AtomId) -> Result<Value> {
    let rows: Vec<(i64, String)> =
        db.prepare_cached(sql).and_then(|mut query| query.query_map([id.0], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()).map_err(failure)?;
    let mut links = Vec::new();
    for (row, kind) in rows {
        let atom = atom::by_id(db, AtomId(row))?;
        links.push(json!({"id": atom.uid, "kind": kind, "text": atom.text}));
    }
    Ok(links.into())
}

/// Returns an atom as a document; times are ISO 8601 in the configured zone, `null` where open.
pub fn atom_json(calendar: &Calendar, atom: &Atom) -> Value {
    let time = |at: Option<u64>| at.map(|at| calendar.iso(at));
    json!({
        "id": atom.uid,
        "kind": atom.kind.to_string(),
        "text": atom.text,
        "priority": atom.priority,
        "scene": atom.scene,
        "origin": atom.origin.to_string(),
        "pinned": atom.pinned,
        "valid-from": calendar.iso(atom.valid_from),
        "valid-to": time(atom.valid_to),
        "believed-from": calendar.iso(atom.believed_from),
        "believed-to": time(atom.believed_to),
        "event-start": time(atom.event_start),
        "event-end": time(atom.event_end),
    })
}

/// Returns a message as a document.
pub fn message_json(db: &Connection, calendar: &Calendar, message: &Message) -> Result<Value> {
    Ok(json!({
        "id": message.uid,
        "session": l0::session_name(db, message.session)?,
        "role": message.role,
        "speaker": message.speaker,
        "said-at": calendar.iso(message.said_at),
        "text": message.text,
    }))
}
