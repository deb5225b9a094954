//! Copies that people made: exports lose the lines that tell, ruins of copies go.

use super::Note;
use crate::contract::Result;
use crate::disk::{self, Disk, DiskError};
use crate::offload::reclaim;
use crate::store::{Store, disk_failure};
use crate::{backup, projections, space_lock};

/// Folders that one search descends into.
const MAX_DEPTH: usize = 8;

/// Where exports lie.
const EXPORTS: &str = "exports";

/// Returns the names in a folder; none if it does not exist.
fn names(disk: &dyn Disk, folder: &str) -> Result<Vec<String>> {
    match disk.list(folder) {
        Ok(names) => Ok(names),
        Err(DiskError::NotFound) => Ok(Vec::new()),
        Err(error) => Err(disk_failure(folder, error)),
    }
}

/// Takes the lines that tell out of every export; returns how many.
pub(super) fn exports(disk: &dyn Disk, note: &Note) -> Result<u64> {
    let mut lines = 0;
    for export in names(disk, EXPORTS)?.iter().filter_map(|name| name.strip_suffix('/')) {
        for file in names(disk, &format!("{EXPORTS}/{export}"))?.iter().filter(|name| name.ends_with(".jsonl")) {
            let path = format!("{EXPORTS}/{export}/{file}");
            let bytes = disk::read_all(disk, &path).map_err(|error| disk_failure(&path, error))?;
            let text = String::from_utf8_lossy(&bytes);
            let mut kept = String::new();
            let mut gone = 0;
            for line in text.lines() {
                if super::names(line, &note.uids) || note.needles.found_in(line.as_bytes()) {
                    gone += 1;
                } else {
                    kept.push_str(line);
                    kept.push('\n');
                }
            }
            if gone > 0 {
                disk::replace(disk, &path, kept.as_bytes()).map_err(|error| disk_failure(&path, error))?;
                lines += gone;
            }
        }
    }
    Ok(lines)
}

/// Removes copies that nobody can forget in: unfinished backups, damaged databases, texts of tool results without a row, and
/// files that were to take another's place when a crash came. Returns how many files went.
pub(super) fn ruins(store: &Store) -> Result<u64> {
    let disk = store.disk();
    let mut gone = backup::remove_ruins(disk)? + backup::remove_set_aside(disk)? + reclaim::remove_orphans(store, disk)?;
    // Claims come and go while this space is open: another opener may be about to put one down.
    for path in files(disk)?.iter().filter(|path| path.ends_with(disk::FRESH) && !path.starts_with(space_lock::DIRECTORY)) {
        projections::remove(store, path)?;
        gone += 1;
    }
    Ok(gone)
}

/// Returns the paths of all files of the data directory.
pub(super) fn files(disk: &dyn Disk) -> Result<Vec<String>> {
    let mut files = Vec::new();
    let mut folders = vec![(String::new(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for name in names(disk, &folder)? {
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            match path.strip_suffix('/') {
                Some(sub) if depth < MAX_DEPTH => folders.push((sub.to_owned(), depth + 1)),
                Some(_) => {}
                None => files.push(path),
            }
        }
    }
    Ok(files)
}
