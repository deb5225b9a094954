//! Text to index terms, for documents and queries alike.
//!
//! - Text is folded: NFKC (full-width forms, ligatures), lower case, accents dropped.
//! - Words of letters are stemmed; words of grammar are dropped.
//! - Numbers stay whole (`5.3.0`); a mixed identifier gives its parts, its names and itself: `fooBar_baz` gives
//!   `foo`, `bar`, `baz`, `foobar` and `foobarbaz`, `E0433` gives `0433` and `e0433`.
//! - Han, kana and hangul, which have no blanks, give overlapping pairs; Han single characters too.
//! - A German text's long words give their beginnings and ends, for compounds.
//! - An emoji is a term.
//!
//! A term is known by its hash: the index holds no words, so a forgotten word is in no file.

use super::{stem, stop};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Changes whenever [`each`] gives other terms; an index of another version is rebuilt.
pub const VERSION: u32 = 2;

/// Terms of one text that are given; what comes later is not searchable by keyword.
pub const MAX_TERMS: usize = 50_000;

/// Longest word, in bytes; longer runs (hashes, encoded data) are cut into words of this length.
const MAX_WORD: usize = 64;

/// German: fewest letters of a word that is taken apart, and of a part.
const COMPOUND: usize = 10;
const COMPOUND_PART: usize = 5;

/// German words of grammar that make a text German, when they outnumber the English ones.
const GERMAN_SIGNS: usize = 2;

/// The hash of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

impl Term {
    /// Returns the hash of a term's text: FNV-1a, then the finalizer of MurmurHash3, so that all bits are good.
    pub fn of(text: &str) -> Self {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in text.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        Self(hash ^ (hash >> 33))
    }
}

/// Returns the terms of a text in order, at most [`MAX_TERMS`].
pub fn terms(text: &str) -> Vec<Term> {
    let mut terms = Vec::with_capacity(text.len() / 6);
    each(text, |term| terms.push(Term::of(term)));
    terms
}

/// Calls `take` with each term of a text, in order, at most [`MAX_TERMS`] times.
pub fn each(text: &str, mut take: impl FnMut(&str)) {
    each_with_word(text, |term, _| take(term));
}

/// Calls `take` with each term of a text and the word, in lower case, that it stands for; as [`each`].
pub fn each_with_word(text: &str, mut take: impl FnMut(&str, &str)) {
    let folded = fold(text);
    let german = is_german(&folded);
    let mut left = MAX_TERMS;
    let mut give = |term: &str, word: &str| {
        if left > 0 {
            left -= 1;
            take(term, word);
        }
    };
    let mut rest = folded.as_ref();
    while let Some(first) = rest.chars().next() {
        let script = Script::of(first);
        let end = run(rest, script);
        let (piece, after) = rest.split_at(end);
        match script {
            Script::Word => word(piece, german, &mut give),
            Script::Han => pairs(piece, true, &mut give),
            Script::Kana | Script::Hangul => pairs(piece, false, &mut give),
            Script::Emoji => give(piece, piece),
            Script::Other => {}
        }
        rest = after;
    }
}

/// What kind of run a character belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    Word,
    Han,
    Kana,
    Hangul,
    Emoji,
    Other,
}

impl Script {
    fn of(c: char) -> Self {
        match c as u32 {
            0x30..=0x39 | 0x41..=0x5A | 0x61..=0x7A => Self::Word,
            0..=0x7F => Self::Other,
            0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF => Self::Han,
            0x3041..=0x30FF | 0x31F0..=0x31FF => Self::Kana,
            0xAC00..=0xD7AF | 0x1100..=0x11FF => Self::Hangul,
            0x1F300..=0x1FAFF | 0x2600..=0x27BF => Self::Emoji,
            _ if c.is_alphanumeric() => Self::Word,
            _ => Self::Other,
        }
    }
}

/// Returns where the run that `text` begins with ends, in bytes.
fn run(text: &str, script: Script) -> usize {
    let mut end = 0;
    let mut indices = text.char_indices().peekable();
    while let Some((at, c)) = indices.next() {
        let belongs = match script {
            // One at a time: what follows an emoji is another word.
            Script::Emoji => at == 0,
            // `_` joins names; `.` joins numbers only.
            Script::Word => {
                Script::of(c) == Script::Word
                    || (c == '_' && at > 0)
                    || (c == '.' && text[..at].ends_with(|c: char| c.is_ascii_digit()) && indices.peek().is_some_and(|(_, next)| next.is_ascii_digit()))
            }
            script => Script::of(c) == script,
        };
        if !belongs || (script == Script::Word && at >= MAX_WORD) {
            break;
        }
        end = at + c.len_utf8();
    }
    end
}

/// Returns text in NFKC without accents. Case is kept: it shows where names are joined.
fn fold(text: &str) -> std::borrow::Cow<'_, str> {
    if text.is_ascii() {
        return text.into();
    }
    let folded: String = text.nfkc().collect();
    if !folded.chars().any(|c| matches!(c as u32, 0xC0..=0x24F | 0x300..=0x36F | 0x370..=0x52F | 0x1E00..=0x1FFF)) {
        return folded.into();
    }
    folded.nfd().filter(|c| !is_combining_mark(*c)).nfc().collect::<String>().replace('ß', "ss").into()
}

