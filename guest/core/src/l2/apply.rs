//! Checking an answer whole, then applying it.

use super::answer::{Answer, MAX_ATOMS, Operation, Paragraph};
use super::{Fact, MAX_NEW_SCENES, MAX_SCENE_CHARS, MAX_SUMMARY_CHARS, language, prompt};
use crate::contract::{Failure, Instant, Result};
use crate::pages::{self, Author, Block, Kind, NewPage, Page, PageId, Write, block, hand, name};
use crate::settings::Settings;
use crate::work::Batch;
use rusqlite::{Connection, Transaction};
use std::collections::{BTreeMap, BTreeSet};

/// Room that a model always has beside what a human wrote, in characters.
const ROOM_BESIDE_HAND: usize = 500;

/// Why an answer is not applied.
pub(super) enum Refusal {
    /// The answer is at fault; the sentence is for the ledger and the model.
    Answer(String),
    /// The store is.
    Store(Failure),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Store(failure)
    }
}

fn refuse<T>(reason: impl Into<String>) -> std::result::Result<T, Refusal> {
    Err(Refusal::Answer(reason.into()))
}

/// One checked change.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Create { stem: String, body: String, summary: String },
    Rewrite { page: Page, how: &'static str, body: String, summary: String, heat: u32, hand: Vec<String>, absorbed: Vec<Page> },
    Archive { page: Page },
}

/// Returns the scene that a model names by file, with or without folder and ending.
pub(super) fn find<'a>(scenes: &'a [Page], name: &str) -> Option<&'a Page> {
    let name = name.trim();
    let name = name.rsplit_once('/').map_or(name, |(_, file)| file);
    scenes.iter().find(|scene| scene.file() == name || scene.file().strip_suffix(".md") == Some(name) || scene.uid == name)
}

struct Check<'a> {
    db: &'a Connection,
    facts: BTreeMap<&'a str, &'a Fact>,
    scenes: &'a [Page],
    shown: &'a [(String, u32)],
    used: BTreeSet<PageId>,
}

/// Checks an answer against the scenes, the facts and the limits.
pub(super) fn check(
    db: &Connection,
    _batch: &Batch,
    settings: &Settings,
    facts: &[Fact],
    scenes: &[Page],
    shown: &[(String, u32)],
    answer: &Answer,
) -> std::result::Result<Vec<Change>, Refusal> {
    let mut check = Check { db, facts: facts.iter().map(|fact| (fact.uid.as_str(), fact)).collect(), scenes, shown, used: BTreeSet::new() };
    let mut plan = Vec::new();
    for operation in &answer.operations {
        plan.push(check.operation(operation)?);
    }
    limits(settings, scenes.len(), &plan)?;
    check_language(facts, &plan)?;
    Ok(plan)
}

fn limits(settings: &Settings, before: usize, plan: &[Change]) -> std::result::Result<(), Refusal> {
    let max = settings.persona.max_scenes as usize;
    let created = plan.iter().filter(|change| matches!(change, Change::Create { .. })).count();
    if created > MAX_NEW_SCENES {
        return refuse(format!("{created} new pages, at most {MAX_NEW_SCENES} is allowed"));
    }
    let gone: usize = plan
        .iter()
        .map(|change| match change {
            Change::Create { .. } => 0,
            Change::Rewrite { absorbed, .. } => absorbed.len(),
            Change::Archive { .. } => 1,
        })
        .sum();
    let after = before + created - gone;
    if after > max && after >= before {
        return refuse(format!("{after} pages would exist, at most {max} may; merge some"));
    }
    Ok(())
}

/// Refuses pages that are written in another script than the facts.
fn check_language(facts: &[Fact], plan: &[Change]) -> std::result::Result<(), Refusal> {
    let facts: String = facts.iter().map(|fact| fact.text.as_str()).collect();
    for change in plan {
        let (Change::Create { body, .. } | Change::Rewrite { body, .. }) = change else { continue };
        let words: String = block::parse(body).into_iter().filter(|block| !block.is_heading()).map(|block| block.text).collect();
        if language::differs(&facts, &words) {
            return refuse("the pages are not in the language of the facts");
        }
    }
    Ok(())
}

