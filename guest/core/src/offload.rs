//! Short-term memory inside one long task: tool results leave the context and stay within reach.
//!
//! ```text
//! after_tool_call -> refs (the whole text, durable) -> ledger (summary, digest, score)
//!                 -> canvas (which node) -> mirror (files for people)
//! assemble        -> message_shape -> assemble (groups, marks, placeholders) -> reduce (durable first)
//! tick            -> filing (files of what one commit stored) -> reclaim
//! tools           -> drill (canvas -> node -> entry -> ref -> bytes), trace (the same for `memory.trace`)
//! ```

pub mod message_shape;
pub mod token_estimate;

pub mod summary;

pub mod boundary;
pub mod canvas;
pub mod ledger;

pub mod assemble;
pub mod json_slices;

pub mod refs;
pub mod rows;
pub mod session;

pub mod filing;
pub mod intake;
pub mod mirror;
pub mod model;

pub mod drill;
pub mod reclaim;
pub mod reduce;
pub mod trace;
