//! Lists of documents that hold a term, as bytes: how many, then for each the gap to the one before
//! and how often the term stands in it.
//!
//! A gap and a count of one are one variable-length number (gap * 2); another count makes it odd and
//! follows. Gaps count from the segment's first document.

/// Appends a number, seven bits a byte, lowest first.
pub fn put(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads a number at `at` and moves behind it; damaged bytes read as zeros.
#[inline]
pub fn get(bytes: &[u8], at: &mut usize) -> u32 {
    let mut number = 0;
    let mut shift = 0;
    while let Some(byte) = bytes.get(*at) {
        *at += 1;
        number |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 || shift >= 28 {
            break;
        }
        shift += 7;
    }
    number
}

/// Appends the list of `documents` (ascending, with counts), counted from `first`.
pub fn write(bytes: &mut Vec<u8>, first: u32, documents: &[(u32, u16)]) {
    put(bytes, documents.len() as u32);
    let mut before = first;
    for (doc, count) in documents {
        let gap = (doc - before) << 1;
        if *count == 1 {
            put(bytes, gap);
        } else {
            put(bytes, gap | 1);
            put(bytes, u32::from(*count));
        }
        before = *doc;
    }
}

/// Returns how many documents a list has.
pub fn len(bytes: &[u8]) -> u32 {
    get(bytes, &mut 0)
}

/// Calls `take` with each document of a list and the count in it.
#[inline]
pub fn each(bytes: &[u8], first: u32, mut take: impl FnMut(u32, u32)) {
    let mut at = 0;
    let length = get(bytes, &mut at);
    let mut doc = first;
    for _ in 0..length {
        if at >= bytes.len() {
            break;
        }
        let head = get(bytes, &mut at);
        doc = doc.saturating_add(head >> 1);
        take(doc, if head & 1 == 0 { 1 } else { get(bytes, &mut at) });
    }
}

/// Appends the documents below `last` of a list, ascending, and the counts in them.
pub fn decode(bytes: &[u8], first: u32, last: u32, docs: &mut Vec<u32>, counts: &mut Vec<u16>) {
    let length = (len(bytes) as usize).min(bytes.len());
    docs.reserve(length);
    counts.reserve(length);
    each(bytes, first, |doc, count| {
        // Only damaged bytes give others.
        if doc < last {
            docs.push(doc);
            counts.push(count as u16);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn a_list_comes_back(documents in proptest::collection::btree_map(0u32..1_000_000, 1u16..2000, 0..200), first in 0u32..2) {
            let documents: BTreeMap<u32, u16> = documents.into_iter().map(|(doc, count)| (doc + first, count)).collect();
            let documents: Vec<(u32, u16)> = documents.into_iter().collect();
            let mut bytes = Vec::new();
            write(&mut bytes, first, &documents);
            let mut back = Vec::new();
            each(&bytes, first, |doc, count| back.push((doc, count as u16)));
            prop_assert_eq!(back, documents);
        }

        #[test]
        fn damaged_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut seen = 0;
            each(&bytes, 0, |_, _| seen += 1);
            prop_assert!(seen <= bytes.len());
        }
    }
}
