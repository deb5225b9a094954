//! Rows of atoms: one self-contained fact each, never overwritten. What ends is a row's validity.
//!
//! Two times are kept. `valid_*` is when the fact was true, `believed_*` when this store held it.
//! A fact that another replaced has both ends set; one that went into a merged fact has only
//! `believed_to` set, for the merged fact carries its truth on.

use crate::contract::{Failure, Instant, Result};
use crate::l0::{self, MessageId, ScopeId, SessionId};
use crate::store::failure;
use crate::text;
use crate::work::BatchId;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;

/// A row of `atoms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AtomId(pub i64);

/// What an atom is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Something lasting about the user.
    Persona,
    /// Something that happened or is planned.
    Episodic,
    /// A rule for the assistant.
    Instruction,
}

impl Kind {
    /// Returns the kind of a name as models and other systems write it.
    pub fn parse(name: &str) -> Option<Self> {
        match name.trim().to_ascii_lowercase().as_str() {
            "persona" | "preference" | "profile" => Some(Self::Persona),
            "episodic" | "episode" | "event" => Some(Self::Episodic),
            "instruction" | "instruct" => Some(Self::Instruction),
            _ => None,
        }
    }

    /// Returns the lowest priority that is stored (the reference system's drop lines).
    pub fn drop_line(self) -> i32 {
        match self {
            Self::Persona => 50,
            Self::Episodic => 60,
            Self::Instruction => 70,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Persona => "persona",
            Self::Episodic => "episodic",
            Self::Instruction => "instruction",
        })
    }
}

/// Whose words an atom rests on; later ones are trusted more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A tool, a web page, another agent.
    Tool,
    /// The assistant.
    Assistant,
    /// The user, by the rules of the built-in distiller.
    Rules,
    /// The user.
    User,
    /// A human's edit.
    Human,
}

impl Origin {
    /// Returns the origin of a name in the store.
    pub fn parse(name: &str) -> Self {
        match name {
            "user" => Self::User,
            "human" => Self::Human,
            "rules" => Self::Rules,
            "assistant" => Self::Assistant,
            _ => Self::Tool,
        }
    }

    /// Returns whose words a message's text is.
    pub fn of_role(role: &str) -> Self {
        match role {
            "user" => Self::User,
            "assistant" => Self::Assistant,
            _ => Self::Tool,
        }
    }

    /// Returns whether the user stands behind the words.
    pub fn is_the_users(self) -> bool {
        self >= Self::Rules
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tool => "tool",
            Self::Assistant => "assistant",
            Self::Rules => "rules",
            Self::User => "user",
            Self::Human => "human",
        })
    }
}

/// The words of a message that an atom rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The message.
    pub message: i64,
    /// Words that occur in it; empty if the whole message is meant.
    pub quote: String,
}

/// An atom about to be stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewAtom {
    /// What it is about.
    pub kind: Kind,
    /// The fact.
    pub text: String,
    /// 0 to 100; -1 for an absolute instruction.
    pub priority: i32,
    /// The scene in which it came up.
    pub scene: String,
    /// Whose words it rests on.
    pub origin: Origin,
    /// What the fact gives a value to, where a rule knows it: a new value ends the old one.
    pub attribute: Option<String>,
    /// When it became true.
    pub valid_from: Instant,
    /// When it happened.
    pub event_start: Option<Instant>,
    /// When it was over.
    pub event_end: Option<Instant>,
    /// What it rests on; at least one.
    pub evidence: Vec<Evidence>,
}

/// A stored atom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Atom {
    /// The row.
    pub id: AtomId,
    /// The id that people and models see.
    pub uid: String,
    /// What it is about.
    pub kind: Kind,
    /// The fact.
    pub text: String,
    /// 0 to 100; -1 for an absolute instruction.
    pub priority: i32,
    /// The scene in which it came up.
    pub scene: String,
    /// Whose words it rests on.
    pub origin: Origin,
    /// What the fact gives a value to.
    pub attribute: Option<String>,
    /// When it became true.
    pub valid_from: Instant,
    /// When it stopped being true.
    pub valid_to: Option<Instant>,
    /// When it was stored.
    pub believed_from: Instant,
    /// When another took its place.
    pub believed_to: Option<Instant>,
    /// When it happened.
    pub event_start: Option<Instant>,
    /// When it was over.
    pub event_end: Option<Instant>,
    /// Never superseded, merged or retired by the engine.
    pub pinned: bool,
}

const COLUMNS: &str =
    "id, uid, kind, text, priority, scene, origin, attribute, valid_from, valid_to, believed_from, believed_to, event_start, event_end, pinned";

