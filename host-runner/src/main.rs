//! The `strata` command.

mod cli;
mod import;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
