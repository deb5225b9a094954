//! What the search index holds of forgotten rows.

use crate::contract::Result;
use crate::store::failure;
use rusqlite::{Connection, Transaction};

/// Returns whether the index keeps words in FTS5 tables of its own; the one that keeps hashes follows
/// its tables by triggers.
fn has_words(db: &Connection) -> Result<bool> {
    db.prepare_cached("SELECT 1 FROM sqlite_master WHERE name = 'messages_index'").and_then(|mut query| query.exists([])).map_err(failure)
}

/// Takes an atom out of the index.
pub(crate) fn forget_atom(tx: &Transaction<'_>, row: i64) -> Result<()> {
    if has_words(tx)? {
        tx.execute("DELETE FROM atoms_index WHERE rowid = ?1", [row]).map_err(failure)?;
    }
    Ok(())
}

/// Takes a message out of the index.
pub(crate) fn forget_message(tx: &Transaction<'_>, row: i64) -> Result<()> {
    if has_words(tx)? {
        tx.execute("DELETE FROM messages_index WHERE rowid = ?1", [row]).map_err(failure)?;
    }
    Ok(())
}

/// Rewrites the index so that no deleted word is left in its segments.
pub(crate) fn purge(tx: &Transaction<'_>) -> Result<()> {
    if has_words(tx)? {
        tx.execute_batch("INSERT INTO atoms_index (atoms_index) VALUES ('optimize'); INSERT INTO messages_index (messages_index) VALUES ('optimize');")
            .map_err(failure)?;
    }
    Ok(())
}

/// Returns whether something besides messages and atoms still belongs to a session.
pub(super) fn session_in_use(db: &Connection, session: i64) -> Result<bool> {
    db.prepare_cached(
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM offload_entries WHERE session = ?1) OR EXISTS (SELECT 1 FROM offload_uses WHERE session = ?1)
            OR EXISTS (SELECT 1 FROM batches WHERE session = ?1 AND state <> 'done')",
    )
    .and_then(|mut query| query.exists([session]))
    .map_err(failure)
}
