//! The built-in embedder: one vector a word piece, summed and normalized.
//!
//! The table is the first 128 dimensions of `static-ml-256` (distilled from Universal Sentence Encoder
//! multilingual v3, Apache-2.0) in 4 bits a value. A text is normalized (NFKC), cut into words at
//! blanks, cut into pieces by the unigram model's best path, and its pieces' vectors are summed.
//!
//! The file: `STRATAE1`, then little-endian `u32` pieces, dimensions and bytes of the longest piece;
//! `f32` log-probabilities; `f32` scales; rows of 4-bit values (value + 8; low half first); `u32`
//! starts of the pieces' names, one more than pieces; the names. Pieces are sorted by name.

pub mod dot;

use crate::text::terms::Term;
use std::cell::RefCell;
use unicode_normalization::UnicodeNormalization;

/// The name of the built-in model; with its dimensions it names an index generation.
pub const MODEL: &str = "static-ml-128-q4";

/// Length of the built-in model's vectors.
pub const DIMENSIONS: usize = 128;

const FILE: &[u8] = include_bytes!("embed/static-ml-128.bin");

/// Bytes of the head: the mark and three numbers.
const HEAD: usize = 20;

/// What a character without a piece costs (the unigram model of `tokenizers`: ten below the least likely piece).
const UNKNOWN_PENALTY: f32 = 10.0;

/// Longest word that is cut into pieces, in bytes; longer ones are cut at this length first.
const MAX_WORD: usize = 256;

/// Words whose pieces are remembered, a power of two, and the longest of them in bytes: a conversation says the same words
/// again, and cutting one costs far more than adding its pieces.
const REMEMBERED: usize = 16_384;
const MAX_REMEMBERED: usize = 24;

/// Bits that tell which beginnings of pieces there are, a power of two: one of nine is set, so cutting a word soon stops
/// looking for longer pieces.
const BEGINNING_BITS: usize = 1 << 21;

/// A word and its pieces, the last one first.
type Remembered = (Box<str>, Box<[u32]>);

/// The built-in model, ready to use.
#[derive(Debug)]
pub struct Embedder {
    pieces: usize,
    longest: usize,
    unknown: f32,
    /// Open addressing by the hash of the name: its upper half, and the piece; `u32::MAX` is empty. Most of what is looked
    /// for is no piece, which the upper half tells.
    slots: Vec<(u32, u32)>,
    /// By the hash of the beginning.
    beginnings: Vec<u64>,
    /// By the hash of the word; a later word takes the place.
    remembered: RefCell<Vec<Option<Remembered>>>,
}

impl Default for Embedder {
    fn default() -> Self {
        Self::new()
    }
}

impl Embedder {
    /// Returns the model; reads the compiled-in file once.
    pub fn new() -> Self {
        assert!(FILE.starts_with(b"STRATAE1") && u32_at(12) == DIMENSIONS, "the compiled-in model has its format");
        let mut model = Self {
            pieces: u32_at(8),
            longest: u32_at(16),
            unknown: 0.0,
            slots: Vec::new(),
            beginnings: vec![0; BEGINNING_BITS / 64],
            remembered: RefCell::new(vec![None; REMEMBERED]),
        };
        model.slots = vec![(0, u32::MAX); (model.pieces * 2).next_power_of_two()];
        let mut least = 0.0_f32;
        for piece in 0..model.pieces {
            least = least.min(model.score(piece));
            let mut hash = HASH_SEED;
            for byte in model.name(piece) {
                hash = hash_byte(hash, *byte);
                let bit = beginning_bit(hash);
                model.beginnings[bit / 64] |= 1 << (bit % 64);
            }
            let mut slot = model.slot(hash);
            while model.slots[slot].1 != u32::MAX {
                slot = (slot + 1) & (model.slots.len() - 1);
            }
            model.slots[slot] = ((hash >> 32) as u32, piece as u32);
        }
        model.unknown = least - UNKNOWN_PENALTY;
        model
    }

    /// Returns the unit vector of a text; all zeros if it has no known piece.
    pub fn embed(&self, text: &str) -> [f32; DIMENSIONS] {
        let mut sum = Sum::default();
        let mut path = Path::default();
        let mut word = String::with_capacity(MAX_WORD);
        let mut end = |word: &mut String| {
            self.add_word(word, &mut path, &mut sum);
            word.clear();
            word.push(BLANK);
        };
        word.push(BLANK);
        let mut any = false;
        // Blanks separate words and belong to the word after them; other white space is text.
        let mut take = |c: char| {
            let is_blank = c == ' ' || c == BLANK;
            // A text that begins with a blank has the one that words begin with.
            if (is_blank && any) || word.len() >= MAX_WORD {
                end(&mut word);
            }
            any = true;
            if !is_blank {
                word.push(c);
            }
        };
        if text.is_ascii() {
            text.chars().for_each(&mut take)
        } else {
            text.nfkc().for_each(&mut take)
        }
        if any {
            self.add_word(&word, &mut path, &mut sum);
        }
        sum.unit()
    }

