//! The command line: one file a command, one document a call.
//!
//! Every command opens a space, makes one call of the contract, and prints its answer: as text for people, or with
//! `--json` as the one document that the engine gave. Exit codes are part of the interface; see [`exit`].

mod clock;
mod commands;
mod exit;
mod open;
mod options;
mod terminal;

use clap::{Parser, Subcommand};
use exit::Exit;
use options::Options;
use std::process::ExitCode;
use terminal::Terminal;

const ABOUT: &str = "\
Layered memory for AI agents: what was said, what follows from it, and why it is believed.";

const AFTER_HELP: &str = "\
Start here:
  strata demo                               see all of it work on an example conversation
  strata import conversations.json          read a ChatGPT, Claude, OpenClaw, ... history
  strata recall \"plan my Saturday\"          print the exact text that would enter the prompt
  strata trace a_0123456789abcdef           walk from a memory to the words it rests on

A model is optional. With STRATA_LLM_URL and STRATA_LLM_MODEL set, memories are distilled by that model
(any OpenAI-compatible endpoint); without one, by rules.

Exit codes: 0 done · 1 failed · 2 wrong usage · 3 the space is in use · 4 nothing such was found ·
5 the stored data is damaged or of a newer version · 6 done, but some input could not be read";

#[derive(Debug, Parser)]
#[command(name = "strata", version, about = ABOUT, after_help = AFTER_HELP, max_term_width = 110, disable_help_subcommand = true)]
struct Cli {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// See the whole thing work on an example conversation
    Demo(commands::demo::Demo),
    /// Read conversations of other systems into the memory
    Import(commands::import::Import),
    /// Print the exact text that would enter a prompt
    Recall(commands::recall::Recall),
    /// Search memories or messages
    Search(commands::search::Search),
    /// List what a layer holds
    Browse(commands::browse::Browse),
    /// Show who the user is taken to be
    Persona(commands::persona::Persona),
    /// List scenes, or show one
    Scenes(commands::scenes::Scenes),
    /// Walk from a memory to the words it rests on, and from words to what was built on them
    Trace(commands::trace::Trace),
    /// Show the model call or rule that made a memory
    Why(commands::why::Why),
    /// List the revisions of a memory, a scene or the persona
    History(commands::history::History),
    /// Show what changed between two revisions
    Diff(commands::diff::Diff),
    /// Make an earlier revision current again
    Rollback(commands::rollback::Rollback),
    /// Correct a memory, a scene or the persona by hand
    Edit(commands::edit::Edit),
    /// Keep a memory from being replaced or merged
    Pin(commands::pin::Pin),
    /// Remove memories and everything built on them, everywhere
    Forget(commands::forget::Forget),
    /// Show what is stored, what waits, what failed and why
    Status(commands::status::Status),
    /// Do all waiting work now
    Flush(commands::flush::Flush),
    /// Try failed work again
    Retry(commands::retry::Retry),
    /// Write a verified copy of the space
    Backup(commands::backup::Backup),
    /// Go back to a copy
    Restore(commands::restore::Restore),
    /// Write everything as JSON Lines and Markdown
    Export(commands::export::Export),
    /// Derive every layer again from the messages, and compare
    Rebuild(commands::rebuild::Rebuild),
    /// Run a recorded agent session through short-term memory and measure it
    Replay(commands::replay::Replay),
    /// Measure recall on conversations with marked questions
    Eval(commands::eval::Eval),
    /// Print the JSON Schema of the engine's settings
    ConfigSchema(commands::config_schema::ConfigSchema),
    /// Check this host against the scenarios of the contract
    Conformance(commands::conformance::Conformance),
}

/// Runs the command line.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut terminal = Terminal::new(cli.options.json, cli.options.quiet);
    let outcome = run(cli, &mut terminal);
    match outcome {
        Ok(exit) => exit.into(),
        Err(error) => {
            let exit = Exit::of(&error);
            terminal.error(&error, exit);
            exit.into()
        }
    }
}

fn run(cli: Cli, terminal: &mut Terminal) -> anyhow::Result<Exit> {
    let settings = cli.options.resolve()?;
    terminal.zone = settings.zone.clone();
    let terminal = &*terminal;
    match cli.command {
        Command::Demo(command) => command.run(&settings, terminal),
        Command::Import(command) => command.run(&settings, terminal),
        Command::Recall(command) => command.run(&settings, terminal),
        Command::Search(command) => command.run(&settings, terminal),
        Command::Browse(command) => command.run(&settings, terminal),
        Command::Persona(command) => command.run(&settings, terminal),
        Command::Scenes(command) => command.run(&settings, terminal),
        Command::Trace(command) => command.run(&settings, terminal),
        Command::Why(command) => command.run(&settings, terminal),
        Command::History(command) => command.run(&settings, terminal),
        Command::Diff(command) => command.run(&settings, terminal),
        Command::Rollback(command) => command.run(&settings, terminal),
        Command::Edit(command) => command.run(&settings, terminal),
        Command::Pin(command) => command.run(&settings, terminal),
        Command::Forget(command) => command.run(&settings, terminal),
        Command::Status(command) => command.run(&settings, terminal),
        Command::Flush(command) => command.run(&settings, terminal),
        Command::Retry(command) => command.run(&settings, terminal),
        Command::Backup(command) => command.run(&settings, terminal),
        Command::Restore(command) => command.run(&settings, terminal),
        Command::Export(command) => command.run(&settings, terminal),
        Command::Rebuild(command) => command.run(&settings, terminal),
        Command::Replay(command) => command.run(&settings, terminal),
        Command::Eval(command) => command.run(&settings, terminal),
        Command::ConfigSchema(command) => command.run(&settings, terminal),
        Command::Conformance(command) => command.run(&settings, terminal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_teaches_by_example() {
        for command in Cli::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("strata "), "`strata {} --help` has no example", command.get_name());
        }
    }
}
