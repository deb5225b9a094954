//! What a model may answer about the persona, and the checks on it.

use super::MAX_PERSONA_CHARS;
use crate::contract::Result;
use crate::l2::{self, language};
use crate::pages::{self, Block, Page, block, hand};
use rusqlite::Connection;
use serde::Deserialize;
use serde_json::json;

/// Sections of a persona, and statements of a section.
const MAX_SECTIONS: usize = 12;
const MAX_STATEMENTS: usize = 40;

/// Longest heading or id that the schema allows, in characters.
const MAX_HEADING: usize = 80;

/// Atoms behind one statement.
const MAX_ATOMS: usize = 20;

/// Longest statement, in characters.
const MAX_STATEMENT: usize = 400;

/// Who must have said at least one of the facts behind a statement. A tool, a web page or the
/// assistant cannot say who the user is.
pub(super) const TRUSTED: [&str; 3] = ["user", "human", "rules"];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Answer {
    sections: Vec<Section>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Section {
    heading: String,
    statements: Vec<Statement>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Statement {
    text: String,
    atoms: Vec<String>,
}

/// Returns the JSON Schema of the answer.
pub(super) fn schema() -> String {
    json!({
        "type": "object", "required": ["sections"], "additionalProperties": false,
        "properties": {"sections": {"type": "array", "minItems": 1, "maxItems": MAX_SECTIONS, "items": {
            "type": "object", "required": ["heading", "statements"], "additionalProperties": false,
            "properties": {
                "heading": {"type": "string", "maxLength": MAX_HEADING},
                "statements": {"type": "array", "maxItems": MAX_STATEMENTS, "items": {
                    "type": "object", "required": ["text", "atoms"], "additionalProperties": false,
                    "properties": {
                        "text": {"type": "string", "maxLength": MAX_STATEMENT},
                        "atoms": {"type": "array", "minItems": 1, "maxItems": MAX_ATOMS, "items": {"type": "string", "maxLength": MAX_HEADING}}}}}}}}}
    })
    .to_string()
}

/// Returns the body that an answer means, or why it is refused.
pub(super) fn body(db: &Connection, text: &str, shown: &[String], persona: Option<&Page>) -> Result<std::result::Result<String, String>> {
    let answer: Answer = match l2::object(text).and_then(|value| serde_json::from_value(value).map_err(|error| format!("the answer is not as asked: {error}")))
    {
        Ok(answer) => answer,
        Err(reason) => return Ok(Err(reason)),
    };
    if answer.sections.len() > MAX_SECTIONS {
        return Ok(Err(format!("{} sections, the limit is {MAX_SECTIONS}", answer.sections.len())));
    }
    let struck = match persona {
        Some(persona) => l2::struck(db, persona)?,
        None => Vec::new(),
    };
    let title = persona.and_then(|persona| block::parse(&persona.body).into_iter().find(|block| block.text.starts_with("# ")));
    let mut blocks = vec![title.unwrap_or_else(|| Block::new("# Persona", Vec::new()))];
    let (mut facts, mut written) = (String::new(), String::new());
    for section in &answer.sections {
        let mut statements = Vec::new();
        for statement in section.statements.iter().take(MAX_STATEMENTS) {
            match checked(db, statement, shown, &struck, &mut facts)? {
                Ok(block) => {
                    written.push_str(&block.text);
                    statements.push(block);
                }
                Err(reason) => return Ok(Err(reason)),
            }
        }
        if statements.is_empty() {
            continue;
        }
        let heading = pages::one_line(section.heading.trim_start_matches(['#', ' ']), 80);
        if !heading.is_empty() {
            blocks.push(Block::new(format!("## {heading}"), Vec::new()));
        }
        blocks.extend(statements);
    }
    if blocks.len() == 1 {
        return Ok(Err("the answer states nothing".into()));
    }
    if language::differs(&facts, &written) {
        return Ok(Err("the profile is not in the language of the facts".into()));
    }
    let hand_written = persona.map(|persona| persona.hand.clone()).unwrap_or_default();
    if let Some(persona) = persona {
        blocks = hand::keep(blocks, &persona.body, &hand_written);
    }
    let body = block::render(&blocks);
    let limit = MAX_PERSONA_CHARS.max(hand::chars(&hand_written) + MAX_PERSONA_CHARS / 4);
    if pages::chars(&body) > limit {
        return Ok(Err(format!("the profile has {} characters, the limit is {limit}", pages::chars(&body))));
    }
    Ok(Ok(body))
}

/// Returns the block that a statement means, or why it is refused; adds the texts of its facts to `facts`.
fn checked(db: &Connection, statement: &Statement, shown: &[String], struck: &[String], facts: &mut String) -> Result<std::result::Result<Block, String>> {
    let text = pages::one_line(statement.text.trim_start_matches(['#', '-', '*', ' ']), usize::MAX);
    if pages::chars(&text) > MAX_STATEMENT {
        return Ok(Err(format!("a statement has {} characters, the limit is {MAX_STATEMENT}", pages::chars(&text))));
    }
    let about = pages::one_line(&text, 60);
    if text.is_empty() {
        return Ok(Err("a statement has no text".into()));
    }
    if statement.atoms.is_empty() || statement.atoms.len() > MAX_ATOMS {
        return Ok(Err(format!("a statement rests on {} facts, 1 to {MAX_ATOMS} are allowed: {about}", statement.atoms.len())));
    }
    let mut atoms: Vec<String> = Vec::new();
    let mut trusted = false;
    for atom in &statement.atoms {
        if shown.binary_search(atom).is_err() {
            return Ok(Err(format!("the fact `{}` was not shown", pages::one_line(atom, 40))));
        }
        if let Some(fact) = l2::fact_by_uid(db, atom)? {
            facts.push_str(&fact.text);
            trusted |= TRUSTED.contains(&fact.origin.as_str()) && fact.believed && !struck.contains(atom);
        }
        if !atoms.contains(atom) {
            atoms.push(atom.clone());
        }
    }
    if !trusted {
        return Ok(Err(format!("a statement rests on nothing that the user said and that still holds: {about}")));
    }
    Ok(Ok(Block::new(format!("- {text}"), atoms)))
}
