//! Messages that stand or fall together: a turn's calls with all of their results.

use super::brief::Measured;
use crate::offload::message_shape::{Role, Shape};
use std::collections::BTreeSet;
use std::rc::Rc;

/// What a group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKind {
    /// Calls with every result: may be shortened, may go.
    Turn,
    /// Words of the assistant alone: may be shortened.
    Said,
    /// Words of the user or the system, and what is not understood: stays.
    Kept,
    /// Calls without results yet, or results without calls: stays.
    Unpaired,
}

/// A run of messages `first..=last`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its first message.
    pub first: usize,
    /// Its last message.
    pub last: usize,
    /// What it is.
    pub kind: GroupKind,
    /// Tokens of its messages as they are.
    pub tokens: u64,
}

/// Returns the groups of `messages`, in order and without gaps.
pub fn groups(messages: &[Rc<Measured>]) -> Vec<Group> {
    let mut found: Vec<Group> = Vec::new();
    let mut at = 0;
    while at < messages.len() {
        let first = at;
        let view = &messages[at].view;
        let mut waiting: BTreeSet<&str> = view.calls.iter().map(|call| call.id.as_str()).collect();
        at += 1;
        // A Responses reasoning item belongs to the item behind it.
        while at < messages.len() && is_reasoning_item(&messages[at - 1]) && messages[at].view.role == Role::Assistant {
            waiting.extend(messages[at].view.calls.iter().map(|call| call.id.as_str()));
            at += 1;
        }
        let kind = match view.role {
            Role::Assistant if waiting.is_empty() => GroupKind::Said,
            Role::Assistant => {
                while at < messages.len() && !waiting.is_empty() {
                    let next = &messages[at].view;
                    let joins = match next.role {
                        Role::Tool => next.results.iter().all(|result| waiting.contains(result.call_id.as_str())),
                        // Responses lists parallel calls as items of their own.
                        Role::Assistant => !next.calls.is_empty() && next.text.is_empty(),
                        _ => false,
                    };
                    if !joins {
                        break;
                    }
                    for result in &next.results {
                        waiting.remove(result.call_id.as_str());
                    }
                    waiting.extend(next.calls.iter().map(|call| call.id.as_str()));
                    at += 1;
                }
                if waiting.is_empty() { GroupKind::Turn } else { GroupKind::Unpaired }
            }
            Role::Tool => GroupKind::Unpaired,
            // A user message that carries results beside words closes the turn before it.
            Role::User if !view.results.is_empty() => GroupKind::Unpaired,
            _ => GroupKind::Kept,
        };
        let tokens = messages[first..at].iter().map(|member| member.tokens).sum();
        found.push(Group { first, last: at - 1, kind, tokens });
    }
    found
}

fn is_reasoning_item(message: &Measured) -> bool {
    let view = &message.view;
    view.role == Role::Assistant && view.shape == Shape::OpenAiResponses && view.calls.is_empty() && view.text.is_empty()
}
