//! Following the tables: new rows enter the tail, a full tail becomes a segment, segments merge, and
//! rows that go leave every byte of the index.

mod purge;

use super::facts::{self, Facts};
use super::segment::{self, Writer};
use super::{Kind, postings};
use crate::contract::Result;
use crate::embed::{self, Embedder, dot};
use crate::store::failure;
use crate::text::{
    self,
    terms::{self, Term},
};
use rusqlite::{OptionalExtension, Transaction, params};

/// Documents of a segment of level 0.
pub const SEGMENT_DOCS: i64 = 1024;

/// Documents that the tail holds before a write, and not only the background, makes segments of it.
const FULL_TAIL: i64 = 4 * SEGMENT_DOCS;

/// Segments of a level that the background merges into one of the next.
const FAN_OUT: usize = 8;

/// Segments of a level at which a write merges them itself.
const FULL_LEVEL: usize = 2 * FAN_OUT;

/// The level that is not merged any more: 65,536 documents a segment.
const TOP_LEVEL: i64 = 2;

/// Rows that one call indexes: a segment of level 1.
pub const ROWS_A_CALL: i64 = FAN_OUT as i64 * SEGMENT_DOCS;

/// How much of the upkeep a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upkeep {
    /// Only what must not wait.
    Write,
    /// A slice of what is due.
    Background,
}

/// Brings the indexes up to date with their tables; returns whether rows are left for the next call.
///
/// Called in the transaction that stores or deletes rows, so that a message and its place in the index
/// are durable together and a forgotten one leaves with its row.
pub fn follow<'a>(tx: &Transaction<'_>, embedder: impl Fn() -> &'a Embedder, upkeep: Upkeep) -> Result<bool> {
    let mut left = false;
    for kind in Kind::ALL {
        let mut state = State::load(tx, kind)?;
        let before = state;
        if state.format != embed::generation() as i64 {
            clear(tx, kind)?;
            state = State { format: embed::generation() as i64, next_doc: 0, last_row: 0, layout: state.layout + 1 };
        }
        let again = purge::purge(tx, kind, &mut state)?;
        for row in again {
            if let Some(document) = document(tx, kind, row)? {
                append(tx, kind, &mut state, embedder(), &document)?;
            }
        }
        left |= append_new(tx, kind, &mut state, &embedder)?;
        let tail: i64 = tx
            .prepare_cached("SELECT count(*) FROM index_tail WHERE kind = ?1")
            .and_then(|mut query| query.query_row([kind as i64], |row| row.get(0)))
            .map_err(failure)?;
        if tail >= if upkeep == Upkeep::Background { SEGMENT_DOCS } else { FULL_TAIL } {
            seal(tx, kind, &mut state, SEGMENT_DOCS)?;
        }
        left |= merge(tx, kind, &mut state, upkeep)?;
        if state != before {
            state.save(tx, kind)?;
        }
    }
    Ok(left)
}

/// Returns whether rows wait, a tail is full enough for a segment, or segments for a merge.
pub fn is_due(db: &rusqlite::Connection) -> Result<bool> {
    for kind in Kind::ALL {
        let state = State::load(db, kind)?;
        let newest: i64 = db
            .prepare_cached(match kind {
                Kind::Messages => "SELECT coalesce(max(id), 0) FROM messages",
                Kind::Atoms => "SELECT coalesce(max(id), 0) FROM atoms",
            })
            .and_then(|mut query| query.query_row([], |row| row.get(0)))
            .map_err(failure)?;
        let spans = spans(db, kind)?;
        let sealed = spans.last().map_or(0, |span| span.last);
        if newest > state.last_row || state.next_doc - sealed >= SEGMENT_DOCS || to_merge(&spans, Upkeep::Background).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A row of `index_states`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) format: i64,
    pub(super) next_doc: i64,
    pub(super) last_row: i64,
    pub(super) layout: i64,
}

impl State {
    pub(super) fn load(db: &rusqlite::Connection, kind: Kind) -> Result<Self> {
        db.prepare_cached("SELECT format, next_doc, last_row, layout FROM index_states WHERE kind = ?1")
            .and_then(|mut query| {
                query
                    .query_row([kind as i64], |row| Ok(Self { format: row.get(0)?, next_doc: row.get(1)?, last_row: row.get(2)?, layout: row.get(3)? }))
                    .optional()
            })
            .map(Option::unwrap_or_default)
            .map_err(failure)
    }

