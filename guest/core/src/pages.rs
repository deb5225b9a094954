//! Pages: the Markdown of L2 and L3 as rows with revisions; files are shown by `projections`.
//!
//! A page is a list of blocks (headings, paragraphs, list items, fenced code). Each block that a
//! model or the rules wrote ends with a comment that names the atoms it rests on; the same ids stand
//! in `grounds`, so that a trace needs no parsing. What a human wrote is kept verbatim, by block.

pub mod block;
pub mod diff;
pub mod hand;
pub mod name;
mod rows;

pub use block::Block;
pub use rows::{
    Author, Kind, NewPage, Page, PageId, Revision, Write, archive, by_uid, create, folder, grounds_at, live, load, named, persona, retire_bodies, revision,
    revisions, save, scope_names, scopes_with_pages,
};

use sha2::{Digest, Sha256};

/// Returns the SHA-256 of `text` in hex, as `sha256sum` prints it.
pub fn hash(text: &str) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        hex.push_str(&format!("{byte:02x}"));
    }
    hex
}

/// Returns the length of `text` in characters, the unit of all limits on pages.
pub fn chars(text: &str) -> usize {
    text.chars().count()
}

/// Returns `text` in one line, without what would end a comment or open one, cut at `limit` characters.
pub fn one_line(text: &str, limit: usize) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ").replace("<!--", "< !--").replace("-->", "-- >");
    if chars(&flat) <= limit {
        return flat;
    }
    let mut cut: String = flat.chars().take(limit.saturating_sub(1)).collect();
    cut.truncate(cut.trim_end().len());
    cut.push('…');
    cut
}
