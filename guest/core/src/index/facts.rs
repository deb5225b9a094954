//! What ranking knows of a document besides its terms and its vector.

use crate::text::terms::Term;

/// Bytes of a document's facts, little-endian: row 8, session 4, scope 4, minute 4, length 4, voice 4,
/// flags 4.
pub const SIZE: usize = 32;

/// Set in flags: an assistant or a tool said it, not a person.
const MACHINE: u32 = 1;

/// The facts of a document. A document that has left the index has row 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The row of its table.
    pub row: i64,
    /// The row of its session.
    pub session: u32,
    /// The row of its scope.
    pub scope: u32,
    /// When it was said, in minutes since 1970.
    pub minute: u32,
    /// Its terms, repeated ones counted.
    pub length: u32,
    /// Who speaks, see [`voice`]; 0 if nobody is named.
    pub voice: u32,
    /// An assistant or a tool said it.
    pub machine: bool,
}

impl Facts {
    /// Returns the bytes of the facts.
    pub fn to_bytes(self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[..8].copy_from_slice(&self.row.to_le_bytes());
        let numbers = [self.session, self.scope, self.minute, self.length, self.voice, if self.machine { MACHINE } else { 0 }];
        for (place, number) in bytes[8..].as_chunks_mut::<4>().0.iter_mut().zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// Returns the facts in some bytes; missing bytes are zeros.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let number = |at: usize| bytes.get(at..at + 4).map_or(0, |bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        Self {
            row: i64::from(number(0)) | i64::from(number(4)) << 32,
            session: number(8),
            scope: number(12),
            minute: number(16),
            length: number(20),
            voice: number(24),
            machine: number(28) & MACHINE != 0,
        }
    }
}

/// Returns the mark of a speaker: of the first word of the name, lower case; 0 for no name.
pub fn voice(speaker: &str) -> u32 {
    match speaker.split_whitespace().next() {
        Some(word) => (Term::of(&word.to_lowercase()).0 >> 32) as u32 | 1,
        None => 0,
    }
}
