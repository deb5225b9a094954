//! Segments: the terms of many documents, sorted by hash and cut into blocks that are read one by one.
//!
//! A block: `u32` terms; their `u64` hashes, ascending; `u32` starts of their lists, one more than
//! terms, from the end of the starts; the lists (see `postings`). Little-endian. A segment's directory
//! is the first hash of each block.

use super::postings;
use crate::text::terms::Term;

/// Bytes of lists after which a block is full. Larger blocks are fewer reads at a merge, smaller ones
/// are cheaper to read for one term.
const BLOCK_BYTES: usize = 8 << 10;

/// Blocks that a segment can have: the low bits of a block's id.
pub const MAX_BLOCKS: i64 = 1 << 20;

/// Writes sorted terms into blocks.
#[derive(Debug, Default)]
pub struct Writer {
    first: u32,
    hashes: Vec<u64>,
    starts: Vec<u32>,
    lists: Vec<u8>,
    /// The first hash of each block that is done.
    pub directory: Vec<u64>,
    /// The blocks that are done.
    pub blocks: Vec<Vec<u8>>,
}

impl Writer {
    /// Returns a writer of a segment whose first document is `first`.
    pub fn new(first: u32) -> Self {
        Self { first, ..Self::default() }
    }

    /// Adds a term and its documents; terms come in ascending order. No documents: no term.
    pub fn add(&mut self, term: Term, documents: &[(u32, u16)]) {
        if documents.is_empty() {
            return;
        }
        self.hashes.push(term.0);
        self.starts.push(self.lists.len() as u32);
        postings::write(&mut self.lists, self.first, documents);
        if self.lists.len() + self.hashes.len() * 12 >= BLOCK_BYTES {
            self.end_block();
        }
    }

    /// Ends the last block.
    pub fn end_block(&mut self) {
        let Some(first) = self.hashes.first() else { return };
        self.directory.push(*first);
        let mut block = Vec::with_capacity(8 + self.hashes.len() * 12 + self.lists.len());
        block.extend_from_slice(&(self.hashes.len() as u32).to_le_bytes());
        self.hashes.iter().for_each(|hash| block.extend_from_slice(&hash.to_le_bytes()));
        self.starts.push(self.lists.len() as u32);
        self.starts.iter().for_each(|start| block.extend_from_slice(&start.to_le_bytes()));
        block.append(&mut self.lists);
        self.blocks.push(block);
        self.hashes.clear();
        self.starts.clear();
    }
}

/// Returns the number of the block that may hold a term.
pub fn block_of(directory: &[u64], term: Term) -> Option<usize> {
    directory.partition_point(|first| *first <= term.0).checked_sub(1)
}

/// Returns where the list of a term lies in a block.
pub fn find(block: &[u8], term: Term) -> Option<std::ops::Range<usize>> {
    let terms = terms(block);
    let (mut low, mut high) = (0, terms);
    while low < high {
        let middle = (low + high) / 2;
        match hash(block, middle)?.cmp(&term.0) {
            std::cmp::Ordering::Equal => return list(block, terms, middle),
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    None
}

/// Calls `take` with each term of a block and its list.
pub fn each<'a>(block: &'a [u8], mut take: impl FnMut(Term, &'a [u8])) {
    let terms = terms(block);
    for place in 0..terms {
        if let (Some(hash), Some(range)) = (hash(block, place), list(block, terms, place)) {
            take(Term(hash), &block[range]);
        }
    }
}

fn terms(block: &[u8]) -> usize {
    u32_at(block, 0).map_or(0, |terms| (terms as usize).min(block.len() / 12))
}

fn hash(block: &[u8], place: usize) -> Option<u64> {
    let at = 4 + place * 8;
    block.get(at..at + 8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes were taken")))
}

fn list(block: &[u8], terms: usize, place: usize) -> Option<std::ops::Range<usize>> {
    let starts = 4 + terms * 8;
    let lists = starts + (terms + 1) * 4;
    let range = lists + u32_at(block, starts + place * 4)? as usize..lists + u32_at(block, starts + place * 4 + 4)? as usize;
    (range.start <= range.end && range.end <= block.len()).then_some(range)
}

fn u32_at(block: &[u8], at: usize) -> Option<u32> {
    block.get(at..at + 4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes were taken")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_found_in_their_blocks() {
        let mut writer = Writer::new(10);
        for term in 0..5000_u64 {
            writer.add(Term(term * 3), &[(10 + term as u32, 1), (20_000, 7)]);
        }
        writer.end_block();
        assert!(writer.blocks.len() > 1);
        for term in [0, 1, 3, 7500, 14_997, 14_998] {
            let block = &writer.blocks[block_of(&writer.directory, Term(term)).expect("0 is the first hash")];
            let mut found = Vec::new();
            if let Some(range) = find(block, Term(term)) {
                postings::each(&block[range], 10, |doc, count| found.push((doc, count)));
            }
            let expected = if term % 3 == 0 { vec![(10 + term as u32 / 3, 1), (20_000, 7)] } else { vec![] };
            assert_eq!(found, expected, "{term}");
        }
    }

    #[test]
    fn a_damaged_block_has_no_terms() {
        for block in [&[][..], &[9, 0, 0, 0], &[255; 40]] {
            assert_eq!(find(block, Term(1)), None);
            each(block, |_, list| assert!(list.len() <= block.len()));
        }
    }
}
