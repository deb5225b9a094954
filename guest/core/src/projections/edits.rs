//! Edits by humans: found by hash, kept as revisions, never overwritten.

use super::files::{parse_scene_file, strip_navigation};
use super::{Noticed, Projection, read};
use crate::calendar::Calendar;
use crate::contract::{Instant, Result};
use crate::disk::DiskError;
use crate::l0::ScopeId;
use crate::pages::{self, Author, Kind, NewPage, Page, PageId, Write, block, hand, name};
use crate::store::{Store, disk_failure, failure};
use crate::{l3, projections};
use rusqlite::{Transaction, params};

/// Longest file that is taken as an edit, in bytes; a longer one is moved aside.
const MAX_FILE: usize = 1 << 20;

/// New files that one look adopts.
const MAX_NEW_FILES: usize = 16;

/// Returns whether bytes are what we wrote: `shown` is their hash.
pub(super) fn same(bytes: &[u8], shown: &str) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| pages::hash(text) == shown)
}

/// Takes a file's bytes as a human's edit of a page. Afterwards the file is stale, or, if its body
/// was emptied, waits for a new persona.
pub(super) fn take(store: &mut Store, _calendar: &Calendar, file: &Projection, id: PageId, bytes: Vec<u8>, at: Instant, noticed: &mut Noticed) -> Result<()> {
    let text = match String::from_utf8(bytes) {
        Ok(text) if text.len() <= MAX_FILE => text,
        _ => return move_aside(store, file, noticed),
    };
    let page = pages::load(store.db(), id)?;
    let (body, summary) = match page.kind {
        Kind::Scene => {
            let parsed = parse_scene_file(&text);
            (parsed.body, parsed.summary.unwrap_or_else(|| page.summary.clone()))
        }
        Kind::Persona => (strip_navigation(&text), page.summary.clone()),
    };
    let shown = pages::hash(&text);
    let summary = pages::one_line(&summary, crate::l2::MAX_SUMMARY_CHARS);
    let number = store.write(|tx| {
        let mut number = None;
        let mut stale = true;
        if body.is_empty() {
            if page.kind == Kind::Persona {
                l3::lost(tx, page.scope, at)?;
                // Nothing is written until there is a new body: the human can see that it is empty.
                stale = false;
            }
        } else if body != page.body || summary != page.summary {
            number = Some(revise(tx, &page, file.stale, &body, &summary, at)?);
        }
        tx.prepare_cached(
            "INSERT INTO projections (path, page, shown, stale) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET page = excluded.page, shown = excluded.shown, stale = excluded.stale",
        )
        .and_then(|mut update| update.execute(params![file.path, id.0, shown, stale]))
        .map_err(failure)?;
        Ok(number)
    })?;
    if let Some(number) = number {
        let name = format!("{}@{number}", page.uid);
        if file.stale {
            noticed.conflicts.push(name.clone());
        }
        noticed.edits.push(name);
    }
    Ok(())
}

/// Stores the human's text as the current revision. In a conflict the engine's newer revision stays
/// in the history, and the atoms that it had brought wait for L2 again.
fn revise(tx: &Transaction<'_>, page: &Page, conflict: bool, body: &str, summary: &str, at: Instant) -> Result<u32> {
    let mut before = page.body.clone();
    let mut before_hand = page.hand.clone();
    let mut struck_from = page.body.clone();
    if conflict
        && page.number > 1
        && let Some(older) = pages::revision(tx, page.id, page.number - 1)?
    {
        // The human had the older revision before them.
        before = format!("{before}\n\n{}", older.body);
        before_hand.extend(older.hand);
        struck_from = older.body;
        tx.prepare_cached(
            "UPDATE atoms SET scene_batch = NULL WHERE believed_to IS NULL
               AND scene_batch = (SELECT batch FROM revisions WHERE page = ?1 AND number = ?2)
               AND uid IN (SELECT atom FROM grounds WHERE page = ?1 AND revision = ?2)",
        )
        .and_then(|mut update| update.execute(params![page.id.0, page.number]))
        .map_err(failure)?;
    }
    let hand = hand::written(&before, &before_hand, body);
    for atom in hand::struck(&struck_from, body) {
        tx.prepare_cached("INSERT OR IGNORE INTO struck (page, atom) VALUES (?1, ?2)")
            .and_then(|mut insert| insert.execute(params![page.id.0, atom]))
            .map_err(failure)?;
    }
    let write =
        Write { body, summary, heat: page.heat, author: Author::Human, how: "file", hand: &hand, beats: conflict.then_some(page.number), batch: None, at };
    pages::save(tx, page.id, &write)
}

