//! Pages: the blocks that rest on what is forgotten go from every revision, and names, titles and
//! summaries that could tell are made anew.

use super::{Cascade, execute, list, uids};
use crate::contract::Result;
use crate::forget::select::{Doomed, has_terms};
use crate::l2;
use crate::pages::{self, Block, Kind, Page, PageId, block};
use crate::store::failure;
use rusqlite::{Transaction, params};
use std::collections::{BTreeMap, BTreeSet};

/// Takes what is doomed out of every page.
pub(super) fn rewrite_all(tx: &Transaction<'_>, doomed: &Doomed, cascade: &mut Cascade) -> Result<()> {
    let mut words = Words { terms: Vec::new(), atoms: uids(tx, "atoms", &doomed.atoms)?, text: doomed_words(tx, doomed)? };
    let all: Vec<i64> = list(tx, "SELECT id FROM pages ORDER BY id", [])?;
    for id in all {
        let page = pages::load(tx, PageId(id))?;
        if doomed.pages.contains(&id) {
            remove_page(tx, &page, cascade)?;
            continue;
        }
        words.terms = doomed.terms_in(page.scope.0).to_vec();
        rewrite_page(tx, &page, &words, cascade)?;
    }
    for &(page, number) in &doomed.revisions {
        cascade.count("revisions", execute(tx, "DELETE FROM revisions WHERE page = ?1 AND number = ?2", params![page, number])?);
    }
    Ok(())
}

/// What marks a text as resting on what is forgotten.
struct Words {
    terms: Vec<String>,
    atoms: BTreeSet<String>,
    /// Words of the doomed texts, lower case.
    text: BTreeSet<String>,
}

fn doomed_words(tx: &Transaction<'_>, doomed: &Doomed) -> Result<BTreeSet<String>> {
    let mut words = BTreeSet::new();
    for (sql, rows) in [("SELECT text FROM messages WHERE id = ?1", &doomed.messages), ("SELECT text || ' ' || scene FROM atoms WHERE id = ?1", &doomed.atoms)]
    {
        for &row in rows {
            for text in list::<String>(tx, sql, [row])? {
                words.extend(words_of(&text));
            }
        }
    }
    Ok(words)
}

/// Returns the words of a text, lower case, and the pairs of characters of scripts without blanks.
fn words_of(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let letters: Vec<char> = word.chars().collect();
        if letters.iter().any(|&c| l2::is_wide(c)) {
            words.extend(letters.windows(2).map(|pair| pair.iter().collect::<String>()));
        } else {
            words.insert(word.to_lowercase());
        }
    }
    words
}

impl Words {
    fn marks(&self, block: &Block) -> bool {
        block.atoms.iter().any(|atom| self.atoms.contains(atom)) || has_terms(&block.text, &self.terms)
    }
}

/// Takes the doomed blocks out of every revision of a page.
fn rewrite_page(tx: &Transaction<'_>, page: &Page, words: &Words, cascade: &mut Cascade) -> Result<()> {
    let id = page.id;
    let mut touched = 0;
    // Blocks may have lost their comments to a human; `grounds` still knows.
    let mut unmarked: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
    let mut query = tx.prepare_cached("SELECT revision, place, atom FROM grounds WHERE page = ?1").map_err(failure)?;
    let rows = query.query_map([id.0], |row| Ok((row.get::<_, u32>(0)?, row.get::<_, u32>(1)?, row.get::<_, String>(2)?))).map_err(failure)?;
    for row in rows {
        let (revision, place, atom) = row.map_err(failure)?;
        if words.atoms.contains(&atom) {
            unmarked.entry(revision).or_default().insert(place as usize);
        }
    }
    let revisions = pages::revisions(tx, id)?;
    let mut removed_blocks = 0;
    let mut bodies: Vec<(u32, Vec<Block>, bool)> = Vec::new();
    for revision in &revisions {
        let marked = unmarked.get(&revision.number);
        let mut gone = 0;
        let mut kept = Vec::new();
        for (place, block) in block::parse(&revision.body).into_iter().enumerate() {
            if words.marks(&block) || marked.is_some_and(|places| places.contains(&place)) {
                cascade.needles.add_made(&block.text);
                gone += 1;
            } else {
                kept.push(block);
            }
        }
        removed_blocks += gone;
        touched += usize::from(gone > 0);
        bodies.push((revision.number, kept, gone > 0));
    }
    let telling = has_terms(&page.summary, &words.terms) || has_terms(&page.path, &words.terms);
    if touched == 0 && !telling {
        return Ok(());
    }
    cascade.count("page-blocks", removed_blocks);
    cascade.uids.insert(page.uid.clone());
    let current = bodies.iter().find(|(number, _, _)| *number == page.number).map(|(_, blocks, _)| blocks.clone()).unwrap_or_default();
    if current.iter().all(Block::is_heading) {
        return remove_page(tx, page, cascade);
    }
    cascade.count("revisions-rewritten", touched);
    let telling_words = distinctive(words, &current);
    for ((number, blocks, _), revision) in bodies.iter().zip(&revisions) {
        rewrite(tx, id, *number, blocks, revision, words, &telling_words)?;
    }
    rename(tx, page, &telling_words, words, cascade)?;
    execute(
        tx,
        "UPDATE projections SET stale = 1 WHERE page = ?1 OR page IN (SELECT id FROM pages WHERE scope = ?2 AND kind = 'persona')",
        params![id.0, page.scope.0],
    )?;
    // What else the page rests on is looked at again, and the persona looks at the page.
    execute(tx, "DELETE FROM persona_seen WHERE page = ?1", [id.0])?;
    Ok(())
}

