//! Messages of other sessions, as they were said: what no atom has taken up yet, or has put into other words.

use super::{MIN_LINE, budget, escape, excerpt, trusted_mix};
use crate::calendar::Calendar;
use crate::contract::{Injection, Result};
use crate::index::Index;
use crate::l0::{self, Message, ScopeId};
use crate::l1::atom::{self, AtomId};
use crate::recall::{self, Query, relevance};
use crate::settings::Settings;
use crate::text::clauses::clauses;
use rusqlite::Connection;
use std::collections::BTreeSet;

/// Longest message that is looked at for whether it only asks, in bytes.
const QUESTIONS_MAX_BYTES: usize = 4096;

/// Messages that are looked at for each one that is wanted: some are left out for who said them.
const LOOKED_AT: usize = 4;

/// The line above the messages.
const HEAD: &str = "Said in other sessions, word for word:";

/// Returns the lines of messages that belong to a prompt, best first, under their own budgets.
///
/// Never a message of the prompt's own session, which the prompt may hold already; nor one that an atom among `shown` rests
/// on; nor a mere question, which was asked again now and answers nothing.
#[allow(clippy::too_many_arguments, reason = "what a prompt is built from")]
pub(super) fn lines(
    db: &Connection,
    index: &Index,
    scope: ScopeId,
    settings: &Settings,
    calendar: &Calendar,
    session: &str,
    query: &Query<'_>,
    shown: &[AtomId],
    injection: &mut Injection,
) -> Result<String> {
    let limit = settings.recall.max_messages as usize;
    if limit == 0 {
        return Ok(String::new());
    }
    let present = l0::find_session(db, scope, session)?;
    let mut told = BTreeSet::new();
    for atom in shown {
        told.extend(atom::evidence(db, *atom)?.into_iter().map(|part| part.message));
    }
    let fits = |message: &Message| {
        Some(message.session) != present && matches!(message.role.as_str(), "user" | "assistant") && !told.contains(&message.id.0) && !only_asks(&message.text)
    };
    let found = recall::messages(db, index, scope, query, limit * LOOKED_AT, fits)?;
    let messages = trusted_mix(found.into_iter().map(|found| found.item), limit, |message| message.role == "user");
    let clues = relevance::clues(index.embedder(), query.text);
    let mut lines = String::new();
    let mut used = 0;
    for message in &messages {
        let room = budget(settings.recall.max_chars_per_message).min(budget(settings.recall.max_total_message_chars).saturating_sub(used));
        if room < MIN_LINE && message.text.chars().count() > room {
            injection.dropped += 1;
            continue;
        }
        let passage = excerpt::excerpt(&message.text, room, &clues);
        injection.cut += u32::from(passage.is_cut);
        used += passage.text.chars().count();
        let speaker = message.speaker.as_deref().filter(|speaker| *speaker != message.role).map(|speaker| format!(", {}", escape(speaker)));
        lines.push_str(&format!(
            "- [{}] ({}{}, {}) \"{}\"\n",
            message.uid,
            escape(&message.role),
            speaker.unwrap_or_default(),
            calendar.day(message.said_at),
            escape(&passage.text)
        ));
        injection.recalled.push(message.uid.clone());
    }
    Ok(if lines.is_empty() { lines } else { format!("{HEAD}\n{lines}") })
}

/// Returns whether a message only asks: it says nothing that a prompt could use. What is longer than
/// [`QUESTIONS_MAX_BYTES`] says something.
fn only_asks(text: &str) -> bool {
    text.len() <= QUESTIONS_MAX_BYTES && clauses(text).iter().all(|clause| clause.question)
}