fn read(row: &Row<'_>) -> rusqlite::Result<Atom> {
    let instant = |index: usize| row.get::<_, Option<i64>>(index).map(|value| value.map(|value| value as Instant));
    Ok(Atom {
        id: AtomId(row.get(0)?),
        uid: row.get(1)?,
        kind: Kind::parse(&row.get::<_, String>(2)?).unwrap_or(Kind::Episodic),
        text: row.get(3)?,
        priority: row.get(4)?,
        scene: row.get(5)?,
        origin: Origin::parse(&row.get::<_, String>(6)?),
        attribute: row.get(7)?,
        valid_from: instant(8)?.unwrap_or(0),
        valid_to: instant(9)?,
        believed_from: instant(10)?.unwrap_or(0),
        believed_to: instant(11)?,
        event_start: instant(12)?,
        event_end: instant(13)?,
        pinned: row.get(14)?,
    })
}

/// Returns an atom by row.
pub fn by_id(db: &Connection, id: AtomId) -> Result<Atom> {
    db.prepare_cached(&format!("SELECT {COLUMNS} FROM atoms WHERE id = ?1")).and_then(|mut query| query.query_row([id.0], read)).map_err(failure)
}

/// Returns an atom by public id.
pub fn by_uid(db: &Connection, uid: &str) -> Result<Option<Atom>> {
    db.prepare_cached(&format!("SELECT {COLUMNS} FROM atoms WHERE uid = ?1")).and_then(|mut query| query.query_row([uid], read).optional()).map_err(failure)
}

/// Returns the believed atom of a kind and a scope that says the same as `words`, if there is one.
pub fn same(db: &Connection, scope: ScopeId, kind: Kind, words: &str) -> Result<Option<Atom>> {
    db.prepare_cached(&format!("SELECT {COLUMNS} FROM atoms WHERE scope = ?1 AND fold = ?2 AND kind = ?3 AND believed_to IS NULL ORDER BY id LIMIT 1"))
        .and_then(|mut query| query.query_row(params![scope.0, fold(words), kind.to_string()], read).optional())
        .map_err(failure)
}

/// Returns the believed atoms of a scope that give a value to `attribute`, oldest first.
pub fn with_attribute(db: &Connection, scope: ScopeId, attribute: &str) -> Result<Vec<Atom>> {
    db.prepare_cached(&format!("SELECT {COLUMNS} FROM atoms WHERE scope = ?1 AND attribute = ?2 AND believed_to IS NULL ORDER BY id"))
        .and_then(|mut query| query.query_map(params![scope.0, attribute], read)?.collect())
        .map_err(failure)
}

/// Returns what an atom rests on, in the order of the messages.
pub fn evidence(db: &Connection, id: AtomId) -> Result<Vec<Evidence>> {
    db.prepare_cached("SELECT message, quote FROM evidence WHERE atom = ?1 ORDER BY message")
        .and_then(|mut query| query.query_map([id.0], |row| Ok(Evidence { message: row.get(0)?, quote: row.get(1)? }))?.collect())
        .map_err(failure)
}

/// Stores an atom and returns its row and public id.
pub fn insert(tx: &Transaction<'_>, scope: ScopeId, session: SessionId, batch: Option<BatchId>, atom: &NewAtom, at: Instant) -> Result<(AtomId, String)> {
    let uid = free_uid(tx, session, atom)?;
    let row =
        NewRow { uid: &uid, scope, session, batch, origin: &atom.origin.to_string(), metadata: "{}", at, valid_to: None, believed_to: None, pinned: false };
    let id = insert_row(tx, &row, atom)?;
    Ok((id, uid))
}

/// What the store keeps of an atom besides what it says.
#[derive(Clone, Copy, Debug)]
pub struct NewRow<'a> {
    /// The id that people and models see; the caller has made sure that it is free.
    pub uid: &'a str,
    /// Whose it is.
    pub scope: ScopeId,
    /// Where it came up.
    pub session: SessionId,
    /// The batch that made it.
    pub batch: Option<BatchId>,
    /// Whose words it rests on; besides the names of [`Origin`], `imported`.
    pub origin: &'a str,
    /// A JSON object.
    pub metadata: &'a str,
    /// When it was stored.
    pub at: Instant,
    /// When it stopped being true.
    pub valid_to: Option<Instant>,
    /// When another took its place.
    pub believed_to: Option<Instant>,
    /// Never superseded, merged or retired by the engine.
    pub pinned: bool,
}

