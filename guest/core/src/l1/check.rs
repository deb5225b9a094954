//! The checks of a model's proposals: what the prompt asks for, code enforces.

use super::Input;
use super::answer::{Extracted, Proposal};
use super::atom::{Evidence, Kind, NewAtom, Origin};
use super::extract::label;
use crate::calendar::Calendar;
use crate::l0::Message;
use crate::text;
use std::collections::{BTreeMap, BTreeSet};

/// Longest atom, in characters.
pub const MAX_CONTENT: usize = 1000;

/// Longest name of a scene, in characters.
pub const MAX_SCENE: usize = 80;

/// Messages that one atom may rest on.
pub const MAX_SOURCES: usize = 10;

/// Shortest quote that shows anything, in characters; CJK says as much in two.
const MIN_QUOTE: usize = 4;

/// Share of a memory's telling words that must be in its sources where nothing is quoted.
const MIN_GROUNDING: f64 = 0.5;

/// Priority of a memory for which the model gave none (the reference system's figure).
const DEFAULT_PRIORITY: i64 = 50;

/// What came through the checks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checked {
    /// The atoms.
    pub atoms: Vec<NewAtom>,
    /// What was not taken, by reason.
    pub refused: Vec<(String, u32)>,
    /// The scene in which the batch ended.
    pub last_scene: Option<String>,
}

/// Checks all proposals of an answer.
pub fn check(input: &Input, extracted: Extracted) -> Checked {
    let mut refused: BTreeMap<&str, u32> = BTreeMap::new();
    if extracted.shapeless > 0 {
        refused.insert("no-memory", extracted.shapeless);
    }
    let mut checked = Checked::default();
    for proposal in extracted.proposals {
        if !proposal.scene.is_empty() {
            checked.last_scene = Some(cut(&proposal.scene, MAX_SCENE));
        }
        match one(input, &proposal) {
            Ok(_) if checked.atoms.len() >= input.max_atoms => *refused.entry("too-many").or_insert(0) += 1,
            Ok(atom) => checked.atoms.push(atom),
            Err(reason) => *refused.entry(reason).or_insert(0) += 1,
        }
    }
    checked.refused = refused.into_iter().map(|(reason, count)| (reason.to_owned(), count)).collect();
    checked
}

fn one(input: &Input, proposal: &Proposal) -> Result<NewAtom, &'static str> {
    let kind = Kind::parse(&proposal.kind).ok_or("unknown-type")?;
    let priority = proposal.priority.unwrap_or(DEFAULT_PRIORITY);
    let priority = match priority {
        -1 if kind == Kind::Instruction => -1,
        _ => i32::try_from(priority.clamp(0, 100)).expect("0 to 100 fits"),
    };
    if priority >= 0 && priority < kind.drop_line() {
        return Err("low-priority");
    }
    if proposal.content.chars().count() > MAX_CONTENT {
        return Err("too-long");
    }
    let sources = grounded(input, proposal)?;
    let origin = sources.iter().map(|(message, _)| Origin::of_role(&message.role)).max().expect("grounded sources are not empty");
    if kind != Kind::Episodic && !origin.is_the_users() {
        return Err("not-said-by-user");
    }
    let said_at = sources.iter().map(|(message, _)| message.said_at).max().expect("grounded sources are not empty");
    let event_start = Calendar::parse(&proposal.start);
    let event_end = Calendar::parse(&proposal.end).filter(|end| event_start.is_none_or(|start| start <= *end));
    Ok(NewAtom {
        kind,
        text: one_line(&proposal.content),
        priority,
        scene: cut(&proposal.scene, MAX_SCENE),
        origin,
        attribute: None,
        valid_from: said_at,
        event_start,
        event_end,
        evidence: sources.into_iter().map(|(message, quote)| Evidence { message: message.id.0, quote }).collect(),
    })
}

