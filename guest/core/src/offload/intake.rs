//! Tool results on their way in: the text first, then the entry, then the mirror.

use super::assemble::{ARGUMENT_MIN_CHARS, RefKind};
use super::canvas::Board;
use super::ledger::{Entry, fingerprint, read};
use super::mirror;
use super::model::{RESULT_VIEW_CHARS, view};
use super::refs::ref_path;
use super::rows;
use super::session::{NewRef, Sessions, store_texts};
use crate::calendar::Calendar;
use crate::contract::{Failure, FailureCode, Instant, Result, Scope, ToolEvent, ToolReceipt};
use crate::l0::{self, SessionId};
use crate::store::{Store, failure};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of one result (the contract's bound).
pub const RESULT_MAX_BYTES: usize = 64 << 20;
/// Only answers this short are looked at for being no result at all.
const NOTICE_MAX_BYTES: usize = 600;

/// What offload works with.
#[derive(Debug)]
pub struct Desk<'a> {
    /// Rows and files.
    pub store: &'a mut Store,
    /// Sessions in memory.
    pub sessions: &'a mut Sessions,
    /// Local time.
    pub calendar: &'a Calendar,
}

/// What happened in a session, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A user said something.
    Said(&'a str),
    /// A tool returned.
    Returned(Incoming<'a>),
}

/// A result that arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming<'a> {
    /// The host's id of the call.
    pub call_id: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// Its arguments as text.
    pub arguments: &'a str,
    /// The whole result.
    pub output: &'a str,
    /// The tool failed.
    pub is_error: bool,
}

/// Returns the row of a session that exists.
pub fn find_session(db: &Connection, scope: &Scope) -> Result<Option<SessionId>> {
    let Some(row) = l0::find_scope(db, scope)? else { return Ok(None) };
    let name = if scope.session.is_empty() { "default" } else { &scope.session };
    db.prepare_cached("SELECT id FROM sessions WHERE scope = ?1 AND name = ?2")
        .and_then(|mut query| query.query_row(params![row.0, name], |row| row.get(0)).optional())
        .map(|id| id.map(SessionId))
        .map_err(failure)
}

/// Returns the row of a session, making it if needed.
pub fn ensure_session(store: &mut Store, scope: &Scope, at: Instant) -> Result<SessionId> {
    if let Some(id) = find_session(store.db(), scope)? {
        return Ok(id);
    }
    store.write(|tx| {
        let row = l0::scope(tx, scope)?;
        l0::session(tx, row, &scope.session, at)
    })
}

/// `hooks.after-tool-call`.
pub fn after_tool_call(desk: &mut Desk<'_>, event: &ToolEvent) -> Result<ToolReceipt> {
    if event.output.len() > RESULT_MAX_BYTES {
        return Err(Failure::new(FailureCode::TooLarge, format!("the result has {} bytes, the limit is {RESULT_MAX_BYTES}", event.output.len())));
    }
    if event.tool_call_id.is_empty() {
        return Err(Failure::invalid("tool-call-id is empty; a result without its call cannot be found again"));
    }
    let incoming =
        Incoming { call_id: &event.tool_call_id, tool: &event.tool_name, arguments: &event.arguments_json, output: &event.output, is_error: event.is_error };
    if let Some(reason) = filtered(&incoming) {
        return Ok(ToolReceipt { filtered: reason.to_owned(), ..ToolReceipt::default() });
    }
    let id = ensure_session(desk.store, &event.scope, event.at)?;
    let prompt = desk.sessions.take_prompt(&event.scope);
    let steps: Vec<Step<'_>> = prompt.as_deref().map(Step::Said).into_iter().chain([Step::Returned(incoming)]).collect();
    let mut receipts = take(desk, id, &event.scope, &steps, event.at)?;
    Ok(receipts.pop().expect("one result in, one receipt out"))
}