    fn save(self, tx: &Transaction<'_>, kind: Kind) -> Result<()> {
        tx.prepare_cached("INSERT OR REPLACE INTO index_states (kind, format, next_doc, last_row, layout) VALUES (?1, ?2, ?3, ?4, ?5)")
            .and_then(|mut insert| insert.execute(params![kind as i64, self.format, self.next_doc, self.last_row, self.layout]))
            .map(|_| ())
            .map_err(failure)
    }
}

/// A row to index.
struct Document {
    row: i64,
    session: i64,
    scope: i64,
    said_at: i64,
    role: String,
    speaker: Option<String>,
    text: String,
}

const MESSAGE: &str = "SELECT id, session, scope, said_at, role, speaker, text FROM messages";
const ATOM: &str = "SELECT id, session, scope, valid_from, 'user', NULL, text FROM atoms";

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Document> {
    Ok(Document {
        row: row.get(0)?,
        session: row.get(1)?,
        scope: row.get(2)?,
        said_at: row.get(3)?,
        role: row.get(4)?,
        speaker: row.get(5)?,
        text: row.get(6)?,
    })
}

fn select(kind: Kind) -> &'static str {
    match kind {
        Kind::Messages => MESSAGE,
        Kind::Atoms => ATOM,
    }
}

fn document(tx: &Transaction<'_>, kind: Kind, row: i64) -> Result<Option<Document>> {
    tx.prepare_cached(&format!("{} WHERE id = ?1", select(kind))).and_then(|mut query| query.query_row([row], read).optional()).map_err(failure)
}

/// Indexes rows that are new. What fills segments goes straight into them; the rest enters the tail.
fn append_new<'a>(tx: &Transaction<'_>, kind: Kind, state: &mut State, embedder: &impl Fn() -> &'a Embedder) -> Result<bool> {
    let waiting: i64 = tx
        .prepare_cached(match kind {
            Kind::Messages => "SELECT count(*) FROM (SELECT 1 FROM messages WHERE id > ?1 LIMIT ?2)",
            Kind::Atoms => "SELECT count(*) FROM (SELECT 1 FROM atoms WHERE id > ?1 LIMIT ?2)",
        })
        .and_then(|mut query| query.query_row(params![state.last_row, ROWS_A_CALL], |row| row.get(0)))
        .map_err(failure)?;
    let mut building = None;
    if waiting >= SEGMENT_DOCS {
        seal(tx, kind, state, 1)?;
        building = Some(Building::new(state.next_doc));
    }
    let mut query = tx.prepare_cached(&format!("{} WHERE id > ?1 ORDER BY id LIMIT ?2", select(kind))).map_err(failure)?;
    let mut rows = query.query(params![state.last_row, waiting]).map_err(failure)?;
    let mut left = waiting;
    while let Some(row) = rows.next().map_err(failure)? {
        let document = read(row).map_err(failure)?;
        let entry = Entry::new(embedder(), &document);
        match &mut building {
            Some(building) => building.add(state.next_doc, &entry.facts, &entry.counts, &entry.vector),
            None => entry.insert(tx, kind, state.next_doc)?,
        }
        state.next_doc += 1;
        state.last_row = document.row;
        left -= 1;
        let held = building.as_ref().map_or(0, Building::documents);
        // Of a slice that fills a segment of the next level there will be one, else some of the lowest and a tail.
        let is_full = held == ROWS_A_CALL || (held == SEGMENT_DOCS && waiting < ROWS_A_CALL);
        if let Some(done) = building.take_if(|_| is_full) {
            done.finish(tx, kind, if held == ROWS_A_CALL { 1 } else { 0 })?;
            state.layout += 1;
            building = (left >= SEGMENT_DOCS).then(|| Building::new(state.next_doc));
        }
    }
    Ok(waiting == ROWS_A_CALL)
}

fn append(tx: &Transaction<'_>, kind: Kind, state: &mut State, embedder: &Embedder, document: &Document) -> Result<()> {
    Entry::new(embedder, document).insert(tx, kind, state.next_doc)?;
    state.next_doc += 1;
    Ok(())
}