/// Returns the sources that exist and really hold what is quoted from them.
fn grounded<'a>(input: &'a Input, proposal: &Proposal) -> Result<Vec<(&'a Message, String)>, &'static str> {
    if proposal.sources.is_empty() {
        return Err("no-source");
    }
    let mut known = Vec::new();
    let mut unknown = 0;
    for (id, quote) in &proposal.sources {
        let found = input.new.iter().enumerate().find(|(index, message)| *id == label(*index) || *id == message.uid).map(|(_, message)| message);
        match found {
            Some(message) => known.push((message, quote.as_str())),
            None => unknown += 1,
        }
    }
    if known.is_empty() && unknown > 0 {
        return Err("unknown-source");
    }
    let mut grounded: Vec<(&Message, String)> = Vec::new();
    for (message, quote) in &known {
        let already = grounded.iter().any(|(other, _)| other.id == message.id);
        if !already && grounded.len() < MAX_SOURCES && is_telling(quote) && occurs(quote, &message.text) {
            grounded.push((message, quote.trim().to_owned()));
        }
    }
    if !grounded.is_empty() {
        return Ok(grounded);
    }
    // A quote that does not occur was made up; no quote at all is a weak model's way, and the words
    // themselves must show where they come from.
    if known.iter().any(|(_, quote)| is_telling(quote)) {
        return Err("quote-not-found");
    }
    let messages: Vec<&Message> = known.into_iter().map(|(message, _)| message).take(MAX_SOURCES).collect();
    if shares_words(&proposal.content, &messages) {
        return Ok(messages.into_iter().map(|message| (message, String::new())).collect());
    }
    Err("ungrounded")
}

fn is_telling(quote: &str) -> bool {
    let quote = quote.trim();
    quote.chars().count() >= MIN_QUOTE || quote.chars().filter(|c| text::is_ideograph(*c)).count() >= 2
}

/// Returns whether a quote occurs in a text, letter by letter but for case, blanks, kinds of quotation
/// marks, marks at its ends, and `…` where something was left out.
pub fn occurs(quote: &str, said: &str) -> bool {
    let said = plain(said);
    let quote = plain(quote).replace("...", "…");
    let mut from = 0;
    let mut parts = 0;
    for part in
        quote.split('…').map(|part| part.trim_matches(|c: char| c.is_whitespace() || "\"'.,;:!?。，；：！？".contains(c))).filter(|part| !part.is_empty())
    {
        let Some(at) = said[from..].find(part) else { return false };
        from += at + part.len();
        parts += 1;
    }
    parts > 0
}

fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut blank = false;
    for c in text.chars() {
        let c = match c {
            '\u{2018}' | '\u{2019}' | '`' => '\'',
            '\u{201c}' | '\u{201d}' | '「' | '」' | '『' | '』' => '"',
            '\u{a0}' => ' ',
            c => c,
        };
        if c.is_whitespace() {
            blank = true;
            continue;
        }
        if blank && !plain.is_empty() {
            plain.push(' ');
        }
        blank = false;
        plain.extend(c.to_lowercase());
    }
    plain
}

fn shares_words(content: &str, messages: &[&Message]) -> bool {
    let said: BTreeSet<String> = messages.iter().flat_map(|message| text::tokens(&message.text)).collect();
    let telling: Vec<String> = text::query_tokens(content).into_iter().filter(|token| token != "user" && token != "用户").collect();
    let found = telling.iter().filter(|token| said.contains(*token)).count();
    !telling.is_empty() && found as f64 >= telling.len() as f64 * MIN_GROUNDING
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the first `limit` characters of a text in one line.
pub fn cut(text: &str, limit: usize) -> String {
    one_line(text).chars().take(limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_in_both_directions() {
        let said = "Well, I’ve moved to “Turin”\nlast week. 我住在都灵。";
        for quote in ["I've moved to \"Turin\"", "moved to \"turin\" last week", "I've moved … last week.", "我住在都灵", "\"I've moved\""] {
            assert!(occurs(quote, said), "{quote}");
        }
        for quote in ["I have moved", "last week … moved", "Rome", "…", ""] {
            assert!(!occurs(quote, said), "{quote}");
        }
    }
}
