//! The rows of a forgetting, in one transaction: what rests on doomed rows goes with them, what
//! stands on its own stays.
//!
//! An atom that rests on a doomed message goes even if it rests on others too, because its words may
//! be the forgotten ones; those other messages are distilled again. A page loses the blocks that name
//! a doomed atom, in every revision; its title, summary and name are made anew if they could tell.

use super::needles::Needles;
use super::select::{Doomed, has_terms};
use crate::calendar::Calendar;
use crate::contract::{Instant, Outgoing, Result};
use crate::l0;
use crate::l2;
use crate::pages::{self, Block, Kind, Page, PageId, block};
use crate::projections::mirrors::{self, Layer};
use crate::store::failure;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What a cascade did.
#[derive(Clone, Debug, Default)]
pub(super) struct Cascade {
    /// How much went, by kind.
    pub counts: BTreeMap<&'static str, u64>,
    /// Public ids of messages, atoms and pages that went or lost text.
    pub uids: BTreeSet<String>,
    /// What to look for in files.
    pub needles: Needles,
    /// Requests that the host need not answer any more.
    pub cancelled: Vec<Outgoing>,
}

impl Cascade {
    pub(super) fn count(&mut self, kind: &'static str, number: usize) {
        if number > 0 {
            *self.counts.entry(kind).or_insert(0) += number as u64;
        }
    }

    /// Returns the counts as a document.
    pub(super) fn document(&self) -> Value {
        json!(self.counts)
    }
}

/// Carries the cascade out.
pub(super) fn run(tx: &Transaction<'_>, calendar: &Calendar, doomed: &Doomed, at: Instant) -> Result<Cascade> {
    let mut cascade = Cascade::default();
    let mut doomed = doomed.clone();
    for uid in uids(tx, "atoms", &doomed.atoms)? {
        // Its messages may stay: a rebuild must not make it again.
        execute(tx, "INSERT OR IGNORE INTO forgotten (identity, at) VALUES (?1, ?2)", params![uid, at as i64])?;
    }
    spread(tx, &mut doomed)?;
    collect(tx, &doomed, &mut cascade)?;
    mirrors(tx, calendar, &doomed)?;
    let words = Words { terms: doomed.terms.clone(), atoms: uids(tx, "atoms", &doomed.atoms)?, text: doomed_words(tx, &doomed)? };
    pages(tx, &doomed, &words, &mut cascade)?;
    ledger(tx, &doomed, &mut cascade, at)?;
    atoms(tx, &doomed, &mut cascade)?;
    messages(tx, &doomed, &mut cascade, at)?;
    empty_places(tx, &mut cascade)?;
    Ok(cascade)
}

fn list<T: rusqlite::types::FromSql>(db: &Connection, sql: &str, values: impl rusqlite::Params) -> Result<Vec<T>> {
    db.prepare_cached(sql).and_then(|mut query| query.query_map(values, |row| row.get(0))?.collect()).map_err(failure)
}

fn execute(db: &Connection, sql: &str, values: impl rusqlite::Params) -> Result<usize> {
    db.prepare_cached(sql).and_then(|mut statement| statement.execute(values)).map_err(failure)
}

/// Adds the atoms that hold the words of doomed rows.
fn spread(tx: &Transaction<'_>, doomed: &mut Doomed) -> Result<()> {
    let mut open: Vec<i64> = doomed.atoms.iter().copied().collect();
    for &message in &doomed.messages {
        open.extend(list::<i64>(tx, "SELECT atom FROM evidence WHERE message = ?1", [message])?);
    }
    let mut seen: BTreeSet<i64> = BTreeSet::new();
    // Ends because each atom is looked at once.
    while let Some(atom) = open.pop() {
        if !seen.insert(atom) {
            continue;
        }
        doomed.atoms.insert(atom);
        // A merged fact holds the words of its parts; a fact that replaced another has its own.
        open.extend(list::<i64>(tx, "SELECT newer FROM links WHERE older = ?1 AND kind = 'merges'", [atom])?);
    }
    Ok(())
}

fn uids(db: &Connection, table: &str, rows: &BTreeSet<i64>) -> Result<BTreeSet<String>> {
    let sql = format!("SELECT uid FROM {table} WHERE id = ?1");
    let mut uids = BTreeSet::new();
    for &row in rows {
        uids.extend(list::<String>(db, &sql, [row])?);
    }
    Ok(uids)
}

