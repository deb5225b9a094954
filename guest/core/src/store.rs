//! One SQLite database in the data directory, reached through the [`Disk`] port.

mod gathered;
mod lost;
mod migrate;
mod vfs;

pub use migrate::SCHEMA_VERSION;

use crate::contract::{Failure, FailureCode, Result};
use crate::disk::{Disk, DiskError};
use crate::index::Index;
use crate::index::write::Upkeep;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use std::rc::Rc;

/// The database file's name in the data directory.
pub const DATABASE: &str = "strata.db";

/// The first setting of the connection: WAL without shared memory exists only so, and a second opener
/// is kept out by the space lock, not by SQLite.
const EXCLUSIVE: &str = "PRAGMA locking_mode = EXCLUSIVE";

/// The other settings of the connection, in the order in which SQLite needs them.
///
/// - `synchronous = FULL`: an acknowledged message survives a power cut, not only a kill.
/// - `secure_delete`: what is forgotten is overwritten, also in free pages.
/// - `temp_store = MEMORY`: nothing of a conversation is written outside of the known files.
/// - `cache_size`: 16 MiB, a fifth of the memory budget of a space of 100,000 atoms.
/// - `wal_autocheckpoint`: 1000 pages (SQLite's default), so that the WAL stays near 4 MiB.
const PRAGMAS: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA secure_delete = ON;
    PRAGMA temp_store = MEMORY;
    PRAGMA foreign_keys = ON;
    PRAGMA cache_size = -16384;
    PRAGMA wal_autocheckpoint = 1000;
    PRAGMA journal_size_limit = 8388608;
";

/// The open database and the disk beside it.
#[derive(Debug)]
pub struct Store {
    // Declared before the VFS: the connection must close while its VFS is still registered.
    db: Connection,
    _vfs: vfs::Registration,
    disk: Rc<dyn Disk>,
    index: Rc<Index>,
}

impl Store {
    /// Opens the database on `disk`, creating it if the directory is new, and migrates it.
    ///
    /// Fails with `newer-version`, `corrupt` (also if the directory shows that its database was lost),
    /// `read-only`, `storage-full` or `io`; then nothing was changed but for the migrations that had
    /// committed.
    pub fn open(disk: Rc<dyn Disk>) -> Result<Self> {
        lost::check_bytes(disk.as_ref())?;
        Self::connect(disk, lost::check_signs)
    }

    /// Opens the database on `disk` as [`Self::open`] does, or makes an empty one whatever else the
    /// directory holds: for a restore, which fills it.
    pub fn open_or_begin(disk: Rc<dyn Disk>) -> Result<Self> {
        Self::connect(disk, |_| Ok(()))
    }

    fn connect(disk: Rc<dyn Disk>, check_empty: impl FnOnce(&dyn Disk) -> Result<()>) -> Result<Self> {
        let vfs = vfs::Registration::new(Rc::clone(&disk))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut db = Connection::open_with_flags_and_vfs(DATABASE, flags, vfs.name()).map_err(failure)?;
        db.execute_batch(EXCLUSIVE).map_err(failure)?;
        if migrate::version(&db)? == 0 {
            check_empty(disk.as_ref())?;
        }
        db.execute_batch(PRAGMAS).map_err(failure)?;
        // A plan must not depend on bound values: SQLite would prepare a statement anew for each value.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(failure)?;
        // Prepared statements are many and small; the default of 16 would thrash.
        db.set_prepared_statement_cache_capacity(128);
        migrate::migrate(&mut db)?;
        Ok(Self { db, _vfs: vfs, disk, index: Rc::new(Index::default()) })
    }

    /// Returns the connection for reading.
    pub fn db(&self) -> &Connection {
        &self.db
    }

    /// Returns the search index of the database.
    pub fn index(&self) -> Rc<Index> {
        Rc::clone(&self.index)
    }

    /// Does a slice of the index's upkeep, if any is due; returns whether more is.
    pub fn keep_index(&mut self) -> Result<bool> {
        if !self.index.is_due(&self.db)? {
            return Ok(false);
        }
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failure)?;
        self.index.follow(&transaction, Upkeep::Background)?;
        transaction.commit().map_err(failure)?;
        self.index.is_due(&self.db)
    }

    /// Returns the disk.
    pub fn disk(&self) -> &dyn Disk {
        self.disk.as_ref()
    }

    /// Returns the disk for someone who keeps it.
    pub fn shared_disk(&self) -> Rc<dyn Disk> {
        Rc::clone(&self.disk)
    }

    /// Runs `change` in one transaction: on return it is durable and searchable, on failure it never happened.
    pub fn write<T>(&mut self, change: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failure)?;
        let value = change(&transaction)?;
        self.index.follow(&transaction, Upkeep::Write)?;
        transaction.commit().map_err(failure)?;
        Ok(value)
    }

    /// Replaces all rows by those of another store, in one transaction.
    pub fn replace_by(&mut self, source: &Self) -> Result<()> {
        let copy = rusqlite::backup::Backup::new(&source.db, &mut self.db).map_err(failure)?;
        let done = copy.step(-1).map_err(failure)?;
        drop(copy);
        // What is in memory of the index belongs to the rows before.
        self.index = Rc::new(Index::default());
        match done {
            rusqlite::backup::StepResult::Done => Ok(()),
            _ => Err(Failure::new(FailureCode::Io, "the database could not be replaced; the state before is untouched")),
        }
    }

    /// Closes the database: the WAL is folded into it and removed.
    pub fn close(self) -> Result<()> {
        self.db.close().map_err(|(_, error)| failure(error))
    }
}

/// Returns an empty database of the current schema in memory, to derive rows in and throw away.
pub fn scratch() -> Result<Connection> {
    let mut db = Connection::open_in_memory().map_err(failure)?;
    migrate::migrate(&mut db)?;
    Ok(db)
}

/// Returns the refusal that a SQLite error means to a host.
pub fn failure(error: rusqlite::Error) -> Failure {
    let code = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => FailureCode::StorageFull,
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => FailureCode::ReadOnly,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => FailureCode::Corrupt,
        Some(ErrorCode::TooBig) => FailureCode::TooLarge,
        _ => FailureCode::Io,
    };
    let advice = match code {
        FailureCode::StorageFull => "the disk is full; free some space and repeat the call",
        FailureCode::ReadOnly => "the data directory cannot be written; check its owner and permissions",
        FailureCode::Corrupt => "the database is damaged; restore a backup (`strata restore`), the damaged file is left as it is",
        FailureCode::TooLarge => "a value is larger than SQLite takes (1 GB)",
        _ => "the store failed",
    };
    Failure::new(code, format!("{advice} ({error})"))
}

/// Returns the refusal that a disk error means to a host.
pub fn disk_failure(path: &str, error: DiskError) -> Failure {
    match error {
        DiskError::Full => Failure::new(FailureCode::StorageFull, format!("the disk is full while writing {path}; free some space and repeat the call")),
        DiskError::ReadOnly => Failure::new(FailureCode::ReadOnly, format!("{path} cannot be written; check its owner and permissions")),
        DiskError::NotFound => Failure::not_found(format!("{path} does not exist")),
        DiskError::Exists => Failure::new(FailureCode::Conflict, format!("{path} exists already")),
        DiskError::Other(words) => Failure::new(FailureCode::Io, format!("{path}: {words}")),
    }
}
