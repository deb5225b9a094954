//! Recall: which atoms and messages of a scope belong to a text.
//!
//! [`rank`] gives an order of everything that may belong; here it is held against what was believed when,
//! and read.

pub mod rank;

use crate::contract::{Instant, Result};
use crate::index::{Index, Kind};
use crate::l0::{self, Message, MessageId, ScopeId, SessionId};
use crate::l1::atom::{self, Atom, AtomId};
use crate::store::failure;
use rank::{Ask, Ranked, Strategy};
use rusqlite::{Connection, params};

/// Ranked rows that are held against a filter before a search gives up.
const CANDIDATES: usize = 512;

/// What is looked for.
#[derive(Clone, Debug, Default)]
pub struct Query<'a> {
    /// The text.
    pub text: &'a str,
    /// Its embedding by the host's model.
    pub vector: Option<&'a [f32]>,
    /// `keyword`, `vector` or `hybrid`.
    pub strategy: &'a str,
    /// As believed at this time; now if absent.
    pub believed_at: Option<Instant>,
    /// What was true at this time; what is believed to be true now if absent.
    pub true_at: Option<Instant>,
    /// Confidence below which an atom is left out, 0 to 1. A message is found by its neighbours too: messages
    /// are left out only if none is this sure.
    pub threshold: f32,
    /// Only messages of this session.
    pub session: Option<SessionId>,
}

impl Query<'_> {
    /// Returns the confidence below which nothing is found. A word in common is a word in common: a search by
    /// keywords alone has no floor.
    fn floor(&self) -> f32 {
        if self.strategy == "keyword" { 0.0 } else { self.threshold }
    }
}

/// Something found, with its score; larger is better.
#[derive(Clone, Debug, PartialEq)]
pub struct Found<T> {
    /// What.
    pub item: T,
    /// The sum of the ranking's parts; comparable within one query only.
    pub score: f64,
    /// How sure it is that the item belongs to the query, 0 to 1.
    pub confidence: f64,
}

/// Returns up to `limit` atoms that belong to a query and pass `keep`, best first.
pub fn atoms(db: &Connection, index: &Index, scope: ScopeId, query: &Query<'_>, limit: usize, keep: impl Fn(&Atom) -> bool) -> Result<Vec<Found<Atom>>> {
    let (filter, instants) = belief(query);
    let sql = format!("SELECT 1 FROM atoms WHERE id = ?1 AND scope = ?2 AND ?3 = ?3 AND {filter}");
    let mut is_believed = db.prepare_cached(&sql).map_err(failure)?;
    let mut found = Vec::new();
    for ranked in ranked(db, index, Kind::Atoms, scope, query)? {
        if ranked.confidence < query.floor() {
            continue;
        }
        if !is_believed.exists(params![ranked.row, scope.0, 0, instants[0], instants[1]]).map_err(failure)? {
            continue;
        }
        let atom = atom::by_id(db, AtomId(ranked.row))?;
        if keep(&atom) {
            found.push(Found { item: atom, score: f64::from(ranked.score), confidence: f64::from(ranked.confidence) });
            if found.len() == limit {
                break;
            }
        }
    }
    Ok(found)
}

/// Returns up to `limit` messages that belong to a query and pass `keep`, best first.
pub fn messages(
    db: &Connection,
    index: &Index,
    scope: ScopeId,
    query: &Query<'_>,
    limit: usize,
    keep: impl Fn(&Message) -> bool,
) -> Result<Vec<Found<Message>>> {
    let mut found = Vec::new();
    let ranked = ranked(db, index, Kind::Messages, scope, query)?;
    if ranked.iter().all(|ranked| ranked.confidence < query.floor()) {
        return Ok(found);
    }
    for ranked in ranked {
        let message = l0::message(db, MessageId(ranked.row))?;
        if keep(&message) {
            found.push(Found { item: message, score: f64::from(ranked.score), confidence: f64::from(ranked.confidence) });
            if found.len() == limit {
                break;
            }
        }
    }
    Ok(found)
}

fn ranked(db: &Connection, index: &Index, kind: Kind, scope: ScopeId, query: &Query<'_>) -> Result<Vec<Ranked>> {
    let ask = Ask {
        scope: scope.0 as u32,
        session: query.session.map(|session| session.0 as u32),
        text: query.text,
        strategy: match query.strategy {
            "keyword" => Strategy::Keyword,
            "vector" | "embedding" => Strategy::Vector,
            _ => Strategy::Hybrid,
        },
        wanted: CANDIDATES,
    };
    index.with(db, kind, |loaded| rank::rank(loaded, db, index.embedder(), &ask))
}

/// Returns the filter over `atoms` for the times of a query, and its two parameters.
///
/// - Now: what is believed.
/// - Believed at B: what had been stored by B and not yet replaced.
/// - True at T: what is or was known to hold at T. An atom that went into a merged one is left out,
///   for the merged one says it.
/// - Both: what was believed at B to hold at T.
fn belief(query: &Query<'_>) -> (&'static str, [i64; 2]) {
    const NOW: &str = "atoms.believed_to IS NULL AND ?4 = ?5";
    const BELIEVED: &str = "atoms.believed_from <= ?4 AND (atoms.believed_to IS NULL OR atoms.believed_to > ?4) AND ?5 = 0";
    const TRUE: &str =
        "(atoms.believed_to IS NULL OR atoms.valid_to IS NOT NULL) AND atoms.valid_from <= ?5 AND (atoms.valid_to IS NULL OR atoms.valid_to > ?5) AND ?4 = 0";
    const BOTH: &str = "atoms.believed_from <= ?4 AND atoms.valid_from <= ?5
        AND (atoms.believed_to IS NULL OR atoms.believed_to > ?4 OR (atoms.valid_to IS NOT NULL AND atoms.valid_to > ?5))";
    match (query.believed_at, query.true_at) {
        (None, None) => (NOW, [0, 0]),
        (Some(believed), None) => (BELIEVED, [believed as i64, 0]),
        (None, Some(held)) => (TRUE, [0, held as i64]),
        (Some(believed), Some(held)) => (BOTH, [believed as i64, held as i64]),
    }
}
