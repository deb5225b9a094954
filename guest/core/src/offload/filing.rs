//! Gives texts that wait in their rows a file each, a bounded number at a time.
//!
//! `assemble` stores many texts by one commit (`session::store_texts`). Their files follow here: written, synced, and only
//! then is the row emptied, so that a crash leaves a file too many and never a text too few.

use super::intake::Desk;
use super::refs::{self, RefHeader};
use crate::contract::{Instant, Result};
use crate::store::failure;
use rusqlite::{Connection, params};

/// Files that one tick writes; each is synced.
const FILES_A_TICK: u32 = 32;

struct Waiting {
    path: String,
    content: String,
    kind: String,
    call_id: String,
    tool: String,
    created_at: u64,
}

/// Writes files of texts that have none. Returns when to look again: now if more wait.
pub fn tick(desk: &mut Desk<'_>, now: Instant) -> Result<Option<Instant>> {
    let waiting = waiting(desk.store.db(), FILES_A_TICK)?;
    if waiting.is_empty() {
        return Ok(None);
    }
    let disk = desk.store.shared_disk();
    refs::make_dir(disk.as_ref())?;
    let mut written: Vec<(String, u64)> = Vec::with_capacity(waiting.len());
    for text in &waiting {
        let timestamp = desk.calendar.iso(text.created_at);
        let title = match text.kind.as_str() {
            "arguments" => "Tool Arguments",
            "reasoning" => "Reasoning",
            "said" => "Message",
            _ => "Tool Result",
        };
        let header = RefHeader { title, tool: &text.tool, call_id: &text.call_id, timestamp: &timestamp };
        written.push((text.path.clone(), refs::write(disk.as_ref(), &text.path, &header, &text.content)?));
    }
    refs::sync_names(disk.as_ref())?;
    desk.store.write(|tx| {
        let mut filed = tx.prepare_cached("UPDATE offload_refs SET content = NULL, disk_bytes = ?2 WHERE path = ?1").map_err(failure)?;
        for (path, bytes) in &written {
            filed.execute(params![path, bytes]).map_err(failure)?;
        }
        Ok(())
    })?;
    Ok((waiting.len() == FILES_A_TICK as usize).then_some(now))
}

fn waiting(db: &Connection, most: u32) -> Result<Vec<Waiting>> {
    db.prepare_cached(
        "SELECT refs.path, content, coalesce(min(kind), 'result'), coalesce(min(call_id), ''), created_at,
                coalesce((SELECT tool FROM offload_entries WHERE result_ref = refs.path ORDER BY id LIMIT 1), '')
           FROM offload_refs refs LEFT JOIN offload_uses ON offload_uses.path = refs.path
          WHERE content IS NOT NULL GROUP BY refs.path ORDER BY refs.path LIMIT ?1",
    )
    .and_then(|mut query| {
        query
            .query_map([most], |row| {
                Ok(Waiting { path: row.get(0)?, content: row.get(1)?, kind: row.get(2)?, call_id: row.get(3)?, created_at: row.get(4)?, tool: row.get(5)? })
            })?
            .collect()
    })
    .map_err(failure)
}
