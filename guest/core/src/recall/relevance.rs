//! Relevance: how sure it is that a document belongs to a query at all. Ranking has a first place for any query; this
//! says whether the first is worth anything.
//!
//! Three things are weighed, for the clause of the query that fits best:
//!
//! - the information of the words in common, in nats: how improbable they are in text at large, by the word
//!   probabilities of the embedder's own model. A space of six memories cannot tell that *work* is a common word.
//! - the share of the clause's words that the document holds, by their idf in the space. Words that the space has never
//!   seen count against it.
//! - the cosine.
//!
//! The more documents there are, the likelier one of them is near by chance, so the odds fall with their number.
//!
//! The weights are a logistic regression, rounded, of gold messages against what ranking puts first for prompts that have
//! nothing to do with a space, on the development halves of three corpora; `docs/benchmarks.md` has the figures.

use crate::embed::Embedder;
use crate::text::terms::{self, Term};
use std::collections::{BTreeMap, BTreeSet};

/// What each thing weighs, in nats of odds.
const WORDS: f32 = 5.0;
const COVERAGE: f32 = 2.0;
const COSINE: f32 = 5.0;

/// The odds of one document and one clause before anything is known, and how they fall with the logarithm of the chances
/// (documents times clauses) that something is near by accident.
const PRIOR: f32 = -4.1;
const CHANCES: f32 = 0.45;

/// What a cosine weighs besides, as far as it is above what unrelated texts reach: 0.57 among ten memories, 0.72 among six
/// hundred (97 % of the prompts measured that share no word). It is how a meaning in other words is found.
const NEARNESS: f32 = 12.0;
const NEAR: f32 = 0.5;
const NEAR_BY_CHANCES: f32 = 0.034;

/// Information beyond which more words in common prove nothing more, and the most that one word can give.
const ENOUGH: f32 = 30.0;
const MOST_OF_A_WORD: f32 = 16.0;

/// A word of a clause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clue {
    /// Its term.
    pub term: Term,
    /// How much it tells in text at large, in nats.
    pub information: f32,
}

/// Returns the distinct terms of a clause with what each tells.
pub fn clues(embedder: &Embedder, clause: &str) -> Vec<Clue> {
    let mut known: BTreeMap<Term, f32> = BTreeMap::new();
    let mut words: BTreeSet<(Term, String)> = BTreeSet::new();
    terms::each_with_word(clause, |term, word| {
        words.insert((Term::of(term), word.to_owned()));
    });
    for (term, word) in words {
        let information = embedder.information(&word).min(MOST_OF_A_WORD);
        known.entry(term).and_modify(|most| *most = most.max(information)).or_insert(information);
    }
    known.into_iter().map(|(term, information)| Clue { term, information }).collect()
}

/// Returns how sure it is, 0 to 1, that a document belongs to a clause.
///
/// - `shared`: the information of the words in common, in nats.
/// - `coverage`: the share of the clause's words that the document holds, 0 to 1.
/// - `chances`: documents times clauses.
pub fn confidence(shared: f32, coverage: f32, cosine: f32, chances: usize) -> f32 {
    // In 64 bits, so that libraries whose last bit differs give the same 32.
    let chances = (chances.max(1) as f64).ln() as f32;
    let near = (cosine - NEAR - NEAR_BY_CHANCES * chances).max(0.0);
    let odds = WORDS * (shared / ENOUGH).min(1.0) + COVERAGE * coverage + COSINE * cosine + NEARNESS * near + PRIOR - CHANCES * chances;
    (1.0 / (1.0 + f64::from(-odds).exp())) as f32
}

/// Returns the confidence that is as good as `threshold` when `nats` are added to the odds.
pub fn lowered(threshold: f32, nats: f32) -> f32 {
    let threshold = f64::from(threshold.clamp(0.0, 1.0));
    let odds = threshold / (1.0 - threshold).max(f64::MIN_POSITIVE) * f64::from(-nats).exp();
    if odds.is_finite() { (odds / (1.0 + odds)) as f32 } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_move_with_the_odds() {
        assert!((lowered(0.5, 0.0) - 0.5).abs() < 1e-6);
        assert!(lowered(0.3, 1.0) < 0.15);
        assert_eq!(lowered(0.0, 2.0), 0.0);
        assert!(lowered(1.0, 2.0) > 0.999);
    }

    #[test]
    fn a_rare_word_in_common_beats_a_common_one() {
        let embedder = Embedder::new();
        let of = |text: &str| clues(&embedder, text).iter().map(|clue| clue.information).sum::<f32>();
        assert!(of("cello") > of("work"));
        assert!(of("大提琴") > of("今天"));
        assert!(confidence(of("cello"), 0.5, 0.4, 10) > confidence(of("work"), 0.5, 0.4, 10));
        assert!(confidence(20.0, 0.5, 0.4, 10) > confidence(20.0, 0.5, 0.4, 10_000));
    }

    #[test]
    fn a_meaning_in_other_words_is_sure_and_a_loose_likeness_is_not() {
        assert!(confidence(0.0, 0.0, 0.75, 10) > 0.3);
        assert!(confidence(0.0, 0.0, 0.57, 10) < 0.3);
        assert!(confidence(0.0, 0.0, 0.72, 600) < 0.3);
    }
}
