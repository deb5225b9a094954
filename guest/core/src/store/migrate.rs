//! Versioned schema: each migration runs once, in its own transaction.

use super::failure;
use crate::contract::{Failure, FailureCode, Result};
use rusqlite::Connection;

/// All migrations, oldest first; the schema version is how many have run. A migration that has
/// been released is never edited: add the next one.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/001_spine.sql"),
    include_str!("migrations/002_pyramid.sql"),
    include_str!("migrations/003_l1.sql"),
    include_str!("migrations/004_offload.sql"),
    include_str!("migrations/005_index.sql"),
    include_str!("migrations/006_unfiled_texts.sql"),
    include_str!("migrations/007_reexamination.sql"),
    include_str!("migrations/008_vectors.sql"),
    include_str!("migrations/009_tallies.sql"),
];

/// The schema version that this build reads and writes.
pub const SCHEMA_VERSION: u32 = MIGRATIONS.len() as u32;

/// Marks a SQLite file as Strata's ("STRA"), for `file` and for us.
const APPLICATION_ID: u32 = 0x5354_5241;

/// Returns how many migrations have run; 0 for a database that holds nothing.
pub(super) fn version(db: &Connection) -> Result<u32> {
    db.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failure)
}

/// Brings the schema to [`SCHEMA_VERSION`].
pub(super) fn migrate(db: &mut Connection) -> Result<()> {
    let version = version(db)?;
    let application: u32 = db.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(failure)?;
    if version > SCHEMA_VERSION {
        return Err(Failure::new(
            FailureCode::NewerVersion,
            format!("the data directory has schema version {version}, this build knows {SCHEMA_VERSION}; use a newer Strata"),
        ));
    }
    if version > 0 && application != APPLICATION_ID {
        return Err(Failure::new(FailureCode::Corrupt, "strata.db is not a Strata database; name another data directory"));
    }
    for (index, migration) in MIGRATIONS.iter().enumerate().skip(version as usize) {
        let transaction = db.transaction().map_err(failure)?;
        transaction.execute_batch(migration).map_err(failure)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(failure)?;
        transaction.pragma_update(None, "user_version", index as u32 + 1).map_err(failure)?;
        transaction.commit().map_err(failure)?;
    }
    Ok(())
}
