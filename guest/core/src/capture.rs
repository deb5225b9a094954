//! Capture: from the host's message list to rows, exactly once.
//!
//! A message is the host's id where there is one, else its content and which of the equal messages
//! of the session it is. A row stored by content takes the id of a later delivery that has one, as a
//! forgotten one does, so that hosts may mix the two.

pub mod clean;
pub mod injected;
pub mod noise;
pub mod parts;

use crate::contract::{CaptureReport, EndEvent, Failure, FailureCode, Instant, MAX_INSTANT, Message, Result, check_time};
use crate::l0::{self, ContentDigest, NewMessage};
use crate::settings;
use crate::store::failure;
use rusqlite::{Transaction, params};
use std::collections::BTreeMap;

/// Messages that one event may carry.
pub const MAX_MESSAGES: usize = 100_000;

/// Bytes of one message's content.
pub const MAX_CONTENT: usize = 16 << 20;

/// Stores the messages of `event` that are not stored yet, cleaned, and counts what is not kept.
pub fn capture(tx: &Transaction<'_>, settings: &settings::Capture, event: &EndEvent) -> Result<CaptureReport> {
    check_limits(event)?;
    let mut drops = BTreeMap::new();
    let mut report = CaptureReport::default();
    if !settings.enabled {
        // Said by the setting, not by the message: nothing is written, not even the count.
        report.dropped = vec![("disabled".into(), u32::try_from(event.messages.len()).unwrap_or(u32::MAX))];
        return Ok(report);
    }
    let scope = l0::scope(tx, &event.scope)?;
    let session = l0::session(tx, scope, &event.scope.session, event.at)?;
    let session_reason = noise::session_reason(&event.scope.session, &event.scope.agent, &settings.exclude_agents);
    // Which of the equal messages of this list comes next, by content.
    let mut seen: BTreeMap<ContentDigest, u32> = BTreeMap::new();
    for message in &event.messages {
        let text = said(message);
        let digest = l0::digest(&message.role, &text);
        let in_list = seen.entry(digest).or_insert(0);
        let place = *in_list;
        *in_list += 1;
        if let Some(reason) = session_reason.or_else(|| noise::drop_reason(&message.role, &text)) {
            if count_drop(tx, session, &digest, place, reason, event.at)? {
                *drops.entry(reason).or_insert(0) += 1;
            } else {
                report.known += 1;
            }
            continue;
        }
        let stored = l0::occurrences(tx, session, &digest)?;
        let occurrence = match &message.id {
            Some(id) if l0::has_host_id(tx, session, id)? => {
                report.known += 1;
                continue;
            }
            Some(id) if l0::is_forgotten_host_id(tx, session, id)? => {
                *drops.entry("forgotten").or_insert(0) += 1;
                continue;
            }
            Some(id) if adopt(tx, session, &digest, id)? => {
                report.known += 1;
                continue;
            }
            Some(id) if l0::claim_forgotten(tx, session, &digest, id, event.at)? => {
                *drops.entry("forgotten").or_insert(0) += 1;
                continue;
            }
            Some(_) => next_occurrence(tx, session, &digest, stored)?,
            None if l0::is_forgotten(tx, session, &digest, place)? => {
                *drops.entry("forgotten").or_insert(0) += 1;
                continue;
            }
            None if place < stored => {
                report.known += 1;
                continue;
            }
            None => place,
        };
        let new = NewMessage {
            host_id: message.id.as_deref(),
            digest,
            occurrence,
            role: &message.role,
            speaker: message.speaker.as_deref(),
            text: &text,
            // A transcript's time that is none costs no message.
            said_at: message.said_at.filter(|at| *at <= MAX_INSTANT).unwrap_or(event.at),
            recorded_at: event.at,
            worth: noise::is_worth_distilling(&text),
        };
        let (_, uid) = l0::insert(tx, scope, session, &new)?;
        report.stored.push(uid);
    }
    report.dropped = drops.into_iter().map(|(reason, count)| (reason.to_owned(), count)).collect();
    Ok(report)
}

/// Returns the first place from `stored` on that no forgotten message had.
fn next_occurrence(tx: &Transaction<'_>, session: l0::SessionId, digest: &ContentDigest, stored: u32) -> Result<u32> {
    let mut occurrence = stored;
    // Ends because the forgotten are finitely many.
    while l0::is_forgotten(tx, session, digest, occurrence)? {
        occurrence += 1;
    }
    Ok(occurrence)
}

/// Returns the cleaned text of a message.
fn said(message: &Message) -> String {
    if message.structured { clean::clean(&parts::text(&message.content)) } else { clean::clean(&message.content) }
}

/// Notes that a message was not kept; returns false if that was known.
fn count_drop(tx: &Transaction<'_>, session: l0::SessionId, digest: &ContentDigest, occurrence: u32, reason: &str, at: Instant) -> Result<bool> {
    tx.prepare_cached("INSERT INTO drops (session, digest, occurrence, reason, at) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING")
        .and_then(|mut insert| insert.execute(params![session.0, digest, occurrence, reason, at as i64]))
        .map(|rows| rows > 0)
        .map_err(failure)
}

fn check_limits(event: &EndEvent) -> Result<()> {
    check_time(event.at)?;
    if event.messages.len() > MAX_MESSAGES {
        return Err(Failure::new(
            FailureCode::TooLarge,
            format!("{} messages in one event, the limit is {MAX_MESSAGES}; deliver them in parts", event.messages.len()),
        ));
    }
    for (index, message) in event.messages.iter().enumerate() {
        if message.content.len() > MAX_CONTENT {
            return Err(Failure::new(FailureCode::TooLarge, format!("message {index} has {} bytes, the limit is {MAX_CONTENT}", message.content.len())));
        }
    }
    Ok(())
}

/// Gives the host's id to the oldest equal row that was stored by content; returns whether one was.
fn adopt(tx: &Transaction<'_>, session: l0::SessionId, digest: &ContentDigest, id: &str) -> Result<bool> {
    tx.prepare_cached(
        "UPDATE messages SET host_id = ?3 WHERE id =
           (SELECT id FROM messages WHERE session = ?1 AND digest = ?2 AND host_id IS NULL ORDER BY occurrence LIMIT 1)",
    )
    .and_then(|mut update| update.execute(params![session.0, digest, id]))
    .map(|rows| rows > 0)
    .map_err(failure)
}
