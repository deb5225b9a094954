//! Ranking: one score from keywords, vectors, and the conversation around a document.
//!
//! A query is cut into clauses; each part of the score is the best that a clause gives, over its largest
//! value, so that each question of a query counts alike. What is not a question counts less beside one.
//!
//! | part | what it says | weight |
//! | --- | --- | --- |
//! | words | BM25 of the document | 1 |
//! | vector | cosine of the built-in embedder, or of the host's model | 0.8 |
//! | near | BM25 of the document with one neighbour on each side: an answer follows its question | 0.5 |
//! | around | the same with two | 0.3 |
//! | session | BM25 of the whole session, as far as it is above the mean of the space's sessions | 1.35 |
//! | voice | the one speaker that the query names said it | 0.4 |
//! | person | a person said it, not an assistant: the echo of a fact is not its source | 0.8 |
//! | time | it was said at, or soon after, a time that the query names | 1.5 |
//!
//! The weights are round figures at which no part can be left out without a loss, and whose changes by a
//! fifth change recall by less than a point; `docs/benchmarks.md` has the table.

use super::relevance::{self, Clue};
use crate::contract::Result;
use crate::embed::Embedder;
use crate::index::matches::{B, Best, Bm25, K1, Matches};
use crate::index::nearest::Codes;
use crate::index::{Loaded, NONE, facts};
use crate::text::clauses::{Clause, clauses};
use crate::text::dates::{self, Named};
use crate::text::terms::{self, Term};
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};

/// What each part of the score weighs; see the head of this file.
const VECTOR: f32 = 0.8;
const NEAR: f32 = 0.5;
const AROUND: f32 = 0.3;
const SESSION: f32 = 1.35;
const VOICE: f32 = 0.4;
const PERSON: f32 = 0.8;
const TIME: f32 = 1.5;

/// What a clause that is no question weighs beside one that is.
const ASIDE: f32 = 0.6;

/// Distinct terms of a query that are looked up; the rarest are kept.
const MAX_TERMS: usize = 64;

/// Documents up to which every document is a candidate.
const ALL_CANDIDATES: u32 = 2048;

/// Beyond that: candidates of each clause by words and by vector, sessions, and documents of each.
const BY_WORDS: usize = 100;
const BY_VECTOR: usize = 100;
const BY_SESSION: usize = 8;
const OF_SESSION: usize = 48;

/// Documents of terms that a hybrid query reads beyond its rarest term: 2 ms of reading, so that a long query of common
/// words costs no more in a large space. The commonest terms are left out.
const MAX_MATCHES: usize = 1_000_000;

/// Documents up to which the neighbourhoods that hold a term are counted and not estimated.
const COUNTED: usize = 16_384;

/// Which parts count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// BM25 of the document alone.
    Keyword,
    /// The cosine alone.
    Vector,
    /// Everything.
    Hybrid,
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// The row of the scope.
    pub scope: u32,
    /// Only documents of this session's row.
    pub session: Option<u32>,
    /// The text.
    pub text: &'a str,
    /// Which parts count.
    pub strategy: Strategy,
    /// How many results are wanted; more may come, for a caller who filters.
    pub wanted: usize,
    /// Cosines by the host's model, by row; they take the place of the built-in ones where they are.
    pub by_host: Vec<(i64, f32)>,
}

/// A document that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// The row of its table.
    pub row: i64,
    /// The sum of the parts; larger is better, and only comparable within one query.
    pub score: f32,
    /// How sure it is that the document belongs to the query, 0 to 1; see [`super::relevance`].
    pub confidence: f32,
}

/// Space that queries use again.
#[derive(Debug, Default)]
pub struct Scratch {
    matches: Matches,
    sessions: Vec<f32>,
    counts: Vec<u32>,
    slots: Vec<u16>,
    stamps: Vec<u32>,
}

