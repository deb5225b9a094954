//! English statements.

mod events;
mod facts;
mod orders;

use super::sentence::Sentence;
use super::{Speaker, Statement};

/// What may stand before a statement without changing it.
const LEAD_INS: &[&str] = &[
    "hi", "hello", "hey", "well", "ok", "okay", "oh", "so", "and", "also", "btw", "by the way", "fyi", "actually", "in fact", "yes", "no", "yeah", "nope",
    "sorry", "thanks", "thank you", "just so you know", "for the record", "to be clear", "anyway", "great", "right", "sure", "please note that", "note that",
    "keep in mind that", "please keep in mind that", "as i said", "some background", "a bit about me", "about me", "update", "good news", "correction",
    "honestly", "personally",
];

/// Words that make a clause a supposition, a wish or somebody's report.
const UNSURE: &[&str] = &[
    " if ", " would ", " could ", " might ", " maybe ", " perhaps ", " wish ", " imagine ", " suppose ", " supposing ", " pretend ", " hypothetically ",
    " what if ", " let us say ", " as if ", " should i ", " do i ", " used to ", " he said", " she said", " they said", ", said ", " says ", " think i ",
    " guess ", " not sure", " probably ", " unless ", " almost ", " in the game ", " in the story ", " in my dream ", " lyrics ", " kidding", " can you ",
    " could you ", " figure out ", " what is the ", " what's ", " just joking", " sarcas",
];

/// Returns whether what follows a sentence is material to work on.
pub(super) fn opens_material(sentence: &str) -> bool {
    const VERBS: &[&str] = &[
        "translate", "proofread", "rewrite", "rephrase", "paraphrase", "correct", "summarize", "summarise", "polish", "draft", "compose", "pretend", "imagine",
        "roleplay", "role-play", "act as", "act like", "you are now", "write a", "write an", "write me", "write the", "write some", "continue the story",
        "continue this", "complete the", "classify", "extract the", "fix the grammar", "check the grammar", "check my", "improve this", "improve my",
        "edit this", "edit my", "analyze this", "analyse this", "here is the text", "here is my essay", "here is an essay", "here is a text",
        "here is the transcript", "here are the lyrics", "let us play", "let's play", "explain the sentence", "what does this mean",
    ];
    let lower = plain(sentence);
    let mut text = lower.as_str();
    for polite in [
        "hi ", "hey ", "ok ", "please ", "now ", "can you ", "could you ", "would you ", "will you ", "i want you to ", "i need you to ", "help me ",
        "please ", "to ",
    ] {
        text = text.strip_prefix(polite).unwrap_or(text);
    }
    VERBS.iter().any(|verb| text.strip_prefix(verb).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric())))
}

/// Returns what a sentence plainly states.
pub(super) fn read(sentence: &Sentence, speaker: &Speaker<'_>) -> Vec<Statement> {
    let body = spelled_out(without_lead_ins(sentence.body()));
    let mut statements = Vec::new();
    for clause in clauses(&body) {
        let clause = without_lead_ins(clause);
        let padded = format!(" {} ", clause.to_lowercase());
        if UNSURE.iter().any(|word| padded.contains(word)) {
            continue;
        }
        statements.extend(
            orders::order(clause)
                .or_else(|| events::event(clause, speaker))
                .or_else(|| facts::fact(clause, speaker))
                .or_else(|| request_to_remember(clause, speaker)),
        );
    }
    statements
}

