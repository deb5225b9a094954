//! The search index of messages and of atoms: keywords, vectors and the facts of ranking.
//!
//! On disk it follows the tables (see [`write::follow`]): a tail of documents, then segments of 1,024,
//! 8,192 and 65,536. In memory it keeps facts and vector codes of all documents, the tail's terms, and
//! the blocks of terms that were asked for lately. Documents are numbered in order of arrival.

pub mod facts;
mod load;
pub mod matches;
pub mod nearest;
pub mod postings;
pub mod segment;
pub mod write;

use crate::contract::Result;
use crate::embed::{self, Embedder};
use crate::store::failure;
use crate::text::terms::Term;
use facts::Facts;
use rusqlite::{Connection, OptionalExtension, Transaction};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;

/// Bytes of a document's vector on disk: the scale and the codes.
pub const VECTOR_BYTES: usize = 4 + embed::DIMENSIONS;

/// Bytes of blocks of terms that are kept in memory; a quarter of the memory budget of a large space.
const BLOCK_CACHE_BYTES: usize = 48 << 20;

/// No document: the end of a chain.
pub const NONE: u32 = u32::MAX;

/// What is indexed; the numbers are those of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Rows of `messages`.
    Messages = 0,
    /// Rows of `atoms`.
    Atoms = 1,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Messages, Self::Atoms];
}

/// Both indexes and the built-in embedder.
#[derive(Debug)]
pub struct Index {
    embedder: OnceCell<Embedder>,
    loaded: RefCell<[Loaded; 2]>,
}

impl Default for Index {
    fn default() -> Self {
        Self { embedder: OnceCell::new(), loaded: RefCell::new([Loaded::default(), Loaded::default()]) }
    }
}

impl Index {
    /// Brings the index on disk up to date with its tables; see [`write::follow`].
    pub fn follow(&self, tx: &Transaction<'_>, upkeep: write::Upkeep) -> Result<bool> {
        write::follow(tx, || self.embedder(), upkeep)
    }

    /// Returns whether the background has something to do.
    pub fn is_due(&self, db: &Connection) -> Result<bool> {
        write::is_due(db)
    }

    /// Returns the built-in embedder.
    pub fn embedder(&self) -> &Embedder {
        self.embedder.get_or_init(Embedder::new)
    }

    /// Calls `ask` with the index of `kind` as the database has it now. Inside of a transaction that is what
    /// it had before: the index follows at the end.
    pub fn with<T>(&self, db: &Connection, kind: Kind, ask: impl FnOnce(&mut Loaded) -> Result<T>) -> Result<T> {
        let mut loaded = self.loaded.borrow_mut();
        let loaded = &mut loaded[kind as usize];
        loaded.sync(db, kind)?;
        ask(loaded)
    }
}

/// A segment as memory knows it.
#[derive(Debug)]
struct Segment {
    id: i64,
    first: u32,
    last: u32,
    directory: Vec<u64>,
}

/// A session's place in ranking.
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionFacts {
    /// Its row.
    pub row: u32,
    /// The row of its scope.
    pub scope: u32,
    /// Terms of its documents.
    pub length: u32,
    /// Its documents.
    pub documents: u32,
    /// Its first and last document.
    pub first: u32,
    last: u32,
}

