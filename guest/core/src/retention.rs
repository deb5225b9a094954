//! Retention: messages and atoms that are older than the setting go, once a day, under guards.
//!
//! Pages stay: what they rest on is shown as expired. A message that a remaining atom rests on stays,
//! and so does one that still waits for L1. If the guards refuse, nothing goes and `status` says why.

use crate::calendar::Calendar;
use crate::contract::{Failure, Instant, Result};
use crate::engine::Engine;
use crate::forget;
use crate::l0::{self, SessionId};
use crate::projections::mirrors::{self, Layer};
use crate::settings::{self, Settings};
use crate::store::{Store, failure};
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde_json::{Value, json};

/// Rows that always stay, and the share that one cleanup may take, in percent (the reference system's guards).
const KEEP_MESSAGES: u64 = 50;
const KEEP_ATOMS: u64 = 20;
const MAX_SHARE_PERCENT: u64 = 80;

/// A day, in milliseconds. Days below this many need `allowAggressiveCleanup`.
const DAY_MS: u64 = 86_400_000;
const SAFE_DAYS: u32 = 3;

/// Keys in `space`: when the cleanup last looked, and what it did.
const LOOKED: &str = "retention-looked";
const LAST: &str = "retention-last";

/// Refuses settings that would remove what has just been said.
pub fn check(capture: &settings::Capture, calendar: &Calendar) -> Result<()> {
    let days = capture.l0l1_retention_days;
    if days > 0 && days < SAFE_DAYS && !capture.allow_aggressive_cleanup {
        return Err(Failure::invalid(format!("capture.l0l1RetentionDays: {days} needs capture.allowAggressiveCleanup")));
    }
    if calendar.next_time_of_day(&capture.clean_time, 0).is_none() {
        return Err(Failure::invalid(format!("capture.cleanTime: `{}` is no time of day like 03:00", capture.clean_time)));
    }
    Ok(())
}

impl Engine {
    /// Cleans up if it is time; returns when it is next.
    pub(crate) fn retain(&mut self, now: Instant) -> Result<Option<Instant>> {
        tick(&mut self.store, &self.settings, &self.calendar, now)
    }
}

fn tick(store: &mut Store, settings: &Settings, calendar: &Calendar, now: Instant) -> Result<Option<Instant>> {
    let capture = &settings.capture;
    if capture.l0l1_retention_days == 0 {
        return Ok(None);
    }
    let looked = number(store.db(), LOOKED)?;
    let due = looked.and_then(|looked| calendar.next_time_of_day(&capture.clean_time, looked));
    if let Some(due) = due
        && due > now
    {
        return Ok(Some(due));
    }
    // The first look only starts the days: a space that has just been opened is not cleaned at once.
    let run = looked.is_some();
    store.write(|tx| {
        if run {
            let summary = clean(tx, calendar, u64::from(capture.l0l1_retention_days), now)?;
            set(tx, LAST, &summary.to_string())?;
        }
        set(tx, LOOKED, &now.to_string())
    })?;
    if run {
        forget::checkpoint(store)?;
    }
    Ok(calendar.next_time_of_day(&capture.clean_time, now))
}

fn number(db: &Connection, key: &str) -> Result<Option<u64>> {
    let value: Option<String> = db
        .prepare_cached("SELECT value FROM space WHERE key = ?1")
        .and_then(|mut query| query.query_row([key], |row| row.get(0)).optional())
        .map_err(failure)?;
    Ok(value.and_then(|value| value.parse().ok()))
}

fn set(tx: &Transaction<'_>, key: &str, value: &str) -> Result<()> {
    tx.prepare_cached("INSERT INTO space (key, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value")
        .and_then(|mut upsert| upsert.execute(params![key, value]))
        .map(|_| ())
        .map_err(failure)
}

/// Returns what the last cleanup did, for `status`.
pub fn last(db: &Connection) -> Result<Value> {
    let value: Option<String> = db
        .prepare_cached("SELECT value FROM space WHERE key = ?1")
        .and_then(|mut query| query.query_row([LAST], |row| row.get(0)).optional())
        .map_err(failure)?;
    Ok(value.and_then(|value| serde_json::from_str(&value).ok()).unwrap_or(Value::Null))
}

