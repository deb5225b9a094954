//! English statements.

use super::Statement;
use crate::l1::atom::Kind;

/// Returns the sentences of a text.
pub fn sentences(text: &str) -> Vec<String> {
    text.split_inclusive(['.', '!', '?', '\n']).map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// Returns what a sentence plainly states.
pub fn read(sentence: &str) -> Option<Statement> {
    if sentence.ends_with('?') {
        return None;
    }
    let body = sentence.trim_end_matches(['.', '!']);
    for (opening, text, attribute) in [
        ("I live in ", "The user lives in ", Some("home")),
        ("I moved to ", "The user moved to ", Some("home")),
        ("My name is ", "The user's name is ", Some("name")),
        ("I like ", "The user likes ", None),
        ("I love ", "The user loves ", None),
        ("I prefer ", "The user prefers ", None),
        ("I work at ", "The user works at ", Some("employer")),
    ] {
        if let Some(rest) = body.strip_prefix(opening) {
            return Some(Statement { kind: Kind::Persona, text: format!("{text}{rest}."), priority: 70, attribute: attribute.map(str::to_owned), event: None });
        }
    }
    None
}