impl Check<'_> {
    fn operation(&mut self, operation: &Operation) -> std::result::Result<Change, Refusal> {
        match operation {
            Operation::Create { name, summary, paragraphs } => {
                let title = pages::one_line(name.trim_end_matches(".md"), 80);
                let body = self.body(&title, paragraphs, &[])?;
                fits(&body, 0, name)?;
                Ok(Change::Create { stem: name::stem(name), body, summary: self.summary(summary)? })
            }
            Operation::Update { scene, summary, paragraphs } => {
                let page = self.take(scene)?;
                let blocks = self.body(&title(&page), paragraphs, std::slice::from_ref(&page))?;
                self.rewrite(page, "update", &blocks, summary, Vec::new())
            }
            Operation::Merge { scenes, summary, paragraphs } => {
                if scenes.len() < 2 {
                    return refuse("a merge needs at least two pages");
                }
                let mut merged = Vec::new();
                for scene in scenes {
                    merged.push(self.take(scene)?);
                }
                let body = self.body(&title(&merged[0]), paragraphs, &merged)?;
                let page = merged.remove(0);
                self.rewrite(page, "merge", &body, summary, merged)
            }
            Operation::Archive { scene } => Ok(Change::Archive { page: self.take(scene)? }),
        }
    }

    /// Takes a scene for one operation: it exists, was shown in full as it still is, and no other operation has it.
    fn take(&mut self, name: &str) -> std::result::Result<Page, Refusal> {
        let Some(scene) = find(self.scenes, name) else {
            return refuse(format!("there is no page `{}`", pages::one_line(name, 80)));
        };
        let Some((_, number)) = self.shown.iter().find(|(uid, _)| *uid == scene.uid) else {
            return refuse(format!("`{}` was not shown in full; ask for it under `need` first", scene.file()));
        };
        if *number != scene.number {
            return refuse(format!("`{}` changed in the meantime", scene.file()));
        }
        if !self.used.insert(scene.id) {
            return refuse(format!("`{}` stands in two operations", scene.file()));
        }
        Ok(scene.clone())
    }

    fn summary(&self, summary: &str) -> std::result::Result<String, Refusal> {
        if pages::chars(summary) > MAX_SUMMARY_CHARS {
            return refuse(format!("a summary has {} characters, the limit is {MAX_SUMMARY_CHARS}", pages::chars(summary)));
        }
        Ok(pages::one_line(summary, MAX_SUMMARY_CHARS))
    }

    /// Returns the Markdown of paragraphs, each checked to rest on facts that were shown.
    fn body(&self, title: &str, paragraphs: &[Paragraph], pages: &[Page]) -> std::result::Result<String, Refusal> {
        let mut known: BTreeSet<String> = BTreeSet::new();
        let mut struck: BTreeSet<String> = BTreeSet::new();
        for page in pages {
            known.extend(prompt::grounds(self.db, page)?);
            struck.extend(prompt::struck(self.db, page)?);
        }
        let mut blocks = vec![Block::new(format!("# {title}"), Vec::new())];
        for paragraph in paragraphs {
            let text = pages::one_line(paragraph.text.trim_start_matches(['#', ' ']), MAX_SCENE_CHARS + 1);
            if text.is_empty() {
                return refuse("a paragraph has no text");
            }
            if paragraph.atoms.is_empty() || paragraph.atoms.len() > MAX_ATOMS {
                return refuse(format!("a paragraph rests on {} facts, 1 to {MAX_ATOMS} are allowed: {}", paragraph.atoms.len(), pages::one_line(&text, 60)));
            }
            let mut atoms: Vec<String> = Vec::new();
            let mut holds = false;
            for atom in &paragraph.atoms {
                if !self.facts.contains_key(atom.as_str()) && !known.contains(atom) {
                    return refuse(format!("the fact `{}` was not shown", pages::one_line(atom, 40)));
                }
                let believed = match self.facts.get(atom.as_str()) {
                    Some(fact) => fact.believed,
                    None => super::fact_by_uid(self.db, atom)?.is_none_or(|fact| fact.believed),
                };
                holds |= believed && !struck.contains(atom);
                if !atoms.contains(atom) {
                    atoms.push(atom.clone());
                }
            }
            if !holds {
                return refuse(format!("a paragraph rests only on facts that are no longer believed or were struck: {}", pages::one_line(&text, 60)));
            }
            if let Some(heading) = paragraph.heading.as_deref().map(|heading| pages::one_line(heading.trim_start_matches(['#', ' ']), 80))
                && !heading.is_empty()
            {
                let heading = Block::new(format!("## {heading}"), Vec::new());
                if blocks.iter().rfind(|block| block.is_heading()) != Some(&heading) {
                    blocks.push(heading);
                }
            }
            blocks.push(Block::new(text, atoms));
        }
        Ok(block::render(&blocks))
    }

    fn rewrite(&self, page: Page, how: &'static str, body: &str, summary: &str, absorbed: Vec<Page>) -> std::result::Result<Change, Refusal> {
        let mut blocks = block::parse(body);
        let mut hand_written: Vec<String> = Vec::new();
        for old in std::iter::once(&page).chain(&absorbed) {
            blocks = hand::keep(blocks, &old.body, &old.hand);
            hand_written.extend(old.hand.iter().filter(|text| !hand_written.contains(text)).cloned().collect::<Vec<_>>());
        }
        let kept: Vec<String> = hand_written.into_iter().filter(|text| blocks.iter().any(|block| block.text == *text)).collect();
        let body = block::render(&blocks);
        fits(&body, hand::chars(&kept), page.file())?;
        let heat = if absorbed.is_empty() { page.heat + 1 } else { page.heat + absorbed.iter().map(|page| page.heat).sum::<u32>() + 1 };
        let summary = self.summary(summary)?;
        Ok(Change::Rewrite { page, how, body, summary, heat, hand: kept, absorbed })
    }
}

