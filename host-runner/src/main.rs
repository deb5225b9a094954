//! The `strata` command.

// A command is not the engine: it reads the clock and the environment.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod cli;
mod import;
mod replay;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
