//! From disk to memory: what has changed since the last look.

use super::facts::{self, Facts};
use super::{Kind, Loaded, Segment, VECTOR_BYTES, segment, write};
use crate::contract::Result;
use crate::store::failure;
use rusqlite::{Connection, OptionalExtension};

/// Documents whose facts or vectors are read together.
const PARTS_OF_A_PIECE: usize = 1024;

impl Loaded {
    /// Reads what has changed on disk since the last call.
    pub(super) fn sync(&mut self, db: &Connection, kind: Kind) -> Result<()> {
        let state = write::State::load(db, kind)?;
        if state.format != self.format || (state.next_doc as usize) < self.rows.len() {
            *self = Self::default();
        }
        let fresh = self.rows.is_empty();
        if fresh || state.layout != self.layout {
            if fresh {
                // The tail too, or the columns would be copied when it comes; and what is written next.
                self.reserve(state.next_doc as usize + write::SEGMENT_DOCS as usize);
            }
            self.read_segments(db, kind, fresh)?;
        }
        self.layout = state.layout;
        self.format = state.format;
        if (self.rows.len() as i64) < state.next_doc {
            self.read_tail(db, kind, state.next_doc as usize)?;
        }
        Ok(())
    }

    fn read_segments(&mut self, db: &Connection, kind: Kind, fresh: bool) -> Result<()> {
        let known = std::mem::take(&mut self.segments);
        let mut query = db.prepare_cached("SELECT id, first, last, directory FROM index_segments WHERE kind = ?1 ORDER BY first").map_err(failure)?;
        let mut rows = query.query([kind as i64]).map_err(failure)?;
        let mut sealed = 0;
        while let Some(row) = rows.next().map_err(failure)? {
            let id: i64 = row.get(0).map_err(failure)?;
            let directory = row.get_ref(3).and_then(|value| Ok(value.as_blob()?)).map_err(failure)?;
            let directory = directory.as_chunks().0.iter().map(|hash| u64::from_le_bytes(*hash)).collect();
            sealed = row.get(2).map_err(failure)?;
            self.segments.push(Segment { id, first: row.get(1).map_err(failure)?, last: sealed, directory });
        }
        drop(rows);
        // Blocks of segments that are gone would never be asked for again.
        let gone: Vec<i64> = known.iter().map(|segment| segment.id).filter(|id| self.segments.iter().all(|segment| segment.id != *id)).collect();
        if !gone.is_empty() {
            self.cache.retain(|id, _| !gone.contains(&(id / segment::MAX_BLOCKS)));
            self.cache_order.retain(|id| self.cache.contains_key(id));
            self.cache_bytes = self.cache.values().map(|block| block.len()).sum();
        }
        self.sealed = sealed;
        let ids: Vec<(i64, u32)> = self.segments.iter().map(|segment| (segment.id, segment.first)).collect();
        for (id, first) in ids {
            let is_new = known.iter().all(|segment| segment.id != id);
            if first as usize == self.rows.len() {
                self.read_next(db, id)?;
            } else if fresh || is_new {
                self.read_known(db, id, first as usize)?;
            }
        }
        // The tail in memory may hold what is in segments now, or what is gone.
        self.tail.clear();
        if !fresh {
            let known = self.rows.len();
            self.read_tail(db, kind, known)?;
        }
        Ok(())
    }

    /// Reads the documents of a segment that come next, in pieces: a blob as a whole would be as much memory again.
    fn read_next(&mut self, db: &Connection, id: i64) -> Result<()> {
        each_piece(db, id, "facts", facts::SIZE, |piece| {
            piece.as_chunks::<{ facts::SIZE }>().0.iter().for_each(|facts| self.push_facts(Facts::from_bytes(facts)))
        })?;
        each_piece(db, id, "vectors", VECTOR_BYTES, |piece| {
            // A damaged segment has vectors of no document.
            piece.as_chunks::<VECTOR_BYTES>().0.iter().take(self.rows.len() - self.scales.len()).for_each(|vector| self.push_vector(vector));
        })?;
        (self.scales.len()..self.rows.len()).for_each(|_| self.push_vector(&[]));
        Ok(())
    }

    /// Reads a segment of documents that are known: some may be gone.
    fn read_known(&mut self, db: &Connection, id: i64, first: usize) -> Result<()> {
        db.prepare_cached("SELECT facts, vectors FROM index_segments WHERE id = ?1")
            .and_then(|mut query| {
                query.query_row([id], |row| {
                    let (facts, vectors) = (row.get_ref(0)?.as_blob()?, row.get_ref(1)?.as_blob()?);
                    for (place, (facts, vector)) in facts.as_chunks::<{ facts::SIZE }>().0.iter().zip(vectors.as_chunks::<VECTOR_BYTES>().0).enumerate() {
                        self.put(first + place, Facts::from_bytes(facts), vector);
                    }
                    Ok(())
                })
            })
            .optional()
            .map(drop)
            .map_err(failure)
    }

    /// Reads the tail's terms, and documents up to `documents`.
    fn read_tail(&mut self, db: &Connection, kind: Kind, documents: usize) -> Result<()> {
        let mut from = if self.tail.is_empty() { self.sealed as usize } else { self.rows.len() };
        let mut query = db.prepare_cached("SELECT doc, facts, terms, vector FROM index_tail WHERE kind = ?1 AND doc >= ?2 ORDER BY doc").map_err(failure)?;
        let mut rows = query.query([kind as i64, from as i64]).map_err(failure)?;
        while let Some(row) = rows.next().map_err(failure)? {
            let doc: usize = row.get::<_, i64>(0).map_err(failure)? as usize;
            // A place without a row: its document is gone.
            (from..doc).for_each(|gone| self.put(gone, Facts::default(), &[0; VECTOR_BYTES]));
            let facts = Facts::from_bytes(row.get_ref(1).and_then(|value| Ok(value.as_blob()?)).map_err(failure)?);
            self.put(doc, facts, row.get_ref(3).and_then(|value| Ok(value.as_blob()?)).map_err(failure)?);
            let terms = row.get_ref(2).and_then(|value| Ok(value.as_blob()?)).map_err(failure)?;
            write::each_count(terms, |term, count| self.tail.entry(term).or_default().push((doc as u32, count)));
            from = doc + 1;
        }
        (from..documents).for_each(|gone| self.put(gone, Facts::default(), &[0; VECTOR_BYTES]));
        Ok(())
    }
}

/// Calls `take` with the pieces of a blob of a segment; each holds whole parts of `size` bytes.
fn each_piece(db: &Connection, id: i64, column: &str, size: usize, mut take: impl FnMut(&[u8])) -> Result<()> {
    let blob = db.blob_open("main", "index_segments", column, id, true).map_err(failure)?;
    let mut piece = vec![0; PARTS_OF_A_PIECE * size];
    for start in (0..blob.len()).step_by(piece.len()) {
        let wanted = piece.len().min(blob.len() - start);
        blob.read_at_exact(&mut piece[..wanted], start).map_err(failure)?;
        take(&piece[..wanted]);
    }
    Ok(())
}
