//! The distiller without a model: what the user plainly states about themselves.
//!
//! It is precise rather than greedy. A sentence counts only if it begins with the statement; what is
//! asked, supposed, quoted, code, or about somebody else is left to a model.

pub mod english;

use super::Input;
use super::atom::{Evidence, Kind, NewAtom, Origin};
use super::extract;
use crate::contract::Instant;

/// Sentences of one message that are looked at.
const MAX_SENTENCES: usize = 200;

/// Longest sentence that can be a plain statement, in characters.
const MAX_SENTENCE: usize = 300;

/// What a rule reads in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// What it is about.
    pub kind: Kind,
    /// The fact, about a third person.
    pub text: String,
    /// The priority.
    pub priority: i32,
    /// What it gives a value to.
    pub attribute: Option<String>,
    /// When it happened: first and last instant.
    pub event: Option<(Instant, Instant)>,
}

/// Returns the atoms that the rules find in a batch, in the order of its messages.
pub fn distill(input: &Input) -> Vec<NewAtom> {
    let mut atoms: Vec<NewAtom> = Vec::new();
    for message in input.new.iter().filter(|message| message.role == "user") {
        let text = extract::without_code_blocks(&message.text);
        for sentence in english::sentences(&text).into_iter().take(MAX_SENTENCES) {
            if sentence.chars().count() > MAX_SENTENCE || atoms.len() >= input.max_atoms {
                continue;
            }
            let Some(statement) = english::read(&sentence) else { continue };
            atoms.push(NewAtom {
                kind: statement.kind,
                text: statement.text,
                priority: statement.priority,
                scene: String::new(),
                origin: Origin::Rules,
                attribute: statement.attribute,
                valid_from: message.said_at,
                event_start: statement.event.map(|event| event.0),
                event_end: statement.event.map(|event| event.1),
                evidence: vec![Evidence { message: message.id.0, quote: sentence }],
            });
        }
    }
    atoms
}