/// What the index keeps of a document.
struct Entry {
    facts: [u8; facts::SIZE],
    /// Hash and count of each term, by hash.
    counts: Vec<u8>,
    /// The scale and the codes.
    vector: Vec<u8>,
}

impl Entry {
    fn new(embedder: &Embedder, document: &Document) -> Self {
        let mut terms = terms::terms(&document.text);
        let named = document.speaker.as_deref().filter(|speaker| *speaker != document.role);
        let facts = Facts {
            row: document.row,
            session: document.session as u32,
            scope: document.scope as u32,
            minute: (document.said_at / 60_000) as u32,
            length: terms.len() as u32,
            voice: named.map_or(0, facts::voice),
            machine: named.is_none() && document.role != "user",
        };
        terms.sort_unstable();
        let mut counts = Vec::with_capacity(terms.len() * 10);
        for same in terms.chunk_by(|one, other| one == other) {
            counts.extend_from_slice(&same[0].0.to_le_bytes());
            counts.extend_from_slice(&u16::try_from(same.len()).unwrap_or(u16::MAX).to_le_bytes());
        }
        let mut codes = [0_i8; embed::DIMENSIONS];
        let scale = dot::quantize(&embedder.embed(text::without_subject(&document.text)), &mut codes);
        let mut vector = Vec::with_capacity(super::VECTOR_BYTES);
        vector.extend_from_slice(&scale.to_le_bytes());
        vector.extend(codes.iter().map(|code| *code as u8));
        Self { facts: facts.to_bytes(), counts, vector }
    }

    fn insert(&self, tx: &Transaction<'_>, kind: Kind, doc: i64) -> Result<()> {
        tx.prepare_cached("INSERT INTO index_tail (kind, doc, facts, terms, vector) VALUES (?1, ?2, ?3, ?4, ?5)")
            .and_then(|mut insert| insert.execute(params![kind as i64, doc, self.facts, self.counts, self.vector]))
            .map(|_| ())
            .map_err(failure)
    }
}

/// Calls `take` with each term of a tail document and its count.
pub(super) fn each_count(terms: &[u8], mut take: impl FnMut(Term, u16)) {
    for pair in terms.as_chunks::<10>().0 {
        take(Term(u64::from_le_bytes(pair[..8].try_into().expect("eight bytes were taken"))), u16::from_le_bytes([pair[8], pair[9]]));
    }
}

/// A segment in the making: documents are added in order, with gaps where some are gone.
struct Building {
    first: i64,
    facts: Vec<u8>,
    vectors: Vec<u8>,
    triples: Vec<(Term, u32, u16)>,
}

impl Building {
    fn new(first: i64) -> Self {
        Self { first, facts: Vec::new(), vectors: Vec::new(), triples: Vec::new() }
    }

    fn documents(&self) -> i64 {
        (self.facts.len() / facts::SIZE) as i64
    }

    fn reach(&mut self, documents: usize) {
        self.facts.resize(documents * facts::SIZE, 0);
        self.vectors.resize(documents * super::VECTOR_BYTES, 0);
    }

    fn add(&mut self, doc: i64, facts: &[u8], counts: &[u8], vector: &[u8]) {
        let place = (doc - self.first) as usize;
        self.reach(place + 1);
        copy(&mut self.facts[place * facts::SIZE..], facts);
        copy(&mut self.vectors[place * super::VECTOR_BYTES..], vector);
        each_count(counts, |term, count| self.triples.push((term, doc as u32, count)));
    }

    /// Stores the segment.
    fn finish(mut self, tx: &Transaction<'_>, kind: Kind, level: i64) -> Result<()> {
        self.triples.sort_unstable();
        let mut writer = Writer::new(self.first as u32);
        let mut documents = Vec::new();
        for same in self.triples.chunk_by(|one, other| one.0 == other.0) {
            documents.clear();
            documents.extend(same.iter().map(|(_, doc, count)| (*doc, *count)));
            writer.add(same[0].0, &documents);
        }
        insert(tx, kind, level, self.first, self.first + self.documents(), writer, &self.facts, &self.vectors)
    }
}

