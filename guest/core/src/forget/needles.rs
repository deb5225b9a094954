//! Needles: what to look for where forgotten text may hide, without keeping the text.
//!
//! Text is reduced to its letters and digits as bytes, so that escapes, wrapping and punctuation do
//! not matter; every window of [`WINDOW`] bytes is a needle, and a shorter text is one as a whole.
//! Only hashes are kept: they survive a crash in the store while the text does not.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Length of a window, in bytes: long enough that ordinary phrases rarely share one, short enough to
/// find a text that a page boundary has cut.
const WINDOW: usize = 24;

/// Texts with fewer bytes are not looked for: they say nothing ("ok", "yes").
const SHORTEST: usize = 6;

/// Files are not searched for needles shorter than this, in bytes: a word of six letters is in every schema.
const SHORTEST_IN_FILES: usize = 12;

/// The multiplier and start of FNV-1a with 64 bits.
const PRIME: u64 = 0x0000_0100_0000_01B3;
const BASIS: u64 = 0xCBF2_9CE4_8422_2325;

/// A set of needles, by length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Needles {
    by_length: BTreeMap<usize, BTreeSet<u64>>,
}

fn hash(window: &[u8]) -> u64 {
    window.iter().fold(BASIS, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// Returns the letters and digits of bytes, lower case; bytes of other scripts are kept as they are.
fn reduce(bytes: &[u8]) -> Vec<u8> {
    let mut reduced = Vec::with_capacity(bytes.len());
    let mut skip = false;
    for (index, &byte) in bytes.iter().enumerate() {
        if skip {
            skip = false;
            continue;
        }
        // The letter of an escape (`\n`, `\t`, `\r`) is not part of the text.
        if byte == b'\\' && matches!(bytes.get(index + 1), Some(b'n' | b't' | b'r')) {
            skip = true;
            continue;
        }
        if byte.is_ascii_alphanumeric() || byte >= 0x80 {
            reduced.push(byte.to_ascii_lowercase());
        }
    }
    reduced
}

impl Needles {
    /// Adds a text.
    pub(super) fn add(&mut self, text: &str) {
        let reduced = reduce(text.as_bytes());
        if reduced.len() < SHORTEST {
            return;
        }
        let length = reduced.len().min(WINDOW);
        self.by_length.entry(length).or_default().extend(reduced.windows(length).map(hash));
    }

    /// Adds a text that was made of others: only its whole windows count, for its words are anybody's.
    pub(super) fn add_made(&mut self, text: &str) {
        let reduced = reduce(text.as_bytes());
        if reduced.len() >= WINDOW {
            self.by_length.entry(WINDOW).or_default().extend(reduced.windows(WINDOW).map(hash));
        }
    }

    /// Returns the needles that files are searched for.
    pub(super) fn for_files(&self) -> Needles {
        let long = self.by_length.iter().filter(|(length, _)| **length >= SHORTEST_IN_FILES);
        Needles { by_length: long.map(|(length, needles)| (*length, needles.clone())).collect() }
    }

    /// Returns whether there is nothing to look for.
    pub(super) fn is_empty(&self) -> bool {
        self.by_length.is_empty()
    }

    /// Returns whether bytes hold a needle.
    pub(super) fn found_in(&self, bytes: &[u8]) -> bool {
        let reduced = reduce(bytes);
        self.by_length.iter().any(|(&length, needles)| reduced.len() >= length && reduced.windows(length).any(|window| needles.contains(&hash(window))))
    }

    /// Returns the needles that bytes hold.
    pub(super) fn all_in(&self, bytes: &[u8]) -> Needles {
        let reduced = reduce(bytes);
        let mut found = Needles::default();
        for (&length, needles) in &self.by_length {
            if reduced.len() < length {
                continue;
            }
            let hits: BTreeSet<u64> = reduced.windows(length).map(hash).filter(|hash| needles.contains(hash)).collect();
            if !hits.is_empty() {
                found.by_length.entry(length).or_default().extend(hits);
            }
        }
        found
    }

    /// Adds other needles.
    pub(super) fn extend(&mut self, other: Needles) {
        for (length, needles) in other.by_length {
            self.by_length.entry(length).or_default().extend(needles);
        }
    }

    /// Removes the needles that bytes hold: what is legitimately elsewhere is not looked for.
    pub(super) fn discount(&mut self, bytes: &[u8]) {
        let elsewhere = self.all_in(bytes);
        for (length, gone) in elsewhere.by_length {
            if let Some(needles) = self.by_length.get_mut(&length) {
                needles.retain(|needle| !gone.contains(needle));
            }
        }
        self.by_length.retain(|_, needles| !needles.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_punctuation_do_not_hide_a_text() {
        let mut needles = Needles::default();
        needles.add("My locker code is 4711,\nplease \"remember\" it.");
        assert!(needles.found_in(b"{\"text\":\"My locker code is 4711,\\nplease \\\"remember\\\" it.\"}"));
        assert!(needles.found_in("xx LOCKER code is 4711 please remember yy".as_bytes()));
        assert!(!needles.found_in(b"another locker, another code"));
    }

    #[test]
    fn a_short_text_is_found_whole_and_a_word_of_assent_never() {
        let mut needles = Needles::default();
        needles.add("PIN 4711");
        needles.add("ok");
        assert!(needles.found_in(b"the pin-4711 x"));
        assert!(!needles.found_in(b"ok, pin 4712"));
    }

    #[test]
    fn what_is_elsewhere_too_is_discounted() {
        let mut needles = Needles::default();
        needles.add("the same sentence was said twice by two people");
        needles.discount(b"and: the same sentence was said twice by two people");
        assert!(needles.is_empty());
    }
}
