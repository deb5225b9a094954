//! Strata's host on wasmtime: opens spaces, calls hooks and tools, and performs what they ask for.
//!
//! ```text
//! Space (a handle) --jobs--> its thread: driver -> instance -> the component
//!                                          |  ^
//!                             requests out v  | answers in
//!                                        Models (HTTP, or whatever a host has)
//! ```
//!
//! The engine decides everything; this crate owns the clock, the threads and the network. It knows
//! the engine by `wit/` alone.
//!
//! ```no_run
//! use strata_host::contract::{EndEvent, Message, PromptEvent};
//! use strata_host::{Options, Space};
//!
//! # fn main() -> Result<(), strata_host::SpaceError> {
//! let space = Space::open("./memory", Options::default())?;
//! let said = Message { role: "user".into(), content: "I am allergic to peanuts.".into(), ..Message::default() };
//! space.agent_end(EndEvent { messages: vec![said], success: true, at: strata_host::now(), ..EndEvent::default() })?;
//! let prompt = PromptEvent { prompt: "Suggest a snack.".into(), at: strata_host::now(), ..PromptEvent::default() };
//! println!("{}", space.before_prompt_build(prompt)?.dynamic);
//! space.close()
//! # }
//! ```
// The lints of the workspace guard the core's purity; a host is where clock and threads belong.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod contract;

mod runtime;

mod exports;
mod instance;

pub mod config;
mod holder;
mod space;

pub mod models;

pub mod conformance;

pub use instance::{Asked, Limits};
pub use runtime::{ComponentSource, Runtime};
pub use space::{Clock, Options, Settled, Space, SpaceError};

/// Returns the time as the contract counts it: milliseconds since 1970.
pub fn now() -> contract::Instant {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// README's code for Rust, compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
