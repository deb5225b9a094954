//! What enters a prompt: how often the evidence is there, how often something is that has no business there, and what it
//! costs. No model: the built-in rules distil.

use super::space_file::SpaceFile;
use anyhow::Result;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use strata_host::Space;
use strata_host::contract::{PromptEvent, Scope};

/// The session in which the questions are asked; nothing was said in it.
const ASKING: &str = "eval-asks";

/// Characters of ASCII text that make a token; others make one each. An estimate, the same for every run.
const ASCII_A_TOKEN: usize = 4;

/// What prompts got.
#[derive(Debug, Default)]
pub(super) struct Injections {
    questions: u64,
    with_something: u64,
    with_evidence: u64,
    with_atom_evidence: u64,
    evidence_share: f64,
    memories: u64,
    messages: u64,
    tokens: u64,
    unrelated: u64,
    unrelated_with_something: u64,
}

impl Injections {
    /// Takes another report's counts.
    pub(super) fn add(&mut self, other: &Self) {
        self.questions += other.questions;
        self.with_something += other.with_something;
        self.with_evidence += other.with_evidence;
        self.with_atom_evidence += other.with_atom_evidence;
        self.evidence_share += other.evidence_share;
        self.memories += other.memories;
        self.messages += other.messages;
        self.tokens += other.tokens;
        self.unrelated += other.unrelated;
        self.unrelated_with_something += other.unrelated_with_something;
    }

    /// Asks the questions of a space, and prompts that have nothing to do with it, at `at`.
    pub(super) fn measure(&mut self, space: &Space, file: &SpaceFile, unrelated: &[String], at: u64) -> Result<()> {
        let ask = |prompt: &str| {
            let scope = Scope { session: ASKING.into(), ..Scope::default() };
            space.before_prompt_build(PromptEvent { scope, prompt: prompt.into(), at, ..PromptEvent::default() })
        };
        for query in &file.queries {
            let injection = ask(&query.text)?;
            let (mut shown, mut by_atoms) = (BTreeSet::new(), BTreeSet::new());
            for id in &injection.recalled {
                let document: Value = serde_json::from_str(&space.trace(id.clone())?)?;
                if document["layer"] == "message" {
                    self.messages += 1;
                    shown.extend(file.ids_of_text(&document));
                } else {
                    self.memories += 1;
                    by_atoms.extend(document["rests-on"].as_array().into_iter().flatten().flat_map(|message| file.ids_of_text(message)));
                }
            }
            shown.extend(by_atoms.iter().cloned());
            let held = |known: &BTreeSet<String>| query.gold.iter().filter(|id| known.contains(*id)).count();
            self.questions += 1;
            self.with_something += u64::from(!injection.recalled.is_empty());
            self.with_evidence += u64::from(held(&shown) > 0);
            self.with_atom_evidence += u64::from(held(&by_atoms) > 0);
            self.evidence_share += held(&shown) as f64 / query.gold.len().max(1) as f64;
            self.tokens += tokens(&injection.dynamic);
        }
        for prompt in unrelated {
            self.unrelated += 1;
            self.unrelated_with_something += u64::from(!ask(prompt)?.recalled.is_empty());
        }
        Ok(())
    }

    /// Returns the shares of questions, of one.
    pub(super) fn document(&self) -> Value {
        let of = |count: f64, all: u64| json!((count / all.max(1) as f64 * 1e4).round() / 1e4);
        let mut document = Map::new();
        document.insert("questions".into(), json!(self.questions));
        document.insert("with-something".into(), of(self.with_something as f64, self.questions));
        document.insert("with-evidence".into(), of(self.with_evidence as f64, self.questions));
        document.insert("with-evidence-by-atoms".into(), of(self.with_atom_evidence as f64, self.questions));
        document.insert("evidence-share".into(), of(self.evidence_share, self.questions));
        document.insert("atoms-a-question".into(), of(self.memories as f64, self.questions));
        document.insert("messages-a-question".into(), of(self.messages as f64, self.questions));
        document.insert("tokens-a-question".into(), of(self.tokens as f64, self.questions));
        document.insert("unrelated-prompts".into(), json!(self.unrelated));
        document.insert("unrelated-with-something".into(), of(self.unrelated_with_something as f64, self.unrelated));
        Value::Object(document)
    }
}

fn tokens(text: &str) -> u64 {
    let ascii = text.chars().filter(char::is_ascii).count();
    (ascii / ASCII_A_TOKEN + text.chars().count() - ascii) as u64
}
