//! Rows of `pages`, `revisions` and `grounds`.

use super::{block, hash, name};
use crate::contract::{Failure, FailureCode, Instant, Result};
use crate::l0::{self, ScopeId};
use crate::store::failure;
use crate::work::BatchId;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use std::collections::BTreeMap;

/// Longest part of a scope's name that shows in a folder's name, in characters.
const FOLDER_PART: usize = 24;

/// A row of `pages`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageId(pub i64);

/// What a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// L2: one project or situation.
    Scene,
    /// L3: who the user is.
    Persona,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Scene => "scene",
            Self::Persona => "persona",
        }
    }
}

/// Who wrote a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// A language model.
    Model,
    /// The rules that work without one.
    Rules,
    /// A person, in the file or by `edit`.
    Human,
    /// Another system, by `import`.
    Imported,
}

impl Author {
    /// Returns the word that the store and documents use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Rules => "rules",
            Self::Human => "human",
            Self::Imported => "imported",
        }
    }
}

/// A page with its current revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The row.
    pub id: PageId,
    /// The id that people and models see.
    pub uid: String,
    /// Whose.
    pub scope: ScopeId,
    /// Scene or persona.
    pub kind: Kind,
    /// The file, relative to the data directory.
    pub path: String,
    /// The current revision's number.
    pub number: u32,
    /// Its body.
    pub body: String,
    /// One line about it.
    pub summary: String,
    /// 1 on create, +1 on update, the sum + 1 on merge.
    pub heat: u32,
    /// Who wrote it: `model`, `rules`, `human`, `imported`.
    pub author: String,
    /// Texts of the blocks that a human wrote.
    pub hand: Vec<String>,
    /// When the page was made.
    pub created_at: Instant,
    /// When the current revision was made.
    pub updated_at: Instant,
    /// When it was archived.
    pub archived_at: Option<Instant>,
}

impl Page {
    /// Returns the file's name without folder.
    pub fn file(&self) -> &str {
        self.path.rsplit_once('/').map_or(self.path.as_str(), |(_, file)| file)
    }
}

/// One revision of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// From 1.
    pub number: u32,
    /// The Markdown; empty if pruned.
    pub body: String,
    /// One line about it.
    pub summary: String,
    /// The heat it had.
    pub heat: u32,
    /// Who wrote it.
    pub author: String,
    /// What made it.
    pub how: String,
    /// Texts of the blocks that a human wrote.
    pub hand: Vec<String>,
    /// SHA-256 of the body, hex.
    pub hash: String,
    /// The revision that it set aside in a conflict.
    pub beats: Option<u32>,
    /// Its body was dropped by `backupCount`.
    pub pruned: bool,
    /// The batch that made it.
    pub batch: Option<i64>,
    /// When it was made.
    pub at: Instant,
}

/// A page about to be made.
#[derive(Clone, Debug)]
pub struct NewPage<'a> {
    /// Whose.
    pub scope: ScopeId,
    /// Scene or persona.
    pub kind: Kind,
    /// The stem of a scene's file; must be free.
    pub stem: &'a str,
    /// When the page began.
    pub created_at: Instant,
}

/// A revision about to be written.
#[derive(Clone, Debug)]
pub struct Write<'a> {
    /// The Markdown.
    pub body: &'a str,
    /// One line about it.
    pub summary: &'a str,
    /// Its heat.
    pub heat: u32,
    /// Who wrote it.
    pub author: Author,
    /// What made it: `create`, `update`, `merge`, `file`, `edit`, `rollback`, `forget`, `import`.
    pub how: &'a str,
    /// Texts of the blocks that a human wrote.
    pub hand: &'a [String],
    /// The revision that it sets aside in a conflict.
    pub beats: Option<u32>,
    /// The batch that made it.
    pub batch: Option<BatchId>,
    /// Now.
    pub at: Instant,
}

const COLUMNS: &str = "pages.id, uid, scope, kind, path, revision, body, summary, heat, author, hand, created_at, updated_at, archived_at";

fn page(row: &Row<'_>) -> rusqlite::Result<Page> {
    let kind: String = row.get(3)?;
    let hand: String = row.get(10)?;
    Ok(Page {
        id: PageId(row.get(0)?),
        uid: row.get(1)?,
        scope: ScopeId(row.get(2)?),
        kind: if kind == "persona" { Kind::Persona } else { Kind::Scene },
        path: row.get(4)?,
        number: row.get(5)?,
        body: row.get(6)?,
        summary: row.get(7)?,
        heat: row.get(8)?,
        author: row.get(9)?,
        hand: serde_json::from_str(&hand).unwrap_or_default(),
        created_at: row.get(11)?,
        updated_at: row.get(12)?,
        archived_at: row.get(13)?,
    })
}