/// Makes segments of level 0 of the tail: of each full thousand, and of what is left if it has `least` documents.
fn seal(tx: &Transaction<'_>, kind: Kind, state: &mut State, least: i64) -> Result<()> {
    let mut first: i64 = tx
        .prepare_cached("SELECT coalesce(max(last), 0) FROM index_segments WHERE kind = ?1")
        .and_then(|mut query| query.query_row([kind as i64], |row| row.get(0)))
        .map_err(failure)?;
    while state.next_doc - first >= least {
        let last = state.next_doc.min(first + SEGMENT_DOCS);
        let mut building = Building::new(first);
        {
            let mut query = tx
                .prepare_cached("SELECT doc, facts, terms, vector FROM index_tail WHERE kind = ?1 AND doc >= ?2 AND doc < ?3 ORDER BY doc")
                .map_err(failure)?;
            let mut rows = query.query(params![kind as i64, first, last]).map_err(failure)?;
            while let Some(row) = rows.next().map_err(failure)? {
                let blob = |place| row.get_ref(place).and_then(|value| Ok(value.as_blob()?)).map_err(failure);
                building.add(row.get(0).map_err(failure)?, blob(1)?, blob(2)?, blob(3)?);
            }
        }
        building.reach((last - first) as usize);
        building.finish(tx, kind, 0)?;
        tx.prepare_cached("DELETE FROM index_tail WHERE kind = ?1 AND doc < ?2")
            .and_then(|mut delete| delete.execute(params![kind as i64, last]))
            .map_err(failure)?;
        state.layout += 1;
        first = last;
    }
    Ok(())
}

