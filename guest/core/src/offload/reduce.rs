//! `hooks.assemble`: makes sure that everything is stored which the reduced list points at.

use super::assemble::{Language, Measured, NeededRef, NoList, Policy, RefKind, Story, assemble, context, context_tokens};
use super::intake::{Desk, Incoming, Step, ensure_session, filtered, take};
use super::ledger::Entry;
use super::message_shape::Role;
use super::rows;
use super::session::{NewRef, store_texts};
use super::token_estimate::Calibration;
use crate::contract::{AssembleRequest, Assembled, Failure, FailureCode, Result};
use crate::l0::SessionId;
use crate::settings::Offload;
use crate::store::Store;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Bytes of one message list.
const LIST_MAX_BYTES: usize = 256 << 20;
/// The context message is at most this long: a canvas below 4,000 characters, and names.
const CONTEXT_MAX_CHARS: usize = 6_500;
/// A token of the context message has at least this many characters.
const CONTEXT_CHARS_A_TOKEN: u64 = 3;
/// Calibration moves in steps of this many thousandths, so that budgets do not tremble.
const CALIBRATION_STEP_MILLI: u64 = 50;

/// Returns the list reduced under the window.
pub fn reduce(desk: &mut Desk<'_>, settings: &Offload, request: &AssembleRequest) -> Result<Assembled> {
    check_bytes(request.messages_json.len())?;
    let calibration = rows::calibration(desk.store.db(), &request.model)?;
    let id = ensure_session(desk.store, &request.scope, request.at)?;
    let session = desk.sessions.get(desk.store.db(), id)?;
    let (messages, same) = session.gauge.measure_list(&request.messages_json).map_err(|problem| {
        Failure::invalid(match problem {
            NoList::NoArray => "messages-json is not a JSON array of messages",
            NoList::NoJson => "messages-json holds a message that is not JSON",
        })
    })?;
    session.caught_up = session.caught_up.min(same);
    if settings.enabled {
        catch_up(desk, id, request, &messages)?;
    }
    let policy = policy(settings, request, calibration);
    let language = Language::of(messages.iter().rev().find(|message| message.view.role == Role::User).map_or("", |message| &message.view.text));
    let session = desk.sessions.get(desk.store.db(), id)?;
    let room = usize::try_from(policy.share(policy.canvas_ratio) * CONTEXT_CHARS_A_TOKEN).unwrap_or(CONTEXT_MAX_CHARS).min(CONTEXT_MAX_CHARS);
    let mut fresh: BTreeMap<u32, String> = BTreeMap::new();
    let mut freeze = |entries: &[Entry], below_tokens: u64| {
        let Some(newest) = entries.last() else { return String::new() };
        if let Some(known) = session.contexts.get(&newest.ordinal)
            && context_tokens(known) < below_tokens
        {
            return known.clone();
        }
        let story = Story { tasks: &session.board.tasks, current: session.board.current, notes: &session.notes, language };
        let text = context(story, entries, room, below_tokens);
        fresh.insert(newest.ordinal, text.clone());
        text
    };
    let reduced = if settings.enabled { assemble(&messages, &session.ledger, &policy, &mut freeze) } else { super::assemble::untouched(&messages, &policy) };
    let missing: Vec<Rc<NeededRef>> = reduced.needs.iter().filter(|need| !session.used.contains(&(need.path.clone(), need.kind))).cloned().collect();
    let shown: BTreeMap<u32, String> = reduced
        .needs
        .iter()
        .filter(|need| need.kind == RefKind::Result)
        .filter_map(|need| session.ledger.find_ref(&need.call_id, &need.path))
        .filter(|entry| entry.shown.is_none())
        .map(|entry| (entry.ordinal, entry.summary.clone()))
        .collect();
    if !missing.is_empty() || !fresh.is_empty() || !shown.is_empty() {
        secure(desk, id, &Handed { missing, fresh, shown }, request.at)?;
    }
    let count = |tokens: u64| u32::try_from(calibration.apply(tokens)).unwrap_or(u32::MAX);
    Ok(Assembled {
        messages_json: join(&reduced.messages),
        tokens_before: count(reduced.tokens_before),
        tokens_after: count(reduced.tokens_after),
        mode: reduced.mode.word().to_owned(),
        reason: reduced.reason,
    })
}

fn check_bytes(bytes: usize) -> Result<()> {
    if bytes > LIST_MAX_BYTES {
        return Err(Failure::new(FailureCode::TooLarge, format!("messages-json has {bytes} bytes, the limit is {LIST_MAX_BYTES}")));
    }
    Ok(())
}

/// `hooks.report-usage`: learns how a model counts.
pub fn report_usage(store: &mut Store, model: &str, estimated_tokens: u32, reported_tokens: u32) -> Result<()> {
    let mut calibration = rows::calibration(store.db(), model)?;
    // The host got its estimate with the factor of that time; what is learned is the raw one.
    let raw = u64::from(estimated_tokens) * 1_000_000 / calibration.apply(1_000_000).max(1);
    calibration.report(u64::from(reported_tokens), raw);
    store.write(|tx| rows::store_calibration(tx, model, calibration))
}

