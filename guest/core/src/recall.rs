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

/// By words or by vector alone, rows beyond the wanted ones that are ranked at first: finding more costs more, and most
/// rows pass their filter.
const SPARE: usize = 16;

/// Rows by vector whose cosine is calculated again from their text, as a multiple of the wanted ones, and the bytes of text
/// that this may read: codes of 8 bits confuse neighbours in the order, and of 100,000 sentences the ten nearest are
/// among the first twelve by codes in 99.6 %.
const RESCORED: usize = 2;
const RESCORED_BYTES: usize = 16 << 10;

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

    /// Returns how many rows to rank, and if too few of them pass, how many then.
    fn rounds(&self, limit: usize) -> impl Iterator<Item = usize> + use<> {
        let is_single = matches!(self.strategy, "keyword" | "vector" | "embedding");
        let first = if is_single { limit * RESCORED + SPARE } else { CANDIDATES };
        std::iter::once(first).chain((first < CANDIDATES).then_some(CANDIDATES))
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
    for wanted in query.rounds(limit) {
        found.clear();
        let ranked = ranked(db, index, Kind::Atoms, scope, query, limit, wanted)?;
        let is_all = ranked.len() < wanted;
        for ranked in ranked {
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
        if found.len() == limit || is_all {
            break;
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
    for wanted in query.rounds(limit) {
        found.clear();
        let ranked = ranked(db, index, Kind::Messages, scope, query, limit, wanted)?;
        if ranked.iter().all(|ranked| ranked.confidence < query.floor()) {
            break;
        }
        let is_all = ranked.len() < wanted;
        for ranked in ranked {
            let message = l0::message(db, MessageId(ranked.row))?;
            if keep(&message) {
                found.push(Found { item: message, score: f64::from(ranked.score), confidence: f64::from(ranked.confidence) });
                if found.len() == limit {
                    break;
                }
            }
        }
        if found.len() == limit || is_all {
            break;
        }
    }
    Ok(found)
}

fn ranked(db: &Connection, index: &Index, kind: Kind, scope: ScopeId, query: &Query<'_>, limit: usize, wanted: usize) -> Result<Vec<Ranked>> {
    let ask = Ask {
        scope: scope.0 as u32,
        session: query.session.map(|session| session.0 as u32),
        text: query.text,
        strategy: match query.strategy {
            "keyword" => Strategy::Keyword,
            "vector" | "embedding" => Strategy::Vector,
            _ => Strategy::Hybrid,
        },
        wanted,
    };
    let mut ranked = index.with(db, kind, |loaded| rank::rank(loaded, db, index.embedder(), &ask))?;
    if ask.strategy == Strategy::Vector {
        rescore(db, index, kind, query.text, &mut ranked, limit * RESCORED)?;
    }
    Ok(ranked)
}

/// Orders the first `count` of what was found by vector by the cosine of their texts.
fn rescore(db: &Connection, index: &Index, kind: Kind, text: &str, ranked: &mut [Ranked], count: usize) -> Result<()> {
    let wanted = index.embedder().embed(text);
    let sql = if kind == Kind::Atoms { "SELECT text FROM atoms WHERE id = ?1" } else { "SELECT text FROM messages WHERE id = ?1" };
    let mut query = db.prepare_cached(sql).map_err(failure)?;
    let (mut done, mut bytes) = (0, 0);
    for ranked in ranked.iter_mut().take(count) {
        let vector = query
            .query_row([ranked.row], |row| {
                let text = row.get_ref(0)?.as_str()?;
                bytes += text.len();
                Ok((bytes <= RESCORED_BYTES).then(|| index.embedder().embed(text)))
            })
            .map_err(failure)?;
        let Some(vector) = vector else { break };
        ranked.score = vector.iter().zip(&wanted).map(|(one, other)| one * other).sum();
        ranked.confidence = ranked.score.clamp(0.0, 1.0);
        done += 1;
    }
    // Stable: of equal cosines the earlier stays first.
    ranked[..done].sort_by(|one, other| other.score.total_cmp(&one.score));
    Ok(())
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