/// Returns lower-case text with straight apostrophes and single blanks.
fn plain(text: &str) -> String {
    text.replace('’', "'").split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

fn without_lead_ins(text: &str) -> &str {
    let mut text = text.trim();
    while let Some(rest) = LEAD_INS.iter().find_map(|lead_in| {
        let head = text.get(..lead_in.len()).filter(|head| head.eq_ignore_ascii_case(lead_in))?;
        let rest = text[head.len()..].trim_start_matches([',', ':', '-', '—', '!', '.', ' ']);
        // "No" opens "No, I live in Rome", but "No I" and "Northern" are something else.
        (rest.len() < text.len() - head.len() && !rest.is_empty()).then_some(rest)
    }) {
        text = rest;
    }
    text
}

/// Returns the text with the contractions of the first person written out.
fn spelled_out(text: &str) -> String {
    let mut spelled = text.replace('’', "'");
    for (short, long) in [
        ("I'm ", "I am "),
        ("I've ", "I have "),
        ("I'll ", "I will "),
        ("I'd ", "I would "),
        ("don't ", "do not "),
        ("doesn't ", "does not "),
        ("can't ", "cannot "),
        ("let's ", "let us "),
        ("isn't ", "is not "),
        ("won't ", "will not "),
        ("Don't ", "Do not "),
        ("We're ", "We are "),
        ("We've ", "We have "),
        ("We'll ", "We will "),
        ("i'm ", "I am "),
        ("i've ", "I have "),
    ] {
        spelled = spelled.replace(short, long);
    }
    // Who writes without capitals means themselves all the same.
    if spelled.starts_with("i ") {
        spelled.replace_range(..1, "I");
    }
    spelled.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the clauses of a sentence that have a first person of their own.
fn clauses(body: &str) -> Vec<&str> {
    let mut clauses = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while at < body.len() {
        let rest = &body[at..];
        let joint = [", and I ", ", but I ", ", so I ", " and I ", " but I ", ", I ", ", and my ", ", but my ", " and my ", ", my "]
            .iter()
            .find(|joint| rest.starts_with(**joint));
        match joint {
            // "Yesterday, I went" is one clause: a head without a verb of its own is a time or a greeting.
            Some(joint) if body[start..at].split_whitespace().count() > 2 => {
                clauses.push(&body[start..at]);
                let subject = if joint.ends_with(" I ") { 2 } else { 3 };
                start = at + joint.len() - subject;
                at = start + subject;
            }
            _ => at += rest.chars().next().map_or(1, char::len_utf8),
        }
    }
    clauses.push(&body[start..]);
    clauses
}
fn request_to_remember(clause: &str, speaker: &Speaker<'_>) -> Option<Statement> {
    let lower = clause.to_lowercase();
    let openings = ["please remember that ", "remember that ", "please remember: ", "remember: ", "do not forget that ", "please do not forget that "];
    let rest = openings.iter().find_map(|opening| strip(clause, &lower, opening))?;
    // "Remember that time we…" tells a story.
    if matches!(first_word(rest).as_str(), "time" | "day" | "when" | "how" | "one" | "you" | "thing") {
        return None;
    }
    let inner = spelled_out(rest);
    if let Some(statement) = events::event(&inner, speaker).or_else(|| facts::fact(&inner, speaker)) {
        return Some(statement);
    }
    Some(Statement::fact(format!("{} asked to remember that {}.", subject(speaker), third_person(&inner)), 80, None))
}

fn strip<'a>(text: &'a str, lower: &str, opening: &str) -> Option<&'a str> {
    // Byte offsets agree only where lower-casing kept the length; other text has no such opening.
    (lower.len() == text.len() && lower.starts_with(opening)).then(|| &text[opening.len()..])
}
fn subject(speaker: &Speaker<'_>) -> String {
    speaker.name.unwrap_or("The user").to_owned()
}

fn first_word(text: &str) -> String {
    text.split(|c: char| !c.is_alphanumeric() && c != '\'').next().unwrap_or_default().to_lowercase()
}
/// Returns a text with the first person replaced by the third.
fn third_person(text: &str) -> String {
    let mut changed = Vec::new();
    let words: Vec<&str> = text.split(' ').collect();
    for (place, word) in words.iter().enumerate() {
        let core = word.trim_matches(|c: char| c.is_ascii_punctuation() && c != '\'');
        let replacement = match core {
            // "Book I" is a number.
            "I" if words.get(place + 1).is_some_and(|next| !matches!(*next, "and" | "or" | "of" | "in")) => "they",
            "me" => "them",
            "my" | "My" => "their",
            "mine" => "theirs",
            "myself" => "themselves",
            "we" | "We" => "they",
            "us" => "them",
            "our" => "their",
            "ours" => "theirs",
            "am" if place > 0 && words[place - 1] == "I" => "are",
            "was" if place > 0 && words[place - 1] == "I" => "were",
            _ => {
                changed.push((*word).to_owned());
                continue;
            }
        };
        changed.push(word.replacen(core, replacement, 1));
    }
    changed.join(" ")
}