/// Stores what the list holds and nobody told: user turns and results of hosts without the hooks. What an earlier list
/// began with too was looked at then.
fn catch_up(desk: &mut Desk<'_>, id: SessionId, request: &AssembleRequest, messages: &[Rc<Measured>]) -> Result<()> {
    let session = desk.sessions.get(desk.store.db(), id)?;
    let from = session.caught_up;
    let is_known = |message: &Measured| {
        message.view.results.iter().zip(&message.prints).any(|(result, print)| session.ledger.find(&result.call_id, result.text.len() as u64, *print).is_some())
    };
    let newest_known = messages[from..].iter().rposition(|message| is_known(message));
    let turns_from = newest_known.map_or(from, |at| from + at + 1);
    let mut calls: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    let mut steps: Vec<Step<'_>> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        calls.extend(message.view.calls.iter().map(|call| (call.id.as_str(), (call.name.as_str(), call.arguments.as_str()))));
        if at < from {
            continue;
        }
        if message.view.role == Role::User && at >= turns_from && !super::assemble::is_context(message) {
            steps.push(Step::Said(&message.view.text));
        }
        for (result, print) in message.view.results.iter().zip(&message.prints) {
            let is_short = result.text.starts_with(super::assemble::PLACEHOLDER_HEAD);
            if !result.replaceable || is_short || session.ledger.find(&result.call_id, result.text.len() as u64, *print).is_some() {
                continue;
            }
            let Some(&(tool, arguments)) = calls.get(result.call_id.as_str()) else { continue };
            let incoming = Incoming { call_id: &result.call_id, tool, arguments, output: &result.text, is_error: result.is_error };
            if filtered(&incoming).is_none() {
                steps.push(Step::Returned(incoming));
            }
        }
    }
    if !steps.is_empty() {
        take(desk, id, &request.scope, &steps, request.at)?;
    }
    desk.sessions.get(desk.store.db(), id)?.caught_up = messages.len();
    Ok(())
}

/// What a list hands out for the first time.
struct Handed {
    missing: Vec<Rc<NeededRef>>,
    fresh: BTreeMap<u32, String>,
    shown: BTreeMap<u32, String>,
}

/// Makes texts durable, then notes that the session points at them.
fn secure(desk: &mut Desk<'_>, id: SessionId, handed: &Handed, at: u64) -> Result<()> {
    let new: Vec<NewRef<'_>> = handed.missing.iter().map(|need| NewRef::from(need.as_ref())).collect();
    let stored = store_texts(desk.store.db(), desk.store.disk(), desk.calendar, &new, at)?;
    desk.store.write(|tx| {
        for text in &stored {
            rows::insert_ref(tx, text, at)?;
        }
        for text in &new {
            rows::use_ref(tx, id, text.path, text.kind, text.call_id, at)?;
        }
        for (covered, text) in &handed.fresh {
            rows::store_context(tx, id, *covered, text, at)?;
        }
        for (ordinal, summary) in &handed.shown {
            rows::freeze_summary(tx, id, *ordinal, summary)?;
        }
        Ok(())
    })?;
    let session = desk.sessions.get(desk.store.db(), id)?;
    session.used.extend(handed.missing.iter().map(|need| (need.path.clone(), need.kind)));
    session.contexts.extend(handed.fresh.iter().map(|(covered, text)| (*covered, text.clone())));
    for entry in session.ledger.entries_mut() {
        if let Some(summary) = handed.shown.get(&entry.ordinal) {
            entry.shown = Some(summary.clone());
        }
    }
    Ok(())
}

fn policy(settings: &Offload, request: &AssembleRequest, calibration: Calibration) -> Policy {
    let window = if request.window_tokens == 0 { settings.default_context_window } else { request.window_tokens };
    let unit = 1_000_000;
    let milli = calibration.apply(unit) / 1_000;
    let factor = (milli + CALIBRATION_STEP_MILLI / 2) / CALIBRATION_STEP_MILLI * CALIBRATION_STEP_MILLI;
    let estimated = |real: u32| u64::from(real) * 1_000 / factor.max(CALIBRATION_STEP_MILLI);
    let mut policy = Policy::for_window(estimated(window), estimated(request.overhead_tokens));
    policy.mild_ratio = settings.mild_offload_ratio;
    policy.aggressive_ratio = settings.aggressive_compress_ratio;
    policy.emergency_ratio = settings.emergency_compress_ratio;
    policy.emergency_target_ratio = settings.emergency_target_ratio;
    policy.canvas_ratio = settings.mmd_max_token_ratio;
    policy
}

fn join(messages: &[String]) -> String {
    let mut text = String::with_capacity(messages.iter().map(|message| message.len() + 1).sum::<usize>() + 2);
    text.push('[');
    for (at, message) in messages.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(message);
    }
    text.push(']');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_over_the_limit_is_too_large_and_no_malformed_argument() {
        assert_eq!(check_bytes(LIST_MAX_BYTES), Ok(()));
        let refused = check_bytes(LIST_MAX_BYTES + 1).expect_err("one byte too many");
        assert_eq!(refused.code, FailureCode::TooLarge);
        assert!(refused.message.contains("268435456"), "{refused}");
    }
}
