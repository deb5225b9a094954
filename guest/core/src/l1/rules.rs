//! The distiller without a model: what the user plainly states about themselves.
//!
//! It is precise rather than greedy. A clause counts only if it begins with the statement; what is
//! asked, supposed, quoted, code, or about somebody else is left to a model. Facts that have one
//! value at a time carry an attribute, so that a new value ends the old one.

mod chinese;
mod dates;
mod english;
mod sentence;

use super::Input;
use super::atom::{Evidence, Kind, NewAtom, Origin};
use super::extract;
use crate::l0::Message;
use crate::text;
use dates::Dated;
use jiff::civil::Date;
use sentence::Sentence;

/// Sentences of one message that are looked at.
const MAX_SENTENCES: usize = 200;

/// Longest sentence that can be a plain statement, in characters.
const MAX_SENTENCE: usize = 300;

/// What a rule reads in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Statement {
    /// What it is about.
    pub kind: Kind,
    /// The fact, about a third person.
    pub text: String,
    /// The priority.
    pub priority: i32,
    /// What it gives a value to.
    pub attribute: Option<String>,
    /// When it happened.
    pub dated: Option<Dated>,
}

impl Statement {
    fn fact(text: String, priority: i32, attribute: Option<&str>) -> Self {
        Self { kind: Kind::Persona, text, priority, attribute: attribute.map(str::to_owned), dated: None }
    }

    fn rule(text: String) -> Self {
        Self { kind: Kind::Instruction, text, priority: 85, attribute: None, dated: None }
    }

    fn event(text: String, dated: Dated) -> Self {
        Self { kind: Kind::Episodic, text, priority: 70, attribute: None, dated: Some(dated) }
    }
}

/// Who speaks, and when.
#[derive(Clone, Copy, Debug)]
struct Speaker<'a> {
    /// Their name, where the host knows it.
    name: Option<&'a str>,
    /// The local day.
    today: Date,
}

/// Returns the atoms that the rules find in a batch, in the order of its messages.
pub fn distill(input: &Input) -> Vec<NewAtom> {
    let mut atoms: Vec<NewAtom> = Vec::new();
    for message in input.new.iter().filter(|message| message.role == "user") {
        let Ok(today) = input.calendar.day(message.said_at).parse() else { continue };
        let speaker = Speaker { name: message.speaker.as_deref().filter(|name| is_name(name)), today };
        for (sentence, statement) in statements(message, &speaker) {
            if atoms.len() >= input.max_atoms {
                return atoms;
            }
            let instants = statement.dated.as_ref().and_then(|dated| dated.instants(&input.calendar));
            // In a group each speaker has attributes of their own.
            let attribute = statement.attribute.map(|attribute| match speaker.name {
                Some(name) => format!("{}/{attribute}", name.to_lowercase()),
                None => attribute,
            });
            atoms.push(NewAtom {
                kind: statement.kind,
                text: statement.text,
                priority: statement.priority,
                scene: String::new(),
                origin: Origin::Rules,
                attribute,
                valid_from: message.said_at,
                event_start: instants.map(|instants| instants.0),
                event_end: instants.map(|instants| instants.1),
                evidence: vec![Evidence { message: message.id.0, quote: sentence }],
            });
        }
    }
    atoms
}

/// Returns whether a speaker's name tells more than the role does.
fn is_name(name: &str) -> bool {
    !["", "user", "human", "me", "default", "用户", "我"].contains(&name.trim().to_lowercase().as_str())
}

/// Returns what a message states, each with the sentence that states it.
fn statements(message: &Message, speaker: &Speaker<'_>) -> Vec<(String, Statement)> {
    let mut found = Vec::new();
    for sentence in sentence::sentences(&extract::without_code_blocks(&message.text)).into_iter().take(MAX_SENTENCES) {
        // What follows "Translate this:" or "Pretend that" is material, not a statement.
        if english::opens_material(&sentence.text) || chinese::opens_material(&sentence.text) {
            break;
        }
        if sentence.is_quoted || sentence.is_question() || sentence.text.chars().count() > MAX_SENTENCE {
            continue;
        }
        for statement in read(&sentence, speaker) {
            found.push((sentence.text.clone(), statement));
        }
    }
    found
}

fn read(sentence: &Sentence, speaker: &Speaker<'_>) -> Vec<Statement> {
    let is_chinese = sentence.text.chars().any(text::is_ideograph);
    if is_chinese { chinese::read(sentence, speaker) } else { english::read(sentence, speaker) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::l0::{MessageId, SessionId};

    /// A Wednesday.
    const TODAY: Date = jiff::civil::date(2026, 5, 13);

    /// Returns what each sentence of a text states.
    pub(super) fn all(text: &str) -> Vec<Statement> {
        let speaker = Speaker { name: None, today: TODAY };
        sentence::sentences(text)
            .iter()
            .filter(|sentence| !sentence.is_quoted && !sentence.is_question())
            .flat_map(|sentence| read(sentence, &speaker))
            .collect()
    }

    fn said(text: &str) -> Vec<String> {
        let message = Message { id: MessageId(1), uid: "m_1".into(), session: SessionId(1), role: "user".into(), speaker: None, text: text.into(), said_at: 0 };
        let speaker = Speaker { name: None, today: TODAY };
        statements(&message, &speaker).into_iter().map(|(_, statement)| format!("{}: {}", statement.kind, statement.text)).collect()
    }

    #[test]
    fn material_is_not_a_statement() {
        for text in [
            "Translate this to French: I live in Berlin.",
            "Please proofread my essay.\nI live in Berlin. I love dogs.",
            "Pretend you are a pirate. I live on a ship.",
            "Write a story that starts so. I moved to Mars.",
            "He wrote: \"Hi. I live in Berlin. I love it there.\"",
            "> I live in Berlin",
            "```\nI live in Berlin.\n```",
            "The string is `I live in Berlin.`",
            "把下面这段翻译成英文：\n我住在北京。",
            "帮我写一篇作文。我喜欢春天。",
            "假装你是海盗。我住在船上。",
        ] {
            assert_eq!(said(text), [""; 0], "{text}");
        }
        assert_eq!(said("I live in Berlin. Write a story about dogs."), ["persona: The user lives in Berlin."]);
        assert_eq!(said("I write stories. I live in Berlin."), ["persona: The user lives in Berlin."]);
    }
}
