//! The disk of the host: the first preopened directory of `wasi:filesystem`.
//!
//! The interface is called directly and not through `std::fs`: reads and writes take an offset, and
//! a directory can be synced. Symbolic links at the end of a path are never followed.

use std::fmt;
use std::rc::Rc;
use strata_core::contract::{Failure, FailureCode, Result};
use strata_core::disk::{Disk, DiskError, DiskFile, DiskPath, DiskResult, OpenMode};
use wasi::filesystem::preopens::get_directories;
use wasi::filesystem::types::{Descriptor, DescriptorFlags, DescriptorType, ErrorCode, OpenFlags, PathFlags};

/// Bytes that one call moves at most; the host allocates that much.
const MAX_TRANSFER: usize = 1 << 20;

/// The data directory.
#[derive(Clone)]
pub(crate) struct WasiDisk {
    root: Rc<Descriptor>,
}

impl WasiDisk {
    /// Returns the first preopened directory, which is the data directory.
    pub(crate) fn first_preopen() -> Result<Self> {
        let (root, _name) = get_directories()
            .into_iter()
            .next()
            .ok_or_else(|| Failure::new(FailureCode::Io, "the host has preopened no directory; give it the data directory"))?;
        Ok(Self { root: Rc::new(root) })
    }

    fn directory(&self, path: &DiskPath) -> DiskResult<Descriptor> {
        let path = if path.is_empty() { "." } else { path };
        self.root.open_at(PathFlags::empty(), path, OpenFlags::DIRECTORY, DescriptorFlags::READ).map_err(refused)
    }
}

impl fmt::Debug for WasiDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WasiDisk")
    }
}

fn refused(code: ErrorCode) -> DiskError {
    match code {
        ErrorCode::NoEntry => DiskError::NotFound,
        ErrorCode::Exist => DiskError::Exists,
        ErrorCode::InsufficientSpace | ErrorCode::Quota | ErrorCode::FileTooLarge => DiskError::Full,
        ErrorCode::Access | ErrorCode::NotPermitted | ErrorCode::ReadOnly => DiskError::ReadOnly,
        other => DiskError::Other(other.name().to_owned()),
    }
}

struct WasiFile(Descriptor);

impl fmt::Debug for WasiFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WasiFile")
    }
}

impl DiskFile for WasiFile {
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> DiskResult<usize> {
        let mut read = 0;
        while read < buffer.len() {
            let wanted = (buffer.len() - read).min(MAX_TRANSFER);
            let (bytes, end) = self.0.read(wanted as u64, offset + read as u64).map_err(refused)?;
            // A host that answers more than was asked for must not write past the buffer.
            let count = bytes.len().min(wanted);
            buffer[read..read + count].copy_from_slice(&bytes[..count]);
            read += count;
            if end || count == 0 {
                break;
            }
        }
        Ok(read)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> DiskResult<()> {
        let mut written = 0;
        while written < bytes.len() {
            let end = bytes.len().min(written + MAX_TRANSFER);
            let count = self.0.write(&bytes[written..end], offset + written as u64).map_err(refused)?;
            if count == 0 {
                return Err(DiskError::Other("the host wrote nothing".into()));
            }
            written += usize::try_from(count).map_or(end - written, |count| count.min(end - written));
        }
        Ok(())
    }

    fn set_len(&mut self, length: u64) -> DiskResult<()> {
        self.0.set_size(length).map_err(refused)
    }

    fn len(&mut self) -> DiskResult<u64> {
        Ok(self.0.stat().map_err(refused)?.size)
    }

    /// As SQLite's own VFS does: content and length, not the times, for which a journal would be written too.
    fn sync(&mut self) -> DiskResult<()> {
        self.0.sync_data().map_err(refused)
    }
}

impl Disk for WasiDisk {
    fn open(&self, path: &DiskPath, mode: OpenMode) -> DiskResult<Box<dyn DiskFile>> {
        let (how, access) = match mode {
            OpenMode::Read => (OpenFlags::empty(), DescriptorFlags::READ),
            OpenMode::Write => (OpenFlags::empty(), DescriptorFlags::READ | DescriptorFlags::WRITE),
            OpenMode::Create => (OpenFlags::CREATE, DescriptorFlags::READ | DescriptorFlags::WRITE),
            OpenMode::CreateNew => (OpenFlags::CREATE | OpenFlags::EXCLUSIVE, DescriptorFlags::READ | DescriptorFlags::WRITE),
        };
        Ok(Box::new(WasiFile(self.root.open_at(PathFlags::empty(), path, how, access).map_err(refused)?)))
    }

    fn remove(&self, path: &DiskPath) -> DiskResult<()> {
        self.root.unlink_file_at(path).map_err(refused)
    }

    fn remove_dir(&self, path: &DiskPath) -> DiskResult<()> {
        self.root.remove_directory_at(path).map_err(refused)
    }

    fn rename(&self, from: &DiskPath, to: &DiskPath) -> DiskResult<()> {
        self.root.rename_at(from, &self.root, to).map_err(refused)
    }

    fn create_dir(&self, path: &DiskPath) -> DiskResult<()> {
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
        for end in ends {
            match self.root.create_directory_at(&path[..end]) {
                Ok(()) | Err(ErrorCode::Exist) => {}
                Err(code) => return Err(refused(code)),
            }
        }
        Ok(())
    }

    fn list(&self, path: &DiskPath) -> DiskResult<Vec<String>> {
        let entries = self.directory(path)?.read_directory().map_err(refused)?;
        let mut names = Vec::new();
        while let Some(entry) = entries.read_directory_entry().map_err(refused)? {
            let mut name = entry.name;
            if entry.type_ == DescriptorType::Directory {
                name.push('/');
            }
            names.push(name);
        }
        names.sort();
        Ok(names)
    }

    fn exists(&self, path: &DiskPath) -> DiskResult<bool> {
        match self.root.stat_at(PathFlags::empty(), path) {
            Ok(_) => Ok(true),
            Err(ErrorCode::NoEntry) => Ok(false),
            Err(code) => Err(refused(code)),
        }
    }

    fn sync_dir(&self, path: &DiskPath) -> DiskResult<()> {
        self.directory(path)?.sync().map_err(refused)
    }
}
