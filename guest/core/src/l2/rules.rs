//! Scenes without a model: atoms are grouped by the scene that L1 named, else by their kind.
//!
//! The page is a list of the facts themselves, so that it is true even if it is plain.

use super::apply::{Change, carry_out, title};
use super::{Fact, MAX_NEW_SCENES, MAX_SCENE_CHARS, choose, prompt};
use crate::calendar::Calendar;
use crate::contract::Result;
use crate::pages::{self, Author, Block, Page, block, hand, name};
use crate::store::failure;
use crate::work::{Batch, Job};
use rusqlite::params;
use std::collections::{BTreeMap, BTreeSet};

/// Longest line of a page, in characters: a seventh of the page.
const MAX_LINE: usize = 200;

/// Longest summary, in characters.
const MAX_SUMMARY: usize = 160;

/// Groups the facts and writes the pages; returns what changed. Facts that would need a second new
/// page wait for the next batch, which is due at once.
pub(super) fn run(job: &mut Job<'_>, batch: &Batch, facts: &[Fact]) -> Result<Vec<String>> {
    let calendar = Calendar::new(&job.settings.timezone.0)?;
    let mut scenes = pages::live(job.tx, batch.scope)?;
    let mut changed = Vec::new();
    let mut created = 0;
    let mut later: Vec<i64> = Vec::new();
    let mut touched: BTreeSet<i64> = BTreeSet::new();
    for (heading, group) in groups(facts) {
        let stem = name::stem(&heading);
        let known = scenes.iter().find(|scene| scene.file().trim_end_matches(".md").to_lowercase() == stem.to_lowercase());
        let mut plan = Vec::new();
        if let Some(scene) = known {
            touched.insert(scene.id.0);
            plan.push(rewrite(job, scene, &group, &calendar)?);
        } else if created == MAX_NEW_SCENES {
            later.extend(group.iter().map(|fact| fact.id));
            continue;
        } else {
            if scenes.len() >= job.settings.persona.max_scenes as usize {
                match join_coldest(&scenes) {
                    Some(join) => plan.push(join),
                    None => {
                        // A bound of one scene: everything goes onto it.
                        if let Some(scene) = scenes.first() {
                            touched.insert(scene.id.0);
                            let change = rewrite(job, scene, &group, &calendar)?;
                            changed.extend(carry_out(job.tx, batch, &[change], job.settings, Author::Rules, job.at)?);
                            scenes = pages::live(job.tx, batch.scope)?;
                        }
                        continue;
                    }
                }
            }
            created += 1;
            let lines: Vec<Block> = group.iter().map(|fact| line(fact, &calendar)).collect();
            let body = page(&heading, lines);
            plan.push(Change::Create { stem, summary: summary(&body), body });
        }
        changed.extend(carry_out(job.tx, batch, &plan, job.settings, Author::Rules, job.at)?);
        scenes = pages::live(job.tx, batch.scope)?;
    }
    for id in super::outdated(job.tx, batch.scope)? {
        if let Some(scene) = scenes.iter().find(|scene| scene.id.0 == id && !touched.contains(&id)) {
            let change = rewrite(job, scene, &[], &calendar)?;
            changed.extend(carry_out(job.tx, batch, &[change], job.settings, Author::Rules, job.at)?);
        }
    }
    for id in later {
        job.tx
            .prepare_cached("UPDATE atoms SET scene_batch = NULL WHERE id = ?1 AND scene_batch = ?2")
            .and_then(|mut update| update.execute(params![id, batch.id.0]))
            .map_err(failure)?;
    }
    Ok(changed)
}

/// Returns the facts by the page that they belong to, in the order in which the pages first occur.
fn groups(facts: &[Fact]) -> Vec<(String, Vec<&Fact>)> {
    let mut order: Vec<(String, Vec<&Fact>)> = Vec::new();
    let mut place: BTreeMap<String, usize> = BTreeMap::new();
    for fact in facts {
        let heading = heading(fact);
        let index = *place.entry(name::stem(&heading).to_lowercase()).or_insert_with(|| {
            order.push((heading, Vec::new()));
            order.len() - 1
        });
        order[index].1.push(fact);
    }
    order
}