/// Keeps a file that is no text under another name, so that ours can be written.
fn move_aside(store: &mut Store, file: &Projection, noticed: &mut Noticed) -> Result<()> {
    let mut aside = format!("{}.unreadable", file.path);
    for number in 2..1000 {
        match store.disk().exists(&aside) {
            Ok(false) => break,
            Ok(true) => aside = format!("{}.unreadable-{number}", file.path),
            Err(error) => return Err(disk_failure(&aside, error)),
        }
    }
    store.disk().rename(&file.path, &aside).map_err(|error| disk_failure(&aside, error))?;
    let parent = file.path.rsplit_once('/').map_or("", |(parent, _)| parent);
    store.disk().sync_dir(parent).map_err(|error| disk_failure(parent, error))?;
    noticed.unreadable.push(aside);
    projections::mark(store, &file.path, &file.shown, true)
}

/// Makes pages of Markdown files that a human put beside the scenes.
pub(super) fn adopt_new_files(store: &mut Store, scope: ScopeId, at: Instant, noticed: &mut Noticed) -> Result<()> {
    let folder: String = store
        .db()
        .prepare_cached("SELECT folder FROM folders WHERE scope = ?1")
        .and_then(|mut query| query.query_row([scope.0], |row| row.get(0)))
        .map_err(failure)?;
    let scenes = format!("{folder}scenes");
    let names = match store.disk().list(&scenes) {
        Ok(names) => names,
        Err(DiskError::NotFound) => return Ok(()),
        Err(error) => return Err(disk_failure(&scenes, error)),
    };
    let mut adopted = 0;
    for file in names.iter().filter(|name| name.ends_with(".md") && !name.starts_with('.')) {
        let path = format!("{scenes}/{file}");
        let known = store.db().prepare_cached("SELECT 1 FROM projections WHERE path = ?1").and_then(|mut query| query.exists([&path])).map_err(failure)?;
        if known || adopted == MAX_NEW_FILES {
            continue;
        }
        let Some(text) = read(store, &path)?.filter(|bytes| bytes.len() <= MAX_FILE).and_then(|bytes| String::from_utf8(bytes).ok()) else { continue };
        let parsed = parse_scene_file(&text);
        if parsed.body.is_empty() {
            continue;
        }
        let hand: Vec<String> = block::parse(&parsed.body).into_iter().map(|block| block.text).collect();
        let summary = pages::one_line(&parsed.summary.clone().unwrap_or_else(|| first_line(&parsed.body)), crate::l2::MAX_SUMMARY_CHARS);
        let shown = pages::hash(&text);
        let page = store.write(|tx| {
            let write = Write {
                body: &parsed.body,
                summary: &summary,
                heat: parsed.heat.max(1),
                author: Author::Human,
                how: "file",
                hand: &hand,
                beats: None,
                batch: None,
                at,
            };
            let new = NewPage { scope, kind: Kind::Scene, stem: &name::stem(file), created_at: at };
            let id = pages::create(tx, &new, &write)?;
            let page = pages::load(tx, id)?;
            if page.path == path {
                tx.execute("UPDATE projections SET shown = ?2 WHERE path = ?1", params![path, shown]).map_err(failure)?;
            } else {
                // The name had to be normalized: the page has its own file, the other one goes.
                tx.execute("INSERT INTO projections (path, page, shown) VALUES (?1, NULL, ?2)", params![path, shown]).map_err(failure)?;
            }
            Ok(page)
        })?;
        adopted += 1;
        noticed.edits.push(format!("{}@{}", page.uid, page.number));
    }
    Ok(())
}

fn first_line(body: &str) -> String {
    body.lines().map(|line| line.trim_start_matches(['#', ' '])).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}
