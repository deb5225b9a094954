//! Copies that people made: exports lose the lines that tell, ruins of copies go.

use super::Note;
use crate::contract::Result;
use crate::disk::{self, Disk, DiskError};
use crate::store::disk_failure;

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

/// Removes copies that nobody can forget in: unfinished backups and damaged databases. Returns how many files went.
pub(super) fn ruins(disk: &dyn Disk) -> Result<u64> {
    Ok(crate::backup::remove_ruins(disk)? + crate::backup::remove_set_aside(disk)?)
}