/// An index in memory.
#[derive(Debug, Default)]
pub struct Loaded {
    layout: i64,
    format: i64,
    segments: Vec<Segment>,
    sealed: u32,
    tail: BTreeMap<Term, Vec<(u32, u16)>>,
    cache: BTreeMap<i64, Rc<Vec<u8>>>,
    cache_order: VecDeque<i64>,
    cache_bytes: usize,
    /// Of each document, facts in columns; a document that is gone has row 0.
    pub rows: Vec<i64>,
    /// The place of its session in `sessions`.
    pub session: Vec<u32>,
    /// The row of its scope.
    pub scope: Vec<u32>,
    /// When it was said, in minutes since 1970.
    pub minute: Vec<u32>,
    /// Its terms.
    pub length: Vec<u32>,
    /// Who speaks.
    pub voice: Vec<u32>,
    /// A machine said it.
    pub machine: Vec<bool>,
    /// The document before it in its session.
    pub before: Vec<u32>,
    /// The document after it in its session.
    pub after: Vec<u32>,
    /// What a vector code of one stands for.
    pub scales: Vec<f32>,
    /// The first codes of the vectors, signed bytes, one document after the other; see [`nearest`].
    pub heads: Vec<u8>,
    /// The other codes.
    pub tails: Vec<u8>,
    /// The sessions, in order of their first document.
    pub sessions: Vec<SessionFacts>,
    session_places: BTreeMap<u32, u32>,
    /// Documents that are there.
    pub live: u32,
    /// Terms of all documents.
    pub total_length: u64,
    /// Names of speakers, by mark.
    pub voices: BTreeMap<u32, u32>,
    /// Space for [`crate::recall::rank`], kept so that a query allocates little.
    pub scratch: crate::recall::rank::Scratch,
}

impl Loaded {
    /// Returns how many documents there are, with those that are gone.
    pub fn documents(&self) -> usize {
        self.rows.len()
    }

    fn reserve(&mut self, documents: usize) {
        self.rows.reserve(documents);
        self.session.reserve(documents);
        self.scope.reserve(documents);
        self.minute.reserve(documents);
        self.length.reserve(documents);
        self.voice.reserve(documents);
        self.machine.reserve(documents);
        self.before.reserve(documents);
        self.after.reserve(documents);
        self.scales.reserve(documents);
        self.heads.reserve(documents * nearest::HEAD);
        self.tails.reserve(documents * nearest::TAIL);
    }

    /// Puts a document at its place: the next one, or one that is known and may be gone now.
    fn put(&mut self, doc: usize, facts: Facts, vector: &[u8]) {
        if doc < self.rows.len() {
            if self.rows[doc] != 0 && facts.row == 0 {
                self.remove(doc);
            }
            return;
        }
        while self.rows.len() < doc {
            self.push(Facts::default(), &[0; VECTOR_BYTES]);
        }
        self.push(facts, vector);
    }

    fn remove(&mut self, doc: usize) {
        let session = &mut self.sessions[self.session[doc] as usize];
        session.length -= self.length[doc];
        session.documents -= 1;
        self.live -= 1;
        self.total_length -= u64::from(self.length[doc]);
        let (before, after) = (self.before[doc], self.after[doc]);
        if before == NONE {
            session.first = after
        } else {
            self.after[before as usize] = after
        }
        if after == NONE {
            session.last = before
        } else {
            self.before[after as usize] = before
        }
        self.rows[doc] = 0;
        self.scope[doc] = 0;
        self.length[doc] = 0;
        self.scales[doc] = 0.0;
        self.heads[doc * nearest::HEAD..(doc + 1) * nearest::HEAD].fill(0);
        self.tails[doc * nearest::TAIL..(doc + 1) * nearest::TAIL].fill(0);
    }

    fn push(&mut self, facts: Facts, vector: &[u8]) {
        self.push_facts(facts);
        self.push_vector(vector);
    }

    fn push_facts(&mut self, facts: Facts) {
        let doc = self.rows.len() as u32;
        let (mut place, mut before) = (0, NONE);
        if facts.row != 0 {
            // Most documents follow one of their own session.
            place = match self.session.last() {
                Some(last) if self.rows.last() != Some(&0) && self.sessions[*last as usize].row == facts.session => *last,
                _ => *self.session_places.entry(facts.session).or_insert_with(|| {
                    self.sessions.push(SessionFacts { row: facts.session, scope: facts.scope, first: doc, last: NONE, ..SessionFacts::default() });
                    self.sessions.len() as u32 - 1
                }),
            };
            let session = &mut self.sessions[place as usize];
            before = session.last;
            if before == NONE {
                session.first = doc;
            }
            session.last = doc;
            session.length += facts.length;
            session.documents += 1;
            self.live += 1;
            self.total_length += u64::from(facts.length);
            if facts.voice != 0 {
                *self.voices.entry(facts.voice).or_default() += 1;
            }
        }
        if before != NONE {
            self.after[before as usize] = doc;
        }
        self.rows.push(facts.row);
        self.session.push(place);
        self.scope.push(facts.scope);
        self.minute.push(facts.minute);
        self.length.push(facts.length);
        self.voice.push(facts.voice);
        self.machine.push(facts.machine);
        self.before.push(before);
        self.after.push(NONE);
    }

