//! Recall: which atoms and messages of a scope belong to a text.
//!
//! Candidates come from several rankings (keywords now, vectors beside them) and are fused by
//! reciprocal rank, so that no ranking's scale matters.

use crate::contract::{Instant, Result};
use crate::keyword::{self, Match};
use crate::l0::{self, Message, MessageId, ScopeId};
use crate::l1::atom::{self, Atom, AtomId};
use rusqlite::Connection;
use std::collections::BTreeMap;

/// The constant of reciprocal-rank fusion (Cormack et al. 2009; the reference system's figure).
const FUSION_K: f64 = 60.0;

/// Candidates that each ranking gives, as a multiple of what is wanted (the reference system's figure).
const CANDIDATES: usize = 3;

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
}

/// Something found, with its fused score; larger is better.
#[derive(Clone, Debug, PartialEq)]
pub struct Found<T> {
    /// What.
    pub item: T,
    /// Sum of 1 / (60 + rank) over the rankings.
    pub score: f64,
}

/// Returns up to `limit` atoms that belong to a query and pass `keep`, best first.
pub fn atoms(db: &Connection, scope: ScopeId, query: &Query<'_>, limit: usize, keep: impl Fn(&Atom) -> bool) -> Result<Vec<Found<Atom>>> {
    let (filter, instants) = belief(query);
    let by_words = keyword::atoms(db, scope, query.text, limit.saturating_mul(CANDIDATES), filter, instants)?;
    let mut found = Vec::new();
    for (row, score) in fuse(&[by_words]) {
        let atom = atom::by_id(db, AtomId(row))?;
        if keep(&atom) {
            found.push(Found { item: atom, score });
            if found.len() == limit {
                break;
            }
        }
    }
    Ok(found)
}

/// Returns up to `limit` messages that belong to a query and pass `keep`, best first.
pub fn messages(db: &Connection, scope: ScopeId, query: &Query<'_>, limit: usize, keep: impl Fn(&Message) -> bool) -> Result<Vec<Found<Message>>> {
    let by_words = keyword::messages(db, scope, query.text, limit.saturating_mul(CANDIDATES))?;
    let mut found = Vec::new();
    for (row, score) in fuse(&[by_words]) {
        let message = l0::message(db, MessageId(row))?;
        if keep(&message) {
            found.push(Found { item: message, score });
            if found.len() == limit {
                break;
            }
        }
    }
    Ok(found)
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

/// Returns the rows of several rankings by the sum of their reciprocal ranks, best first; equal sums
/// keep the newer row first.
pub fn fuse(rankings: &[Vec<Match>]) -> Vec<(i64, f64)> {
    let mut scores: BTreeMap<i64, f64> = BTreeMap::new();
    for ranking in rankings {
        for (rank, found) in ranking.iter().enumerate() {
            *scores.entry(found.row).or_insert(0.0) += 1.0 / (FUSION_K + rank as f64 + 1.0);
        }
    }
    let mut fused: Vec<(i64, f64)> = scores.into_iter().collect();
    fused.sort_by(|one, other| other.1.total_cmp(&one.1).then(other.0.cmp(&one.0)));
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_rankings_find_comes_first() {
        let ranking = |rows: &[i64]| rows.iter().map(|row| Match { row: *row, weight: 1.0 }).collect::<Vec<_>>();
        let fused = fuse(&[ranking(&[1, 2, 3]), ranking(&[3, 4])]);
        assert_eq!(fused.iter().map(|(row, _)| *row).collect::<Vec<_>>(), [3, 1, 4, 2]);
    }
}