fn select(db: &Connection, condition: &str, values: impl rusqlite::Params) -> Result<Vec<Page>> {
    let sql = format!("SELECT {COLUMNS} FROM pages JOIN revisions ON revisions.page = pages.id AND number = revision WHERE {condition}");
    db.prepare_cached(&sql).and_then(|mut query| query.query_map(values, page)?.collect()).map_err(failure)
}

/// Returns the scenes of a scope that are not archived, hottest first, then by path.
pub fn live(db: &Connection, scope: ScopeId) -> Result<Vec<Page>> {
    select(db, "scope = ?1 AND kind = 'scene' AND archived_at IS NULL ORDER BY heat DESC, path", [scope.0])
}

/// Returns the persona of a scope.
pub fn persona(db: &Connection, scope: ScopeId) -> Result<Option<Page>> {
    Ok(select(db, "scope = ?1 AND kind = 'persona'", [scope.0])?.pop())
}

/// Returns a page by its row.
pub fn load(db: &Connection, id: PageId) -> Result<Page> {
    select(db, "pages.id = ?1", [id.0])?.pop().ok_or_else(|| Failure::not_found("the page is gone"))
}

/// Returns a page by its public id; `persona` is the one of the space's first scope that has one.
pub fn by_uid(db: &Connection, uid: &str) -> Result<Option<Page>> {
    if uid == "persona" {
        return Ok(select(db, "kind = 'persona' ORDER BY scope LIMIT 1", [])?.pop());
    }
    Ok(select(db, "uid = ?1", [uid])?.pop())
}

/// Returns the page of a file, by its path as a prompt shows it; within a scope also by the file's name (`porto.md`,
/// `porto`), and `persona` is the scope's own.
pub fn named(db: &Connection, scope: Option<ScopeId>, name: &str) -> Result<Option<Page>> {
    let Some(scope) = scope else {
        return Ok(select(db, "path = ?1 AND archived_at IS NULL", [name])?.pop());
    };
    if matches!(name, "persona" | "persona.md") {
        return persona(db, scope);
    }
    let is_it = |page: &Page| page.path == name || page.file() == name || page.file().strip_suffix(".md") == Some(name);
    Ok(live(db, scope)?.into_iter().find(is_it))
}

/// Returns the scopes that have pages or folders, in order.
pub fn scopes_with_pages(db: &Connection) -> Result<Vec<ScopeId>> {
    db.prepare_cached("SELECT scope FROM folders ORDER BY scope")
        .and_then(|mut query| query.query_map([], |row| Ok(ScopeId(row.get(0)?)))?.collect())
        .map_err(failure)
}

/// Returns team, user and agent of a scope.
pub fn scope_names(db: &Connection, scope: ScopeId) -> Result<(String, String, String)> {
    db.prepare_cached("SELECT team, user, agent FROM scopes WHERE id = ?1")
        .and_then(|mut query| query.query_row([scope.0], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))))
        .map_err(failure)
}

/// Returns the folder of a scope's files (empty, or ending with `/`), choosing it once: the first
/// scope of a space that needs one lives at the root.
pub fn folder(tx: &Transaction<'_>, scope: ScopeId) -> Result<String> {
    let known: Option<String> = tx
        .prepare_cached("SELECT folder FROM folders WHERE scope = ?1")
        .and_then(|mut query| query.query_row([scope.0], |row| row.get(0)).optional())
        .map_err(failure)?;
    if let Some(folder) = known {
        return Ok(folder);
    }
    let rooted: bool = tx.prepare_cached("SELECT 1 FROM folders WHERE folder = ''").and_then(|mut query| query.exists([])).map_err(failure)?;
    let folder = if rooted {
        let (team, user, agent) = scope_names(tx, scope)?;
        let short = |part: &str| name::stem(part).chars().take(FOLDER_PART).collect::<String>();
        let mark = l0::uid("", &[team.as_bytes(), user.as_bytes(), agent.as_bytes()]);
        format!("scopes/{}-{}-{}-{}/", short(&team), short(&user), short(&agent), &mark[..8])
    } else {
        String::new()
    };
    tx.prepare_cached("INSERT INTO folders (scope, folder) VALUES (?1, ?2)")
        .and_then(|mut insert| insert.execute(params![scope.0, folder]))
        .map_err(failure)?;
    Ok(folder)
}