/// Gives the terms of a word or identifier.
fn word(word: &str, german: bool, give: &mut impl FnMut(&str, &str)) {
    let mut joined = String::with_capacity(word.len());
    let mut parts = 0;
    // What `_` joins are names of their own: `fooBar` of `fooBar_baz`.
    let mut name = (0, 0);
    for part in parts_of(word) {
        let lower = part.to_lowercase();
        let begins = part.as_ptr() as usize - word.as_ptr() as usize;
        if word[..begins].ends_with('_') {
            end_name(&joined, name, give);
            name = (joined.len(), 0);
        }
        name.1 += 1;
        joined.push_str(&lower);
        parts += 1;
        // A letter of a longer name (`v2`, `E0433`) tells nothing by itself.
        let only_a_letter = lower.len() == 1 && part.len() < word.len() && lower.bytes().all(|byte| byte.is_ascii_alphabetic());
        if only_a_letter || stop::english(&lower) || (german && stop::german(&lower)) {
            continue;
        }
        if !lower.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            give(&lower, &lower);
        } else if german {
            give(stem::german(&lower), &lower);
            compound(&lower, give);
        } else {
            give(&stem::english(&lower), &lower);
        }
    }
    if name.0 > 0 {
        end_name(&joined, name, give);
    }
    if parts > 1 {
        give(&joined, &joined);
    }
}

/// Gives the name that begins at a place of the joined parts, if it has parts of its own.
fn end_name(joined: &str, (start, parts): (usize, usize), give: &mut impl FnMut(&str, &str)) {
    if parts > 1 {
        give(&joined[start..], &joined[start..]);
    }
}

/// Gives the beginnings and ends of a long German word, which are its compounds' words among others.
fn compound(word: &str, give: &mut impl FnMut(&str, &str)) {
    if word.len() < COMPOUND {
        return;
    }
    for length in COMPOUND_PART..=word.len() - COMPOUND_PART {
        let (head, tail) = (&word[..length], &word[word.len() - length..]);
        give(head, head);
        give(stem::german(tail), tail);
    }
}

/// Returns the parts of an identifier: cut at `_`, between letters and digits, and where case rises.
fn parts_of(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(['_', '.']);
        let mut before: Option<char> = None;
        let mut end = rest.len();
        let mut indices = rest.char_indices().peekable();
        while let Some((at, c)) = indices.next() {
            let next_is_lower = indices.peek().is_some_and(|(_, next)| next.is_lowercase());
            let cut = c == '_'
                || before.is_some_and(|before| {
                    let digit = |c: char| c.is_ascii_digit() || c == '.';
                    digit(before) != digit(c) || (before.is_lowercase() && c.is_uppercase()) || (before.is_uppercase() && c.is_uppercase() && next_is_lower)
                });
            if cut {
                end = at;
                break;
            }
            before = Some(c);
        }
        let (part, after) = rest.split_at(end);
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}

/// Gives the overlapping pairs of a run, and its single characters if asked to or if it is one.
fn pairs(run: &str, singles: bool, give: &mut impl FnMut(&str, &str)) {
    let mut before: Option<usize> = None;
    let alone = run.chars().nth(1).is_none();
    for (at, c) in run.char_indices() {
        let end = at + c.len_utf8();
        if singles && !stop::han(c) || !singles && alone {
            give(&run[at..end], &run[at..end]);
        }
        if let Some(start) = before {
            give(&run[start..end], &run[start..end]);
        }
        before = Some(at);
    }
}

/// Returns whether a text reads as German: the pairs that English does not have.
fn is_german(text: &str) -> bool {
    let (mut german, mut english) = (0, 0);
    for word in text.split(|c: char| !c.is_alphabetic()).filter(|word| word.len() < 8) {
        let lower = word.to_lowercase();
        let (in_german, in_english) = (stop::german(&lower), stop::english(&lower));
        german += usize::from(in_german && !in_english);
        english += usize::from(in_english && !in_german);
    }
    german >= GERMAN_SIGNS && german > english
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let mut terms = Vec::new();
        each(text, |term| terms.push(term.to_owned()));
        assert_eq!(terms, expected, "{text}");
    }

    #[test]
    fn words_numbers_and_names() {
        check("I was researching adoption agencies.", &["research", "adoption", "agency"]);
        check("Bootstrap v5.3.0", &["bootstrap", "5.3.0", "v5.3.0"]);
        check("fooBar_baz E0433 HTTPServer", &["foo", "bar", "foobar", "baz", "foobarbaz", "0433", "e0433", "http", "server", "httpserver"]);
        check("src/index/mod.rs", &["src", "index", "mod", "rs"]);
        check("2024-03-15", &["2024", "03", "15"]);
        check("Ｔｅｓｔ café Öl", &["test", "caf", "ol"]);
    }

    #[test]
    fn scripts_without_blanks() {
        check("我喜欢咖啡", &["喜", "我喜", "欢", "喜欢", "咖", "欢咖", "啡", "咖啡"]);
        check("東京タワー", &["東", "京", "東京", "タワ", "ワー"]);
        check("한국어", &["한국", "국어"]);
        check("茶", &["茶"]);
    }

    #[test]
    fn emoji_stand_alone() {
        check("party🎂🎉!", &["party", "🎂", "🎉"]);
    }

    #[test]
    fn german_compounds_give_their_words() {
        let mut terms = Vec::new();
        each("Ich habe meine Krankenversicherung gewechselt und bin zufrieden.", |term| terms.push(term.to_owned()));
        for wanted in ["versicherung", "kranken", "krankenversicherung"] {
            assert!(terms.iter().any(|term| term == wanted), "{wanted} in {terms:?}");
        }
        assert!(!terms.iter().any(|term| term == "meine"));
    }
}
