//! The documents that hold a query's terms: read from the lists once, then walked by each part of the ranking.

use super::Loaded;
use crate::contract::Result;
use crate::text::terms::Term;
use rusqlite::Connection;
use std::collections::BTreeSet;

/// BM25's saturation and length normalization (the usual figures).
pub const K1: f32 = 1.2;
/// See [`K1`].
pub const B: f32 = 0.75;

/// Documents whose scores are summed together; 16 KiB of sums stay in the first cache.
const WINDOW: usize = 4096;

/// Scores that are compared with the least wanted one at a time.
const STRIDE: usize = 16;

/// A document and its score.
pub type Scored = (u32, f32);

/// Returns the order of results: the larger score first, then the earlier document.
pub fn better(one: &Scored, other: &Scored) -> std::cmp::Ordering {
    other.1.total_cmp(&one.1).then(one.0.cmp(&other.0))
}

/// The best documents of those that are offered.
#[derive(Debug)]
pub struct Best {
    count: usize,
    found: Vec<Scored>,
    /// What a score must exceed to be of any use.
    pub least: f32,
}

impl Best {
    /// Returns a place for `count` documents of scores above 0.
    pub fn new(count: usize) -> Self {
        Self { count, found: Vec::with_capacity(count * 2 + 1), least: 0.0 }
    }

    /// Takes a document; of equal scores the one that was offered first stays.
    pub fn offer(&mut self, doc: u32, score: f32) {
        if score <= self.least {
            return;
        }
        self.found.push((doc, score));
        if self.found.len() > self.count * 2 {
            self.found.select_nth_unstable_by(self.count, better);
            self.found.truncate(self.count);
            self.least = self.found.iter().map(|(_, score)| *score).fold(f32::INFINITY, f32::min);
        }
    }

    /// Returns the best, best first.
    pub fn done(mut self) -> Vec<Scored> {
        self.found.sort_unstable_by(better);
        self.found.truncate(self.count);
        self.found
    }
}

/// BM25 of a document of some length, for the mean length of all.
#[derive(Clone, Copy, Debug)]
pub struct Bm25 {
    fixed: f32,
    slope: f32,
}

impl Bm25 {
    /// Returns the formula for documents of `mean` terms.
    pub fn new(mean: f32) -> Self {
        Self { fixed: K1 * (1.0 - B), slope: K1 * B / mean.max(1.0) }
    }

    /// Returns what a term that stands `count` times in a document of `length` terms gives, for `weight`, its idf
    /// times (K1 + 1).
    #[inline]
    pub fn part(self, weight: f32, count: u16, length: u32) -> f32 {
        let count = f32::from(count);
        weight * count / (count + self.fixed + self.slope * length as f32)
    }
}

/// The matches of a query's terms, the rarest term first.
#[derive(Debug, Default)]
pub struct Matches {
    /// The terms that some document holds.
    pub terms: Vec<Term>,
    /// Where each term's documents end in `docs` and `counts`.
    ends: Vec<usize>,
    docs: Vec<u32>,
    counts: Vec<u16>,
    sums: Vec<f32>,
}

impl Matches {
    /// Reads the documents of the rarest of `terms`: at most `most_terms`, and no term more that leads beyond
    /// `most_documents`, but for the first `always`.
    pub fn read(&mut self, index: &mut Loaded, db: &Connection, terms: &BTreeSet<Term>, most_terms: usize, always: usize, most_documents: usize) -> Result<()> {
        self.terms.clear();
        self.ends.clear();
        self.docs.clear();
        self.counts.clear();
        let mut lists = Vec::with_capacity(terms.len());
        for term in terms {
            let found = index.lists(db, *term)?;
            if found.documents > 0 {
                lists.push(found);
            }
        }
        lists.sort_by_key(|list| (list.documents, list.term));
        lists.truncate(most_terms);
        for list in &lists {
            if self.terms.len() >= always && self.docs.len() + list.documents as usize > most_documents {
                break;
            }
            index.decode(list, &mut self.docs, &mut self.counts);
            self.terms.push(list.term);
            self.ends.push(self.docs.len());
        }
        Ok(())
    }

    fn start(&self, place: usize) -> usize {
        if place == 0 { 0 } else { self.ends[place - 1] }
    }