fn copy(place: &mut [u8], bytes: &[u8]) {
    // Facts and vectors of another length are damaged: they stay zeros.
    if let Some(place) = place.get_mut(..bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

#[allow(clippy::too_many_arguments, reason = "a row of index_segments")]
fn insert(tx: &Transaction<'_>, kind: Kind, level: i64, first: i64, last: i64, mut writer: Writer, facts: &[u8], vectors: &[u8]) -> Result<()> {
    writer.end_block();
    let directory: Vec<u8> = writer.directory.iter().flat_map(|hash| hash.to_le_bytes()).collect();
    let id: i64 = tx
        .prepare_cached("INSERT INTO index_segments (kind, level, first, last, directory, facts, vectors) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING id")
        .and_then(|mut insert| insert.query_row(params![kind as i64, level, first, last, directory, facts, vectors], |row| row.get(0)))
        .map_err(failure)?;
    let mut insert = tx.prepare_cached("INSERT INTO index_blocks (id, data) VALUES (?1, ?2)").map_err(failure)?;
    for (place, block) in writer.blocks.iter().enumerate() {
        insert.execute(params![id * segment::MAX_BLOCKS + place as i64, block]).map_err(failure)?;
    }
    Ok(())
}

/// A row of `index_segments` without its blobs.
#[derive(Clone, Copy)]
struct Span {
    id: i64,
    level: i64,
    first: i64,
    last: i64,
}

fn spans(db: &rusqlite::Connection, kind: Kind) -> Result<Vec<Span>> {
    db.prepare_cached("SELECT id, level, first, last FROM index_segments WHERE kind = ?1 ORDER BY first")
        .and_then(|mut query| {
            query.query_map([kind as i64], |row| Ok(Span { id: row.get(0)?, level: row.get(1)?, first: row.get(2)?, last: row.get(3)? }))?.collect()
        })
        .map_err(failure)
}

/// Returns the oldest run of segments that are to become one, and the level of that.
///
/// They follow each other: bulk leaves lower levels between higher ones, which go with their neighbours.
fn to_merge(spans: &[Span], upkeep: Upkeep) -> Option<(&[Span], i64)> {
    let least = if upkeep == Upkeep::Background { FAN_OUT } else { FULL_LEVEL };
    (0..TOP_LEVEL).find_map(|level| {
        let mut runs = spans.chunk_by(|one, other| one.level <= level && other.level <= level);
        runs.find(|run| run[0].level <= level && run.len() >= least).map(|run| (&run[..FAN_OUT], level + 1))
    })
}

/// Merges a run of segments, if one is long enough; returns whether more may be due.
fn merge(tx: &Transaction<'_>, kind: Kind, state: &mut State, upkeep: Upkeep) -> Result<bool> {
    let spans = spans(tx, kind)?;
    let Some((run, level)) = to_merge(&spans, upkeep) else { return Ok(false) };
    let (first, last) = (run[0].first, run[FAN_OUT - 1].last);
    let (mut facts, mut vectors, mut read) = (Vec::new(), Vec::new(), Vec::new());
    for span in run {
        read.extend(blocks(tx, span.id)?.into_iter().map(|block| (span.first as u32, block)));
        let (more_facts, more_vectors) = blobs(tx, span.id)?;
        facts.extend_from_slice(&more_facts);
        vectors.extend_from_slice(&more_vectors);
        drop_segment(tx, span.id)?;
    }
    // Stable in the order of the segments, so that each term's documents stay in order.
    let mut lists: Vec<(Term, u32, &[u8])> = Vec::new();
    read.iter().for_each(|(first, block)| segment::each(block, |term, list| lists.push((term, *first, list))));
    lists.sort_by_key(|(term, ..)| *term);
    let mut writer = Writer::new(first as u32);
    let mut documents = Vec::new();
    for same in lists.chunk_by(|one, other| one.0 == other.0) {
        documents.clear();
        same.iter().for_each(|(_, first, list)| postings::each(list, *first, |doc, count| documents.push((doc, count as u16))));
        writer.add(same[0].0, &documents);
    }
    insert(tx, kind, level, first, last, writer, &facts, &vectors)?;
    state.layout += 1;
    Ok(true)
}

fn blocks(tx: &Transaction<'_>, segment: i64) -> Result<Vec<Vec<u8>>> {
    tx.prepare_cached("SELECT data FROM index_blocks WHERE id >= ?1 AND id < ?2 ORDER BY id")
        .and_then(|mut query| query.query_map([segment * segment::MAX_BLOCKS, (segment + 1) * segment::MAX_BLOCKS], |row| row.get(0))?.collect())
        .map_err(failure)
}

fn blobs(tx: &Transaction<'_>, segment: i64) -> Result<(Vec<u8>, Vec<u8>)> {
    tx.prepare_cached("SELECT facts, vectors FROM index_segments WHERE id = ?1")
        .and_then(|mut query| query.query_row([segment], |row| Ok((row.get(0)?, row.get(1)?))))
        .map_err(failure)
}

fn drop_segment(tx: &Transaction<'_>, segment: i64) -> Result<()> {
    tx.prepare_cached("DELETE FROM index_blocks WHERE id >= ?1 AND id < ?2")
        .and_then(|mut delete| delete.execute([segment * segment::MAX_BLOCKS, (segment + 1) * segment::MAX_BLOCKS]))
        .map_err(failure)?;
    tx.prepare_cached("DELETE FROM index_segments WHERE id = ?1").and_then(|mut delete| delete.execute([segment])).map(|_| ()).map_err(failure)
}

fn clear(tx: &Transaction<'_>, kind: Kind) -> Result<()> {
    for span in spans(tx, kind)? {
        drop_segment(tx, span.id)?;
    }
    tx.execute("DELETE FROM index_tail WHERE kind = ?1", [kind as i64]).map(|_| ()).map_err(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(levels: &[i64]) -> Vec<Span> {
        levels.iter().enumerate().map(|(place, level)| Span { id: place as i64, level: *level, first: place as i64, last: place as i64 + 1 }).collect()
    }

    #[test]
    fn only_neighbours_merge() {
        let run = |levels: &[i64]| to_merge(&spans(levels), Upkeep::Background).map(|(run, level)| (run[0].id, run.len(), level));
        assert_eq!(run(&[0; 7]), None);
        assert_eq!(run(&[0; 9]), Some((0, 8, 1)));
        // A merge of the eight of level 1 alone would leap over what lies between.
        assert_eq!(run(&[2, 1, 1, 1, 0, 1, 1, 1, 1, 1]), Some((1, 8, 2)));
        assert_eq!(run(&[1, 0, 2, 1, 1, 1, 2, 1, 0, 0, 0]), None);
        assert_eq!(run(&[2; 20]), None);
    }
}
