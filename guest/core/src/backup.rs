//! Backups: verified copies of the space under `backups/<name>/`, made while it stays open.
//!
//! A backup holds the database and the refs; all other files are projections of them. Its manifest
//! is written last: a folder without one is the ruin of a crash and counts as no backup.

mod set_aside;

pub(crate) use set_aside::remove_all as remove_set_aside;

use crate::contract::{Failure, FailureCode, Instant, Outgoing, Result, Selector};
use crate::disk::{self, Disk, DiskError, OpenMode, SubDisk};
use crate::engine::Engine;
use crate::offload::refs;
use crate::projections::mirrors;
use crate::store::{DATABASE, SCHEMA_VERSION, Store, disk_failure, failure};
use crate::{forget, pages, projections, vectors, work};
use rusqlite::params;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::rc::Rc;

/// Where backups lie.
const FOLDER: &str = "backups";

/// The file that makes a folder a backup.
const MANIFEST: &str = "manifest.json";

/// The file that says that a restore is under way.
const RESTORING: &str = "restoring.json";

/// Longest name of a backup or export, in bytes.
const MAX_NAME: usize = 64;

/// Bytes that are copied at a time.
const CHUNK: usize = 1 << 20;

/// Backups that restores keep of the state before them, by number.
const MAX_BEFORE: u32 = 1_000;

/// What a backup holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Manifest {
    format: u32,
    created_at: Instant,
    schema_version: u32,
    engine_version: String,
    messages: u64,
    atoms: u64,
    files: Vec<Copied>,
}

/// One file of a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Copied {
    path: String,
    bytes: u64,
    sha256: String,
}

/// Checks a name that becomes a folder.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let fits = !name.is_empty() && name.len() <= MAX_NAME && !name.starts_with('.');
    if fits && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')) {
        return Ok(());
    }
    Err(Failure::invalid(format!("`{name}` cannot name a folder: 1 to {MAX_NAME} letters, digits, `.`, `_`, `-`, not starting with `.`")))
}

/// Returns the names of the complete backups.
pub(crate) fn names(disk: &dyn Disk) -> Result<Vec<String>> {
    folders(disk).map(|folders| folders.into_iter().filter(|(_, complete)| *complete).map(|(name, _)| name).collect())
}

/// Removes what unfinished backups left; returns how many files went.
pub(crate) fn remove_ruins(disk: &dyn Disk) -> Result<u64> {
    let mut files = 0;
    for (name, _) in folders(disk)?.iter().filter(|(_, complete)| !complete) {
        files += clear(disk, &format!("{FOLDER}/{name}"))?;
    }
    Ok(files)
}

/// Returns the names of the folders of backups, and whether each is complete.
fn folders(disk: &dyn Disk) -> Result<Vec<(String, bool)>> {
    let mut folders = Vec::new();
    for name in list(disk, FOLDER)?.iter().filter_map(|name| name.strip_suffix('/')) {
        let path = format!("{FOLDER}/{name}/{MANIFEST}");
        let complete = disk.exists(&path).map_err(|error| disk_failure(&path, error))?;
        folders.push((name.to_owned(), complete));
    }
    Ok(folders)
}

/// Returns whether a restore was begun and has not ended.
pub(crate) fn is_restoring(disk: &dyn Disk) -> Result<bool> {
    disk.exists(RESTORING).map_err(|error| disk_failure(RESTORING, error))
}

/// Begins a restore of a space whose database cannot be opened: that one is set aside, and opening goes on with an empty one.
pub(crate) fn begin_restore(disk: &dyn Disk, name: &str, at: Instant) -> Result<()> {
    check_name(name)?;
    verify(disk, name)?;
    note_restore(disk, name, at)?;
    set_aside::move_away(disk).map(|_| ())
}

fn note_restore(disk: &dyn Disk, name: &str, at: Instant) -> Result<()> {
    let note = json!({"name": name, "at": at}).to_string();
    disk::replace(disk, RESTORING, note.as_bytes()).map_err(|error| disk_failure(RESTORING, error))
}

impl Engine {
    /// `memory.backup`.
    pub fn backup(&mut self, name: &str, at: Instant) -> Result<String> {
        check_name(name)?;
        self.look(at);
        let disk = self.store.shared_disk();
        let manifest = make(&mut self.store, &disk, name, at)?;
        let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
        Ok(json!({
            "name": name, "path": format!("{FOLDER}/{name}"), "files": manifest.files.len(), "bytes": bytes,
            "messages": manifest.messages, "atoms": manifest.atoms, "verified": true
        })
        .to_string())
    }

