//! Rows that go leave every byte of the index.

use super::super::facts::{self, Facts};
use super::super::segment::{self, Writer};
use super::super::{Kind, VECTOR_BYTES, postings};
use super::{Span, State, blobs, blocks, drop_segment, insert, spans};
use crate::contract::Result;
use crate::store::failure;
use rusqlite::{Transaction, params};
use std::collections::BTreeMap;

/// Takes rows that are gone out of tail and segments; returns those that come again.
pub(super) fn purge(tx: &Transaction<'_>, kind: Kind, state: &mut State) -> Result<Vec<i64>> {
    let gone: BTreeMap<i64, bool> = tx
        .prepare_cached("SELECT row, again FROM index_gone WHERE kind = ?1 ORDER BY row")
        .and_then(|mut query| query.query_map([kind as i64], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .map_err(failure)?;
    if gone.is_empty() {
        return Ok(Vec::new());
    }
    let mut tail = Vec::new();
    {
        let mut query = tx.prepare_cached("SELECT doc, facts FROM index_tail WHERE kind = ?1").map_err(failure)?;
        let mut rows = query.query([kind as i64]).map_err(failure)?;
        while let Some(row) = rows.next().map_err(failure)? {
            let facts = Facts::from_bytes(row.get_ref(1).and_then(|value| Ok(value.as_blob()?)).map_err(failure)?);
            if gone.contains_key(&facts.row) {
                tail.push(row.get::<_, i64>(0).map_err(failure)?);
            }
        }
    }
    for doc in tail {
        tx.prepare_cached("DELETE FROM index_tail WHERE kind = ?1 AND doc = ?2")
            .and_then(|mut delete| delete.execute(params![kind as i64, doc]))
            .map_err(failure)?;
    }
    for span in spans(tx, kind)? {
        purge_segment(tx, span, &gone)?;
    }
    tx.prepare_cached("DELETE FROM index_gone WHERE kind = ?1").and_then(|mut delete| delete.execute([kind as i64])).map_err(failure)?;
    // The table gives the largest row's number again once that row is gone.
    while gone.contains_key(&state.last_row) {
        state.last_row -= 1;
    }
    state.layout += 1;
    Ok(gone.into_iter().filter(|(row, again)| *again && *row <= state.last_row).map(|(row, _)| row).collect())
}

fn purge_segment(tx: &Transaction<'_>, span: Span, gone: &BTreeMap<i64, bool>) -> Result<()> {
    let (mut facts, mut vectors) = blobs(tx, span.id)?;
    let mut dead = Vec::new();
    for (place, bytes) in facts.as_chunks_mut::<{ facts::SIZE }>().0.iter_mut().enumerate() {
        if gone.contains_key(&Facts::from_bytes(bytes).row) {
            bytes.fill(0);
            vectors[place * VECTOR_BYTES..][..VECTOR_BYTES].fill(0);
            dead.push(span.first as u32 + place as u32);
        }
    }
    if dead.is_empty() {
        return Ok(());
    }
    // The whole segment is written again: a document's terms are not known any more.
    let mut writer = Writer::new(span.first as u32);
    let mut documents = Vec::new();
    for block in blocks(tx, span.id)? {
        segment::each(&block, |term, list| {
            documents.clear();
            postings::each(list, span.first as u32, |doc, count| {
                if dead.binary_search(&doc).is_err() {
                    documents.push((doc, count as u16));
                }
            });
            writer.add(term, &documents);
        });
    }
    let kind: i64 = tx.query_row("SELECT kind FROM index_segments WHERE id = ?1", [span.id], |row| row.get(0)).map_err(failure)?;
    drop_segment(tx, span.id)?;
    insert(tx, if kind == Kind::Messages as i64 { Kind::Messages } else { Kind::Atoms }, span.level, span.first, span.last, writer, &facts, &vectors)
}
