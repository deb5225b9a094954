//! `strata import`: conversations and memories of other systems.

mod delivery;

use crate::cli::exit::{Exit, Usage};
use crate::cli::open;
use crate::cli::options::Settings;
use crate::cli::terminal::{Terminal, counted};
use crate::import::{Format, Source, detect, openclaw, tdai};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use delivery::Delivery;
use indicatif::ProgressBar;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Problems that are printed for people; `--json` has all.
const MAX_SHOWN: usize = 20;

/// Folders inside folders that are followed.
const MAX_DEPTH: usize = 16;

const EXTENSIONS: [&str; 5] = ["jsonl", "json", "md", "markdown", "txt"];

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  strata import conversations.json                     a ChatGPT or Claude export
  strata import ~/.openclaw/agents/main/sessions       a folder of OpenClaw transcripts
  strata import ~/.claude/projects --no-distill        store now, distill later with `strata flush`
  strata import notes.md --format markdown
  strata import --from tdai ~/.openclaw/memory-tdai --dry-run
  strata import MEMORY.md USER.md

Importing the same file again adds nothing. A line that cannot be read is reported as FILE:LINE and skipped; nothing else
is skipped. It may be interrupted at any time and repeated.

Exit code 6 says that some input could not be read; everything else was taken.")]
pub(crate) struct Import {
    /// Files or folders
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// What the files hold [default: auto]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// The path is a data directory of another memory system
    #[arg(long, value_enum, conflicts_with = "format")]
    from: Option<System>,
    /// Read everything, change nothing, and report what would come
    #[arg(long)]
    dry_run: bool,
    /// Store the messages and leave distilling to a later `strata flush`
    #[arg(long)]
    no_distill: bool,
    /// Messages a durable step: more are faster, fewer leave less to repeat after a crash
    #[arg(long, value_name = "N", default_value_t = delivery::MAX_MESSAGES, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch: u32,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum System {
    /// TencentDB Agent Memory, v1 and v3
    Tdai,
}

impl Import {
    pub(crate) fn run(&self, settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        let files = self.files()?;
        let mut settings = settings.clone();
        // A dry run must not even make the directory.
        let scratch = if self.dry_run && !settings.has_space() { Some(tempfile::tempdir()?) } else { None };
        if let Some(scratch) = &scratch {
            settings.data = scratch.path().to_owned();
        }
        let space = if self.dry_run || self.no_distill { open::quiet(&settings)? } else { open::work(&settings)? };
        let started = Instant::now();
        let mut delivery = Delivery::new(&space, &settings.scope, self.dry_run, self.batch);
        let mut reports = Vec::new();
        let total = files.iter().filter_map(|file| std::fs::metadata(file).ok()).map(|metadata| metadata.len()).sum();
        let bar = terminal.bar(total, "  {msg} {bar:30} {bytes}/{total_bytes} {eta}");
        for file in &files {
            reports.push(self.read(file, &settings, &mut delivery, &bar)?);
        }
        delivery.flush()?;
        bar.finish_and_clear();
        let seconds = started.elapsed().as_secs_f64();
        if !self.dry_run && !self.no_distill {
            open::finish(&space, &settings, terminal)?;
        }
        let report = delivery.report(reports, seconds, &space)?;
        let failures = if self.dry_run { Exit::Done } else { open::warn_of_failures(&space, terminal)? };
        space.close()?;
        Ok(print(&report, self.dry_run, failures, terminal))
    }

    /// Reads one file or directory.
    fn read(&self, path: &Path, settings: &Settings, delivery: &mut Delivery<'_>, bar: &ProgressBar) -> Result<Value> {
        bar.set_message(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
        if let Some(System::Tdai) = self.from {
            let report = tdai::read_dir(path, &settings.zone, delivery)?;
            return Ok(json!({"file": path.display().to_string(), "format": "tdai", "carried": report.carried, "left-behind": report.left_behind}));
        }
        let mut source = Source::open(path, settings.zone.clone())?;
        let format = match self.format {
            Some(format) => format,
            None => match detect::detect(path, &source.head()?) {
                Ok(format) => format,
                Err(reason) => {
                    delivery.unknown(path, &reason);
                    bar.inc(std::fs::metadata(path).map_or(0, |metadata| metadata.len()));
                    return Ok(json!({"file": path.display().to_string(), "format": null}));
                }
            },
        };
        if format == Format::OpenClaw {
            match openclaw::session_keys(path, &settings.data) {
                Ok(keys) => source.session_keys = keys,
                Err(error) => delivery.unknown(path, &format!("sessions keep their ids as names: {error:#}")),
            }
        }
        let before = delivery.read();
        delivery.watch(bar, &source);
        crate::import::read(format, &mut source, delivery)?;
        delivery.unwatch();
        let name = format.to_possible_value().map(|value| value.get_name().to_owned());
        Ok(json!({"file": path.display().to_string(), "format": name, "messages": delivery.read() - before}))
    }

    /// Returns the files to read: those named, and in folders those that may hold conversations, in the order of names.
    fn files(&self) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for path in &self.paths {
            let metadata = std::fs::metadata(path).map_err(|error| Usage(format!("cannot read {}: {error}", path.display())))?;
            if metadata.is_file() || self.from.is_some() {
                files.push(path.clone());
                continue;
            }
            if ["vectors.db", "scene_blocks"].iter().any(|name| path.join(name).exists()) {
                let advice = "looks like a data directory of TencentDB Agent Memory; import it with --from tdai";
                return Err(Usage(format!("{} {advice}", path.display())).into());
            }
            let before = files.len();
            walk(path, 0, &mut files)?;
            if files.len() == before {
                return Err(Usage(format!("{} has no file that ends in {}", path.display(), EXTENSIONS.map(|end| format!(".{end}")).join(", "))).into());
            }
        }
        Ok(files)
    }
}