    /// `memory.restore`.
    pub fn restore(&mut self, name: &str, at: Instant) -> Result<String> {
        check_name(name)?;
        // A backup that could not be opened for a forgetting may be whole again.
        self.finish_in_backups()?;
        self.look(at);
        let disk = self.store.shared_disk();
        let manifest = verify(disk.as_ref(), name)?;
        let before = match make_before(&mut self.store, &disk, at) {
            // What cannot be copied whole is kept as it is: a damaged space is what restoring is for.
            Err(failure) if failure.code == FailureCode::Corrupt => set_aside::copy_away(disk.as_ref())?,
            made => made?,
        };
        note_restore(disk.as_ref(), name, at)?;
        self.finish_restore()?;
        Ok(json!({"name": name, "messages": manifest.messages, "atoms": manifest.atoms, "kept-before": before}).to_string())
    }

    /// Carries out a restore that was begun; returns whether there was one.
    pub(crate) fn finish_restore(&mut self) -> Result<bool> {
        let disk = self.store.shared_disk();
        let note = match disk::read_all(disk.as_ref(), RESTORING) {
            Ok(bytes) => bytes,
            Err(DiskError::NotFound) => return Ok(false),
            Err(error) => return Err(disk_failure(RESTORING, error)),
        };
        let damaged = || Failure::new(FailureCode::Corrupt, format!("{RESTORING} is damaged; remove it, and restore again if you wish"));
        let note: serde_json::Value = serde_json::from_slice(&note).map_err(|_| damaged())?;
        let name = note["name"].as_str().ok_or_else(damaged)?.to_owned();
        let at = note["at"].as_u64().unwrap_or(0);
        for request in in_flight(&self.store)? {
            self.outgoing.push(Outgoing::CancelModel { id: request });
        }
        let source = Store::open(folder(&disk, &name))?;
        self.store.replace_by(&source)?;
        source.close()?;
        copy_refs_back(disk.as_ref(), &name)?;
        self.offload_sessions.clear();
        // Every file that shows rows is written anew: what is on the disk shows the state before.
        for path in shown_files(&self.store, disk.as_ref())? {
            projections::remove(&self.store, &path)?;
        }
        let (calendar, model) = (&self.calendar, self.models.embedding.as_ref());
        self.store.write(|tx| {
            vectors::describe(tx, model)?;
            work::resume(tx)?;
            tx.execute("UPDATE projections SET shown = '', stale = 1", []).map_err(failure)?;
            mirrors::mark_all(tx, calendar)
        })?;
        forget::redraw_all(&self.store, &self.calendar)?;
        self.show(at);
        projections::remove(&self.store, RESTORING)?;
        Ok(true)
    }
}

fn in_flight(store: &Store) -> Result<Vec<String>> {
    store
        .db()
        .prepare_cached("SELECT 'r' || id FROM requests WHERE state = 'asked' ORDER BY id")
        .and_then(|mut query| query.query_map([], |row| row.get(0))?.collect())
        .map_err(failure)
}

fn folder(disk: &Rc<dyn Disk>, name: &str) -> Rc<dyn Disk> {
    Rc::new(SubDisk::new(Rc::clone(disk), format!("{FOLDER}/{name}")))
}

fn free_name(disk: &dyn Disk) -> Result<String> {
    for number in 1..=MAX_BEFORE {
        let name = format!("before-restore-{number}");
        let path = format!("{FOLDER}/{name}");
        if !disk.exists(&path).map_err(|error| disk_failure(&path, error))? {
            return Ok(name);
        }
    }
    Err(Failure::new(FailureCode::TooLarge, format!("there are {MAX_BEFORE} backups of restores; remove some")))
}

/// Makes a backup of the state before a restore; returns its name.
fn make_before(store: &mut Store, disk: &Rc<dyn Disk>, at: Instant) -> Result<String> {
    let name = free_name(disk.as_ref())?;
    make(store, disk, &name, at)?;
    Ok(name)
}

/// Makes a backup and checks it.
fn make(store: &mut Store, disk: &Rc<dyn Disk>, name: &str, at: Instant) -> Result<Manifest> {
    let root = format!("{FOLDER}/{name}");
    let refused = |error| disk_failure(&root, error);
    let manifest_path = format!("{root}/{MANIFEST}");
    if disk.exists(&manifest_path).map_err(refused)? {
        return Err(Failure::new(FailureCode::Conflict, format!("there is a backup `{name}` already; choose another name")));
    }
    clear(disk.as_ref(), &root)?;
    disk.create_dir(&format!("{root}/{}", refs::REFS_DIR)).map_err(refused)?;
    let database = format!("{root}/{DATABASE}");
    store.db().execute("VACUUM INTO ?1", [&database]).map_err(failure)?;
    disk.open(&database, OpenMode::Write).and_then(|mut file| file.sync()).map_err(refused)?;
    for name in list(disk.as_ref(), refs::REFS_DIR)? {
        let path = format!("{}/{name}", refs::REFS_DIR);
        copy(disk.as_ref(), &path, &format!("{root}/{path}"))?;
    }
    let copy = Store::open(folder(disk, name))?;
    let (messages, atoms) = check(&copy)?;
    copy.close()?;
    for path in [&root, &format!("{root}/{}", refs::REFS_DIR), FOLDER, ""] {
        disk.sync_dir(path).map_err(refused)?;
    }
    let manifest = Manifest {
        format: 1,
        created_at: at,
        schema_version: SCHEMA_VERSION,
        engine_version: env!("CARGO_PKG_VERSION").into(),
        messages,
        atoms,
        files: hash_files(disk.as_ref(), &root)?,
    };
    write_manifest(disk.as_ref(), &root, &manifest)?;
    Ok(manifest)
}

