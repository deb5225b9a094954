//! Atoms that a new one may repeat or contradict: what a settlement holds it against.
//!
//! A search ranks every document that shares any word, which grows with the store. Here the work is bounded: of the words
//! the rarest are read, up to a number of places, for what two facts about the same thing share is rare; by vector the
//! newest documents are compared, and those that share words, however old they are.

use super::rank::{bm25, weights};
use crate::contract::Result;
use crate::embed::Embedder;
use crate::index::Loaded;
use crate::index::matches::{Best, Matches, better};
use crate::index::nearest::Codes;
use crate::text::{
    self,
    terms::{self, Term},
};
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};

/// Documents of terms that are read for one text; a word that stands in more of them tells nothing.
const MAX_MATCHES: usize = 8192;

/// Words of a text that are looked up.
const MAX_TERMS: usize = 32;

/// Newest documents that are compared by vector: all, until a space is large.
const COMPARED: usize = 8192;

/// Documents by words, and by vector, that are ranked together. Most of them may have been replaced.
const RANKED: usize = 256;

/// What the vector weighs beside the words; see [`super::rank`].
const VECTOR: f32 = 0.8;

/// The least cosine of a document that shares no word. Of twelve short facts the nearest unrelated ones have 0.35;
/// "prefers short answers" and "wants replies to be brief" have 0.53.
const NEAR: f32 = 0.4;

/// Returns rows of documents of a scope that are like a text, best first. `words` are those of its words that tell what it is
/// about.
pub(super) fn alike(index: &mut Loaded, db: &Connection, embedder: &Embedder, scope: u32, text: &str, words: &str) -> Result<Vec<i64>> {
    let distinct: BTreeSet<Term> = terms::terms(words).into_iter().collect();
    let mut matches = Matches::default();
    matches.read(index, db, &distinct, MAX_TERMS, 0, MAX_MATCHES)?;
    let passes = |doc: u32| index.scope[doc as usize] == scope;
    let places: Vec<usize> = (0..matches.terms.len()).collect();
    let by_words = matches.top(&places, &weights(index, &matches), bm25(index), &index.length, passes, RANKED);

    let codes = Codes::new(&embedder.embed(text::without_subject(text)));
    let mut near = Best::new(RANKED);
    let documents = index.documents() as u32;
    for doc in (documents.saturating_sub(COMPARED as u32)..documents).filter(|doc| passes(*doc)) {
        let cosine = codes.cosine(index, doc);
        if cosine >= NEAR {
            near.offer(doc, cosine);
        }
    }

    let most = by_words.first().map_or(1.0, |(_, score)| *score);
    let mut found: BTreeMap<u32, (f32, f32)> = near.done().into_iter().map(|(doc, cosine)| (doc, (0.0, cosine))).collect();
    for (doc, score) in by_words {
        found.entry(doc).or_insert_with(|| (0.0, codes.cosine(index, doc).max(0.0))).0 = score / most;
    }
    let nearest = found.values().map(|(_, cosine)| *cosine).fold(f32::MIN_POSITIVE, f32::max);
    let mut ranked: Vec<(u32, f32)> = found.into_iter().map(|(doc, (words, cosine))| (doc, words + VECTOR * cosine / nearest)).collect();
    ranked.sort_unstable_by(better);
    Ok(ranked.into_iter().map(|(doc, _)| index.rows[doc as usize]).collect())
}