fn collect(tx: &Transaction<'_>, doomed: &Doomed, cascade: &mut Cascade) -> Result<()> {
    for (table, rows) in [("messages", &doomed.messages), ("atoms", &doomed.atoms)] {
        let sql = format!("SELECT text FROM {table} WHERE id = ?1");
        for &row in rows {
            for text in list::<String>(tx, &sql, [row])? {
                cascade.needles.add(&text);
            }
        }
        cascade.uids.extend(uids(tx, table, rows)?);
    }
    for &atom in &doomed.atoms {
        for quote in list::<String>(tx, "SELECT quote FROM evidence WHERE atom = ?1", [atom])? {
            cascade.needles.add_made(&quote);
        }
    }
    for term in doomed.terms.iter().filter(|term| term.len() >= 4) {
        cascade.needles.add(term);
    }
    Ok(())
}

fn mirrors(tx: &Transaction<'_>, calendar: &Calendar, doomed: &Doomed) -> Result<()> {
    for (layer, rows, sql) in [
        (Layer::Messages, &doomed.messages, "SELECT recorded_at FROM messages WHERE id = ?1"),
        (Layer::Atoms, &doomed.atoms, "SELECT believed_from FROM atoms WHERE id = ?1"),
    ] {
        let mut times: BTreeSet<i64> = BTreeSet::new();
        for &row in rows {
            times.extend(list::<i64>(tx, sql, [row])?);
        }
        mirrors::mark_days(tx, calendar, layer, times.into_iter().map(|at| at as u64))?;
        // Lines of atoms name the messages that they rest on and the atoms that they replaced.
        if layer == Layer::Atoms {
            for &atom in &doomed.atoms {
                let near: Vec<i64> =
                    list(tx, "SELECT believed_from FROM atoms JOIN links ON atoms.id = newer OR atoms.id = older WHERE newer = ?1 OR older = ?1", [atom])?;
                mirrors::mark_days(tx, calendar, layer, near.into_iter().map(|at| at as u64))?;
            }
        }
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

fn pages(tx: &Transaction<'_>, doomed: &Doomed, words: &Words, cascade: &mut Cascade) -> Result<()> {
    let all: Vec<i64> = list(tx, "SELECT id FROM pages ORDER BY id", [])?;
    for id in all {
        if doomed.pages.contains(&id) {
            let page = pages::load(tx, PageId(id))?;
            remove_page(tx, &page, cascade)?;
            continue;
        }
        page(tx, PageId(id), words, cascade)?;
    }
    for &(page, number) in &doomed.revisions {
        cascade.count("revisions", execute(tx, "DELETE FROM revisions WHERE page = ?1 AND number = ?2", params![page, number])?);
    }
    Ok(())
}

/// Takes the doomed blocks out of every revision of a page.
fn page(tx: &Transaction<'_>, id: PageId, words: &Words, cascade: &mut Cascade) -> Result<()> {
    let mut touched = 0;
    let page = pages::load(tx, id)?;
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
        return remove_page(tx, &page, cascade);
    }
    cascade.count("revisions-rewritten", touched);
    let telling_words = distinctive(words, &current);
    for ((number, blocks, _), revision) in bodies.iter().zip(&revisions) {
        rewrite(tx, id, *number, blocks, revision, words, &telling_words)?;
    }
    rename(tx, &page, &telling_words, words, cascade)?;
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

/// Empties requests, answers and drafts that hold what is forgotten; those under way are asked again.
fn ledger(tx: &Transaction<'_>, doomed: &Doomed, cascade: &mut Cascade, at: Instant) -> Result<()> {
    let mut related: BTreeSet<i64> = BTreeSet::new();
    for &message in &doomed.messages {
        // The batch that took it, and the next of its session, which had it as background.
        related.extend(list::<i64>(
            tx,
            "SELECT batches.id FROM messages JOIN batches ON batches.id IN (messages.batch,
               (SELECT min(id) FROM batches WHERE layer = 'l1' AND session = messages.session AND id > messages.batch)) WHERE messages.id = ?1",
            [message],
        )?);
    }
    let ids: Vec<i64> = list(tx, "SELECT id FROM requests WHERE state <> 'forgotten' ORDER BY id", [])?;
    for id in ids {
        let (body, answer, reason, state, batch): (String, String, String, String, i64) = tx
            .prepare_cached("SELECT body, coalesce(answer, ''), reason, state, batch FROM requests WHERE id = ?1")
            .and_then(|mut query| query.query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))))
            .map_err(failure)?;
        let prompt = serde_json::from_str::<Value>(&body)
            .ok()
            .and_then(|body| body.get("prompt").and_then(Value::as_str).map(str::to_owned))
            .unwrap_or_else(|| body.clone());
        let hit = related.contains(&batch) || [prompt.as_str(), answer.as_str(), reason.as_str()].iter().any(|text| holds(text, doomed, cascade));
        if !hit {
            continue;
        }
        cascade.count("requests", 1);
        execute(tx, "UPDATE requests SET body = '', answer = NULL, reason = '', state = 'forgotten', changed = '[]' WHERE id = ?1", [id])?;
        if state == "asked" {
            cascade.cancelled.push(Outgoing::CancelModel { id: format!("r{id}") });
            execute(tx, "UPDATE batches SET state = 'due', due_at = ?2 WHERE id = ?1 AND state = 'asked'", params![batch, at as i64])?;
        }
    }
    let drafts: Vec<i64> = list(tx, "SELECT id FROM batches WHERE draft <> '' OR reason <> '' ORDER BY id", [])?;
    for id in drafts {
        let (draft, reason): (String, String) = tx
            .prepare_cached("SELECT draft, reason FROM batches WHERE id = ?1")
            .and_then(|mut query| query.query_row([id], |row| Ok((row.get(0)?, row.get(1)?))))
            .map_err(failure)?;
        if holds(&draft, doomed, cascade) {
            cascade.count("drafts", 1);
            // A batch that is not done starts over from its rows.
            execute(tx, "UPDATE batches SET draft = '', stage = CASE state WHEN 'done' THEN stage ELSE '' END WHERE id = ?1", [id])?;
        }
        if holds(&reason, doomed, cascade) {
            execute(tx, "UPDATE batches SET reason = 'forgotten' WHERE id = ?1", [id])?;
        }
    }
    if !cascade.uids.is_empty() {
        // The reason may be a model's words about what is forgotten.
        execute(tx, "UPDATE persona_states SET requested = 'asked for before something was forgotten' WHERE requested IS NOT NULL", [])?;
    }
    Ok(())
}

