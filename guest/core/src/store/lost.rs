//! Telling a new directory from one that has lost its database.
//!
//! SQLite takes a missing or empty file for a database that is yet to be made, and throws away the log
//! beside it. A space would open empty, with every light green, and its first write would replace the
//! mirrors, which may be all that is left. So before anything is written, a directory that shows that
//! a memory was there is refused.

use super::{DATABASE, disk_failure};
use crate::contract::{Failure, FailureCode, Result};
use crate::disk::{Disk, DiskError, OpenMode};

/// Folders that only an open space fills, with the ending of its files: `/` for folders in them.
const FILLED: &[(&str, &str)] = &[("conversations", ".jsonl"), ("records", ".jsonl"), ("refs", ""), ("backups", "/")];

/// Refuses with `corrupt` if the database is missing or has no bytes and something shows that there was one.
pub(super) fn check_bytes(disk: &dyn Disk) -> Result<()> {
    let bytes = length(disk, DATABASE)?;
    let log = format!("{DATABASE}-wal");
    if bytes > 0 {
        // What a crash left half written stands whole in a log. Without one SQLite reads a last page that was cut as if
        // zeros followed, if it ever reads it.
        let is_whole = page_size(disk)?.is_none_or(|size| bytes % size == 0);
        if is_whole || length(disk, &log)? > 0 || length(disk, &format!("{DATABASE}-journal"))? > 0 {
            return Ok(());
        }
        return Err(Failure::new(
            FailureCode::Corrupt,
            format!("{DATABASE} ends within a page, at byte {bytes}: its end is missing. Nothing was changed. Restore a backup (`strata restore NAME`)"),
        ));
    }
    if length(disk, &log)? > 0 { Err(refusal(&log)) } else { check_signs(disk) }
}

/// Returns the size of the database's pages as its header gives it (big-endian at byte 16; 1 is 65,536); none if there is no
/// such header.
fn page_size(disk: &dyn Disk) -> Result<Option<u64>> {
    let mut header = [0; 18];
    let mut file = disk.open(DATABASE, OpenMode::Read).map_err(|error| disk_failure(DATABASE, error))?;
    let read = file.read_at(&mut header, 0).map_err(|error| disk_failure(DATABASE, error))?;
    let size = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 1 << 16,
        size => u64::from(size),
    };
    Ok((read == header.len() && header.starts_with(b"SQLite format 3\0") && size > 0).then_some(size))
}

/// Refuses with `corrupt` if something shows that a memory was here: for a database that holds nothing yet.
pub(super) fn check_signs(disk: &dyn Disk) -> Result<()> {
    for (folder, ending) in FILLED {
        let names = match disk.list(folder) {
            Ok(names) => names,
            Err(DiskError::NotFound) => continue,
            Err(error) => return Err(disk_failure(folder, error)),
        };
        if let Some(name) = names.iter().find(|name| name.ends_with(ending)) {
            return Err(refusal(&format!("{folder}/{name}")));
        }
    }
    Ok(())
}

fn refusal(sign: &str) -> Failure {
    Failure::new(
        FailureCode::Corrupt,
        format!(
            "{DATABASE} is missing or empty, but {sign} shows that a memory was here. Nothing was changed. Put the file back or restore a \
             backup (`strata restore NAME`); to begin anew, move what is left to another directory"
        ),
    )
}

fn length(disk: &dyn Disk, path: &str) -> Result<u64> {
    match disk.open(path, OpenMode::Read).and_then(|mut file| file.len()) {
        Ok(length) => Ok(length),
        Err(DiskError::NotFound) => Ok(0),
        Err(error) => Err(disk_failure(path, error)),
    }
}