    /// Returns how many documents hold the term at `place`.
    pub fn documents(&self, place: usize) -> usize {
        self.ends[place] - self.start(place)
    }

    /// Returns the documents that hold the term at `place`, ascending, and how often.
    pub fn of(&self, place: usize) -> impl Iterator<Item = (u32, u16)> {
        let range = self.start(place)..self.ends[place];
        self.docs[range.clone()].iter().copied().zip(self.counts[range].iter().copied())
    }

    /// Returns the `count` documents of the largest BM25 for the terms at `places`, as exhaustive summing gives it.
    ///
    /// `weights` are by place; documents that `passes` refuses are left out.
    pub fn top(&mut self, places: &[usize], weights: &[f32], bm25: Bm25, lengths: &[u32], passes: impl Fn(u32) -> bool, count: usize) -> Vec<Scored> {
        let mut best = Best::new(count);
        let mut sums = std::mem::take(&mut self.sums);
        sums.clear();
        sums.resize(WINDOW, 0.0);
        let mut cursors: Vec<(usize, usize, f32)> = places.iter().map(|place| (self.start(*place), self.ends[*place], weights[*place] * (K1 + 1.0))).collect();
        // The window that the next document of any term is in; windows between are not looked at.
        while let Some(next) = cursors.iter().filter(|(at, end, _)| at < end).map(|(at, ..)| self.docs[*at]).min() {
            let first = next as usize / WINDOW * WINDOW;
            let last = lengths.len().min(first + WINDOW);
            for (at, end, weight) in &mut cursors {
                while *at < *end {
                    let doc = self.docs[*at] as usize;
                    if doc >= last {
                        break;
                    }
                    sums[doc - first] += bm25.part(*weight, self.counts[*at], lengths[doc]);
                    *at += 1;
                }
            }
            for (stride, sums) in sums.as_chunks_mut::<STRIDE>().0.iter_mut().enumerate() {
                let least = best.least;
                // Without a branch for each, so that it is done with SIMD.
                if sums.iter().fold(false, |any, sum| any | (*sum > least)) {
                    for (place, sum) in sums.iter().enumerate().filter(|(_, sum)| **sum > least) {
                        let doc = (first + stride * STRIDE + place) as u32;
                        if passes(doc) {
                            best.offer(doc, *sum);
                        }
                    }
                }
                sums.fill(0.0);
            }
        }
        self.sums = sums;
        best.done()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns what summing over all documents and sorting gives.
    fn exhaustive(matches: &Matches, weights: &[f32], bm25: Bm25, lengths: &[u32], passes: impl Fn(u32) -> bool, count: usize) -> Vec<Scored> {
        let mut sums: Vec<Scored> = (0..lengths.len() as u32).map(|doc| (doc, 0.0)).collect();
        for (place, weight) in weights.iter().enumerate() {
            for (doc, held) in matches.of(place) {
                sums[doc as usize].1 += bm25.part(weight * (K1 + 1.0), held, lengths[doc as usize]);
            }
        }
        sums.retain(|(doc, sum)| *sum > 0.0 && passes(*doc));
        sums.sort_by(better);
        sums.truncate(count);
        sums
    }

    proptest! {
        #[test]
        fn the_top_is_that_of_exhaustive_summing(
            lists in proptest::collection::vec((proptest::collection::btree_map(0_u32..20_000, 1_u16..5, 0..300), 0.1_f32..9.0), 0..6),
            lengths in proptest::collection::vec(1_u32..40, 20_000),
            refused in 1_u32..9,
            count in 1_usize..30,
        ) {
            let mut matches = Matches::default();
            for (documents, _) in &lists {
                matches.docs.extend(documents.keys());
                matches.counts.extend(documents.values());
                matches.terms.push(Term(matches.terms.len() as u64));
                matches.ends.push(matches.docs.len());
            }
            let weights: Vec<f32> = lists.iter().map(|(_, weight)| *weight).collect();
            let places: Vec<usize> = (0..lists.len()).collect();
            let bm25 = Bm25::new(20.0);
            let passes = |doc: u32| doc % refused != 1;
            let top = matches.top(&places, &weights, bm25, &lengths, passes, count);
            prop_assert_eq!(top, exhaustive(&matches, &weights, bm25, &lengths, passes, count));
        }
    }
}