    /// Returns how much a word tells, in nats: minus the logarithm of its probability in the text that the model's
    /// pieces were counted in. A likelier spelling with a capital, or without a blank before it, counts.
    pub fn information(&self, word: &str) -> f32 {
        let mut path = Path::default();
        let mut cost = |text: &str| {
            self.cut(text, &mut path);
            -path.best[text.len()]
        };
        let mut spelling = format!("{BLANK}{word}");
        let mut least = cost(&spelling);
        if let Some(first) = word.chars().next().filter(char::is_ascii) {
            spelling.replace_range(BLANK.len_utf8()..BLANK.len_utf8() + 1, first.to_ascii_uppercase().encode_utf8(&mut [0; 1]));
            least = least.min(cost(&spelling));
        }
        if !word.is_ascii() {
            least = least.min(cost(word));
        }
        least.max(0.0)
    }

    /// Adds the vectors of a word's pieces.
    fn add_word(&self, word: &str, path: &mut Path, sum: &mut Sum) {
        let mut remembered = self.remembered.borrow_mut();
        let hash = hash(HASH_SEED, word.as_bytes());
        let place = &mut remembered[(hash ^ (hash >> 29)) as usize % REMEMBERED];
        if let Some((known, pieces)) = place
            && **known == *word
        {
            pieces.iter().for_each(|piece| self.add_piece(*piece as usize, sum));
            return;
        }
        let pieces = self.cut(word, path);
        pieces.iter().for_each(|piece| self.add_piece(*piece as usize, sum));
        if word.len() <= MAX_REMEMBERED {
            *place = Some((word.into(), pieces.into()));
        }
    }

    /// Returns the pieces of a word's best path, the last one first.
    fn cut(&self, word: &str, path: &mut Path) -> Vec<u32> {
        let bytes = word.as_bytes();
        path.reset(bytes.len());
        for start in 0..bytes.len() {
            if !word.is_char_boundary(start) {
                continue;
            }
            let before = path.best[start];
            let mut state = HASH_SEED;
            let single = word[start..].chars().next().map_or(1, char::len_utf8);
            let mut known_single = false;
            for end in start + 1..=bytes.len().min(start + self.longest) {
                state = hash_byte(state, bytes[end - 1]);
                let bit = beginning_bit(state);
                if self.beginnings[bit / 64] >> (bit % 64) & 1 == 0 {
                    break;
                }
                if !word.is_char_boundary(end) {
                    continue;
                }
                if let Some(piece) = self.find(state, &bytes[start..end]) {
                    path.offer(end, start, before + self.score(piece), piece as u32);
                    known_single |= end - start == single;
                }
            }
            if !known_single {
                path.offer(start + single, start, before + self.unknown, u32::MAX);
            }
        }
        let mut pieces = Vec::new();
        let mut end = bytes.len();
        while end > 0 {
            let (start, piece) = path.from[end];
            if piece != u32::MAX {
                pieces.push(piece);
            }
            end = start as usize;
        }
        pieces
    }

    fn add_piece(&self, piece: usize, sum: &mut Sum) {
        let scale = f32_at(HEAD + (self.pieces + piece) * 4);
        let row = HEAD + self.pieces * 8 + piece * DIMENSIONS / 2;
        for ((even, odd), byte) in sum.even.iter_mut().zip(&mut sum.odd).zip(&FILE[row..row + DIMENSIONS / 2]) {
            *even += f32::from((byte & 15) as i8 - 8) * scale;
            *odd += f32::from((byte >> 4) as i8 - 8) * scale;
        }
    }

    fn score(&self, piece: usize) -> f32 {
        f32_at(HEAD + piece * 4)
    }

