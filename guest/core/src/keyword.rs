//! The keyword index: FTS5 over our own tokens.
//!
//! A query is a list of quoted tokens joined by `OR`; a token has only letters and digits, so user
//! text never becomes query syntax.

use crate::contract::Result;
use crate::l0::ScopeId;
use crate::store::failure;
use crate::text;
use rusqlite::{Connection, Transaction, params};

/// A row found by keywords and its BM25 weight; larger is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match {
    /// The row of `atoms` or `messages`.
    pub row: i64,
    /// BM25, positive.
    pub weight: f64,
}

/// Adds a message to the index.
pub fn index_message(tx: &Transaction<'_>, row: i64, words: &str) -> Result<()> {
    index(tx, "INSERT INTO messages_index (rowid, tokens) VALUES (?1, ?2)", row, words)
}

/// Adds an atom to the index.
pub fn index_atom(tx: &Transaction<'_>, row: i64, words: &str) -> Result<()> {
    index(tx, "INSERT INTO atoms_index (rowid, tokens) VALUES (?1, ?2)", row, words)
}

fn index(tx: &Transaction<'_>, sql: &str, row: i64, words: &str) -> Result<()> {
    tx.prepare_cached(sql).and_then(|mut insert| insert.execute(params![row, text::tokens(words).join(" ")])).map(|_| ()).map_err(failure)
}

/// Returns the atoms of a scope that share a token with `query`, best first. `filter` is SQL over
/// `atoms` with the parameters `?4` and `?5` (two instants).
pub fn atoms(db: &Connection, scope: ScopeId, query: &str, limit: usize, filter: &str, instants: [i64; 2]) -> Result<Vec<Match>> {
    let Some(expression) = expression(query) else { return Ok(Vec::new()) };
    let sql = format!(
        "SELECT atoms.id, -bm25(atoms_index) FROM atoms_index JOIN atoms ON atoms.id = atoms_index.rowid
         WHERE atoms_index MATCH ?1 AND atoms.scope = ?2 AND {filter} ORDER BY bm25(atoms_index), atoms.id LIMIT ?3"
    );
    rows(db, &sql, params![expression, scope.0, limit as i64, instants[0], instants[1]])
}

/// Returns the messages of a scope that share a token with `query`, best first.
pub fn messages(db: &Connection, scope: ScopeId, query: &str, limit: usize) -> Result<Vec<Match>> {
    let Some(expression) = expression(query) else { return Ok(Vec::new()) };
    let sql = "SELECT messages.id, -bm25(messages_index) FROM messages_index JOIN messages ON messages.id = messages_index.rowid
         WHERE messages_index MATCH ?1 AND messages.scope = ?2 ORDER BY bm25(messages_index), messages.id LIMIT ?3";
    rows(db, sql, params![expression, scope.0, limit as i64])
}

fn rows(db: &Connection, sql: &str, values: &[&dyn rusqlite::ToSql]) -> Result<Vec<Match>> {
    db.prepare_cached(sql).and_then(|mut query| query.query_map(values, |row| Ok(Match { row: row.get(0)?, weight: row.get(1)? }))?.collect()).map_err(failure)
}

/// Returns the FTS5 expression for a text, or nothing if the text has no token.
fn expression(query: &str) -> Option<String> {
    let quoted: Vec<String> = text::query_tokens(query).iter().map(|token| format!("\"{token}\"")).collect();
    (!quoted.is_empty()).then(|| quoted.join(" OR "))
}