/// Returns why a result is none: a heartbeat's, or a notice that the call waits for approval.
pub fn filtered(incoming: &Incoming<'_>) -> Option<&'static str> {
    let short = incoming.output.len() <= NOTICE_MAX_BYTES;
    let aimed_at_heartbeat =
        super::summary::command::command(incoming.tool, incoming.arguments).target.is_some_and(|target| target.rsplit('/').next() == Some("HEARTBEAT.md"));
    if aimed_at_heartbeat && short {
        return Some("heartbeat");
    }
    let said = incoming.output.trim();
    if short && (said.contains("\"status\":\"approval-pending\"") || said.contains("\"status\": \"approval-pending\"") || said == "approval-pending") {
        return Some("approval-pending");
    }
    None
}

/// Takes in what happened: places the calls on tasks by the words of users, and stores results that are not stored yet.
/// On return their texts and entries are durable, by one commit, whatever becomes of the files for people. Returns a
/// receipt a result.
pub fn take(desk: &mut Desk<'_>, id: SessionId, scope: &Scope, steps: &[Step<'_>], at: Instant) -> Result<Vec<ToolReceipt>> {
    let session = desk.sessions.get(desk.store.db(), id)?;
    let mut board: Board = session.board.clone();
    let mut entries: Vec<Entry> = Vec::new();
    let mut excerpts: Vec<String> = Vec::new();
    let mut receipts = Vec::with_capacity(steps.len());
    let mut texts: Vec<(String, RefKind, &Incoming<'_>, &str)> = Vec::new();
    let first = session.ledger.entries().len();
    let mut fresh: BTreeMap<(&str, u64), usize> = BTreeMap::new();
    for step in steps {
        let result = match step {
            Step::Said(text) => {
                board.user_turn(text, at as i64);
                continue;
            }
            Step::Returned(result) => result,
        };
        let result_print = fingerprint(result.output);
        let bytes = result.output.len() as u64;
        let known = session.ledger.find(result.call_id, bytes, result_print).or_else(|| fresh.get(&(result.call_id, result_print)).map(|at| &entries[*at]));
        if let Some(known) = known {
            receipts.push(ToolReceipt { entry: known.uid.clone(), result_ref: known.result_ref.clone(), duplicate: true, filtered: String::new() });
            continue;
        }
        let reading = read(result.tool, result.arguments, result.output, result.is_error);
        let result_ref = ref_path(result.output);
        let arguments_ref = (result.arguments.len() > ARGUMENT_MIN_CHARS).then(|| ref_path(result.arguments));
        texts.push((result_ref.clone(), RefKind::Result, result, result.output));
        if let Some(path) = &arguments_ref {
            texts.push((path.clone(), RefKind::Arguments, result, result.arguments));
        }
        let mut entry = Entry {
            ordinal: u32::try_from(first + entries.len()).map_err(|_| Failure::new(FailureCode::TooLarge, "the session has too many tool calls"))?,
            call_id: result.call_id.to_owned(),
            result_print,
            result_bytes: bytes,
            node_id: String::new(),
            placed_node: String::new(),
            uid: rows::entry_uid(id, result.call_id, result_print),
            tool: result.tool.to_owned(),
            at_ms: at as i64,
            call_line: reading.command.line(),
            intent: reading.command.intent,
            target: reading.command.target,
            result_ref,
            arguments_ref,
            summary: reading.summary,
            shown: None,
            digest: reading.digest,
            failed: reading.failed,
            score: reading.score,
            names_used: reading.names_used,
        };
        entry.node_id = board.place(&entry, at as i64).node_id;
        entry.placed_node = entry.node_id.clone();
        receipts.push(ToolReceipt { entry: entry.uid.clone(), result_ref: entry.result_ref.clone(), duplicate: false, filtered: String::new() });
        excerpts.push(view(result.output, RESULT_VIEW_CHARS));
        fresh.insert((result.call_id, result_print), entries.len());
        entries.push(entry);
    }
    if entries.is_empty() {
        if board != session.board {
            desk.store.write(|tx| rows::store_board(tx, id, &board, at))?;
            desk.sessions.get(desk.store.db(), id)?.board = board;
        }
        return Ok(receipts);
    }
    let new: Vec<NewRef<'_>> =
        texts.iter().map(|(path, kind, result, content)| NewRef { path, kind: *kind, tool: result.tool, call_id: result.call_id, content }).collect();
    // The texts are durable before the rows that name them: a crash leaves a file too many, never a
    // row too many.
    let stored = store_texts(desk.store.db(), desk.store.disk(), desk.calendar, &new, at)?;
    desk.store.write(|tx| {
        let row = l0::scope(tx, scope)?;
        l0::session(tx, row, &scope.session, at)?;
        for text in &stored {
            rows::insert_ref(tx, text, at)?;
        }
        for text in &new {
            rows::use_ref(tx, id, text.path, text.kind, text.call_id, at)?;
        }
        for (entry, excerpt) in entries.iter().zip(&excerpts) {
            rows::insert_entry(tx, id, entry, excerpt)?;
        }
        rows::store_board(tx, id, &board, at)
    })?;
    let session = desk.sessions.get(desk.store.db(), id)?;
    let newest = session.ledger.entries().last().map_or("", |entry| entry.node_id.as_str());
    let drawn: BTreeSet<u32> = entries.iter().filter(|entry| entry.node_id != newest).filter_map(Entry::task).collect();
    session.board = board;
    for text in &new {
        session.used.insert((text.path.to_owned(), text.kind));
    }
    for entry in entries {
        session.ledger.push(entry);
    }
    mirror::follow(desk, id, scope, first, &drawn);
    Ok(receipts)
}