fn holds(text: &str, doomed: &Doomed, cascade: &Cascade) -> bool {
    !text.is_empty() && (has_terms(text, &doomed.terms) || cascade.needles.found_in(text.as_bytes()) || super::names(text, &cascade.uids))
}

fn atoms(tx: &Transaction<'_>, doomed: &Doomed, cascade: &mut Cascade) -> Result<()> {
    // A belief that only doomed atoms had ended holds again.
    for &atom in &doomed.atoms {
        for older in list::<i64>(tx, "SELECT older FROM links WHERE newer = ?1", [atom])? {
            if doomed.atoms.contains(&older) {
                continue;
            }
            let others: Vec<i64> = list(tx, "SELECT newer FROM links WHERE older = ?1", [older])?;
            if others.iter().all(|newer| doomed.atoms.contains(newer)) {
                let restored =
                    execute(tx, "UPDATE atoms SET believed_to = NULL, valid_to = NULL, scene_batch = NULL WHERE id = ?1 AND believed_to IS NOT NULL", [older])?;
                cascade.count("atoms-restored", restored);
            }
        }
    }
    // Other messages behind doomed atoms are distilled again.
    let mut again: BTreeSet<i64> = BTreeSet::new();
    for &atom in &doomed.atoms {
        for message in list::<i64>(tx, "SELECT message FROM evidence WHERE atom = ?1", [atom])? {
            // Forgetting an atom alone does not bring it back from its own messages.
            if !doomed.messages.contains(&message) && !doomed.messages.is_empty() {
                again.insert(message);
            }
        }
    }
    for message in again {
        cascade.count("messages-requeued", execute(tx, "UPDATE messages SET batch = NULL WHERE id = ?1", [message])?);
    }
    for &atom in &doomed.atoms {
        cascade.count("evidence", execute(tx, "DELETE FROM evidence WHERE atom = ?1", [atom])?);
        cascade.count("links", execute(tx, "DELETE FROM links WHERE newer = ?1 OR older = ?1", [atom])?);
        cascade.count("atoms", execute(tx, "DELETE FROM atoms WHERE id = ?1", [atom])?);
    }
    clamp_cursors(tx)
}

