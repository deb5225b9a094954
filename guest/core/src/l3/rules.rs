//! A plain persona without a model: the user's own facts and instructions, the most important first.

use super::answer::TRUSTED;
use super::{Draft, MAX_PERSONA_CHARS, settle, write};
use crate::contract::Result;
use crate::l2::{self, Fact};
use crate::pages::{self, Author, Block, Page, block, hand};
use crate::store::failure;
use crate::work::{Batch, Job};
use rusqlite::params;

/// Facts of each kind that are considered; a tenth of them fill the page.
const MAX_FACTS: u32 = 200;

/// Longest line, in characters: a tenth of the page.
const MAX_LINE: usize = 200;

/// Writes the persona; returns what changed.
pub(super) fn run(job: &mut Job<'_>, batch: &Batch, draft: &Draft, persona: Option<&Page>) -> Result<Vec<String>> {
    let struck = match persona {
        Some(persona) => l2::struck(job.tx, persona)?,
        None => Vec::new(),
    };
    let hand_written: Vec<String> = persona.map(|persona| persona.hand.clone()).unwrap_or_default();
    let old_title = persona.and_then(|persona| block::parse(&persona.body).into_iter().find(|block| block.text.starts_with("# ")));
    let mut blocks = vec![old_title.unwrap_or_else(|| Block::new("# Persona", Vec::new()))];
    if let Some(persona) = persona {
        blocks = hand::keep(blocks, &persona.body, &hand_written);
    }
    let limit = MAX_PERSONA_CHARS.max(hand::chars(&hand_written) + MAX_PERSONA_CHARS / 4);
    for (kind, heading, share) in [("instruction", "## How to work with the user", 2), ("persona", "## About the user", 1)] {
        // Instructions may fill half of the page, facts the rest.
        let until = pages::chars(&block::render(&blocks)) + (limit - pages::chars(&block::render(&blocks)).min(limit)) / share;
        let mut section = vec![Block::new(heading, Vec::new())];
        for fact in facts(job, batch, kind)? {
            if !TRUSTED.contains(&fact.origin.as_str()) || struck.contains(&fact.uid) {
                continue;
            }
            section.push(Block::new(format!("- {}", pages::one_line(&fact.text, MAX_LINE)), vec![fact.uid]));
            let mut whole = blocks.clone();
            whole.extend(section.iter().cloned());
            if pages::chars(&block::render(&whole)) > until {
                section.pop();
                break;
            }
        }
        if section.len() > 1 {
            // Facts come first on the page although instructions choose first.
            let place = 1.min(blocks.len());
            blocks.splice(place..place, section);
        }
    }
    if blocks.iter().all(Block::is_heading) {
        settle(job.tx, batch.scope, draft, job.at)?;
        return Ok(Vec::new());
    }
    let body = block::render(&blocks);
    let changed = write(job.tx, batch, job.settings, persona, &body, Author::Rules, job.at)?;
    settle(job.tx, batch.scope, draft, job.at)?;
    Ok(changed)
}

fn facts(job: &Job<'_>, batch: &Batch, kind: &str) -> Result<Vec<Fact>> {
    job.tx
        .prepare_cached(&format!(
            "SELECT {} FROM atoms WHERE scope = ?1 AND kind = ?2 AND believed_to IS NULL
              ORDER BY priority < 0 DESC, priority DESC, id DESC LIMIT ?3",
            l2::FACT
        ))
        .and_then(|mut query| query.query_map(params![batch.scope.0, kind, MAX_FACTS], l2::fact)?.collect())
        .map_err(failure)
}