/// Returns what a query finds, best first; equal scores in order of arrival.
pub fn rank(index: &mut Loaded, db: &Connection, embedder: &Embedder, ask: &Ask<'_>) -> Result<Vec<Ranked>> {
    if index.documents() == 0 {
        return Ok(Vec::new());
    }
    let mut scratch = std::mem::take(&mut index.scratch);
    let ranked = match ask.strategy {
        Strategy::Keyword => by_words(index, db, embedder, ask, &mut scratch),
        Strategy::Vector => by_vector(index, db, embedder, ask, &mut scratch),
        Strategy::Hybrid => hybrid(index, db, embedder, ask, &mut scratch),
    };
    index.scratch = scratch;
    ranked
}

fn by_words(index: &mut Loaded, db: &Connection, embedder: &Embedder, ask: &Ask<'_>, scratch: &mut Scratch) -> Result<Vec<Ranked>> {
    let (parts, weights) = parts(index, db, embedder, ask.text, &BTreeSet::new(), usize::MAX, scratch)?;
    let all: Vec<usize> = (0..weights.len()).collect();
    let found = scratch.matches.top(&all, &weights, bm25(index), &index.length, |doc| passes(index, ask, doc), ask.wanted);
    Ok(judged(index, ask, &parts, found, scratch))
}

fn by_vector(index: &mut Loaded, db: &Connection, embedder: &Embedder, ask: &Ask<'_>, scratch: &mut Scratch) -> Result<Vec<Ranked>> {
    let (parts, _) = parts(index, db, embedder, ask.text, &BTreeSet::new(), MAX_MATCHES, scratch)?;
    let mut found = Codes::new(&embedder.embed(ask.text)).nearest(index, |doc| passes(index, ask, doc), ask.wanted);
    if !ask.by_host.is_empty() {
        let mut best = Best::new(ask.wanted);
        for doc in (0..index.documents() as u32).filter(|doc| passes(index, ask, *doc)) {
            best.offer(doc, by_host(index, ask, doc).unwrap_or(0.0));
        }
        found = best.done();
    }
    Ok(judged(index, ask, &parts, found, scratch))
}

/// Returns what the host's model says of a document, if it has said anything.
fn by_host(index: &Loaded, ask: &Ask<'_>, doc: u32) -> Option<f32> {
    let row = index.rows[doc as usize];
    ask.by_host.binary_search_by_key(&row, |(row, _)| *row).ok().map(|place| ask.by_host[place].1)
}

/// Returns what was found with how sure that is, counting its words for it.
fn judged(index: &Loaded, ask: &Ask<'_>, parts: &[Part], found: Vec<(u32, f32)>, scratch: &mut Scratch) -> Vec<Ranked> {
    let docs: Vec<u32> = found.iter().map(|(doc, _)| *doc).collect();
    let near = Near::read(index, &docs, scratch);
    let judged = judge(index, ask, parts, &near, &BTreeSet::new(), found, scratch);
    near.leave(scratch);
    judged
}

