//! A session's short-term memory while the engine is open: a cache of its rows.

use super::assemble::{Gauge, NeededRef, RefKind};
use super::canvas::{Board, NodeNote};
use super::ledger::Ledger;
use super::refs::{self, RefHeader, sha256_hex};
use super::rows::{self, StoredRef};
use crate::calendar::Calendar;
use crate::contract::{Failure, FailureCode, Result, Scope};
use crate::disk::Disk;
use crate::l0::SessionId;
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};

/// Sessions kept in memory; the one that was used longest ago goes first (the reference's number).
const SESSIONS_MAX: usize = 20;

/// A number of mirrored lines that no log has: the file is written anew.
pub const MUST_REWRITE: u64 = u64::MAX;

/// What is known of one session.
#[derive(Debug, Default)]
pub struct Session {
    /// The entries.
    pub ledger: Ledger,
    /// The tasks and where the next call goes.
    pub board: Board,
    /// What a model said of nodes.
    pub notes: BTreeMap<String, NodeNote>,
    /// Context messages handed out.
    pub contexts: BTreeMap<u32, String>,
    /// Texts that this session is known to point at.
    pub used: BTreeSet<(String, RefKind)>,
    /// Measured messages.
    pub gauge: Gauge,
    /// Messages of the gauge's last list whose results and turns are stored.
    pub caught_up: usize,
    /// Lines that the mirror file holds; `None` before it was looked at, [`MUST_REWRITE`] if that is not known.
    pub mirrored: Option<u64>,
}

/// The sessions in memory, the newest last.
#[derive(Debug, Default)]
pub struct Sessions {
    open: Vec<(SessionId, Session)>,
    /// Prompts that no tool call followed yet. They are not rows: `before-prompt-build` writes
    /// nothing, and `assemble` finds a lost one in its list.
    prompts: Vec<(Scope, String)>,
    /// Sessions whose files could not be written after a commit.
    pub behind: BTreeSet<SessionId>,
    /// Why files were refused, for people; the engine logs it.
    pub refusals: Vec<String>,
}

impl Sessions {
    /// Returns a session, loading it from its rows if needed.
    pub fn get(&mut self, db: &Connection, id: SessionId) -> Result<&mut Session> {
        let session = match self.open.iter().position(|(known, _)| *known == id) {
            Some(at) => self.open.remove(at).1,
            None => load(db, id)?,
        };
        if self.open.len() >= SESSIONS_MAX {
            self.open.remove(0);
        }
        self.open.push((id, session));
        Ok(&mut self.open.last_mut().expect("pushed above").1)
    }

    /// Keeps a user's prompt until the next tool call of its session.
    pub fn note_prompt(&mut self, scope: &Scope, prompt: &str) {
        self.prompts.retain(|(known, _)| known != scope);
        if self.prompts.len() >= SESSIONS_MAX {
            self.prompts.remove(0);
        }
        self.prompts.push((scope.clone(), prompt.to_owned()));
    }

    /// Returns the prompt that waits in a session, once.
    pub fn take_prompt(&mut self, scope: &Scope) -> Option<String> {
        let at = self.prompts.iter().position(|(known, _)| known == scope)?;
        Some(self.prompts.remove(at).1)
    }

    /// Forgets what is in memory of a session; the next use loads its rows.
    pub fn drop_cached(&mut self, id: SessionId) {
        self.open.retain(|(known, _)| *known != id);
    }

    /// Forgets everything in memory, also what users have said that no task has taken up yet.
    pub fn clear(&mut self) {
        self.open.clear();
        self.prompts.clear();
    }
}

fn load(db: &Connection, id: SessionId) -> Result<Session> {
    Ok(Session {
        ledger: rows::ledger(db, id)?,
        board: rows::board(db, id)?,
        notes: rows::notes(db, id)?,
        contexts: rows::contexts(db, id)?,
        ..Session::default()
    })
}

/// A text about to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRef<'a> {
    /// Its path, which follows from its content.
    pub path: &'a str,
    /// What it is.
    pub kind: RefKind,
    /// The tool, if there is one.
    pub tool: &'a str,
    /// The call, if there is one.
    pub call_id: &'a str,
    /// The text.
    pub content: &'a str,
}

impl<'a> From<&'a NeededRef> for NewRef<'a> {
    fn from(needed: &'a NeededRef) -> Self {
        Self { path: &needed.path, kind: needed.kind, tool: "", call_id: &needed.call_id, content: &needed.content }
    }
}

/// More new texts at once than this wait in their rows for their files: a sync a file would make a host wait that hands
/// over a long session, and one commit makes them all durable.
const FILES_AT_ONCE: usize = 4;

/// Makes the `texts` that are not stored yet ready to be stored: a few as files, which are durable on return, many in
/// the rows to insert, which this returns. Two contents with one name are refused with `conflict` and nothing is
/// replaced.
pub fn store_texts(db: &Connection, disk: &dyn Disk, calendar: &Calendar, texts: &[NewRef<'_>], at: u64) -> Result<Vec<StoredRef>> {
    let mut fresh: BTreeMap<&str, (&NewRef<'_>, String)> = BTreeMap::new();
    for text in texts {
        if fresh.contains_key(text.path) {
            continue;
        }
        let sha256 = sha256_hex(text.content);
        match rows::stored_ref(db, text.path)? {
            Some(known) if known.sha256 != sha256 => {
                return Err(Failure::new(FailureCode::Conflict, format!("{} holds another content; the result was not offloaded", text.path)));
            }
            Some(_) => {}
            None => {
                fresh.insert(text.path, (text, sha256));
            }
        }
    }
    let in_rows = fresh.len() > FILES_AT_ONCE;
    if !in_rows && !fresh.is_empty() {
        refs::make_dir(disk)?;
    }
    let timestamp = calendar.iso(at);
    let mut stored: Vec<StoredRef> = Vec::with_capacity(fresh.len());
    for (path, (text, sha256)) in fresh {
        let header = RefHeader { title: text.kind.title(), tool: text.tool, call_id: text.call_id, timestamp: &timestamp };
        let disk_bytes = if in_rows { 0 } else { refs::write(disk, path, &header, text.content)? };
        let content = in_rows.then(|| text.content.to_owned());
        stored.push(StoredRef { path: path.to_owned(), sha256, bytes: text.content.len() as u64, disk_bytes, content });
    }
    if !in_rows && !stored.is_empty() {
        refs::sync_names(disk)?;
    }
    Ok(stored)
}