    fn push_vector(&mut self, vector: &[u8]) {
        let scale = vector.get(..4).map_or(0.0, |bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        self.scales.push(scale);
        // Bytes of another length are of no vector.
        match vector.get(4..).and_then(|codes| codes.get(..nearest::HEAD).zip(codes.get(nearest::HEAD..embed::DIMENSIONS))) {
            Some((head, tail)) => {
                self.heads.extend_from_slice(head);
                self.tails.extend_from_slice(tail);
            }
            None => {
                self.heads.resize(self.scales.len() * nearest::HEAD, 0);
                self.tails.resize(self.scales.len() * nearest::TAIL, 0);
            }
        }
    }

    /// Appends each document that holds a term and the count in it, in order.
    pub fn decode(&self, lists: &TermLists, docs: &mut Vec<u32>, counts: &mut Vec<u16>) {
        let mut from = 0;
        for (block, range, documents) in &lists.sealed {
            // Segments follow each other; a damaged one must not lead back.
            if documents.start < from {
                continue;
            }
            from = documents.end;
            postings::decode(&block[range.clone()], documents.start, documents.end, docs, counts);
        }
        for (doc, count) in self.tail.get(&lists.term).into_iter().flatten() {
            docs.push(*doc);
            counts.push(*count);
        }
    }

    /// Returns the lists of a term, reading blocks that are not in memory.
    pub fn lists(&mut self, db: &Connection, term: Term) -> Result<TermLists> {
        let mut found = TermLists { term, sealed: Vec::new(), documents: self.tail.get(&term).map_or(0, |documents| documents.len() as u32) };
        for place in 0..self.segments.len() {
            let segment = &self.segments[place];
            let (id, first, last) = (segment.id, segment.first, segment.last);
            let Some(number) = segment::block_of(&segment.directory, term) else { continue };
            let block = self.block(db, id * segment::MAX_BLOCKS + number as i64)?;
            if let Some(range) = segment::find(&block, term) {
                found.documents += postings::len(&block[range.clone()]);
                found.sealed.push((block, range, first..last.min(self.rows.len() as u32)));
            }
        }
        Ok(found)
    }

    fn block(&mut self, db: &Connection, id: i64) -> Result<Rc<Vec<u8>>> {
        if let Some(block) = self.cache.get(&id) {
            return Ok(Rc::clone(block));
        }
        let block: Vec<u8> = db
            .prepare_cached("SELECT data FROM index_blocks WHERE id = ?1")
            .and_then(|mut query| query.query_row([id], |row| row.get(0)).optional())
            .map(Option::unwrap_or_default)
            .map_err(failure)?;
        let block = Rc::new(block);
        self.cache_bytes += block.len();
        self.cache.insert(id, Rc::clone(&block));
        self.cache_order.push_back(id);
        while self.cache_bytes > BLOCK_CACHE_BYTES {
            let Some(oldest) = self.cache_order.pop_front() else { break };
            if let Some(block) = self.cache.remove(&oldest) {
                self.cache_bytes -= block.len();
            }
        }
        Ok(block)
    }
}

/// A block of a segment, where in it a term's list is, and the documents of the segment.
type SealedList = (Rc<Vec<u8>>, Range<usize>, Range<u32>);

/// Where a term's documents are listed.
#[derive(Debug)]
pub struct TermLists {
    /// The term.
    pub term: Term,
    sealed: Vec<SealedList>,
    /// How many documents hold it.
    pub documents: u32,
}
