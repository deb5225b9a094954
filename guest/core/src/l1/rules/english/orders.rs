//! Standing orders to the assistant.

use super::facts::is_name;
use super::{first_word, sentence_case};
use crate::l1::rules::Statement;

/// Returns the standing order that a clause gives.
pub(super) fn order(clause: &str) -> Option<Statement> {
    let lower = clause.to_lowercase();
    let polite = lower.strip_prefix("please ").unwrap_or(&lower);
    let skipped = lower.len() - polite.len();
    if lower.len() != clause.len() {
        return None;
    }
    // "Call me Bo" sets a name; "call me later" does not.
    if let Some(rest) = polite.strip_prefix("call me ").or_else(|| polite.strip_prefix("you can call me ")).or_else(|| polite.strip_prefix("people call me ")) {
        let name = &clause[clause.len() - rest.len()..];
        return (is_name(name) && name.split_whitespace().count() <= 3)
            .then(|| Statement { attribute: Some("form of address".into()), ..Statement::rule(format!("Call the user {name}.")) });
    }
    let body = sentence_case(&clause[skipped..]);
    let standing = ["from now on", "going forward", "in the future", "in future", "for future reference", "from today on", "henceforth"];
    if let Some(after) = standing.iter().find_map(|opening| polite.strip_prefix(opening)) {
        let after = after.trim_start_matches([',', ':', ' ']);
        let after = after.strip_prefix("please ").unwrap_or(after);
        return is_order(after).then(|| Statement::rule(format!("{body}.")));
    }
    for wish in
        ["i want you to ", "you should ", "you must ", "make sure to ", "make sure you ", "remember to ", "be sure to ", "i would like you to ", "try to "]
    {
        if let Some(after) = polite.strip_prefix(wish).filter(|after| after.starts_with("always ") || after.starts_with("never ")) {
            return is_frequent_order(after).then(|| Statement::rule(format!("{}.", sentence_case(&clause[clause.len() - after.len()..]))));
        }
    }
    if is_frequent_order(polite) {
        return Some(Statement::rule(format!("{body}.")));
    }
    for opening in ["do not ever ", "never ever ", "under no circumstances "] {
        if polite.starts_with(opening) {
            return Some(Statement::rule(format!("{body}.")));
        }
    }
    if let Some(after) = polite
        .strip_prefix("do not ")
        .filter(|after| after.ends_with(" again") || after.ends_with(" anymore") || after.ends_with(" any more") || after.contains("unless i ask"))
    {
        return is_order(after).then(|| Statement::rule(format!("{body}.")));
    }
    for opening in [
        "whenever ", "every time ", "each time ", "when i say ", "when i ask ", "when i mention ", "when i write ", "when you write ", "when you answer ",
        "when you reply ",
    ] {
        if polite.starts_with(opening) {
            let (_, order) = polite.split_once(',')?;
            let order = order.trim();
            let order = order.strip_prefix("please ").unwrap_or(order);
            return (is_order(order) || is_frequent_order(order)).then(|| Statement::rule(format!("{body}.")));
        }
    }
    // "In this project, always use tabs" holds there, and says so.
    if ["in ", "for ", "on "].iter().any(|opening| polite.starts_with(opening)) {
        let (_, order) = polite.split_once(", ")?;
        return is_frequent_order(order.strip_prefix("please ").unwrap_or(order)).then(|| Statement::rule(format!("{body}.")));
    }
    None
}

/// Returns whether a text begins like "always answer …", not like "never mind" or "always wanted".
fn is_frequent_order(text: &str) -> bool {
    text.strip_prefix("always ").or_else(|| text.strip_prefix("never ")).is_some_and(is_order)
}

/// Returns whether a text begins with a verb in the imperative, as far as its form shows.
fn is_order(text: &str) -> bool {
    let text = ["please ", "do not ", "always ", "never ", "only ", "just ", "you should ", "you must ", "i want you to ", "also "]
        .iter()
        .fold(text, |text, word| text.strip_prefix(word).unwrap_or(text));
    let verb = first_word(text);
    const NOT_VERBS: &[&str] = &[
        "mind", "again", "ever", "been", "had", "thought", "knew", "seen", "heard", "a", "an", "the", "good", "nice", "happy", "fun", "great", "better",
        "really", "so", "once", "i", "my", "it", "we", "he", "she", "they", "this", "that", "there", "said", "in", "on", "at", "too", "not", "more", "less",
        "felt", "was", "were", "is", "are", "did", "got", "saw", "found", "came", "went", "took", "up", "down", "worked", "fails", "works", "you", "your",
        "our", "his", "her", "if", "what", "why", "how", "who", "1", "2",
    ];
    verb.len() > 1
        && verb.chars().all(char::is_alphabetic)
        && !NOT_VERBS.contains(&verb.as_str())
        && !(verb.ends_with("ed") && verb != "need" && verb != "embed" && verb != "feed")
        && !verb.ends_with("ing")
}
