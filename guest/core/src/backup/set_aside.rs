//! Databases that were found damaged, kept as they were under `set-aside/<number>/` when a backup took
//! their place: somebody may still read rows out of them.

use super::{copy, list};
use crate::contract::{Failure, FailureCode, Result};
use crate::disk::Disk;
use crate::store::{DATABASE, disk_failure};

/// Where they lie.
const FOLDER: &str = "set-aside";

/// What belongs to a database, by the ending of its name.
const ENDINGS: [&str; 3] = ["", "-wal", "-journal"];

/// Databases that are kept.
const MAX_KEPT: u32 = 1_000;

/// Moves the database out of the way; returns the folder that holds it now.
pub(super) fn move_away(disk: &dyn Disk) -> Result<String> {
    keep(disk, |from, to| disk.rename(from, to).map_err(|error| disk_failure(from, error)))
}

/// Copies the files of an open database as they are; returns the folder.
pub(super) fn copy_away(disk: &dyn Disk) -> Result<String> {
    keep(disk, |from, to| copy(disk, from, to))
}

fn keep(disk: &dyn Disk, take: impl Fn(&str, &str) -> Result<()>) -> Result<String> {
    let folder = free_folder(disk)?;
    disk.create_dir(&folder).map_err(|error| disk_failure(&folder, error))?;
    for ending in ENDINGS {
        let file = format!("{DATABASE}{ending}");
        if disk.exists(&file).map_err(|error| disk_failure(&file, error))? {
            take(&file, &format!("{folder}/{file}"))?;
        }
    }
    for folder in [folder.as_str(), FOLDER, ""] {
        disk.sync_dir(folder).map_err(|error| disk_failure(folder, error))?;
    }
    Ok(folder)
}

fn free_folder(disk: &dyn Disk) -> Result<String> {
    for number in 1..=MAX_KEPT {
        let folder = format!("{FOLDER}/{number}");
        if !disk.exists(&folder).map_err(|error| disk_failure(&folder, error))? {
            return Ok(folder);
        }
    }
    Err(Failure::new(FailureCode::TooLarge, format!("{FOLDER}/ holds {MAX_KEPT} damaged databases; remove some")))
}

/// Removes them all, because nobody can forget in a damaged database; returns how many files went.
pub(crate) fn remove_all(disk: &dyn Disk) -> Result<u64> {
    let mut files = 0;
    for name in list(disk, FOLDER)? {
        files += super::clear(disk, &format!("{FOLDER}/{}", name.trim_end_matches('/')))?;
    }
    Ok(files)
}
