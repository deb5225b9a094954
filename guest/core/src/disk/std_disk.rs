//! The disk of the operating system, through `std::fs`.

use super::{Disk, DiskError, DiskFile, DiskPath, DiskResult, OpenMode};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// A directory of the operating system.
#[derive(Clone, Debug)]
pub struct StdDisk {
    root: PathBuf,
}

impl StdDisk {
    /// Returns the disk whose root is `root`, which must exist.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn at(&self, path: &DiskPath) -> PathBuf {
        if path.is_empty() { self.root.clone() } else { self.root.join(path) }
    }
}

fn refused(error: io::Error) -> DiskError {
    match error.kind() {
        ErrorKind::NotFound => DiskError::NotFound,
        ErrorKind::AlreadyExists => DiskError::Exists,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => DiskError::Full,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => DiskError::ReadOnly,
        _ => DiskError::Other(error.to_string()),
    }
}

#[derive(Debug)]
struct StdFile(File);

impl DiskFile for StdFile {
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> DiskResult<usize> {
        self.0.seek(SeekFrom::Start(offset)).map_err(refused)?;
        let mut read = 0;
        while read < buffer.len() {
            match self.0.read(&mut buffer[read..]) {
                Ok(0) => break,
                Ok(count) => read += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(refused(error)),
            }
        }
        Ok(read)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> DiskResult<()> {
        self.0.seek(SeekFrom::Start(offset)).map_err(refused)?;
        self.0.write_all(bytes).map_err(refused)
    }

    fn set_len(&mut self, length: u64) -> DiskResult<()> {
        self.0.set_len(length).map_err(refused)
    }

    fn len(&mut self) -> DiskResult<u64> {
        Ok(self.0.metadata().map_err(refused)?.len())
    }

    /// As SQLite's own VFS does: content and length, not the times, for which a journal would be written too.
    fn sync(&mut self) -> DiskResult<()> {
        self.0.sync_data().map_err(refused)
    }
}

impl Disk for StdDisk {
    fn open(&self, path: &DiskPath, mode: OpenMode) -> DiskResult<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true);
        match mode {
            OpenMode::Read => {}
            OpenMode::Write => {
                options.write(true);
            }
            OpenMode::Create => {
                options.write(true).create(true);
            }
            OpenMode::CreateNew => {
                options.write(true).create_new(true);
            }
        }
        Ok(Box::new(StdFile(options.open(self.at(path)).map_err(refused)?)))
    }

    fn remove(&self, path: &DiskPath) -> DiskResult<()> {
        fs::remove_file(self.at(path)).map_err(refused)
    }

    fn remove_dir(&self, path: &DiskPath) -> DiskResult<()> {
        fs::remove_dir(self.at(path)).map_err(refused)
    }

    fn rename(&self, from: &DiskPath, to: &DiskPath) -> DiskResult<()> {
        fs::rename(self.at(from), self.at(to)).map_err(refused)
    }

    fn create_dir(&self, path: &DiskPath) -> DiskResult<()> {
        fs::create_dir_all(self.at(path)).map_err(refused)
    }

    fn list(&self, path: &DiskPath) -> DiskResult<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.at(path)).map_err(refused)? {
            let entry = entry.map_err(refused)?;
            let mut name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type().map_err(refused)?.is_dir() {
                name.push('/');
            }
            names.push(name);
        }
        names.sort();
        Ok(names)
    }

    fn exists(&self, path: &DiskPath) -> DiskResult<bool> {
        self.at(path).try_exists().map_err(refused)
    }

    fn sync_dir(&self, path: &DiskPath) -> DiskResult<()> {
        File::open(self.at(path)).and_then(|directory| directory.sync_all()).map_err(refused)
    }
}
