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
    /// Lines that the mirror file holds; `None` before it was looked at.
    pub mirrored: Option<u64>,
}

/// The sessions in memory, the newest last.
#[derive(Debug, Default)]
pub struct Sessions {
    open: Vec<(SessionId, Session)>,
    /// Prompts that no tool call followed yet. They are not rows: `before-prompt-build` writes
    /// nothing, and `assemble` finds a lost one in its list.
    prompts: Vec<(Scope, String)>,
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

    /// Forgets everything in memory.
    pub fn clear(&mut self) {
        self.open.clear();
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

/// Writes the files of `texts` that are not stored yet and makes them durable. Returns the rows to
/// insert. Two contents with one name are refused with `conflict` and nothing is replaced.
pub fn store_texts(db: &Connection, disk: &dyn Disk, calendar: &Calendar, texts: &[NewRef<'_>], at: u64) -> Result<Vec<StoredRef>> {
    let mut stored: Vec<StoredRef> = Vec::new();
    for text in texts {
        if stored.iter().any(|other| other.path == text.path) {
            continue;
        }
        let sha256 = sha256_hex(text.content);
        if let Some(known) = rows::stored_ref(db, text.path)? {
            if known.sha256 != sha256 {
                return Err(Failure::new(FailureCode::Conflict, format!("{} holds another content; the result was not offloaded", text.path)));
            }
            continue;
        }
        if stored.is_empty() {
            refs::make_dir(disk)?;
        }
        let timestamp = calendar.iso(at);
        let header = RefHeader { title: text.kind.title(), tool: text.tool, call_id: text.call_id, timestamp: &timestamp };
        let disk_bytes = refs::write(disk, text.path, &header, text.content)?;
        stored.push(StoredRef { path: text.path.to_owned(), sha256, bytes: text.content.len() as u64, disk_bytes });
    }
    if !stored.is_empty() {
        refs::sync_names(disk)?;
    }
    Ok(stored)
}