fn heading(fact: &Fact) -> String {
    if !fact.scene.trim().is_empty() {
        return pages::one_line(&fact.scene, 80);
    }
    let chinese = fact.text.chars().any(choose::is_wide);
    match (fact.kind.as_str(), chinese) {
        ("persona", false) => "About the user",
        ("persona", true) => "关于用户",
        ("instruction", false) => "Standing instructions",
        ("instruction", true) => "长期要求",
        (_, false) => "What happened",
        (_, true) => "经历",
    }
    .into()
}

fn line(fact: &Fact, calendar: &Calendar) -> Block {
    let text = pages::one_line(&fact.text, MAX_LINE);
    let text = match fact.event_start {
        Some(at) => format!("- {}: {text}", calendar.day(at)),
        None => format!("- {text}"),
    };
    Block::new(text, vec![fact.uid.clone()])
}

fn page(title: &str, lines: Vec<Block>) -> String {
    let mut blocks = vec![Block::new(format!("# {title}"), Vec::new())];
    blocks.extend(lines);
    fold(blocks, &[])
}

/// Drops the oldest lines that the rules or a model wrote until the page fits. The facts stay in L1
/// and in the page's history.
fn fold(mut blocks: Vec<Block>, hand: &[String]) -> String {
    let limit = MAX_SCENE_CHARS.max(hand::chars(hand) + MAX_SCENE_CHARS / 3);
    loop {
        let body = block::render(&blocks);
        if pages::chars(&body) <= limit {
            return body;
        }
        // The newest line always fits: it has at most MAX_LINE characters.
        let Some(oldest) = blocks.iter().position(|block| !block.is_heading() && !hand.contains(&block.text)) else { return body };
        blocks.remove(oldest);
    }
}

fn summary(body: &str) -> String {
    let lines: Vec<String> =
        block::parse(body).into_iter().filter(|block| !block.is_heading()).map(|block| block.text.trim_start_matches("- ").to_owned()).collect();
    let newest: Vec<&str> = lines.iter().rev().take(3).map(String::as_str).collect();
    pages::one_line(&newest.join(" · "), MAX_SUMMARY)
}

/// Rewrites a page: lines that rest only on what is no longer believed go, new facts come.
fn rewrite(job: &Job<'_>, scene: &Page, group: &[&Fact], calendar: &Calendar) -> Result<Change> {
    let struck = prompt::struck(job.tx, scene)?;
    let mut blocks = Vec::new();
    for block in block::parse(&scene.body) {
        let mut holds = block.atoms.is_empty();
        for atom in &block.atoms {
            // An atom that retention has removed ended with its evidence, not with its truth.
            holds |= super::fact_by_uid(job.tx, atom)?.is_none_or(|fact| fact.believed);
        }
        if holds || scene.hand.contains(&block.text) {
            blocks.push(block);
        }
    }
    for fact in group {
        let shown = blocks.iter().any(|block| block.atoms.contains(&fact.uid));
        if !shown && !struck.contains(&fact.uid) {
            blocks.push(line(fact, calendar));
        }
    }
    let body = fold(blocks, &scene.hand);
    Ok(Change::Rewrite {
        how: "update",
        summary: summary(&body),
        body,
        heat: scene.heat + 1,
        hand: scene.hand.clone(),
        absorbed: Vec::new(),
        page: scene.clone(),
    })
}

/// Joins the two coldest scenes to make room: the older lines of the colder one go under the other's.
fn join_coldest(scenes: &[Page]) -> Option<Change> {
    // `live` orders by heat, hottest first.
    let [.., keeper, absorbed] = scenes else { return None };
    let mut blocks = vec![Block::new(format!("# {}", title(keeper)), Vec::new())];
    let mut hand_written = keeper.hand.clone();
    for page in [absorbed, keeper] {
        blocks.extend(block::parse(&page.body).into_iter().filter(|block| !block.is_heading()));
    }
    hand_written.extend(absorbed.hand.iter().filter(|text| !keeper.hand.contains(text)).cloned());
    let body = fold(blocks, &hand_written);
    Some(Change::Rewrite {
        how: "merge",
        summary: summary(&body),
        body,
        heat: keeper.heat + absorbed.heat + 1,
        hand: hand_written,
        absorbed: vec![absorbed.clone()],
        page: keeper.clone(),
    })
}