/// Moves cursors back to rows that exist: the numbers of the newest rows may be given again, and
/// nothing may count as seen that was not.
pub(crate) fn clamp_cursors(tx: &Transaction<'_>) -> Result<()> {
    execute(tx, "UPDATE persona_states SET seen_atom = min(seen_atom, coalesce((SELECT max(id) FROM atoms), 0))", [])?;
    clamp_cursor(tx, "mirror-atoms", "atoms")?;
    clamp_cursor(tx, "mirror-messages", "messages")
}

fn clamp_cursor(tx: &Transaction<'_>, key: &str, table: &str) -> Result<()> {
    let sql = format!("UPDATE space SET value = min(CAST(value AS INTEGER), coalesce((SELECT max(id) FROM {table}), 0)) WHERE key = ?1");
    execute(tx, &sql, [key]).map(|_| ())
}

fn messages(tx: &Transaction<'_>, doomed: &Doomed, cascade: &mut Cascade, at: Instant) -> Result<()> {
    let mut sessions: BTreeSet<i64> = BTreeSet::new();
    for &message in &doomed.messages {
        let found: Option<(String, i64, Option<String>)> = tx
            .prepare_cached("SELECT uid, session, host_id FROM messages WHERE id = ?1")
            .and_then(|mut query| query.query_row([message], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional())
            .map_err(failure)?;
        let Some((uid, session, host_id)) = found else { continue };
        sessions.insert(session);
        // A host that tells the session again must not bring it back: identities stay, as hashes.
        l0::note_forgotten(tx, l0::SessionId(session), &uid, host_id.as_deref(), at)?;
        cascade.count("evidence", execute(tx, "DELETE FROM evidence WHERE message = ?1", [message])?);
        cascade.count("messages", execute(tx, "DELETE FROM messages WHERE id = ?1", [message])?);
    }
    for session in sessions {
        // The scene's name is a model's words about the messages.
        execute(tx, "UPDATE sessions SET last_scene = '' WHERE id = ?1", [session])?;
    }
    clamp_cursors(tx)
}

/// Removes sessions and scopes in which nothing is left, names included.
fn empty_places(tx: &Transaction<'_>, cascade: &mut Cascade) -> Result<()> {
    if !cascade.counts.contains_key("messages") && !cascade.counts.contains_key("atoms") {
        return Ok(());
    }
    let sessions: Vec<i64> = list(
        tx,
        "SELECT id FROM sessions WHERE NOT EXISTS (SELECT 1 FROM messages WHERE session = sessions.id)
           AND NOT EXISTS (SELECT 1 FROM atoms WHERE session = sessions.id)",
        [],
    )?;
    for session in sessions {
        if super::session_in_use(tx, session)? {
            continue;
        }
        execute(tx, "DELETE FROM drops WHERE session = ?1", [session])?;
        execute(tx, "UPDATE batches SET session = NULL WHERE session = ?1 AND state = 'done'", [session])?;
        execute(tx, "DELETE FROM requests WHERE batch IN (SELECT id FROM batches WHERE session = ?1)", [session])?;
        execute(tx, "DELETE FROM refusals WHERE batch IN (SELECT id FROM batches WHERE session = ?1)", [session])?;
        execute(tx, "DELETE FROM batches WHERE session = ?1", [session])?;
        cascade.count("sessions", execute(tx, "DELETE FROM sessions WHERE id = ?1", [session])?);
    }
    let scopes: Vec<i64> = list(
        tx,
        "SELECT id FROM scopes WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE scope = scopes.id) AND NOT EXISTS (SELECT 1 FROM pages WHERE scope = scopes.id)",
        [],
    )?;
    for scope in scopes {
        execute(tx, "DELETE FROM requests WHERE batch IN (SELECT id FROM batches WHERE scope = ?1)", [scope])?;
        execute(tx, "DELETE FROM refusals WHERE batch IN (SELECT id FROM batches WHERE scope = ?1)", [scope])?;
        execute(tx, "DELETE FROM batches WHERE scope = ?1", [scope])?;
        execute(tx, "DELETE FROM persona_states WHERE scope = ?1", [scope])?;
        execute(tx, "DELETE FROM folders WHERE scope = ?1", [scope])?;
        cascade.count("scopes", execute(tx, "DELETE FROM scopes WHERE id = ?1", [scope])?);
    }
    Ok(())
}