fn walk(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<()> {
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read the folder {}", folder.display()))? {
        entries.push(entry?.path());
    }
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // OpenClaw's index of sessions lies beside the transcripts.
        if name.starts_with('.') || name == "sessions.json" {
            continue;
        }
        if path.is_dir() {
            // Links to folders are not followed: a circle of them has no end.
            if depth < MAX_DEPTH && !path.is_symlink() {
                walk(&path, depth + 1, files)?;
            }
        } else if path.extension().is_some_and(|end| EXTENSIONS.contains(&end.to_string_lossy().to_lowercase().as_str())) {
            files.push(path);
        }
    }
    Ok(())
}

/// Prints the report and returns how the command ended.
fn print(report: &Value, dry_run: bool, failures: Exit, terminal: &Terminal) -> Exit {
    let number = |member: &str| report.get(member).and_then(Value::as_u64).unwrap_or(0);
    let problems = report["problems"].as_array().map_or(&[][..], Vec::as_slice);
    if terminal.json {
        terminal.document(report);
    } else {
        let verb = if dry_run { "would come" } else { "new" };
        if number("read") > 0 {
            let known = if number("known") > 0 { format!(", {} known already", number("known")) } else { String::new() };
            let kept = if dry_run { number("read") } else { number("stored") };
            terminal.line(format!("{} {verb}{known}, in {}", counted(kept, "message"), counted(number("sessions"), "session")));
        }
        if let Some(records) = report.get("records").filter(|records| !records.is_null()) {
            print_records(records, verb, terminal);
        }
        for file in report["files"].as_array().into_iter().flatten() {
            for left in file["left-behind"].as_array().into_iter().flatten() {
                let text = |member: &str| left[member].as_str().unwrap_or_default().to_owned();
                terminal.line(format!("  left behind: {} × {} ({})", left["count"], text("what"), text("why")));
            }
        }
        for (reasons, title) in [(&report["dropped"], "not kept"), (&report["aside"], "not messages")] {
            for (reason, count) in reasons.as_object().into_iter().flatten() {
                terminal.note(format!("  {title}: {count} × {reason}"));
            }
        }
        for problem in problems.iter().take(MAX_SHOWN) {
            terminal.warn(format!("{}:{}: {}", problem["file"].as_str().unwrap_or_default(), problem["line"], problem["reason"].as_str().unwrap_or_default()));
        }
        if problems.len() > MAX_SHOWN {
            terminal.warn(format!("and {} more; --json lists all", problems.len() - MAX_SHOWN));
        }
        if !dry_run && number("read") > 0 {
            let rate = report["messages-per-second"].as_f64().unwrap_or(0.0);
            terminal.note(format!("{:.2} s, {rate:.0} messages a second", report["seconds"].as_f64().unwrap_or(0.0)));
            terminal.note(format!("{} now; `strata recall \"…\"` shows what a prompt would get", counted(number("atoms"), "memory")));
        }
    }
    let nothing_taken = number("read") == 0 && report.get("records").is_none_or(Value::is_null);
    match (failures, problems.is_empty()) {
        (Exit::Done, true) => Exit::Done,
        (Exit::Done, false) if nothing_taken => Exit::Failed,
        (Exit::Done, false) => Exit::Partly,
        (failed, _) => failed,
    }
}

/// Prints what became of records: a line a kind.
fn print_records(records: &Value, verb: &str, terminal: &Terminal) {
    for (kind, one) in [("message", "message"), ("atom", "memory"), ("scene", "scene"), ("persona", "persona"), ("vector", "vector"), ("request", "model call")]
    {
        let count = |member: &str| records.pointer(&format!("/{kind}/{member}")).and_then(Value::as_u64).unwrap_or(0);
        let mut words = Vec::new();
        for (member, word) in [("known", "known already"), ("conflict", "in conflict with newer ones here"), ("ignored", "not used")] {
            words.extend((count(member) > 0).then(|| format!("{} {word}", count(member))));
        }
        for (reason, dropped) in records.pointer(&format!("/{kind}/dropped")).and_then(Value::as_object).into_iter().flatten() {
            words.push(format!("{dropped} not kept: {reason}"));
        }
        if count("added") > 0 || !words.is_empty() {
            words.insert(0, format!("{} {verb}", counted(count("added"), one)));
            terminal.line(words.join(", "));
        }
    }
    let unresolved = records.get("unresolved").and_then(Value::as_u64).unwrap_or(0);
    if unresolved > 0 {
        terminal.warn(format!("{} to what is not there", counted(unresolved, "reference")));
    }
}
