//! L0: rows of scopes, sessions and messages.

use crate::contract::{Failure, FailureCode, Instant, Result, Scope};
use crate::store::failure;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use sha2::{Digest, Sha256};

/// Longest part of a scope, in bytes.
pub const MAX_SCOPE_PART: usize = 512;

/// A row of `scopes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScopeId(pub i64);

/// A row of `sessions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(pub i64);

/// A row of `messages`; grows in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageId(pub i64);

/// What tells equal messages apart where the host has no ids: SHA-256 of role and cleaned text,
/// cut to 16 bytes, and which of the equal messages of the session it is.
pub type ContentDigest = [u8; 16];

/// A message about to be stored.
#[derive(Clone, Debug)]
pub struct NewMessage<'a> {
    /// The host's id, if it has one.
    pub host_id: Option<&'a str>,
    /// Digest of role and text.
    pub digest: ContentDigest,
    /// Which of the equal messages of the session.
    pub occurrence: u32,
    /// `user`, `assistant`, ...
    pub role: &'a str,
    /// Who speaks.
    pub speaker: Option<&'a str>,
    /// The cleaned text.
    pub text: &'a str,
    /// When it was said.
    pub said_at: Instant,
    /// When it arrived.
    pub recorded_at: Instant,
    /// May be distilled.
    pub worth: bool,
}

/// A stored message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The row.
    pub id: MessageId,
    /// The id that people and models see.
    pub uid: String,
    /// Its session.
    pub session: SessionId,
    /// `user`, `assistant`, ...
    pub role: String,
    /// Who speaks.
    pub speaker: Option<String>,
    /// The text.
    pub text: String,
    /// When it was said.
    pub said_at: Instant,
}

/// Returns the digest of a message's role and cleaned text.
pub fn digest(role: &str, text: &str) -> ContentDigest {
    let hash = Sha256::new().chain_update(role).chain_update([0]).chain_update(text).finalize();
    let mut digest = [0; 16];
    digest.copy_from_slice(&hash[..16]);
    digest
}

/// Returns a public id: `prefix` and 16 hex digits of the hash of `parts`, each ended by a NUL.
pub fn uid(prefix: &str, parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
        hash.update([0]);
    }
    let mut uid = String::with_capacity(prefix.len() + 16);
    uid.push_str(prefix);
    push_hex(&mut uid, &hash.finalize()[..8]);
    uid
}

/// Appends bytes as lower-case hex digits.
pub fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        for half in [byte >> 4, byte & 15] {
            text.push(char::from(if half < 10 { b'0' + half } else { b'a' + half - 10 }));
        }
    }
}

fn part(value: &str) -> Result<&str> {
    if value.len() > MAX_SCOPE_PART {
        return Err(Failure::new(FailureCode::TooLarge, format!("a part of the scope has {} bytes, the limit is {MAX_SCOPE_PART}", value.len())));
    }
    Ok(if value.is_empty() { "default" } else { value })
}

/// Returns the row of a scope, if anything was ever stored in it.
pub fn find_scope(db: &Connection, scope: &Scope) -> Result<Option<ScopeId>> {
    db.prepare_cached("SELECT id FROM scopes WHERE team = ?1 AND user = ?2 AND agent = ?3")
        .and_then(|mut query| {
            query
                .query_row(
                    params![part(&scope.team).unwrap_or_default(), part(&scope.user).unwrap_or_default(), part(&scope.agent).unwrap_or_default()],
                    |row| row.get(0),
                )
                .optional()
        })
        .map(|id| id.map(ScopeId))
        .map_err(failure)
}

/// Returns the row of a scope, making it if needed. Fails with `too-large`.
pub fn scope(tx: &Transaction<'_>, scope: &Scope) -> Result<ScopeId> {
    let values = params![part(&scope.team)?, part(&scope.user)?, part(&scope.agent)?];
    tx.prepare_cached("INSERT INTO scopes (team, user, agent) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")
        .and_then(|mut insert| insert.execute(values))
        .map_err(failure)?;
    tx.prepare_cached("SELECT id FROM scopes WHERE team = ?1 AND user = ?2 AND agent = ?3")
        .and_then(|mut query| query.query_row(values, |row| row.get(0)))
        .map(ScopeId)
        .map_err(failure)
}

/// Returns the row of a session, making it if needed, and marks it active at `at`.
pub fn session(tx: &Transaction<'_>, scope: ScopeId, name: &str, at: Instant) -> Result<SessionId> {
    let name = part(name)?;
    tx.prepare_cached(
        "INSERT INTO sessions (scope, name, created_at, active_at) VALUES (?1, ?2, ?3, ?3)
         ON CONFLICT DO UPDATE SET active_at = max(active_at, excluded.active_at), ended_at = NULL
         RETURNING id",
    )
    .and_then(|mut insert| insert.query_row(params![scope.0, name, at as i64], |row| row.get(0)))
    .map(SessionId)
    .map_err(failure)
}

