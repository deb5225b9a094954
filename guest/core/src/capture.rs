//! Capture: from the host's message list to rows, exactly once.
//!
//! A message is the host's id where there is one, else its content and which of the equal messages
//! of the session it is. A row stored by content takes the id of a later delivery that has one, so
//! that hosts may mix the two.

use crate::contract::{CaptureReport, EndEvent, Failure, FailureCode, Result};
use crate::l0::{self, ContentDigest, NewMessage};
use crate::store::failure;
use rusqlite::{Transaction, params};
use std::collections::BTreeMap;

/// Messages that one event may carry.
pub const MAX_MESSAGES: usize = 100_000;

/// Bytes of one message's content.
pub const MAX_CONTENT: usize = 16 << 20;

/// Stores the messages of `event` that are not stored yet.
pub fn capture(tx: &Transaction<'_>, event: &EndEvent) -> Result<CaptureReport> {
    check_limits(event)?;
    let scope = l0::scope(tx, &event.scope)?;
    let session = l0::session(tx, scope, &event.scope.session, event.at)?;
    let mut report = CaptureReport::default();
    // Which of the equal messages of this list comes next, by content.
    let mut seen: BTreeMap<ContentDigest, u32> = BTreeMap::new();
    for message in &event.messages {
        let text = message.content.as_str();
        let digest = l0::digest(&message.role, text);
        let in_list = seen.entry(digest).or_insert(0);
        let place = *in_list;
        *in_list += 1;
        let stored = l0::occurrences(tx, session, &digest)?;
        let occurrence = match &message.id {
            Some(id) if l0::has_host_id(tx, session, id)? => {
                report.known += 1;
                continue;
            }
            Some(id) if adopt(tx, session, &digest, id)? => {
                report.known += 1;
                continue;
            }
            Some(_) => stored,
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
            text,
            said_at: message.said_at.unwrap_or(event.at),
            recorded_at: event.at,
            worth: true,
        };
        let (_, uid) = l0::insert(tx, scope, session, &new)?;
        report.stored.push(uid);
    }
    Ok(report)
}

fn check_limits(event: &EndEvent) -> Result<()> {
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