fn sentence_case(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

#[cfg(test)]
mod tests {
    use crate::l1::rules::tests::all;

    #[test]
    fn statements_become_facts() {
        for (said, fact, attribute) in [
            ("I live in Lyon.", "The user lives in Lyon.", "home"),
            ("Hi! By the way, I've moved to Turin!", "The user moved to Turin.", "home"),
            ("i'm based in New York", "The user lives in New York.", "home"),
            ("My name is Ada Lovelace.", "The user's name is Ada Lovelace.", "name"),
            ("I work at Acme as a buyer.", "The user works at Acme as a buyer.", "employer"),
            ("I just joined Initech.", "The user joined Initech.", "employer"),
            ("I'm a software engineer at Acme.", "The user is a software engineer at Acme.", "occupation"),
            ("I'm a morning person.", "The user is a morning person.", ""),
            ("I'm allergic to peanuts.", "The user is allergic to peanuts.", ""),
            ("I'm vegetarian.", "The user is vegetarian.", "diet"),
            ("I'm 34 years old.", "The user is 34 years old.", "age"),
            ("I really love hiking with my dog.", "The user loves hiking with their dog.", ""),
            ("I don't like cilantro.", "The user does not like cilantro.", ""),
            ("Actually, I prefer tabs over spaces.", "The user prefers tabs over spaces.", ""),
            ("My favourite color is teal.", "The user's favorite color is teal.", "favorite color"),
            ("My sister lives in Oslo.", "The user's sister lives in Oslo.", "sister: home"),
            ("My dog's name is Rex.", "The user's dog is called Rex.", "dog: name"),
            ("My birthday is on 3 May.", "The user's birthday is on 3 May.", "birthday"),
            ("I have two cats named Mio and Mia.", "The user has cats named Mio and Mia.", ""),
            ("I use Neovim for everything.", "The user uses Neovim for everything.", ""),
            ("I don't drink coffee.", "The user does not drink coffee.", ""),
            ("Remember that the wifi is in the cellar.", "The user asked to remember that the wifi is in the cellar.", ""),
        ] {
            let found = all(said);
            assert_eq!(found.iter().map(|one| one.text.as_str()).collect::<Vec<_>>(), [fact], "{said}");
            assert_eq!(found[0].attribute.as_deref().unwrap_or_default(), attribute, "{said}");
        }
    }

    #[test]
    fn two_clauses_are_two_facts() {
        let texts: Vec<String> = all("I live in Lyon and I work at Acme, but I'm from Norway.").into_iter().map(|one| one.text).collect();
        assert_eq!(texts, ["The user lives in Lyon.", "The user works at Acme.", "The user is from Norway."]);
    }

    #[test]
    fn standing_orders_become_rules() {
        for (said, rule) in [
            ("Always answer in metric units.", "Always answer in metric units."),
            ("Please never use emojis.", "Never use emojis."),
            ("From now on, reply in French.", "From now on, reply in French."),
            ("I want you to always show the command first.", "Always show the command first."),
            ("Whenever I paste a log, summarize it first.", "Whenever I paste a log, summarize it first."),
            ("In this project, always use tabs.", "In this project, always use tabs."),
            ("Don't call me sir again.", "Do not call me sir again."),
            ("Call me Bo.", "Call the user Bo."),
        ] {
            let found = all(said);
            assert_eq!(found.iter().map(|one| (one.kind, one.text.as_str())).collect::<Vec<_>>(), [(crate::l1::atom::Kind::Instruction, rule)], "{said}");
        }
    }

    #[test]
    fn dated_deeds_become_events() {
        for (said, event) in [
            ("Yesterday I went to the dentist.", "The user went to the dentist on 2026-05-12."),
            ("I had lunch with my sister last Friday.", "The user had lunch with their sister on 2026-05-08."),
            ("I have a job interview next Wednesday.", "The user has a job interview on 2026-05-20."),
            ("We flew to Rome two weeks ago.", "The user and others flew to Rome between 2026-04-27 and 2026-05-03."),
            ("Next week I'm going to visit Oslo.", "The user is going to visit Oslo between 2026-05-18 and 2026-05-24."),
            ("I have a deadline of June 1, 2026, for the first draft.", "The user has a deadline of 2026-06-01, for the first draft."),
            ("I started playing guitar about five years ago.", "The user started playing guitar in 2021."),
            ("I started at Acme on Monday.", "The user started at Acme on 2026-05-11."),
            ("My flight leaves tomorrow at 9.", "The user's flight leaves on 2026-05-14 at 9."),
        ] {
            assert_eq!(all(said).iter().map(|one| one.text.as_str()).collect::<Vec<_>>(), [event], "{said}");
        }
    }

    #[test]
    fn what_is_no_statement_of_the_user_stays_out() {
        for said in [
            "Do I live in Lyon?",
            "Where do I live?",
            "If I live in Lyon, what changes?",
            "I would live in Lyon.",
            "Maybe I live in the wrong city.",
            "I wish I live in Lyon one day.",
            "I'd like a coffee.",
            "I like that.",
            "I like how you did it.",
            "I love it!",
            "I like the idea.",
            "My friend likes tea.",
            "She says I live in Rome.",
            "I live in Lyon, he said.",
            "I live in fear of bugs.",
            "I moved to the next step.",
            "I have a question.",
            "I have three errors in my log.",
            "I am a bit confused.",
            "I am tired.",
            "I'm running the tests.",
            "I used to live in Lyon.",
            "Never mind.",
            "Always a pleasure!",
            "Always wanted to try that.",
            "Never heard of it.",
            "From now on I am happy.",
            "Call me later.",
            "I don't know.",
            "I use it daily.",
            "My code is broken.",
            "My laptop is slow.",
            "My password is hunter2.",
            "I think I live near you.",
            "Tomorrow is Thursday.",
            "The build failed yesterday.",
            "I want to finish this tomorrow.",
            "Remember that time we met?",
            "Thanks!",
            "You live in Lyon.",
            "He lives in Lyon.",
            "I guess I like tea.",
            "I am not a doctor.",
            "I do not live in Lyon.",
            "I'm trying to figure out what day it is in a week from March 3, 2024.",
            "I love all the yellow leaves, it looks so cozy.",
            "I love the new design.",
        ] {
            assert_eq!(all(said).into_iter().map(|one| one.text).collect::<Vec<_>>(), [""; 0], "{said}");
        }
    }
}
