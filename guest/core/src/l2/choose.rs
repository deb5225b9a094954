//! Which scenes a model sees in full: those that the new atoms are likely to touch.

use super::{Fact, MAX_SHOWN};
use crate::contract::Result;
use crate::pages::{Page, name};
use crate::store::failure;
use rusqlite::Connection;
use std::collections::BTreeSet;

/// A fact whose scene bears the page's name weighs as much as this many common words.
const SAME_NAME: usize = 50;

/// A fact that takes the place of one on the page weighs as much as this many common words.
const SUPERSEDES: usize = 100;

/// Returns at most [`MAX_SHOWN`] scenes: outdated ones and those closest to the facts, in the order given.
pub(super) fn scenes<'a>(db: &Connection, scenes: &'a [Page], facts: &[Fact], outdated: &[i64]) -> Result<Vec<&'a Page>> {
    if scenes.len() <= MAX_SHOWN {
        return Ok(scenes.iter().collect());
    }
    let words = shingles(facts.iter().map(|fact| fact.text.as_str()));
    let stems: BTreeSet<String> = facts.iter().filter(|fact| !fact.scene.is_empty()).map(|fact| name::stem(&fact.scene).to_lowercase()).collect();
    let mut ranked = Vec::new();
    for (index, scene) in scenes.iter().enumerate() {
        let mut score = shingles([scene.body.as_str(), scene.summary.as_str()]).intersection(&words).count();
        let stem = scene.file().trim_end_matches(".md").to_lowercase();
        if stems.contains(&stem) {
            score += SAME_NAME;
        }
        for fact in facts {
            score += SUPERSEDES * usize::from(follows(db, fact, scene)?);
        }
        if outdated.contains(&scene.id.0) {
            score += SUPERSEDES;
        }
        ranked.push((std::cmp::Reverse(score), index));
    }
    ranked.sort_unstable();
    let mut chosen: Vec<usize> = ranked.into_iter().take(MAX_SHOWN).map(|(_, index)| index).collect();
    chosen.sort_unstable();
    Ok(chosen.into_iter().map(|index| &scenes[index]).collect())
}

fn follows(db: &Connection, fact: &Fact, scene: &Page) -> Result<bool> {
    db.prepare_cached(
        "SELECT 1 FROM links JOIN atoms ON atoms.id = older JOIN grounds ON grounds.atom = atoms.uid
          WHERE newer = ?1 AND grounds.page = ?2 AND grounds.revision = ?3",
    )
    .and_then(|mut query| query.exists(rusqlite::params![fact.id, scene.id.0, scene.number]))
    .map_err(failure)
}

/// Returns the words of texts, lower case, and the pairs of characters of scripts without blanks.
pub(super) fn shingles<'a>(texts: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    let mut set = BTreeSet::new();
    for text in texts {
        for word in text.split(|c: char| !c.is_alphanumeric()) {
            let letters: Vec<char> = word.chars().collect();
            if letters.iter().any(|&c| is_wide(c)) {
                set.extend(letters.windows(2).map(|pair| pair.iter().collect::<String>()));
            } else if letters.len() > 3 {
                set.insert(word.to_lowercase());
            }
        }
    }
    set
}

/// Returns whether a character belongs to a script written without blanks (Han, kana, hangul).
pub(crate) fn is_wide(c: char) -> bool {
    matches!(u32::from(c), 0x2E80..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}