/// Makes a page with its first revision. A scene whose name is taken gets a number. The public id
/// is a function of scope, name and time, so that a rebuild finds the same.
pub fn create(tx: &Transaction<'_>, new: &NewPage<'_>, write: &Write<'_>) -> Result<PageId> {
    let folder = folder(tx, new.scope)?;
    let (team, user, agent) = scope_names(tx, new.scope)?;
    let (uid, path) = match new.kind {
        Kind::Persona => (l0::uid("p_", &[team.as_bytes(), user.as_bytes(), agent.as_bytes()]), format!("{folder}persona.md")),
        Kind::Scene => {
            let taken = |stem: &str| {
                // Names that differ in case alone are one file on some disks. A name once used stays used: its history is its own.
                tx.prepare_cached("SELECT 1 FROM pages WHERE lower(path) = lower(?1)").and_then(|mut query| query.exists([format!("{folder}scenes/{stem}.md")]))
            };
            let mut broken = None;
            let stem = name::free(new.stem, |stem| match taken(stem) {
                Ok(taken) => taken,
                Err(error) => {
                    broken.get_or_insert(error);
                    false
                }
            });
            if let Some(error) = broken {
                return Err(failure(error));
            }
            let stem = stem.ok_or_else(|| Failure::new(FailureCode::TooLarge, format!("all names from {0} to {0}-999 are taken", new.stem)))?;
            let uid = l0::uid("s_", &[team.as_bytes(), user.as_bytes(), agent.as_bytes(), stem.as_bytes(), &new.created_at.to_be_bytes()]);
            (uid, format!("{folder}scenes/{stem}.md"))
        }
    };
    let id: i64 = tx
        .prepare_cached("INSERT INTO pages (uid, scope, kind, path, revision, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, 0, ?5, ?5) RETURNING id")
        .and_then(|mut insert| insert.query_row(params![uid, new.scope.0, new.kind.word(), path, new.created_at as i64], |row| row.get(0)))
        .map_err(failure)?;
    save(tx, PageId(id), write)?;
    Ok(PageId(id))
}

