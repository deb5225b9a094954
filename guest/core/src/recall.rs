//! Recall: which atoms and messages of a scope belong to a text.
//!
//! [`rank`] gives an order of everything that may belong; here it is held against what was believed when,
//! and read.

mod alike;
pub mod rank;
pub mod relevance;

use crate::contract::{Instant, Result};
use crate::index::{Index, Kind};
use crate::l0::{self, Message, MessageId, ScopeId, SessionId};
use crate::l1::atom::{self, Atom, AtomId};
use crate::store::failure;
use crate::text::asker::asks_about_the_asker;
use crate::vectors;
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
    /// How sure it must be, 0 to 1, that something belongs to the text; nothing is found if nothing is this sure.
    pub threshold: f32,
    /// Somebody asks for a search: the text is known to be about memory, and the floor is lower.
    pub sought: bool,
    /// Only messages of this session.
    pub session: Option<SessionId>,
}

/// How much less sure what comes beside something sure may be, in nats of odds: of atoms, which stand alone, and of
/// messages, which their neighbours make sense of.
const ATOM_SLACK: f32 = 1.0;
const MESSAGE_SLACK: f32 = 2.0;

/// How much likelier a search that somebody asks for has an answer than a prompt that nobody meant for a search, in nats
/// of odds.
const SOUGHT: f32 = 2.0;

/// How much likelier a question about the one who asks has an answer, in nats of odds. It counts where nothing is sure
/// without it.
///
/// Of 72 such questions about 36 facts, most of them in other words, 30 get their fact without it and 41 with it; of as
/// many about other facts 7 and 31 get something; of 180 unrelated prompts 1 and 3 (`guest/core/tests/recall_personal.rs`).
const ABOUT_THE_ASKER: f32 = 2.5;

impl Query<'_> {
    /// Returns the floors of confidence in the order in which they are tried: what something must have, and what is enough
    /// beside it.
    fn floors(&self, kind: Kind) -> Vec<(f32, f32)> {
        let plain = self.plain_floors(kind);
        let mut floors = vec![plain];
        if plain.0 > 0.0 && asks_about_the_asker(self.text) {
            floors.push((relevance::lowered(plain.0, ABOUT_THE_ASKER), relevance::lowered(plain.1, ABOUT_THE_ASKER)));
        }
        floors
    }

    fn plain_floors(&self, kind: Kind) -> (f32, f32) {
        if !self.sought {
            let slack = if kind == Kind::Atoms { ATOM_SLACK } else { MESSAGE_SLACK };
            return (self.threshold, relevance::lowered(self.threshold, slack));
        }
        let floor = relevance::lowered(self.threshold, SOUGHT);
        match (self.strategy, kind) {
            // Who searches by keyword looks for a word, whatever else there is.
            ("keyword", _) => (0.0, 0.0),
            (_, Kind::Atoms) => (floor, floor),
            // A message is found by what was said around it too: all are shown, in order, unless nothing is near.
            (_, Kind::Messages) => (relevance::lowered(floor, SOUGHT + MESSAGE_SLACK), 0.0),
        }
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
    let mut read = |row| {
        if !is_believed.exists(params![row, scope.0, 0, instants[0], instants[1]]).map_err(failure)? {
            return Ok(None);
        }
        Ok(Some(atom::by_id(db, AtomId(row))?).filter(|atom| keep(atom)))
    };
    select(query, limit, Kind::Atoms, |wanted| ranked(db, index, Kind::Atoms, scope, query, limit, wanted), &mut read)
}

/// Returns up to `limit` believed atoms that are most like a text, by vector and by those of its words that tell what it
/// is about. What it costs is bounded, whatever the store holds.
pub fn alike(db: &Connection, index: &Index, scope: ScopeId, text: &str, words: &str, limit: usize) -> Result<Vec<AtomId>> {
    let mut is_believed = db.prepare_cached("SELECT 1 FROM atoms WHERE id = ?1 AND scope = ?2 AND believed_to IS NULL").map_err(failure)?;
    let mut found = Vec::new();
    for row in index.with(db, Kind::Atoms, |loaded| alike::alike(loaded, db, index.embedder(), scope.0 as u32, text, words))? {
        if is_believed.exists(params![row, scope.0]).map_err(failure)? {
            found.push(AtomId(row));
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
    let mut read = |row| Ok(Some(l0::message(db, MessageId(row))?).filter(|message| keep(message)));
    select(query, limit, Kind::Messages, |wanted| ranked(db, index, Kind::Messages, scope, query, limit, wanted), &mut read)
}

/// Reads up to `limit` of what is ranked, in order: what is as sure as the second floor, if something that can be read is
/// as sure as the first.
fn select<T>(
    query: &Query<'_>,
    limit: usize,
    kind: Kind,
    rank: impl Fn(usize) -> Result<Vec<Ranked>>,
    read: &mut impl FnMut(i64) -> Result<Option<T>>,
) -> Result<Vec<Found<T>>> {
    let floors = query.floors(kind);
    let mut found = Vec::new();
    for wanted in query.rounds(limit) {
        let ranked = rank(wanted)?;
        for floor in &floors {
            found = sure(&ranked, *floor, limit, read)?;
            if !found.is_empty() {
                break;
            }
        }
        if found.len() == limit || ranked.len() < wanted {
            break;
        }
    }
    Ok(found)
}

/// Reads what is as sure as the second floor, if something that can be read is as sure as the first.
fn sure<T>(ranked: &[Ranked], (floor, beside): (f32, f32), limit: usize, read: &mut impl FnMut(i64) -> Result<Option<T>>) -> Result<Vec<Found<T>>> {
    let mut found = Vec::new();
    let mut is_sure = false;
    for ranked in ranked {
        let (room, sure) = (found.len() < limit, ranked.confidence >= floor);
        if is_sure && !room {
            break;
        }
        if (room && ranked.confidence >= beside) || (sure && !is_sure) {
            let Some(item) = read(ranked.row)? else { continue };
            is_sure |= sure;
            if room {
                found.push(Found { item, score: f64::from(ranked.score), confidence: f64::from(ranked.confidence) });
            }
        }
    }
    if !is_sure {
        found.clear();
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
        by_host: match (query.vector, query.strategy) {
            (None, _) | (_, "keyword") => Vec::new(),
            (Some(vector), _) => vectors::cosines(db, kind, vector)?,
        },
    };
    let mut ranked = index.with(db, kind, |loaded| rank::rank(loaded, db, index.embedder(), &ask))?;
    if ask.strategy == Strategy::Vector && ask.by_host.is_empty() {
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