/// Returns documents and their scores with how sure it is of each that it belongs to the query; the order stays.
fn judge(index: &Loaded, ask: &Ask<'_>, parts: &[Part], near: &Near, voices: &BTreeSet<u32>, scored: Vec<(u32, f32)>, scratch: &Scratch) -> Vec<Ranked> {
    let in_scope: u32 = index.sessions.iter().filter(|session| session.scope == ask.scope).map(|session| session.documents).sum();
    let chances = in_scope as usize * parts.len();
    let mean = index.total_length as f32 / index.live.max(1) as f32;
    // What a host's model gives to anything is its background, and says nothing.
    let background = ask.by_host.iter().map(|(_, cosine)| *cosine).sum::<f32>() / ask.by_host.len().max(1) as f32;
    scored
        .into_iter()
        .map(|(doc, score)| {
            let at = doc as usize;
            let counts = near.counts(scratch, doc);
            let norm = norm(index.length[at] as f32, mean);
            let named = voices.contains(&index.voice[at]);
            let host = by_host(index, ask, doc).map(|cosine| (cosine - background) / (1.0 - background).max(f32::EPSILON));
            let mut sure = 0.0_f32;
            for part in parts {
                let (mut shared, mut held, mut all) = (0.0, 0.0, 0.0);
                for clue in &part.clues {
                    let count = clue.place.and_then(|place| counts.get(place)).map_or(0.0, |count| f32::from(*count));
                    // Who says it need not say the own name.
                    let share = if clue.named && named { 1.0 } else { saturated(count, norm).min(1.0) };
                    shared += share * clue.information;
                    held += share * clue.weight;
                    all += clue.weight;
                }
                let cosine = part.codes.cosine(index, doc);
                let cosine = host.map_or(cosine, |host| host.max(cosine));
                sure = sure.max(relevance::confidence(shared, held / all.max(f32::MIN_POSITIVE), cosine, chances));
            }
            Ranked { row: index.rows[at], score, confidence: sure }
        })
        .collect()
}

/// A clause of the query, ready to be asked.
struct Part {
    /// Places in the query's list of terms.
    terms: Vec<usize>,
    weight: f32,
    codes: Codes,
    clues: Vec<PlacedClue>,
}

/// A word of a clause, for [`relevance`].
struct PlacedClue {
    /// Its place in the query's list of terms, if the index holds it.
    place: Option<usize>,
    /// It names a speaker.
    named: bool,
    information: f32,
    /// Its idf in the space.
    weight: f32,
}