// In this order: once the old atoms have gone, what evidence is left belongs to atoms that stay.
const OLD_ATOMS: &str = "SELECT id FROM atoms WHERE believed_from < ?1 AND pinned = 0 ORDER BY id";
const OLD_MESSAGES: &str = "SELECT id FROM messages WHERE recorded_at < ?1 AND (batch IS NOT NULL OR worth = 0)
    AND NOT EXISTS (SELECT 1 FROM evidence WHERE message = messages.id) ORDER BY id";

fn clean(tx: &Transaction<'_>, calendar: &Calendar, days: u64, now: Instant) -> Result<Value> {
    let cutoff = now.saturating_sub(days.max(1) * DAY_MS) as i64;
    let mut summary = json!({"at": now, "cutoff": cutoff});
    for (layer, sql, table, keep) in [("atoms", OLD_ATOMS, "atoms", KEEP_ATOMS), ("messages", OLD_MESSAGES, "messages", KEEP_MESSAGES)] {
        let old: Vec<i64> = tx.prepare(sql).and_then(|mut query| query.query_map([cutoff], |row| row.get(0))?.collect()).map_err(failure)?;
        let all: u64 = tx.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).map_err(failure)?;
        let old_count = old.len() as u64;
        let refused = if old_count == 0 {
            None
        } else if all - old_count < keep {
            Some(format!("fewer than {keep} {layer} would stay"))
        } else if old_count * 100 > all * MAX_SHARE_PERCENT {
            Some(format!("more than {MAX_SHARE_PERCENT} % of the {layer} would go"))
        } else {
            None
        };
        if let Some(reason) = refused {
            summary[layer] = json!({"removed": 0, "old": old_count, "refused": reason});
            continue;
        }
        for row in old {
            if layer == "atoms" { remove_atom(tx, calendar, row)? } else { remove_message(tx, calendar, row, now)? }
        }
        summary[layer] = json!({"removed": old_count});
    }
    // The ledger of what has gone has served its time too.
    let pruned = tx
        .execute(
            "UPDATE requests SET body = '', answer = NULL, reason = '', state = 'forgotten' WHERE state <> 'asked' AND asked_at < ?1 AND state <> 'forgotten'",
            [cutoff],
        )
        .map_err(failure)?;
    summary["requests"] = json!({"removed": pruned});
    forget::clamp_cursors(tx)?;
    Ok(summary)
}

fn remove_atom(tx: &Transaction<'_>, calendar: &Calendar, row: i64) -> Result<()> {
    let at: i64 = tx.query_row("SELECT believed_from FROM atoms WHERE id = ?1", [row], |row| row.get(0)).map_err(failure)?;
    mirrors::mark_days(tx, calendar, Layer::Atoms, [at as u64])?;
    tx.execute("DELETE FROM evidence WHERE atom = ?1", [row]).map_err(failure)?;
    tx.execute("DELETE FROM links WHERE newer = ?1 OR older = ?1", [row]).map_err(failure)?;
    tx.execute("DELETE FROM atoms WHERE id = ?1", [row]).map(|_| ()).map_err(failure)
}

fn remove_message(tx: &Transaction<'_>, calendar: &Calendar, row: i64, now: Instant) -> Result<()> {
    let (uid, session, host_id, at): (String, i64, Option<String>, i64) = tx
        .query_row("SELECT uid, session, host_id, recorded_at FROM messages WHERE id = ?1", [row], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .map_err(failure)?;
    mirrors::mark_days(tx, calendar, Layer::Messages, [at as u64])?;
    l0::note_forgotten(tx, SessionId(session), &uid, host_id.as_deref(), now)?;
    tx.execute("DELETE FROM evidence WHERE message = ?1", [row]).map_err(failure)?;
    tx.execute("DELETE FROM messages WHERE id = ?1", [row]).map(|_| ()).map_err(failure)
}
