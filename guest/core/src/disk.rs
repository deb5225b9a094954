//! The disk, as the engine needs it: one port, three adapters.
//!
//! `StdDisk` (here) serves native runs and tests, the component has one over `wasi:filesystem`, and
//! the simulation has one that crashes. SQLite reaches the disk through the same port, so that a
//! simulated crash hits every byte that the engine writes.

#[cfg(any(test, feature = "simulation"))]
mod sim_disk;
mod std_disk;
mod sub_disk;

#[cfg(any(test, feature = "simulation"))]
pub use sim_disk::{Crash, SimDisk};
pub use std_disk::StdDisk;
pub use sub_disk::SubDisk;

use std::fmt::Debug;

/// What the name of a file ends in until it is whole and takes the place of the old one. One that stays is the ruin of a
/// crash.
pub const FRESH: &str = ".new";

/// A path relative to the data directory, with `/` between parts and no `.` or `..`.
pub type DiskPath = str;

/// What went wrong on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskError {
    /// The file or directory does not exist.
    NotFound,
    /// It exists already (only for `create_new`).
    Exists,
    /// There is no room left.
    Full,
    /// Writing is not permitted.
    ReadOnly,
    /// Anything else, with the system's words.
    Other(String),
}

/// The result of a disk call.
pub type DiskResult<T> = Result<T, DiskError>;

/// How to open a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Must exist; only reading.
    Read,
    /// Must exist; reading and writing.
    Write,
    /// Is created if it does not exist; reading and writing.
    Create,
    /// Must not exist; reading and writing.
    CreateNew,
}

/// An open file. Dropping it closes it.
#[allow(clippy::len_without_is_empty)] // Nobody asks.
pub trait DiskFile: Debug {
    /// Reads at `offset` into `buffer`; returns the bytes read, fewer than asked only at the end.
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> DiskResult<usize>;

    /// Writes all of `bytes` at `offset`, growing the file if needed. Not durable before `sync`.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> DiskResult<()>;

    /// Cuts or extends the file to `length` bytes.
    fn set_len(&mut self, length: u64) -> DiskResult<()>;

    /// Returns the length in bytes.
    fn len(&mut self) -> DiskResult<u64>;

    /// Makes content and length durable. The file's name is durable after `Disk::sync_dir`.
    fn sync(&mut self) -> DiskResult<()>;
}

/// One data directory.
pub trait Disk: Debug {
    /// Opens a file. Parent directories must exist.
    fn open(&self, path: &DiskPath, mode: OpenMode) -> DiskResult<Box<dyn DiskFile>>;

    /// Removes a file.
    fn remove(&self, path: &DiskPath) -> DiskResult<()>;

    /// Removes an empty directory.
    fn remove_dir(&self, path: &DiskPath) -> DiskResult<()>;

    /// Renames a file, replacing the target in one step.
    fn rename(&self, from: &DiskPath, to: &DiskPath) -> DiskResult<()>;

    /// Creates a directory and its parents; an existing one is fine.
    fn create_dir(&self, path: &DiskPath) -> DiskResult<()>;

    /// Returns the names in a directory, sorted, directories with a trailing `/`.
    fn list(&self, path: &DiskPath) -> DiskResult<Vec<String>>;

    /// Returns whether a file or directory exists.
    fn exists(&self, path: &DiskPath) -> DiskResult<bool>;

    /// Makes the names in a directory durable; empty path for the data directory itself.
    fn sync_dir(&self, path: &DiskPath) -> DiskResult<()>;
}

/// Returns the whole content of a file.
pub fn read_all(disk: &dyn Disk, path: &DiskPath) -> DiskResult<Vec<u8>> {
    let mut file = disk.open(path, OpenMode::Read)?;
    let length = usize::try_from(file.len()?).map_err(|_| DiskError::Other("file too large".into()))?;
    let mut bytes = vec![0; length];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Replaces a file in one durable step: a reader sees the old content or the new, never a part.
pub fn replace(disk: &dyn Disk, path: &DiskPath, bytes: &[u8]) -> DiskResult<()> {
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    if !parent.is_empty() {
        disk.create_dir(parent)?;
    }
    let fresh = format!("{path}{FRESH}");
    let mut file = disk.open(&fresh, OpenMode::Create)?;
    file.set_len(0)?;
    file.write_at(bytes, 0)?;
    file.sync()?;
    drop(file);
    disk.rename(&fresh, path)?;
    disk.sync_dir(parent)
}