/// Stores an atom under an id that the caller chose.
pub fn insert_row(tx: &Transaction<'_>, row: &NewRow<'_>, atom: &NewAtom) -> Result<AtomId> {
    let id = tx
        .prepare_cached(
            "INSERT INTO atoms (uid, scope, session, kind, text, priority, scene, origin, attribute, valid_from, valid_to, believed_from, believed_to,
                                event_start, event_end, pinned, metadata, batch, fold)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19) RETURNING id",
        )
        .and_then(|mut insert| {
            insert.query_row(
                params![
                    row.uid,
                    row.scope.0,
                    row.session.0,
                    atom.kind.to_string(),
                    atom.text,
                    atom.priority,
                    atom.scene,
                    row.origin,
                    atom.attribute,
                    atom.valid_from as i64,
                    row.valid_to.map(|at| at as i64),
                    row.at as i64,
                    row.believed_to.map(|at| at as i64),
                    atom.event_start.map(|at| at as i64),
                    atom.event_end.map(|at| at as i64),
                    row.pinned,
                    row.metadata,
                    row.batch.map(|batch| batch.0),
                    fold(&atom.text)
                ],
                |row| row.get(0),
            )
        })
        .map(AtomId)
        .map_err(failure)?;
    add_evidence(tx, id, &atom.evidence)?;
    Ok(id)
}

/// Adds what else an atom rests on; known evidence stays as it is.
pub fn add_evidence(tx: &Transaction<'_>, id: AtomId, evidence: &[Evidence]) -> Result<()> {
    for part in evidence {
        tx.prepare_cached("INSERT INTO evidence (atom, message, quote) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")
            .and_then(|mut insert| insert.execute(params![id.0, part.message, part.quote]))
            .map_err(failure)?;
    }
    Ok(())
}

/// Ends the validity of `older` because `newer` replaced it at `valid_to`.
pub fn supersede(tx: &Transaction<'_>, older: AtomId, newer: AtomId, valid_to: Instant, at: Instant) -> Result<()> {
    // A correction may be older than what it corrects: then the corrected fact was never true.
    tx.prepare_cached("UPDATE atoms SET believed_to = ?2, valid_to = max(valid_from, ?3) WHERE id = ?1 AND believed_to IS NULL")
        .and_then(|mut update| update.execute(params![older.0, at as i64, valid_to as i64]))
        .map_err(failure)?;
    link(tx, newer, older, "supersedes", at)
}

/// Ends the belief in `older` because `newer` says it too, among other things.
pub fn merge(tx: &Transaction<'_>, older: AtomId, newer: AtomId, at: Instant) -> Result<()> {
    tx.prepare_cached("UPDATE atoms SET believed_to = ?2 WHERE id = ?1 AND believed_to IS NULL")
        .and_then(|mut update| update.execute(params![older.0, at as i64]))
        .map_err(failure)?;
    link(tx, newer, older, "merges", at)
}

fn link(tx: &Transaction<'_>, newer: AtomId, older: AtomId, kind: &str, at: Instant) -> Result<()> {
    tx.prepare_cached("INSERT INTO links (newer, older, kind, at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")
        .and_then(|mut insert| insert.execute(params![newer.0, older.0, kind, at as i64]))
        .map(|_| ())
        .map_err(failure)
}

/// Returns a hash of the words in order, without articles and punctuation: equal hashes say the
/// same thing. Negations, numbers and the order of words all count.
pub fn fold(words: &str) -> String {
    let mut hash = Sha256::new();
    for token in text::tokens(words) {
        if !matches!(token.as_str(), "a" | "an" | "the") {
            hash.update(&token);
            hash.update([0]);
        }
    }
    let mut fold = String::with_capacity(32);
    l0::push_hex(&mut fold, &hash.finalize()[..16]);
    fold
}

/// Returns a public id that is a function of what the atom says and rests on; the same said again
/// from the same messages gets the next of its series.
fn free_uid(tx: &Transaction<'_>, session: SessionId, atom: &NewAtom) -> Result<String> {
    /// Far beyond what one message can give rise to; the loop must end all the same.
    const MAX_SERIES: u32 = 10_000;
    let name = l0::scope_key(tx, session)?;
    let mut sources = Vec::new();
    for part in &atom.evidence {
        sources.push(l0::message(tx, MessageId(part.message))?.uid);
    }
    sources.sort();
    for series in 0..MAX_SERIES {
        let uid = l0::uid("a_", &[&name, sources.join(" ").as_bytes(), atom.kind.to_string().as_bytes(), atom.text.as_bytes(), &series.to_be_bytes()]);
        if by_uid(tx, &uid)?.is_none() {
            return Ok(uid);
        }
    }
    Err(Failure::invalid("one fact was stored too often from the same messages"))
}