/// Writes the next revision of a page and makes it current; an archived page comes back. Returns its number.
pub fn save(tx: &Transaction<'_>, id: PageId, write: &Write<'_>) -> Result<u32> {
    let (before, scope): (u32, i64) = tx
        .prepare_cached("SELECT revision, scope FROM pages WHERE id = ?1")
        .and_then(|mut query| query.query_row([id.0], |row| Ok((row.get(0)?, row.get(1)?))))
        .map_err(failure)?;
    let newest: u32 = tx
        .prepare_cached("SELECT coalesce(max(number), 0) FROM revisions WHERE page = ?1")
        .and_then(|mut query| query.query_row([id.0], |row| row.get(0)))
        .map_err(failure)?;
    let number = newest.max(before) + 1;
    let hand = serde_json::to_string(write.hand).expect("a list of strings serializes");
    tx.prepare_cached(
        "INSERT INTO revisions (page, number, body, summary, heat, author, how, hand, hash, beats, batch, at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )
    .and_then(|mut insert| {
        insert.execute(params![
            id.0,
            number,
            write.body,
            write.summary,
            write.heat,
            write.author.word(),
            write.how,
            hand,
            hash(write.body),
            write.beats,
            write.batch.map(|batch| batch.0),
            write.at as i64
        ])
    })
    .map_err(failure)?;
    ground(tx, id, number, before, write.body)?;
    tx.prepare_cached("UPDATE pages SET revision = ?2, updated_at = max(?3, updated_at), archived_at = NULL, merged_into = NULL WHERE id = ?1")
        .and_then(|mut update| update.execute(params![id.0, number, write.at as i64]))
        .map_err(failure)?;
    show(tx, id, ScopeId(scope))?;
    Ok(number)
}

/// Takes a scene out of use; its revisions stay. Its file goes.
pub fn archive(tx: &Transaction<'_>, page: &Page, merged_into: Option<PageId>, at: Instant) -> Result<()> {
    tx.prepare_cached("UPDATE pages SET archived_at = ?2, merged_into = ?3 WHERE id = ?1")
        .and_then(|mut update| update.execute(params![page.id.0, at as i64, merged_into.map(|page| page.0)]))
        .map_err(failure)?;
    tx.prepare_cached("UPDATE projections SET page = NULL, stale = 1 WHERE path = ?1").and_then(|mut update| update.execute([&page.path])).map_err(failure)?;
    show_persona(tx, page.scope)
}

/// Marks the page's file, and the persona's with its navigation, to be written anew.
fn show(tx: &Transaction<'_>, id: PageId, scope: ScopeId) -> Result<()> {
    tx.prepare_cached(
        "INSERT INTO projections (path, page) SELECT path, id FROM pages WHERE id = ?1
         ON CONFLICT DO UPDATE SET page = excluded.page, stale = 1",
    )
    .and_then(|mut upsert| upsert.execute([id.0]))
    .map_err(failure)?;
    show_persona(tx, scope)
}

fn show_persona(tx: &Transaction<'_>, scope: ScopeId) -> Result<()> {
    tx.prepare_cached("UPDATE projections SET stale = 1 WHERE page IN (SELECT id FROM pages WHERE scope = ?1 AND kind = 'persona')")
        .and_then(|mut update| update.execute([scope.0]))
        .map(|_| ())
        .map_err(failure)
}

/// Stores what each block rests on. A block without ids whose words did not change keeps what it had:
/// people delete comments.
fn ground(tx: &Transaction<'_>, id: PageId, number: u32, before: u32, body: &str) -> Result<()> {
    let mut known: BTreeMap<String, Vec<String>> = BTreeMap::new();
    if let Some(old) = revision(tx, id, before)? {
        let places = places(tx, id, before)?;
        for (place, block) in block::parse(&old.body).into_iter().enumerate() {
            if let Some(atoms) = places.get(&place) {
                known.insert(block.text, atoms.clone());
            }
        }
    }
    let mut insert = tx.prepare_cached("INSERT OR IGNORE INTO grounds (page, revision, place, atom) VALUES (?1, ?2, ?3, ?4)").map_err(failure)?;
    for (place, block) in block::parse(body).into_iter().enumerate() {
        let atoms = if block.atoms.is_empty() { known.remove(&block.text).unwrap_or_default() } else { block.atoms };
        for atom in atoms {
            insert.execute(params![id.0, number, place as i64, atom]).map_err(failure)?;
        }
    }
    Ok(())
}

fn places(db: &Connection, id: PageId, number: u32) -> Result<BTreeMap<usize, Vec<String>>> {
    let mut places: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut query = db.prepare_cached("SELECT place, atom FROM grounds WHERE page = ?1 AND revision = ?2 ORDER BY place, atom").map_err(failure)?;
    let rows = query.query_map(params![id.0, number], |row| Ok((row.get::<_, u32>(0)?, row.get::<_, String>(1)?))).map_err(failure)?;
    for row in rows {
        let (place, atom) = row.map_err(failure)?;
        places.entry(place as usize).or_default().push(atom);
    }
    Ok(places)
}

/// Returns the atoms that one block of a revision rests on.
pub fn grounds_at(db: &Connection, id: PageId, number: u32, place: usize) -> Result<Vec<String>> {
    db.prepare_cached("SELECT atom FROM grounds WHERE page = ?1 AND revision = ?2 AND place = ?3 ORDER BY atom")
        .and_then(|mut query| query.query_map(params![id.0, number, place as i64], |row| row.get(0))?.collect())
        .map_err(failure)
}

fn read_revision(row: &Row<'_>) -> rusqlite::Result<Revision> {
    let hand: String = row.get(6)?;
    Ok(Revision {
        number: row.get(0)?,
        body: row.get(1)?,
        summary: row.get(2)?,
        heat: row.get(3)?,
        author: row.get(4)?,
        how: row.get(5)?,
        hand: serde_json::from_str(&hand).unwrap_or_default(),
        hash: row.get(7)?,
        beats: row.get(8)?,
        pruned: row.get(9)?,
        batch: row.get(10)?,
        at: row.get(11)?,
    })
}

const REVISION: &str = "SELECT number, body, summary, heat, author, how, hand, hash, beats, pruned, batch, at FROM revisions WHERE page = ?1";

/// Returns all revisions of a page, oldest first.
pub fn revisions(db: &Connection, id: PageId) -> Result<Vec<Revision>> {
    db.prepare_cached(&format!("{REVISION} ORDER BY number")).and_then(|mut query| query.query_map([id.0], read_revision)?.collect()).map_err(failure)
}

/// Returns one revision of a page.
pub fn revision(db: &Connection, id: PageId, number: u32) -> Result<Option<Revision>> {
    db.prepare_cached(&format!("{REVISION} AND number = ?2"))
        .and_then(|mut query| query.query_row(params![id.0, number], read_revision).optional())
        .map_err(failure)
}

/// Drops the bodies of revisions beyond the newest `keep` before the current one. What a human wrote stays.
pub fn retire_bodies(tx: &Transaction<'_>, id: PageId, keep: u32) -> Result<usize> {
    tx.prepare_cached(
        "UPDATE revisions SET body = '', hand = '[]', pruned = 1 WHERE page = ?1 AND pruned = 0 AND author <> 'human' AND hand = '[]'
           AND number < (SELECT revision FROM pages WHERE id = ?1) - ?2",
    )
    .and_then(|mut update| update.execute(params![id.0, keep]))
    .map_err(failure)
}