/// Returns the row of a session, if it is there.
pub fn find_session(db: &Connection, scope: ScopeId, name: &str) -> Result<Option<SessionId>> {
    db.prepare_cached("SELECT id FROM sessions WHERE scope = ?1 AND name = ?2")
        .and_then(|mut query| query.query_row(params![scope.0, part(name).unwrap_or_default()], |row| row.get(0)).optional())
        .map(|id| id.map(SessionId))
        .map_err(failure)
}

/// Returns how often a message with this content is stored in the session.
pub fn occurrences(db: &Connection, session: SessionId, digest: &ContentDigest) -> Result<u32> {
    db.prepare_cached("SELECT coalesce(max(occurrence) + 1, 0) FROM messages WHERE session = ?1 AND digest = ?2")
        .and_then(|mut query| query.query_row(params![session.0, digest], |row| row.get(0)))
        .map_err(failure)
}

/// Returns whether the message with this content and place in the session was forgotten.
pub fn is_forgotten(db: &Connection, session: SessionId, digest: &ContentDigest, occurrence: u32) -> Result<bool> {
    is_forgotten_identity(db, &message_uid(db, session, digest, occurrence)?)
}

/// Returns whether the message with the host's id was forgotten.
pub fn is_forgotten_host_id(db: &Connection, session: SessionId, host_id: &str) -> Result<bool> {
    is_forgotten_identity(db, &uid("h_", &[&scope_key(db, session)?, host_id.as_bytes()]))
}

/// Returns whether a public id, or another identity, is one of something forgotten.
pub fn is_forgotten_identity(db: &Connection, identity: &str) -> Result<bool> {
    db.prepare_cached("SELECT 1 FROM forgotten WHERE identity = ?1").and_then(|mut query| query.exists([identity])).map_err(failure)
}

/// Keeps the identities of a stored message that is about to be forgotten, so that it does not come back when a host tells
/// the session again.
pub fn note_forgotten(tx: &Transaction<'_>, session: SessionId, message_uid: &str, host_id: Option<&str>, at: Instant) -> Result<()> {
    let digest: Option<ContentDigest> = tx
        .prepare_cached("SELECT digest FROM messages WHERE uid = ?1")
        .and_then(|mut query| query.query_row([message_uid], |row| row.get(0)).optional())
        .map_err(failure)?;
    let content = match (host_id, digest) {
        (None, Some(digest)) => Some(content_identity(tx, session, &digest)?),
        _ => None,
    };
    tx.prepare_cached("INSERT OR IGNORE INTO forgotten (identity, at, content) VALUES (?1, ?2, ?3)")
        .and_then(|mut insert| insert.execute(params![message_uid, at as i64, content]))
        .map_err(failure)?;
    if let Some(host_id) = host_id { note_forgotten_host_id(tx, session, host_id, at) } else { Ok(()) }
}

fn note_forgotten_host_id(tx: &Transaction<'_>, session: SessionId, host_id: &str, at: Instant) -> Result<()> {
    let identity = uid("h_", &[&scope_key(tx, session)?, host_id.as_bytes()]);
    tx.prepare_cached("INSERT OR IGNORE INTO forgotten (identity, at) VALUES (?1, ?2)")
        .and_then(|mut insert| insert.execute(params![identity, at as i64]))
        .map(|_| ())
        .map_err(failure)
}

/// Lets the host's id claim a forgotten message of this content that came without one; returns whether there was one that
/// no id had claimed.
pub fn claim_forgotten(tx: &Transaction<'_>, session: SessionId, digest: &ContentDigest, host_id: &str, at: Instant) -> Result<bool> {
    let content = content_identity(tx, session, digest)?;
    let claimed = tx
        .prepare_cached("UPDATE forgotten SET content = NULL WHERE identity = (SELECT min(identity) FROM forgotten WHERE content = ?1)")
        .and_then(|mut update| update.execute([content]))
        .map_err(failure)?;
    if claimed > 0 {
        note_forgotten_host_id(tx, session, host_id, at)?;
    }
    Ok(claimed > 0)
}

fn content_identity(db: &Connection, session: SessionId, digest: &ContentDigest) -> Result<String> {
    Ok(uid("d_", &[&scope_key(db, session)?, digest]))
}

fn message_uid(db: &Connection, session: SessionId, digest: &ContentDigest, occurrence: u32) -> Result<String> {
    Ok(uid("m_", &[&scope_key(db, session)?, digest, &occurrence.to_be_bytes()]))
}