/// Cuts a text into clauses and reads the documents of their terms, but for `names`; returns the clauses and what each term
/// weighs.
fn parts(
    index: &mut Loaded,
    db: &Connection,
    embedder: &Embedder,
    text: &str,
    names: &BTreeSet<Term>,
    most: usize,
    scratch: &mut Scratch,
) -> Result<(Vec<Part>, Vec<f32>)> {
    let mut sentences: Vec<(Vec<Clue>, Clause<'_>)> =
        clauses(text).into_iter().map(|clause| (relevance::clues(embedder, clause.text), clause)).filter(|(clues, ..)| !clues.is_empty()).collect();
    if sentences.is_empty() {
        sentences.push((Vec::new(), Clause { text, question: true }));
    }
    let asks = sentences.iter().any(|(_, clause)| clause.question);
    let distinct: BTreeSet<Term> = sentences.iter().flat_map(|(clues, ..)| clues).map(|clue| clue.term).filter(|term| !names.contains(term)).collect();
    scratch.matches.read(index, db, &distinct, MAX_TERMS, 1, most)?;
    let weights = weights(index, &scratch.matches);
    let places: BTreeMap<Term, usize> = scratch.matches.terms.iter().enumerate().map(|(place, term)| (*term, place)).collect();
    let unseen = idf(index.live as f32, 0.0);
    let parts = sentences
        .iter()
        .map(|(clues, clause)| {
            let clues: Vec<PlacedClue> = clues
                .iter()
                .map(|clue| {
                    let place = places.get(&clue.term).copied();
                    let weight = place.map_or(unseen, |place| weights[place]);
                    PlacedClue { place, named: names.contains(&clue.term), information: clue.information, weight }
                })
                .collect();
            let mut terms: Vec<usize> = clues.iter().filter_map(|clue| clue.place).collect();
            terms.sort_unstable();
            Part { terms, weight: if asks && !clause.question { ASIDE } else { 1.0 }, codes: Codes::new(&embedder.embed(clause.text)), clues }
        })
        .collect();
    Ok((parts, weights))
}

fn hybrid(index: &mut Loaded, db: &Connection, embedder: &Embedder, ask: &Ask<'_>, scratch: &mut Scratch) -> Result<Vec<Ranked>> {
    let (text, dates) = without_dates(ask.text);
    let (voices, names) = voices(index, ask.text);
    let (parts, weights) = parts(index, db, embedder, &text, &names, MAX_MATCHES, scratch)?;

    sessions(index, ask, &parts, scratch);
    let excess = excess(index, ask, &mut scratch.sessions);
    let candidates = candidates(index, ask, &weights, &parts, scratch);
    let near = Near::read(index, &candidates, scratch);
    let around = around(index, &near, &parts, &candidates, scratch);

    // The best of the clauses.
    let mut words = vec![0.0; candidates.len()];
    let mut cosines = vec![0.0; candidates.len()];
    let bm25 = bm25(index);
    for part in &parts {
        let values: Vec<f32> = candidates.iter().map(|doc| near.words(*doc, scratch, &part.terms, &weights, bm25, index)).collect();
        take_best(&mut words, &values, part.weight);
        let values: Vec<f32> = candidates.iter().map(|doc| part.codes.cosine(index, *doc)).collect();
        take_best(&mut cosines, &values, part.weight);
    }
    if !ask.by_host.is_empty() {
        // The host embeds the whole text: its cosines stand for all clauses.
        for (cosine, doc) in cosines.iter_mut().zip(&candidates) {
            *cosine = by_host(index, ask, *doc).unwrap_or(0.0);
        }
    }

    let mut scored: Vec<(f32, u32)> = Vec::with_capacity(candidates.len());
    let words_scale = scale(&words);
    let cosines_scale = scale(&cosines);
    for (place, doc) in candidates.iter().enumerate() {
        let at = *doc as usize;
        let words = words[place] * words_scale;
        let cosine = cosines[place] * cosines_scale;
        let mut score = words + VECTOR * cosine + around[place];
        score += SESSION * scratch.sessions[index.session[at] as usize] * excess;
        if voices.len() == 1 && voices.contains(&index.voice[at]) {
            score += VOICE;
        }
        if !index.machine[at] {
            score += PERSON;
        }
        if !dates.is_empty() {
            score += TIME * dates::fit(&dates, u64::from(index.minute[at]) * 60_000);
        }
        scored.push((score, *doc));
    }
    scored.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    scored.truncate(ask.wanted);
    let judged = judge(index, ask, &parts, &near, &voices, scored.into_iter().map(|(score, doc)| (doc, score)).collect(), scratch);
    near.leave(scratch);
    Ok(judged)
}

/// Returns the documents that are scored, in order: all of a small space; of a large one those that a part of the
/// score puts first, and what is near them.
fn candidates(index: &Loaded, ask: &Ask<'_>, weights: &[f32], parts: &[Part], scratch: &mut Scratch) -> Vec<u32> {
    let passing = |doc: u32| passes(index, ask, doc);
    if index.live <= ALL_CANDIDATES {
        return (0..index.documents() as u32).filter(|doc| passing(*doc)).collect();
    }
    let mut candidates = BTreeSet::new();
    for part in parts {
        let words = scratch.matches.top(&part.terms, weights, bm25(index), &index.length, passing, BY_WORDS);
        let vectors = part.codes.nearest(index, passing, BY_VECTOR);
        candidates.extend(words.into_iter().chain(vectors).map(|(doc, _)| doc));
    }
    widen(index, ask, &scratch.sessions, &mut candidates);
    candidates.into_iter().collect()
}

/// Returns whether a document may be found at all.
fn passes(index: &Loaded, ask: &Ask<'_>, doc: u32) -> bool {
    let at = doc as usize;
    index.scope[at] == ask.scope && ask.session.is_none_or(|session| index.sessions[index.session[at] as usize].row == session)
}

/// Returns the query without the dates that it names, and those.
fn without_dates(text: &str) -> (String, Vec<Named>) {
    let found = dates::find(text);
    let mut rest = String::with_capacity(text.len());
    let mut from = 0;
    for (_, range) in &found {
        rest.push_str(&text[from..range.start]);
        rest.push(' ');
        from = range.end;
    }
    rest.push_str(&text[from..]);
    (rest, found.into_iter().map(|(named, _)| named).collect())
}

/// Returns the speakers that a query names, and the terms of their names.
///
/// A name without blanks around it, as in Chinese, is looked for in runs of two to four characters.
fn voices(index: &Loaded, text: &str) -> (BTreeSet<u32>, BTreeSet<Term>) {
    let (mut voices, mut names) = (BTreeSet::new(), BTreeSet::new());
    if index.voices.is_empty() {
        return (voices, names);
    }
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let mut named = |name: &str| {
            let voice = facts::voice(name);
            let known = index.voices.contains_key(&voice);
            if known {
                voices.insert(voice);
            }
            known
        };
        if word.is_ascii() {
            if named(word) {
                names.extend(terms::terms(word));
            }
        } else {
            let starts: Vec<usize> = word.char_indices().map(|(at, _)| at).chain([word.len()]).collect();
            for length in 2..=4 {
                for ends in starts.windows(length + 1) {
                    named(&word[ends[0]..ends[length]]);
                }
            }
            named(word);
        }
    }
    (voices, names)
}

