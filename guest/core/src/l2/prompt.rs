//! The question about scenes: facts and pages as material, limits as numbers.

use super::{Fact, MAX_NEEDED, MAX_NEW_SCENES, MAX_SCENE_CHARS};
use crate::calendar::Calendar;
use crate::contract::{Instant, Result};
use crate::pages::{Page, block};
use crate::store::failure;
use rusqlite::{Connection, OptionalExtension};
use serde_json::json;

/// The system prompt.
pub(super) const SYSTEM: &str = include_str!("../../prompts/l2-scenes.md");

/// What the question is made of.
pub(super) struct Input<'a> {
    pub now: Instant,
    pub calendar: &'a Calendar,
    pub max_scenes: usize,
    pub facts: &'a [Fact],
    pub scenes: &'a [Page],
    pub shown: &'a [&'a Page],
    pub rounds_left: u32,
    pub problem: &'a str,
}

/// Returns the user prompt.
pub(super) fn build(db: &Connection, input: &Input<'_>) -> Result<String> {
    let mut prompt = format!("Now: {}\n\n## All pages\n\n", input.calendar.iso(input.now));
    if input.scenes.is_empty() {
        prompt.push_str("There is none yet.\n");
    }
    for scene in input.scenes {
        prompt.push_str(&format!("- {} (heat {}): {}\n", scene.file(), scene.heat, scene.summary));
    }
    for scene in input.shown {
        prompt.push_str(&format!("\n## Page {}, in full\n\n{}\n", scene.file(), scene.body));
        for hand in &scene.hand {
            prompt.push_str(&format!("\nWritten by hand, kept as it is: {}\n", json!(hand)));
        }
        for (gone, by) in no_longer_believed(db, scene)? {
            match by {
                Some(by) => prompt.push_str(&format!("\nNo longer believed: {gone}; in its place: {by}\n")),
                None => prompt.push_str(&format!("\nNo longer believed: {gone}\n")),
            }
        }
        for atom in struck(db, scene)? {
            prompt.push_str(&format!("\nStruck by the user, not to be stated on this page: {atom}\n"));
        }
    }
    prompt.push_str("\n## New facts\n\n");
    for fact in input.facts {
        let mut line = json!({"id": fact.uid, "kind": fact.kind, "by": fact.origin, "scene": fact.scene, "text": fact.text});
        if let Some(at) = fact.event_start {
            line["happened"] = json!(input.calendar.iso(at));
        }
        prompt.push_str(&format!("{line}\n"));
    }
    let count = input.scenes.len();
    prompt.push_str(&format!(
        "\n## Limits\n\n- {count} of {max} pages exist; after your answer at most {max} may.\n- At most {MAX_NEW_SCENES} new page.\n- A page has at most {MAX_SCENE_CHARS} characters, ids included.\n",
        max = input.max_scenes
    ));
    if count >= input.max_scenes {
        prompt.push_str("- There is no room: a new page needs a merge.\n");
    } else if count + 3 >= input.max_scenes {
        prompt.push_str("- There is little room: prefer updates.\n");
    }
    if input.rounds_left > 0 {
        prompt.push_str(&format!("- You may ask for at most {MAX_NEEDED} more pages in full.\n"));
    } else {
        prompt.push_str("- You may not ask for more pages.\n");
    }
    if !input.problem.is_empty() {
        prompt.push_str(&format!("\n## Your last answer was refused\n\n{}\n", input.problem));
    }
    Ok(prompt)
}

/// Returns the atoms behind a scene's current revision that are no longer believed, and what took their place.
fn no_longer_believed(db: &Connection, scene: &Page) -> Result<Vec<(String, Option<String>)>> {
    let mut gone = Vec::new();
    let ended: Vec<(i64, String)> = db
        .prepare_cached(
            "SELECT DISTINCT atoms.id, atoms.uid FROM grounds JOIN atoms ON atoms.uid = grounds.atom
              WHERE page = ?1 AND revision = ?2 AND believed_to IS NOT NULL ORDER BY atoms.id",
        )
        .and_then(|mut query| query.query_map(rusqlite::params![scene.id.0, scene.number], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .map_err(failure)?;
    for (id, uid) in ended {
        let by: Option<String> = db
            .prepare_cached("SELECT uid FROM links JOIN atoms ON atoms.id = newer WHERE older = ?1 ORDER BY newer DESC LIMIT 1")
            .and_then(|mut query| query.query_row([id], |row| row.get(0)).optional())
            .map_err(failure)?;
        gone.push((uid, by));
    }
    Ok(gone)
}

/// Returns the atoms whose statement a human removed from a page.
pub(crate) fn struck(db: &Connection, page: &Page) -> Result<Vec<String>> {
    db.prepare_cached("SELECT atom FROM struck WHERE page = ?1 ORDER BY atom")
        .and_then(|mut query| query.query_map([page.id.0], |row| row.get(0))?.collect())
        .map_err(failure)
}

/// Returns the atoms behind a page's current revision.
pub(crate) fn grounds(db: &Connection, page: &Page) -> Result<Vec<String>> {
    let mut atoms: Vec<String> = db
        .prepare_cached("SELECT DISTINCT atom FROM grounds WHERE page = ?1 AND revision = ?2 ORDER BY atom")
        .and_then(|mut query| query.query_map(rusqlite::params![page.id.0, page.number], |row| row.get(0))?.collect())
        .map_err(failure)?;
    for block in block::parse(&page.body) {
        atoms.extend(block.atoms);
    }
    atoms.sort_unstable();
    atoms.dedup();
    Ok(atoms)
}