/// Returns whether the session holds a message with the host's id.
pub fn has_host_id(db: &Connection, session: SessionId, host_id: &str) -> Result<bool> {
    db.prepare_cached("SELECT 1 FROM messages WHERE session = ?1 AND host_id = ?2")
        .and_then(|mut query| query.exists(params![session.0, host_id]))
        .map_err(failure)
}

const COLUMNS: &str = "id, uid, session, role, speaker, text, said_at";

fn read(row: &Row<'_>) -> rusqlite::Result<Message> {
    Ok(Message {
        id: MessageId(row.get(0)?),
        uid: row.get(1)?,
        session: SessionId(row.get(2)?),
        role: row.get(3)?,
        speaker: row.get(4)?,
        text: row.get(5)?,
        said_at: row.get::<_, i64>(6)? as Instant,
    })
}

/// Returns a message by row.
pub fn message(db: &Connection, id: MessageId) -> Result<Message> {
    db.prepare_cached(&format!("SELECT {COLUMNS} FROM messages WHERE id = ?1")).and_then(|mut query| query.query_row([id.0], read)).map_err(failure)
}

/// Returns the host's id of a message, if it has one.
pub fn host_id(db: &Connection, id: MessageId) -> Result<Option<String>> {
    db.prepare_cached("SELECT host_id FROM messages WHERE id = ?1").and_then(|mut query| query.query_row([id.0], |row| row.get(0))).map_err(failure)
}

/// Returns a message by public id.
pub fn message_by_uid(db: &Connection, uid: &str) -> Result<Option<Message>> {
    db.prepare_cached(&format!("SELECT {COLUMNS} FROM messages WHERE uid = ?1")).and_then(|mut query| query.query_row([uid], read).optional()).map_err(failure)
}

/// Returns the messages of an L1 batch that may be distilled, in the order of arrival.
pub fn messages_of_batch(db: &Connection, batch: i64) -> Result<Vec<Message>> {
    db.prepare_cached(&format!("SELECT {COLUMNS} FROM messages WHERE batch = ?1 AND worth = 1 ORDER BY id"))
        .and_then(|mut query| query.query_map([batch], read)?.collect())
        .map_err(failure)
}

/// Returns up to `limit` messages of a session that arrived just before `before`, oldest first.
pub fn messages_before(db: &Connection, session: SessionId, before: MessageId, limit: usize) -> Result<Vec<Message>> {
    let mut messages: Vec<Message> = db
        .prepare_cached(&format!("SELECT {COLUMNS} FROM messages WHERE session = ?1 AND id < ?2 AND role IN ('user', 'assistant') ORDER BY id DESC LIMIT ?3"))
        .and_then(|mut query| query.query_map(params![session.0, before.0, limit as i64], read)?.collect())
        .map_err(failure)?;
    messages.reverse();
    Ok(messages)
}

/// Returns a session's name.
pub fn session_name(db: &Connection, session: SessionId) -> Result<String> {
    db.prepare_cached("SELECT name FROM sessions WHERE id = ?1").and_then(|mut query| query.query_row([session.0], |row| row.get(0))).map_err(failure)
}

/// Stores a message and returns its row and public id. The caller has made sure that it is new.
pub fn insert(tx: &Transaction<'_>, scope: ScopeId, session: SessionId, message: &NewMessage<'_>) -> Result<(MessageId, String)> {
    let uid = message_uid(tx, session, &message.digest, message.occurrence)?;
    tx.prepare_cached(
        "INSERT INTO messages (uid, scope, session, host_id, digest, occurrence, role, speaker, text, said_at, recorded_at, worth)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) RETURNING id",
    )
    .and_then(|mut insert| {
        insert.query_row(
            params![
                uid, scope.0, session.0, message.host_id, message.digest, message.occurrence, message.role, message.speaker, message.text,
                message.said_at as i64, message.recorded_at as i64, message.worth
            ],
            |row| row.get(0),
        )
    })
    .map(|id| (MessageId(id), uid))
    .map_err(failure)
}

/// Returns what names a session apart from row numbers, so that ids agree between spaces.
pub fn scope_key(db: &Connection, session: SessionId) -> Result<Vec<u8>> {
    db.prepare_cached(
        "SELECT team || char(0) || user || char(0) || agent || char(0) || name FROM sessions JOIN scopes ON scopes.id = scope WHERE sessions.id = ?1",
    )
    .and_then(|mut query| query.query_row([session.0], |row| row.get::<_, String>(0)))
    .map(String::into_bytes)
    .map_err(failure)
}