/// Returns what each term of the matches weighs: BM25's idf.
pub(super) fn weights(index: &Loaded, matches: &Matches) -> Vec<f32> {
    (0..matches.terms.len()).map(|place| idf(index.live as f32, matches.documents(place) as f32)).collect()
}

pub(super) fn bm25(index: &Loaded) -> Bm25 {
    Bm25::new(index.total_length as f32 / (index.live.max(1)) as f32)
}

fn idf(all: f32, with: f32) -> f32 {
    // In 64 bits, so that libraries whose last bit differs give the same 32.
    (1.0 + f64::from((all - with).max(0.0) + 0.5) / f64::from(with + 0.5)).ln() as f32
}

fn saturated(count: f32, norm: f32) -> f32 {
    count * (K1 + 1.0) / (count + norm)
}

fn norm(length: f32, mean: f32) -> f32 {
    K1 * (1.0 - B + B * length / mean.max(1.0))
}

fn fill(values: &mut Vec<f32>, length: usize) {
    values.clear();
    values.resize(length, 0.0);
}

/// Raises each best value to a clause's value over its largest, times the clause's weight.
fn take_best(best: &mut [f32], values: &[f32], weight: f32) {
    let largest = values.iter().copied().fold(0.0, f32::max);
    if largest > 0.0 {
        let factor = weight / largest;
        for (best, value) in best.iter_mut().zip(values) {
            *best = best.max(value * factor);
        }
    }
}

/// Returns what makes the largest value one.
fn scale(values: &[f32]) -> f32 {
    let largest = values.iter().copied().fold(0.0, f32::max);
    if largest > 0.0 { 1.0 / largest } else { 0.0 }
}

/// Writes BM25 of each session, the clauses summed.
fn sessions(index: &Loaded, ask: &Ask<'_>, parts: &[Part], scratch: &mut Scratch) {
    fill(&mut scratch.sessions, index.sessions.len());
    let (mut count_all, mut length_all) = (0_u32, 0_u64);
    for session in index.sessions.iter().filter(|session| session.scope == ask.scope && session.documents > 0) {
        count_all += 1;
        length_all += u64::from(session.length);
    }
    let mean = length_all as f32 / count_all.max(1) as f32;
    scratch.counts.clear();
    scratch.counts.resize(index.sessions.len(), 0);
    let counts = &mut scratch.counts;
    let mut touched = Vec::new();
    for part in parts {
        for place in &part.terms {
            touched.clear();
            for (doc, count) in scratch.matches.of(*place) {
                let at = doc as usize;
                if index.scope[at] == ask.scope {
                    let session = index.session[at];
                    if counts[session as usize] == 0 {
                        touched.push(session);
                    }
                    counts[session as usize] += u32::from(count);
                }
            }
            let weight = part.weight * idf(count_all as f32, touched.len() as f32);
            for session in &touched {
                let at = *session as usize;
                scratch.sessions[at] += weight * saturated(counts[at] as f32, norm(index.sessions[at].length as f32, mean));
                counts[at] = 0;
            }
        }
    }
}

