//! The `strata` command.

mod cli;
mod import;
mod replay;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
