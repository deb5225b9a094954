//! Dated deeds of the speaker.

use super::{first_word, strip, subject, third_person};
use crate::l1::rules::dates::{self, Tense};
use crate::l1::rules::{Speaker, Statement};

/// Returns the dated deed that a clause tells.
pub(super) fn event(clause: &str, speaker: &Speaker<'_>) -> Option<Statement> {
    let lower = clause.to_lowercase();
    // A birthday is a fact, though it has a date.
    if lower.len() != clause.len() || lower.starts_with("my birthday") {
        return None;
    }
    let padded = format!(" {lower} ");
    let future = [" will ", " going to ", " have to ", " have a ", " have an ", " plan to ", " fly ", " leave ", " is on ", " starts ", " is due "]
        .iter()
        .any(|word| padded.contains(word));
    let tense = if future || !is_past(&lower) { Tense::Future } else { Tense::Past };
    let dated = dates::english(&lower, speaker.today, tense)?;
    let before = clause[..dated.place.0].trim_end();
    let after = clause[dated.place.1..].trim_start_matches([',', ' ']);
    // A date that opens the clause goes to its end, any other is written out where it stands.
    let opens = matches!(before.to_lowercase().as_str(), "" | "on" | "in" | "by");
    let text = if opens {
        format!("{after} {}", dated.english(false))
    } else {
        let before = before.strip_suffix(" about").or_else(|| before.strip_suffix(" around")).unwrap_or(before);
        let (before, is_governed) = match before.rsplit_once(' ') {
            Some((head, "on" | "in")) => (head, false),
            Some((_, last)) => (before, GOVERNING.contains(&last.to_lowercase().as_str())),
            None => (before, false),
        };
        let comma = if clause[dated.place.1..].starts_with(',') { "," } else { "" };
        format!("{before} {}{comma} {after}", dated.english(is_governed))
    };
    Some(Statement::event(format!("{}.", told(text.trim_end(), speaker)?), dated))
}

/// Prepositions after which a date stands without its own.
const GOVERNING: &[&str] = &["by", "for", "until", "till", "since", "of", "from", "before", "after", "to", "as", "being", "is", "was", "through", "during"];

fn is_past(lower: &str) -> bool {
    const PAST: &[&str] = &[
        "was", "were", "went", "had", "did", "got", "saw", "met", "bought", "took", "came", "made", "left", "ran", "won", "lost", "ate", "broke", "began",
        "flew", "gave", "found", "told", "spent", "slept", "wrote", "read", "drove", "sold", "paid", "quit", "fell",
    ];
    lower.split_whitespace().any(|word| PAST.contains(&word) || (word.ends_with("ed") && word.len() > 4))
}

/// Returns a deed of the first person about a third person.
fn told(text: &str, speaker: &Speaker<'_>) -> Option<String> {
    let lower = text.to_lowercase();
    let (who, rest) = if let Some(rest) = strip(text, &lower, "i ") {
        (subject(speaker), rest)
    } else if let Some(rest) = strip(text, &lower, "we ") {
        (format!("{} and others", subject(speaker)), rest)
    } else {
        let rest = strip(text, &lower, "my ")?;
        (speaker.name.map_or_else(|| "The user's".to_owned(), |name| format!("{name}'s")), rest)
    };
    let verb = first_word(rest);
    let is_request =
        ["am trying", "have been trying", "am looking for", "am wondering", "am curious"].iter().any(|opening| rest.to_lowercase().starts_with(opening));
    if is_request
        || matches!(verb.as_str(), "want" | "need" | "think" | "know" | "guess" | "like" | "asked" | "wanted" | "hope" | "see" | "" | "tried" | "get")
        || rest.split_whitespace().count() < 2
    {
        return None;
    }
    let rest = if who.ends_with("others") || who.ends_with("'s") { third_person(rest) } else { singular(&verb, &third_person(rest)) };
    Some(format!("{who} {rest}"))
}

/// Returns a clause whose first verb agrees with a third person.
fn singular(verb: &str, rest: &str) -> String {
    let changed = match verb {
        "am" | "are" => "is",
        "have" => "has",
        "do" => "does",
        "go" => "goes",
        "fly" => "flies",
        "leave" => "leaves",
        "start" => "starts",
        "meet" => "meets",
        "travel" => "travels",
        "move" => "moves",
        "plan" => "plans",
        _ => return rest.to_owned(),
    };
    format!("{changed}{}", &rest[verb.len().min(rest.len())..])
}
