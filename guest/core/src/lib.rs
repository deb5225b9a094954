//! Strata's engine: a deterministic state machine.
//!
//! Events go in carrying their own time; context, and requests for slow work, come out. Everything
//! slow or outside is done by a host and comes back as another event. Modules stand in the order in
//! which a message flows:
//!
//! ```text
//! agent_end -> capture -> l0 -> schedule -> l1 -> l2 -> l3
//!                                   |  requests go out through work, answers come back
//! before_prompt_build -> recall (keyword + vector + scenes + persona) -> inject
//! after_tool_call -> offload (refs -> summaries -> canvas) -> assemble
//!                        all rows: store (SQLite over disk)
//! ```

pub mod contract;
pub mod disk;
pub mod settings;

pub mod calendar;

pub mod space_lock;
pub mod store;

pub mod capture;
pub mod l0;

pub mod schedule;
pub mod work;

pub mod l1;
pub mod l2;
pub mod l3;

pub mod pages;
pub mod projections;

pub mod browse;
pub mod history;

pub mod backup;
pub mod export;
pub mod forget;
pub mod import;
pub mod rebuild;
pub mod retention;

pub mod embed;
pub mod index;
pub mod text;
pub mod vectors;

pub mod inject;
pub mod recall;
pub mod status;
pub mod tools;
pub mod trace;

pub mod offload;

pub mod engine;

pub use contract::{Failure, FailureCode, Instant};
pub use engine::Engine;