/// Returns the words that only what is forgotten has said.
fn distinctive(words: &Words, kept: &[Block]) -> BTreeSet<String> {
    let still: BTreeSet<String> = kept.iter().filter(|block| !block.is_heading()).flat_map(|block| words_of(&block.text)).collect();
    words.text.difference(&still).cloned().collect()
}

fn tells(text: &str, telling: &BTreeSet<String>, words: &Words) -> bool {
    has_terms(text, &words.terms) || words_of(text).iter().any(|word| telling.contains(word))
}

/// Writes a revision's remaining blocks in its place.
fn rewrite(tx: &Transaction<'_>, id: PageId, number: u32, blocks: &[Block], old: &pages::Revision, words: &Words, telling: &BTreeSet<String>) -> Result<()> {
    let blocks: Vec<Block> = blocks
        .iter()
        .enumerate()
        .filter_map(|(place, block)| {
            if !block.is_heading() || !tells(&block.text, telling, words) {
                return Some(block.clone());
            }
            // The title tells: the page gets a plain one. Other headings go.
            (place == 0).then(|| Block::new("# …", Vec::new()))
        })
        .collect();
    let body = block::render(&blocks);
    let hand: Vec<&String> = old.hand.iter().filter(|text| blocks.iter().any(|block| block.text == **text)).collect();
    let hand = serde_json::to_string(&hand).expect("a list of strings serializes");
    let summary = if old.summary.is_empty() || !tells(&old.summary, telling, words) && body == old.body { old.summary.clone() } else { summary(&blocks) };
    // Places have shifted: the grounds are read again from the ids in the body.
    execute(tx, "DELETE FROM grounds WHERE page = ?1 AND revision = ?2", params![id.0, number])?;
    for (place, block) in blocks.iter().enumerate() {
        for atom in &block.atoms {
            execute(tx, "INSERT OR IGNORE INTO grounds (page, revision, place, atom) VALUES (?1, ?2, ?3, ?4)", params![id.0, number, place as i64, atom])?;
        }
    }
    execute(
        tx,
        "UPDATE revisions SET body = ?3, summary = ?4, hand = ?5, hash = ?6 WHERE page = ?1 AND number = ?2",
        params![id.0, number, body, summary, hand, pages::hash(&body)],
    )
    .map(|_| ())
}

fn summary(blocks: &[Block]) -> String {
    let first: Vec<&str> = blocks.iter().filter(|block| !block.is_heading()).take(2).map(|block| block.text.trim_start_matches("- ")).collect();
    pages::one_line(&first.join(" · "), 160)
}

/// Gives a page a plain name if its own tells.
fn rename(tx: &Transaction<'_>, page: &Page, telling: &BTreeSet<String>, words: &Words, cascade: &mut Cascade) -> Result<()> {
    if page.kind != Kind::Scene || !tells(page.file(), telling, words) {
        return Ok(());
    }
    let folder = page.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let path = format!("{folder}/scene-{}.md", &page.uid[2..10]);
    execute(tx, "UPDATE projections SET page = NULL, stale = 1 WHERE path = ?1", [&page.path])?;
    execute(tx, "UPDATE pages SET path = ?2 WHERE id = ?1", params![page.id.0, path])?;
    execute(tx, "INSERT INTO projections (path, page) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET page = excluded.page, stale = 1", params![path, page.id.0])?;
    cascade.count("pages-renamed", 1);
    Ok(())
}

/// Removes a page with all its revisions; the atoms that it rested on and that stay wait for L2 again.
fn remove_page(tx: &Transaction<'_>, page: &Page, cascade: &mut Cascade) -> Result<()> {
    let revisions = pages::revisions(tx, page.id)?;
    for revision in &revisions {
        for block in block::parse(&revision.body) {
            cascade.needles.add_made(&block.text);
        }
        cascade.needles.add_made(&revision.summary);
    }
    cascade.uids.insert(page.uid.clone());
    cascade.count("revisions", revisions.len());
    cascade.count(if page.kind == Kind::Scene { "scenes" } else { "personas" }, 1);
    if page.kind == Kind::Scene {
        execute(tx, "UPDATE atoms SET scene_batch = NULL WHERE believed_to IS NULL AND uid IN (SELECT atom FROM grounds WHERE page = ?1)", [page.id.0])?;
    }
    execute(tx, "UPDATE projections SET page = NULL, stale = 1 WHERE page = ?1", [page.id.0])?;
    execute(tx, "UPDATE pages SET merged_into = NULL WHERE merged_into = ?1", [page.id.0])?;
    execute(tx, "DELETE FROM grounds WHERE page = ?1", [page.id.0])?;
    execute(tx, "DELETE FROM pages WHERE id = ?1", [page.id.0])?;
    execute(tx, "UPDATE projections SET stale = 1 WHERE page IN (SELECT id FROM pages WHERE scope = ?1 AND kind = 'persona')", [page.scope.0])?;
    Ok(())
}