    fn name(&self, piece: usize) -> &'static [u8] {
        let starts = HEAD + self.pieces * (8 + DIMENSIONS / 2);
        let names = starts + (self.pieces + 1) * 4;
        &FILE[names + u32_at(starts + piece * 4)..names + u32_at(starts + piece * 4 + 4)]
    }

    fn slot(&self, hash: u64) -> usize {
        (hash ^ (hash >> 29)) as usize & (self.slots.len() - 1)
    }

    fn find(&self, hash: u64, name: &[u8]) -> Option<usize> {
        let mut slot = self.slot(hash);
        loop {
            match self.slots[slot] {
                (_, u32::MAX) => return None,
                (upper, piece) if upper == (hash >> 32) as u32 && self.name(piece as usize) == name => return Some(piece as usize),
                _ => slot = (slot + 1) & (self.slots.len() - 1),
            }
        }
    }
}

/// The sum of some rows, the halves of a byte apart so that rows are added with SIMD.
struct Sum {
    even: [f32; DIMENSIONS / 2],
    odd: [f32; DIMENSIONS / 2],
}

impl Default for Sum {
    fn default() -> Self {
        Self { even: [0.0; DIMENSIONS / 2], odd: [0.0; DIMENSIONS / 2] }
    }
}

impl Sum {
    /// Returns the sum at length one.
    fn unit(&self) -> [f32; DIMENSIONS] {
        let mut vector = [0.0; DIMENSIONS];
        for (pair, (even, odd)) in vector.as_chunks_mut::<2>().0.iter_mut().zip(self.even.iter().zip(&self.odd)) {
            pair[0] = *even;
            pair[1] = *odd;
        }
        dot::normalize(&mut vector);
        vector
    }
}

/// What a word begins with in the model's alphabet.
const BLANK: char = '▁';

/// The best way to each end of a word so far.
#[derive(Default)]
struct Path {
    best: Vec<f32>,
    from: Vec<(u32, u32)>,
}

impl Path {
    fn reset(&mut self, length: usize) {
        self.best.clear();
        self.best.resize(length + 1, f32::NEG_INFINITY);
        self.best[0] = 0.0;
        self.from.clear();
        self.from.resize(length + 1, (0, u32::MAX));
    }

    fn offer(&mut self, end: usize, start: usize, score: f32, piece: u32) {
        if score > self.best[end] {
            self.best[end] = score;
            self.from[end] = (start as u32, piece);
        }
    }
}

const HASH_SEED: u64 = 0xcbf2_9ce4_8422_2325;

fn hash_byte(state: u64, byte: u8) -> u64 {
    (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

fn beginning_bit(hash: u64) -> usize {
    (hash ^ (hash >> 32)) as usize & (BEGINNING_BITS - 1)
}

fn hash(seed: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(seed, |state, byte| hash_byte(state, *byte))
}

fn u32_at(at: usize) -> usize {
    u32::from_le_bytes([FILE[at], FILE[at + 1], FILE[at + 2], FILE[at + 3]]) as usize
}

fn f32_at(at: usize) -> f32 {
    f32::from_le_bytes([FILE[at], FILE[at + 1], FILE[at + 2], FILE[at + 3]])
}

/// Returns a mark of the index's format: another mark means that it is built again.
pub fn generation() -> u64 {
    Term::of(&format!("{MODEL} {DIMENSIONS} terms {}", crate::text::terms::VERSION)).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meanings_that_are_near_are_nearer() {
        let model = Embedder::new();
        let cosine = |one: &str, other: &str| -> f32 { model.embed(one).iter().zip(model.embed(other)).map(|(a, b)| a * b).sum() };
        assert!(cosine("I like cats", "She loves kittens") > cosine("I like cats", "The invoice is overdue"));
        assert!(cosine("我喜欢猫", "I like cats") > cosine("我喜欢猫", "The invoice is overdue"));
        assert_eq!(model.embed("").iter().sum::<f32>(), 0.0);
    }

    #[test]
    fn a_remembered_word_gives_the_same_vector() {
        let model = Embedder::new();
        for text in ["I like cats and other cats", "我喜欢猫", "", "x y z x y z"] {
            let first = model.embed(text);
            assert_eq!((model.embed(text), Embedder::new().embed(text)), (first, first), "{text}");
        }
    }

    #[test]
    fn rare_words_tell_more() {
        let model = Embedder::new();
        for (common, rare) in [("work", "cello"), ("day", "dentist"), ("今天", "大提琴")] {
            assert!(model.information(common) + 1.0 < model.information(rare), "{common} {} {rare} {}", model.information(common), model.information(rare));
        }
        assert!(model.information("lyon") < model.information("xqzvw"));
    }

    #[test]
    fn long_words_are_cut() {
        let model = Embedder::new();
        let vector = model.embed(&"x".repeat(100_000));
        assert!((vector.iter().map(|value| value * value).sum::<f32>() - 1.0).abs() < 1e-5);
    }
}