fn write_manifest(disk: &dyn Disk, root: &str, manifest: &Manifest) -> Result<()> {
    let path = format!("{root}/{MANIFEST}");
    let text = serde_json::to_string_pretty(manifest).expect("a manifest of strings and numbers serializes");
    disk::replace(disk, &path, text.as_bytes()).map_err(|error| disk_failure(&path, error))
}

/// Returns the counts of an open copy that SQLite finds whole.
fn check(store: &Store) -> Result<(u64, u64)> {
    let word: String = store.db().query_row("PRAGMA integrity_check", [], |row| row.get(0)).map_err(failure)?;
    if word != "ok" {
        return Err(Failure::new(FailureCode::Corrupt, format!("the copy of the database is damaged ({word}); the space itself is untouched")));
    }
    store.db().query_row("SELECT (SELECT count(*) FROM messages), (SELECT count(*) FROM atoms)", [], |row| Ok((row.get(0)?, row.get(1)?))).map_err(failure)
}

/// Returns a backup's manifest if every file is as it says.
fn verify(disk: &dyn Disk, name: &str) -> Result<Manifest> {
    let root = format!("{FOLDER}/{name}");
    let manifest = read_manifest(disk, name)?;
    if manifest.schema_version > SCHEMA_VERSION {
        return Err(Failure::new(
            FailureCode::NewerVersion,
            format!("the backup has schema version {}, this build knows {SCHEMA_VERSION}; use a newer Strata", manifest.schema_version),
        ));
    }
    let found = hash_files(disk, &root)?;
    for file in &manifest.files {
        if !found.contains(file) {
            return Err(Failure::new(FailureCode::Corrupt, format!("{root}/{} is not what was backed up; use another backup", file.path)));
        }
    }
    Ok(manifest)
}

fn read_manifest(disk: &dyn Disk, name: &str) -> Result<Manifest> {
    let path = format!("{FOLDER}/{name}/{MANIFEST}");
    let bytes = match disk::read_all(disk, &path) {
        Ok(bytes) => bytes,
        Err(DiskError::NotFound) => return Err(Failure::not_found(format!("there is no complete backup `{name}`"))),
        Err(error) => return Err(disk_failure(&path, error)),
    };
    serde_json::from_slice(&bytes).map_err(|error| Failure::new(FailureCode::Corrupt, format!("{path}: {error}")))
}

fn list(disk: &dyn Disk, path: &str) -> Result<Vec<String>> {
    match disk.list(path) {
        Ok(names) => Ok(names),
        Err(DiskError::NotFound) => Ok(Vec::new()),
        Err(error) => Err(disk_failure(path, error)),
    }
}

fn hash_files(disk: &dyn Disk, root: &str) -> Result<Vec<Copied>> {
    let mut files = Vec::new();
    for name in list(disk, &format!("{root}/{}", refs::REFS_DIR))? {
        let path = format!("{}/{name}", refs::REFS_DIR);
        files.push(hash_file(disk, root, &path)?);
    }
    files.push(hash_file(disk, root, DATABASE)?);
    Ok(files)
}

fn hash_file(disk: &dyn Disk, root: &str, path: &str) -> Result<Copied> {
    let full = format!("{root}/{path}");
    let refused = |error| disk_failure(&full, error);
    let mut file = disk.open(&full, OpenMode::Read).map_err(refused)?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    let mut bytes = 0;
    loop {
        let read = file.read_at(&mut chunk, bytes).map_err(refused)?;
        if read == 0 {
            break;
        }
        hash.update(&chunk[..read]);
        bytes += read as u64;
    }
    let sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Copied { path: path.to_owned(), bytes, sha256 })
}

