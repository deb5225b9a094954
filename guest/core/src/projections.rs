//! Files that people can touch: pages as Markdown, messages and atoms as JSON Lines by day.
//!
//! Rows are the truth. A change of a page marks its file stale in the same transaction; the file is
//! written after the commit, and whatever a crash leaves undone is done at the next open or tick. A
//! file whose bytes are neither what we last wrote nor what we would write is a human's edit: it
//! becomes a revision by `human` before anything is written over it.

mod edits;
mod files;
pub mod mirrors;

pub use files::{parse_scene_file, persona_file, scene_file, strip_navigation};

use crate::calendar::Calendar;
use crate::contract::{Instant, LogLevel, Outgoing, Result};
use crate::disk::{self, DiskError};
use crate::engine::Engine;
use crate::l0::ScopeId;
use crate::offload::mirror;
use crate::pages::{self, PageId};
use crate::store::{Store, disk_failure, failure};
use rusqlite::{OptionalExtension, params};

/// Files that one look for edits reads; the next look goes on behind them.
pub const MAX_LOOKS: usize = 64;

/// What a look at the files found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Noticed {
    /// Public ids with revision (`s_…@4`) of what humans wrote.
    pub edits: Vec<String>,
    /// Those among them that set a newer revision of the engine aside.
    pub conflicts: Vec<String>,
    /// Files that could not be read as text and were moved aside.
    pub unreadable: Vec<String>,
    /// Where the next look goes on; empty when all files were seen.
    pub after: String,
}

impl Engine {
    /// Looks for edits by humans. A disk that refuses does not stop the work: people are told, and
    /// `status` counts the files that are behind.
    pub(crate) fn look(&mut self, at: Instant) {
        match notice(&mut self.store, &self.calendar, &self.looked_until, at) {
            Ok(noticed) => self.tell(noticed),
            Err(failure) => self.complain("looking at the files", &failure.message),
        }
    }

    /// Looks at the persona's file of a scope before it is used.
    pub(crate) fn look_at_persona(&mut self, scope: ScopeId, at: Instant) {
        match notice_persona(&mut self.store, &self.calendar, scope, at) {
            Ok(noticed) => self.tell(Noticed { after: self.looked_until.clone(), ..noticed }),
            Err(failure) => self.complain("looking at the persona's file", &failure.message),
        }
    }

    /// Writes the files that are behind. What fails is tried again at the next tick.
    pub(crate) fn show(&mut self, at: Instant) {
        match settle(&mut self.store, &self.calendar, at) {
            Ok(noticed) => self.tell(Noticed { after: self.looked_until.clone(), ..noticed }),
            Err(failure) => self.complain("writing the files", &failure.message),
        }
        if let Err(failure) = mirrors::settle(&mut self.store, &self.calendar) {
            self.complain("writing the mirrors", &failure.message);
        }
        self.offload(mirror::catch_up);
    }

    fn tell(&mut self, noticed: Noticed) {
        let mut line = |level, text: String| self.outgoing.push(Outgoing::Log { level, text });
        for id in &noticed.edits {
            line(LogLevel::Info, format!("a human's edit became revision {id}"));
        }
        for id in &noticed.conflicts {
            line(LogLevel::Warn, format!("{id} by a human sets a newer revision of the engine aside; `history` shows both"));
        }
        for path in &noticed.unreadable {
            line(LogLevel::Warn, format!("a file that is no text was moved to {path}"));
        }
        self.looked_until = noticed.after;
    }

    pub(crate) fn complain(&mut self, what: &str, why: &str) {
        self.outgoing.push(Outgoing::Log { level: LogLevel::Warn, text: format!("{what} failed and will be tried again: {why}") });
    }
}

/// A row of `projections`.
#[derive(Clone, Debug)]
struct Projection {
    path: String,
    page: Option<PageId>,
    shown: String,
    stale: bool,
}

fn projections(store: &Store, condition: &str, values: impl rusqlite::Params) -> Result<Vec<Projection>> {
    let sql = format!("SELECT path, page, shown, stale FROM projections WHERE {condition}");
    store
        .db()
        .prepare_cached(&sql)
        .and_then(|mut query| {
            query
                .query_map(values, |row| {
                    Ok(Projection { path: row.get(0)?, page: row.get::<_, Option<i64>>(1)?.map(PageId), shown: row.get(2)?, stale: row.get(3)? })
                })?
                .collect()
        })
        .map_err(failure)
}

fn read(store: &Store, path: &str) -> Result<Option<Vec<u8>>> {
    match disk::read_all(store.disk(), path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(DiskError::NotFound) => Ok(None),
        Err(error) => Err(disk_failure(path, error)),
    }
}

/// Looks at files from `after` on for edits by humans, and for scenes that humans have added.
pub fn notice(store: &mut Store, calendar: &Calendar, after: &str, at: Instant) -> Result<Noticed> {
    let mut noticed = Noticed::default();
    let files = projections(store, "path > ?1 AND page IS NOT NULL ORDER BY path LIMIT ?2", params![after, MAX_LOOKS as i64])?;
    for file in &files {
        look(store, calendar, file, at, &mut noticed)?;
    }
    if files.len() == MAX_LOOKS {
        noticed.after = files.last().map(|file| file.path.clone()).unwrap_or_default();
    } else {
        for scope in pages::scopes_with_pages(store.db())? {
            edits::adopt_new_files(store, scope, at, &mut noticed)?;
        }
    }
    Ok(noticed)
}