/// Refuses a body over the limit. What a human wrote is theirs to make as long as they like.
fn fits(body: &str, by_hand: usize, name: &str) -> std::result::Result<(), Refusal> {
    let limit = MAX_SCENE_CHARS.max(by_hand + ROOM_BESIDE_HAND);
    let chars = pages::chars(body);
    if chars > limit {
        return refuse(format!("`{}` has {chars} characters, the limit is {limit}", pages::one_line(name, 80)));
    }
    Ok(())
}

/// Returns the title of a page: its first heading, else its file's name.
pub(super) fn title(page: &Page) -> String {
    let heading = block::parse(&page.body).into_iter().find(|block| block.text.starts_with("# ")).map(|block| block.text[2..].trim().to_owned());
    heading.unwrap_or_else(|| page.file().trim_end_matches(".md").to_owned())
}

/// Applies a checked plan; returns the public ids of what it made or ended.
pub(super) fn apply(tx: &Transaction<'_>, batch: &Batch, plan: &[Change], settings: &Settings, at: Instant) -> Result<Vec<String>> {
    carry_out(tx, batch, plan, settings, Author::Model, at)
}

/// Applies a plan in somebody's name.
pub(super) fn carry_out(tx: &Transaction<'_>, batch: &Batch, plan: &[Change], settings: &Settings, author: Author, at: Instant) -> Result<Vec<String>> {
    let mut changed = Vec::new();
    let mut write = |page: Option<&Page>, stem: &str, how: &str, body: &str, summary: &str, heat: u32, hand: &[String]| -> Result<PageId> {
        let write = Write { body, summary, heat, author, how, hand, beats: None, batch: Some(batch.id), at };
        let id = match page {
            Some(page) => {
                pages::save(tx, page.id, &write)?;
                page.id
            }
            None => pages::create(tx, &NewPage { scope: batch.scope, kind: Kind::Scene, stem, created_at: at }, &write)?,
        };
        super::retire(tx, id, settings)?;
        let page = pages::load(tx, id)?;
        changed.push(format!("{}@{}", page.uid, page.number));
        Ok(id)
    };
    for change in plan {
        match change {
            // A new page starts with heat 1, an update adds 1, a merge has the sum and 1 (as the reference system counts).
            Change::Create { stem, body, summary } => {
                write(None, stem, "create", body, summary, 1, &[])?;
            }
            Change::Rewrite { page, how, body, summary, heat, hand, absorbed } => {
                let id = write(Some(page), "", how, body, summary, *heat, hand)?;
                for other in absorbed {
                    pages::archive(tx, other, Some(id), at)?;
                }
            }
            Change::Archive { page } => pages::archive(tx, page, None, at)?,
        }
    }
    for change in plan {
        if let Change::Archive { page } = change {
            changed.push(page.uid.clone());
        }
    }
    Ok(changed)
}