/// Lowers each session's value by the mean over documents, at least to 0; returns what the largest value
/// before that would be divided by.
fn excess(index: &Loaded, ask: &Ask<'_>, sessions: &mut [f32]) -> f32 {
    let (mut sum, mut documents, mut largest) = (0.0_f64, 0_u64, 0.0_f32);
    for (facts, value) in index.sessions.iter().zip(sessions.iter()).filter(|(facts, _)| facts.scope == ask.scope) {
        sum += f64::from(*value) * f64::from(facts.documents);
        documents += u64::from(facts.documents);
        largest = largest.max(*value);
    }
    let mean = (sum / documents.max(1) as f64) as f32;
    sessions.iter_mut().for_each(|value| *value = (*value - mean).max(0.0));
    if largest > 0.0 { 1.0 / largest } else { 0.0 }
}

/// Adds the neighbours of the candidates and the documents of the best sessions.
fn widen(index: &Loaded, ask: &Ask<'_>, sessions: &[f32], candidates: &mut BTreeSet<u32>) {
    for doc in candidates.clone() {
        neighbours(index, doc, 2, |near| {
            candidates.insert(near);
        });
    }
    let mut best = Best::new(BY_SESSION);
    sessions.iter().enumerate().for_each(|(session, value)| best.offer(session as u32, *value));
    for (session, _) in best.done() {
        let mut doc = index.sessions[session as usize].first;
        for _ in 0..OF_SESSION {
            if doc == NONE {
                break;
            }
            candidates.insert(doc);
            doc = index.after[doc as usize];
        }
    }
    candidates.retain(|doc| passes(index, ask, *doc));
}

/// Calls `take` with a document and those up to `reach` before and after it in its session.
fn neighbours(index: &Loaded, doc: u32, reach: usize, mut take: impl FnMut(u32)) {
    take(doc);
    for chain in [&index.before, &index.after] {
        let mut near = doc;
        for _ in 0..reach {
            near = chain[near as usize];
            if near == NONE {
                break;
            }
            take(near);
        }
    }
}

/// The documents near the candidates, and how often each holds each term.
struct Near {
    docs: Vec<u32>,
    width: usize,
    counts: Vec<u16>,
}

impl Near {
    fn read(index: &Loaded, candidates: &[u32], scratch: &mut Scratch) -> Self {
        scratch.slots.resize(index.documents(), 0);
        let slots = &mut scratch.slots;
        let mut docs = Vec::new();
        for doc in candidates {
            neighbours(index, *doc, 2, |doc| {
                let slot = &mut slots[doc as usize];
                if *slot == 0 && docs.len() < usize::from(u16::MAX) {
                    docs.push(doc);
                    *slot = docs.len() as u16;
                }
            });
        }
        let width = scratch.matches.terms.len();
        let mut counts = vec![0; docs.len() * width];
        for place in 0..width {
            for (doc, count) in scratch.matches.of(place) {
                let slot = usize::from(slots[doc as usize]);
                if slot > 0 {
                    counts[(slot - 1) * width + place] = count;
                }
            }
        }
        Self { docs, width, counts }
    }

    /// Returns how often a document holds each term.
    fn counts(&self, scratch: &Scratch, doc: u32) -> &[u16] {
        match usize::from(scratch.slots[doc as usize]) {
            0 => &[],
            slot => &self.counts[(slot - 1) * self.width..slot * self.width],
        }
    }

