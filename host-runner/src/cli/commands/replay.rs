//! `strata replay`: a recorded agent session through short-term memory.

use crate::cli::exit::Exit;
use crate::cli::options::Settings;
use crate::cli::terminal::Terminal;
use crate::replay::page::{grouped, page};
use crate::replay::{Report, recording, replay};
use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use strata_host::contract::Scope;
use strata_host::{Clock, Options, Space};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  strata replay session.json.xz                     tokens a turn, before and after, and the canvas
  strata replay session.jsonl --window 64000        in a smaller window
  strata replay session.json --json | jq .tokens_after
  strata replay session.json --html page.html       a page with the canvas and a token chart

Reads {messages: [...]} and [...] with OpenAI, Anthropic or OpenClaw messages, and the JSON lines of OpenClaw,
Claude Code and Codex; each may be compressed as .xz. Nothing is kept unless --data names a directory.")]
pub(crate) struct Replay {
    /// The recorded session
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The model's context window, in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 200_000)]
    window: u32,
    /// Also write a page with the canvas and a token chart
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Replay {
    pub(crate) fn run(&self, settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        let messages = recording::read(&self.file)?;
        let scratch = tempfile::tempdir().context("cannot make a temporary directory")?;
        let directory = if settings.data_named { settings.data.as_path() } else { scratch.path() };
        let clock = Clock::Manual { opened_at: strata_host::now() };
        let space = Space::open(directory, Options { settings: settings.config.settings.clone(), clock, ..Options::default() })?;
        let name = self.file.file_stem().map_or("replay".into(), |stem| stem.to_string_lossy().into_owned());
        let session = if settings.scope.session.is_empty() { name.clone() } else { settings.scope.session.clone() };
        let scope = Scope { session, ..settings.scope.clone() };
        let bar = terminal.bar(messages.len() as u64, "  {bar:30} {pos}/{len} messages");
        let report = replay(&space, &scope, &messages, self.window, &mut |at| bar.set_position(at as u64))?;
        bar.finish_and_clear();
        space.close()?;
        if let Some(path) = &self.html {
            std::fs::write(path, page(&name, &report)).with_context(|| format!("cannot write {}", path.display()))?;
        }
        if terminal.json {
            let mut document = report.document();
            document["file"] = json!(self.file.display().to_string());
            terminal.document(&document);
        } else {
            print(&report, terminal);
        }
        let all_back = report.offloaded.iter().all(|text| text.exact);
        Ok(if all_back { Exit::Done } else { Exit::Failed })
    }
}

fn print(report: &Report, terminal: &Terminal) {
    terminal.heading("turns");
    for (at, turn) in report.turns.iter().enumerate() {
        let over = if turn.reason.is_empty() { String::new() } else { format!("  over: {}", turn.reason) };
        terminal.line(format!("{:>5}  {:>9} -> {:>9}  {}{over}", at + 1, grouped(turn.before), grouped(turn.after), turn.mode));
    }
    for canvas in &report.canvases {
        terminal.heading("canvas");
        terminal.quoted(canvas.mermaid.trim_end());
    }
    terminal.heading("offloaded");
    for text in &report.offloaded {
        terminal.line(format!("  {}  {:>9} bytes  {}  {}", text.path, grouped(text.bytes as u64), if text.exact { "exact" } else { "LOST" }, text.tool));
    }
    terminal.heading("sum");
    let percent = |of: u64| if of == 0 { 0.0 } else { 100.0 * (1.0 - report.after() as f64 / of as f64) };
    terminal.field("turns", report.turns.len().to_string());
    terminal.field("tokens before", format!("{} ({} cut to the window)", grouped(report.before()), grouped(report.before_capped())));
    terminal.field(
        "tokens after",
        format!("{} (-{:.1} %, -{:.1} % of the cut)", grouped(report.after()), percent(report.before()), percent(report.before_capped())),
    );
    terminal.field("recovered", format!("{:.2} % of {} results' bytes", report.recovered() * 100.0, report.offloaded.len()));
    terminal.field("prefix kept", format!("{:.1} % (median)", report.prefix_median() * 100.0));
}
