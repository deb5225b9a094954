//! The task drawn as a Mermaid flowchart: which node a call belongs to, and the drawing.
//!
//! A node is a run of calls with one intent. Placement happens once, when a call arrives, and never
//! moves by itself, because placeholders in contexts name the node. Everything that the drawing
//! says of a node is derived from its entries.

mod draw;
mod place;

pub use draw::{CANVAS_MAX_CHARS, Drawing, FOLDED_HEAD, Node, NodeNote, draw};
pub use place::{Board, Placed};

use serde::{Deserialize, Serialize};

/// Where a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Finished.
    Done,
    /// The newest step.
    Doing,
    /// Left for another task.
    Paused,
    /// A dead end, kept so that nobody walks into it again.
    Blocked,
}

impl Status {
    /// Returns the word of the canvas format.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Doing => "doing",
            Self::Paused => "paused",
            Self::Blocked => "blocked",
        }
    }

    /// Returns the status that a word means, if it means one.
    pub fn of_word(word: &str) -> Option<Self> {
        [Self::Done, Self::Doing, Self::Paused, Self::Blocked].into_iter().find(|status| status.word() == word)
    }
}

/// One task, which is one canvas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// 1, 2, ...; drawn with three digits.
    pub number: u32,
    /// The user's words that started it, on one line.
    pub goal: String,
    /// When it began, in milliseconds since 1970.
    pub created_ms: i64,
}