    /// Returns BM25 of a document for some of the terms.
    fn words(&self, doc: u32, scratch: &Scratch, terms: &[usize], weights: &[f32], bm25: Bm25, index: &Loaded) -> f32 {
        let counts = self.counts(scratch, doc);
        let length = index.length[doc as usize];
        let held = terms.iter().filter_map(|place| counts.get(*place).filter(|count| **count > 0).map(|count| (*place, *count)));
        held.fold(0.0, |sum, (place, count)| sum + bm25.part(weights[place] * (K1 + 1.0), count, length))
    }

    /// Leaves the scratch as the next query wants it.
    fn leave(&self, scratch: &mut Scratch) {
        self.docs.iter().for_each(|doc| scratch.slots[*doc as usize] = 0);
    }
}

/// Returns the weighted parts of the score that see each candidate with its neighbours.
fn around(index: &Loaded, near: &Near, parts: &[Part], candidates: &[u32], scratch: &mut Scratch) -> Vec<f32> {
    let mut with = vec![0.0_f32; near.width];
    let mut sum = vec![0.0; candidates.len()];
    for (reach, weight) in [(1, NEAR), (2, AROUND)] {
        let (mean_length, mean_size) = mean_window(index, candidates, reach);
        let weights = window_weights(index, &scratch.matches, reach, mean_size, &mut scratch.stamps);
        let mut values = vec![0.0_f32; candidates.len() * parts.len()];
        for (place, doc) in candidates.iter().enumerate() {
            with.fill(0.0);
            let mut length = 0;
            neighbours(index, *doc, reach, |doc| {
                length += index.length[doc as usize];
                with.iter_mut().zip(near.counts(scratch, doc)).for_each(|(sum, count)| *sum += f32::from(*count));
            });
            let norm = norm(length as f32, mean_length);
            for (number, part) in parts.iter().enumerate() {
                values[number * candidates.len() + place] =
                    part.terms.iter().filter(|term| with[**term] > 0.0).map(|term| weights[*term] * saturated(with[*term], norm)).sum();
            }
        }
        let mut best = vec![0.0_f32; candidates.len()];
        for (part, values) in parts.iter().zip(values.chunks(candidates.len().max(1))) {
            take_best(&mut best, values, part.weight);
        }
        let scale = scale(&best) * weight;
        sum.iter_mut().zip(&best).for_each(|(sum, best)| *sum += best * scale);
    }
    sum
}

/// Returns the mean length in terms and the mean size in documents of the candidates' neighbourhoods.
fn mean_window(index: &Loaded, candidates: &[u32], reach: usize) -> (f32, f32) {
    let (mut length, mut size) = (0_u64, 0_u64);
    for doc in candidates {
        neighbours(index, *doc, reach, |doc| {
            length += u64::from(index.length[doc as usize]);
            size += 1;
        });
    }
    let count = candidates.len().max(1) as f32;
    (length as f32 / count, size as f32 / count)
}

/// Returns the idf of each term among neighbourhoods: counted in small spaces; estimated in large ones, as
/// if documents held the term independently.
fn window_weights(index: &Loaded, matches: &Matches, reach: usize, mean_size: f32, stamps: &mut Vec<u32>) -> Vec<f32> {
    let all = index.live as f32;
    let places = 0..matches.terms.len();
    if index.documents() > COUNTED {
        let share = |place: usize| f64::from(matches.documents(place) as f32 / all.max(1.0));
        return places.map(|place| idf(all, all * (1.0 - (1.0 - share(place)).max(0.0).powf(f64::from(mean_size)) as f32))).collect();
    }
    stamps.clear();
    stamps.resize(index.documents(), u32::MAX);
    places
        .map(|place| {
            let mut with = 0_u32;
            for (doc, _) in matches.of(place) {
                neighbours(index, doc, reach, |near| {
                    if stamps[near as usize] != place as u32 {
                        stamps[near as usize] = place as u32;
                        with += 1;
                    }
                });
            }
            idf(all, with as f32)
        })
        .collect()
}