/// Looks at the persona's file of a scope, before it is used.
pub fn notice_persona(store: &mut Store, calendar: &Calendar, scope: ScopeId, at: Instant) -> Result<Noticed> {
    let mut noticed = Noticed::default();
    let files = projections(store, "page = (SELECT id FROM pages WHERE scope = ?1 AND kind = 'persona')", [scope.0])?;
    for file in &files {
        look(store, calendar, file, at, &mut noticed)?;
    }
    Ok(noticed)
}

/// Looks at a page's file, before it is used.
pub fn notice_page(store: &mut Store, calendar: &Calendar, page: PageId, at: Instant) -> Result<Noticed> {
    let mut noticed = Noticed::default();
    for file in &projections(store, "page = ?1", [page.0])? {
        look(store, calendar, file, at, &mut noticed)?;
    }
    Ok(noticed)
}

fn look(store: &mut Store, calendar: &Calendar, file: &Projection, at: Instant, noticed: &mut Noticed) -> Result<()> {
    let Some(page) = file.page else { return Ok(()) };
    match read(store, &file.path)? {
        // A file that is gone is written again: pages end by `archive` or `forget`, not by an accident of the disk.
        None if !file.stale => mark(store, &file.path, &file.shown, true),
        None => Ok(()),
        Some(bytes) if edits::same(&bytes, &file.shown) => Ok(()),
        Some(bytes) => edits::take(store, calendar, file, page, bytes, at, noticed),
    }
}

fn mark(store: &mut Store, path: &str, shown: &str, stale: bool) -> Result<()> {
    store.write(|tx| {
        tx.prepare_cached("UPDATE projections SET shown = ?2, stale = ?3 WHERE path = ?1")
            .and_then(|mut update| update.execute(params![path, shown, stale]))
            .map(|_| ())
            .map_err(failure)
    })
}

/// Writes the files that are stale; edits by humans are taken first. Returns what was noticed on the way.
pub fn settle(store: &mut Store, calendar: &Calendar, at: Instant) -> Result<Noticed> {
    let mut noticed = Noticed::default();
    for file in projections(store, "stale = 1 ORDER BY path", [])? {
        write(store, calendar, &file, at, &mut noticed)?;
    }
    Ok(noticed)
}

fn write(store: &mut Store, calendar: &Calendar, file: &Projection, at: Instant, noticed: &mut Noticed) -> Result<()> {
    let mut file = file.clone();
    let mut wanted = wanted(store, calendar, &file)?;
    let on_disk = read(store, &file.path)?;
    if let Some(bytes) = &on_disk
        && !edits::same(bytes, &file.shown)
        && wanted.as_ref().is_none_or(|wanted| wanted.as_bytes() != bytes.as_slice())
    {
        let page = match file.page {
            Some(page) => Some(page),
            // The page was archived while a human wrote on it: their text brings it back.
            None => owner(store, &file.path)?,
        };
        if let Some(page) = page {
            edits::take(store, calendar, &file, page, bytes.clone(), at, noticed)?;
            let Some(fresh) = projections(store, "path = ?1", [&file.path])?.pop() else { return Ok(()) };
            file = fresh;
            wanted = self::wanted(store, calendar, &file)?;
        }
    }
    match &wanted {
        Some(wanted) => {
            if read(store, &file.path)?.as_deref() != Some(wanted.as_bytes()) {
                disk::replace(store.disk(), &file.path, wanted.as_bytes()).map_err(|error| disk_failure(&file.path, error))?;
            }
            mark(store, &file.path, &pages::hash(wanted), false)
        }
        None => {
            if on_disk.is_some() {
                remove(store, &file.path)?;
            }
            store.write(|tx| {
                tx.prepare_cached("DELETE FROM projections WHERE path = ?1 AND page IS NULL")
                    .and_then(|mut delete| delete.execute([&file.path]))
                    .map(|_| ())
                    .map_err(failure)
            })
        }
    }
}

fn owner(store: &Store, path: &str) -> Result<Option<PageId>> {
    store
        .db()
        .prepare_cached("SELECT id FROM pages WHERE path = ?1 ORDER BY id DESC LIMIT 1")
        .and_then(|mut query| query.query_row([path], |row| row.get(0)).optional())
        .map(|id: Option<i64>| id.map(PageId))
        .map_err(failure)
}

/// Removes a file durably; one that is gone already is fine.
pub(crate) fn remove(store: &Store, path: &str) -> Result<()> {
    match store.disk().remove(path) {
        Ok(()) | Err(DiskError::NotFound) => {}
        Err(error) => return Err(disk_failure(path, error)),
    }
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    store.disk().sync_dir(parent).map_err(|error| disk_failure(parent, error))
}

/// Removes a file if it is there, without touching the disk if it is not.
pub(crate) fn remove_if_there(store: &Store, path: &str) -> Result<()> {
    if store.disk().exists(path).map_err(|error| disk_failure(path, error))? { remove(store, path) } else { Ok(()) }
}

/// Returns what the file should hold; nothing if it should go.
fn wanted(store: &Store, calendar: &Calendar, file: &Projection) -> Result<Option<String>> {
    let Some(id) = file.page else { return Ok(None) };
    let page = pages::load(store.db(), id)?;
    if page.archived_at.is_some() {
        return Ok(None);
    }
    match page.kind {
        pages::Kind::Scene => Ok(Some(scene_file(&page, calendar))),
        pages::Kind::Persona => persona_file(&page, &pages::live(store.db(), page.scope)?, calendar).map(Some),
    }
}