fn copy(disk: &dyn Disk, from: &str, to: &str) -> Result<()> {
    let mut source = disk.open(from, OpenMode::Read).map_err(|error| disk_failure(from, error))?;
    let refused = |error| disk_failure(to, error);
    let mut target = disk.open(to, OpenMode::Create).map_err(refused)?;
    target.set_len(0).map_err(refused)?;
    let mut chunk = vec![0; CHUNK];
    let mut offset = 0;
    loop {
        let read = source.read_at(&mut chunk, offset).map_err(|error| disk_failure(from, error))?;
        if read == 0 {
            break;
        }
        target.write_at(&chunk[..read], offset).map_err(refused)?;
        offset += read as u64;
    }
    target.sync().map_err(refused)
}

/// Removes the files of a folder and of its refs; returns how many.
fn clear(disk: &dyn Disk, root: &str) -> Result<u64> {
    let mut files = 0;
    for folder in [format!("{root}/{}", refs::REFS_DIR), root.to_owned()] {
        let names: Vec<String> = list(disk, &folder)?.into_iter().filter(|name| !name.ends_with('/')).collect();
        for name in &names {
            let path = format!("{folder}/{name}");
            disk.remove(&path).map_err(|error| disk_failure(&path, error))?;
        }
        if !names.is_empty() {
            // A power cut must not bring back what a forgetting has removed.
            disk.sync_dir(&folder).map_err(|error| disk_failure(&folder, error))?;
        }
        files += names.len() as u64;
    }
    Ok(files)
}

/// Brings back the refs of a backup and removes those that it does not have.
fn copy_refs_back(disk: &dyn Disk, name: &str) -> Result<()> {
    let theirs = list(disk, &format!("{FOLDER}/{name}/{}", refs::REFS_DIR))?;
    for file in list(disk, refs::REFS_DIR)? {
        if !theirs.contains(&file) {
            let path = format!("{}/{file}", refs::REFS_DIR);
            disk.remove(&path).map_err(|error| disk_failure(&path, error))?;
        }
    }
    if theirs.is_empty() {
        return Ok(());
    }
    refs::make_dir(disk)?;
    for file in theirs {
        let path = format!("{}/{file}", refs::REFS_DIR);
        copy(disk, &format!("{FOLDER}/{name}/{path}"), &path)?;
    }
    refs::sync_names(disk)
}

/// Returns the files that show pages and rows.
fn shown_files(store: &Store, disk: &dyn Disk) -> Result<Vec<String>> {
    let mut files = Vec::new();
    let mut roots = vec![String::new()];
    for folder in list(disk, "scopes")? {
        roots.push(format!("scopes/{folder}"));
    }
    for scope in pages::scopes_with_pages(store.db())? {
        let folder: String = store.db().query_row("SELECT folder FROM folders WHERE scope = ?1", params![scope.0], |row| row.get(0)).map_err(failure)?;
        if !roots.contains(&folder) {
            roots.push(folder);
        }
    }
    for root in roots {
        for name in list(disk, &format!("{root}scenes"))?.iter().filter(|name| name.ends_with(".md")) {
            files.push(format!("{root}scenes/{name}"));
        }
        files.push(format!("{root}persona.md"));
    }
    for folder in ["conversations", "records", crate::offload::mirror::LOG_DIR, crate::offload::mirror::CANVAS_DIR] {
        files.extend(list(disk, folder)?.iter().filter(|name| !name.ends_with('/')).map(|name| format!("{folder}/{name}")));
    }
    let mut there = Vec::new();
    for path in files {
        if disk.exists(&path).map_err(|error| disk_failure(&path, error))? {
            there.push(path);
        }
    }
    Ok(there)
}

/// Forgets the same rows in a backup; returns whether it held any.
pub(crate) fn forget_in(
    disk: &Rc<dyn Disk>,
    name: &str,
    which: &Selector,
    query: &forget::Query,
    calendar: &crate::calendar::Calendar,
    at: Instant,
) -> Result<bool> {
    let before = read_manifest(disk.as_ref(), name)?;
    let root = format!("{FOLDER}/{name}");
    let mut store = Store::open(folder(disk, name))?;
    let changed = forget::forget_in_copy(&mut store, calendar, which, query, at)?;
    let (messages, atoms) = check(&store)?;
    store.close()?;
    // Written whether or not rows went: the file of the database is another one now, or a crash came between it and its
    // manifest. Refs are only removed, so that one which was damaged still differs from what was backed up.
    let mut manifest = Manifest { schema_version: SCHEMA_VERSION, messages, atoms, files: Vec::new(), ..before.clone() };
    for file in &before.files {
        let path = format!("{root}/{}", file.path);
        if file.path != DATABASE && disk.exists(&path).map_err(|error| disk_failure(&path, error))? {
            manifest.files.push(file.clone());
        }
    }
    manifest.files.push(hash_file(disk.as_ref(), &root, DATABASE)?);
    if manifest != before {
        write_manifest(disk.as_ref(), &root, &manifest)?;
    }
    Ok(changed)
}
