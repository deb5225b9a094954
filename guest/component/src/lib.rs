//! The engine as a component: the only guest crate that sees WIT.
//!
//! It converts values, holds the one engine, and carries what the engine asks for to the imports.
//! Nothing is decided here.

mod bindings {
    #![allow(missing_docs, unreachable_pub, clippy::all)]
    wit_bindgen::generate!({ path: "../../wit", world: "engine" });
    use super::Component;
    export!(Component);
}
mod convert;
mod exports;
mod outgoing;
mod wasi_disk;

use std::cell::{Cell, RefCell};
use strata_core::contract::{Failure, FailureCode, Result};
use strata_core::engine::Engine;

/// What implements the world's exports.
struct Component;

thread_local! {
    /// The open space, if there is one. A component has one thread.
    static ENGINE: RefCell<Option<Engine>> = const { RefCell::new(None) };
    /// An export is running; also while its requests go out, when the engine itself is at rest.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// The proof that no other export is running; dropping it lets the next one in.
struct Inside;

impl Inside {
    /// Fails with `busy` if an import has called back into an export.
    fn enter() -> Result<Self> {
        if INSIDE.replace(true) {
            return Err(Failure::new(FailureCode::Busy, "a call was made from inside a call; an import must return before the next export is called"));
        }
        Ok(Self)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

/// Runs `call` on the open engine, then sends what it left to send.
fn with_engine<T>(call: impl FnOnce(&mut Engine) -> Result<T>) -> Result<T> {
    let _inside = Inside::enter()?;
    let (result, outgoing) = ENGINE.with_borrow_mut(|slot| {
        let engine = slot.as_mut().ok_or_else(not_open)?;
        let result = call(engine);
        Ok((result, engine.drain()))
    })?;
    outgoing::send(outgoing);
    result
}

fn not_open() -> Failure {
    Failure::new(FailureCode::NotOpen, "no space is open; call `open` first")
}
