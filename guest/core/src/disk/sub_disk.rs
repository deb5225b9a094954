//! A folder of another disk as a disk of its own: a backup is a data directory inside one.

use super::{Disk, DiskFile, DiskPath, DiskResult, OpenMode};
use std::rc::Rc;

/// The disk below `prefix`.
#[derive(Clone, Debug)]
pub struct SubDisk {
    disk: Rc<dyn Disk>,
    prefix: String,
}

impl SubDisk {
    /// Returns the disk below `prefix`, a folder that exists.
    pub fn new(disk: Rc<dyn Disk>, prefix: impl Into<String>) -> Self {
        Self { disk, prefix: prefix.into() }
    }

    fn at(&self, path: &DiskPath) -> String {
        if path.is_empty() { self.prefix.clone() } else { format!("{}/{path}", self.prefix) }
    }
}

impl Disk for SubDisk {
    fn open(&self, path: &DiskPath, mode: OpenMode) -> DiskResult<Box<dyn DiskFile>> {
        self.disk.open(&self.at(path), mode)
    }

    fn remove(&self, path: &DiskPath) -> DiskResult<()> {
        self.disk.remove(&self.at(path))
    }

    fn remove_dir(&self, path: &DiskPath) -> DiskResult<()> {
        self.disk.remove_dir(&self.at(path))
    }

    fn rename(&self, from: &DiskPath, to: &DiskPath) -> DiskResult<()> {
        self.disk.rename(&self.at(from), &self.at(to))
    }

    fn create_dir(&self, path: &DiskPath) -> DiskResult<()> {
        self.disk.create_dir(&self.at(path))
    }

    fn list(&self, path: &DiskPath) -> DiskResult<Vec<String>> {
        self.disk.list(&self.at(path))
    }

    fn exists(&self, path: &DiskPath) -> DiskResult<bool> {
        self.disk.exists(&self.at(path))
    }

    fn sync_dir(&self, path: &DiskPath) -> DiskResult<()> {
        self.disk.sync_dir(&self.at(path))
    }
}
