//! `strata eval`: how well recall finds marked evidence, measured on conversations with questions.
//!
//! Each space of the folder goes into a memory of its own in a temporary directory, through the ordinary import, and
//! each question through the ordinary search. A question's recall@k is the share of its gold messages among the first k.

mod injection;
mod measure;
mod space_file;

use crate::cli::exit::Exit;
use crate::cli::options::Settings;
use crate::cli::terminal::Terminal;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use injection::Injections;
use measure::{Asked, Report};
use serde_json::{Map, Value, json};
use space_file::SpaceFile;
use std::path::{Path, PathBuf};
use std::time::Instant;
use strata_host::contract::{Scope, SearchRequest};
use strata_host::{Clock, ComponentSource, Options, Runtime, Space};

/// Records of one import call (the contract's limit).
const RECORDS_A_CALL: usize = 1000;

/// Results of a search: the largest k.
const RESULTS: u32 = 20;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  strata eval corpora/locomo                    one folder of spaces
  strata eval corpora --json                    every folder in it, as one document
  strata eval corpora/locomo --strategy keyword
  strata eval corpora/locomo --injection --unrelated prompts.txt   what enters prompts

A space is a JSON file: {space, messages: [{id, session, time, speaker, role, text}],
queries: [{category, text, gold: [message ids]}]}.")]
pub(crate) struct Eval {
    /// Folder of spaces, or of folders of spaces
    directory: PathBuf,
    /// By words, by meaning, or by everything
    #[arg(long, value_enum, default_value_t = Strategy::Hybrid)]
    strategy: Strategy,
    /// Search the messages, or the same texts as atoms
    #[arg(long, value_enum, default_value_t = Layer::Messages)]
    layer: Layer,
    /// Measure what enters prompts instead: whether the evidence does, and at what cost
    #[arg(long)]
    injection: bool,
    /// With --injection: prompts that have nothing to do with any space, one a line
    #[arg(long, value_name = "FILE", requires = "injection")]
    unrelated: Option<PathBuf>,
    /// With --injection: recalled atoms only, no messages of other sessions
    #[arg(long, requires = "injection")]
    no_messages: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Strategy {
    Keyword,
    Vector,
    Hybrid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Layer {
    Messages,
    Atoms,
}

impl Strategy {
    fn name(self) -> &'static str {
        match self {
            Self::Keyword => "keyword",
            Self::Vector => "vector",
            Self::Hybrid => "hybrid",
        }
    }
}

impl Layer {
    fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Atoms => "atoms",
        }
    }
}

impl Eval {
    pub(crate) fn run(&self, _settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        let folders = folders(&self.directory)?;
        let runtime = Runtime::new(&ComponentSource::Embedded)?;
        if self.injection {
            return self.injections(&runtime, &folders, terminal);
        }
        let mut all = Report::default();
        let mut corpora = Map::new();
        for (name, files) in &folders {
            let mut report = Report::default();
            for file in files {
                let space = SpaceFile::read(file)?;
                self.measure(&runtime, &space, &mut report).with_context(|| file.display().to_string())?;
            }
            if !terminal.json {
                print(terminal, name, &report);
            }
            if folders.len() > 1 {
                corpora.insert(name.clone(), report.document());
            }
            all.add(report);
        }
        if terminal.json {
            let mut document = all.document();
            document["strategy"] = json!(self.strategy.name());
            document["layer"] = json!(self.layer.name());
            document["engine"] = json!(env!("CARGO_PKG_VERSION"));
            if !corpora.is_empty() {
                document["corpora"] = Value::Object(corpora);
            }
            terminal.document(&document);
        }
        Ok(Exit::Done)
    }

    fn injections(&self, runtime: &Runtime, folders: &[(String, Vec<PathBuf>)], terminal: &Terminal) -> Result<Exit> {
        let unrelated: Vec<String> = match &self.unrelated {
            Some(path) => std::fs::read_to_string(path).with_context(|| path.display().to_string())?.lines().map(str::to_owned).collect(),
            None => Vec::new(),
        };
        let mut all = Injections::default();
        let mut corpora = Map::new();
        for (name, files) in folders {
            let mut injections = Injections::default();
            for path in files {
                let file = SpaceFile::read(path)?;
                let (space, _directory) = self.filled(runtime, &file, &mut Report::default()).with_context(|| path.display().to_string())?;
                space.flush(file.last_time())?;
                while space.tick(file.last_time())?.is_some_and(|next| next <= file.last_time()) {}
                injections.measure(&space, &file, &unrelated, file.last_time())?;
                space.close()?;
            }
            if !terminal.json {
                terminal.heading(name);
                for (key, value) in injections.document().as_object().into_iter().flatten() {
                    terminal.line(format!("  {key:<26} {value}"));
                }
            }
            corpora.insert(name.clone(), injections.document());
            all.add(&injections);
        }
        if terminal.json {
            let mut document = all.document();
            document["corpora"] = Value::Object(corpora);
            terminal.document(&document);
        }
        Ok(Exit::Done)
    }

    /// Returns a space that holds a file's messages, and the directory that it is in.
    fn filled(&self, runtime: &Runtime, file: &SpaceFile, report: &mut Report) -> Result<(Space, tempfile::TempDir)> {
        let directory = tempfile::tempdir().context("a temporary directory")?;
        let at = file.last_time();
        let mut options = Options { clock: Clock::Manual { opened_at: at }, ..Options::default() };
        if self.no_messages {
            options.settings.insert("recall".into(), json!({"maxMessages": 0}));
        }
        let space = Space::open_with(runtime, directory.path(), options)?;
        report.spaces += 1;
        for lines in file.records(self.layer == Layer::Atoms).chunks(RECORDS_A_CALL) {
            let answer: Value = serde_json::from_str(&space.import(Scope::default(), lines.join("\n"), false, at)?)?;
            for reason in answer
                .pointer(&format!("/{}/dropped", if self.layer == Layer::Atoms { "atom" } else { "message" }))
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                report.dropped += reason.1.as_u64().unwrap_or(0);
            }
        }
        // What a host's ticks do in the background: segments of the index.
        while space.tick(at)?.is_some_and(|next| next <= at) {}
        Ok((space, directory))
    }

    fn measure(&self, runtime: &Runtime, file: &SpaceFile, report: &mut Report) -> Result<()> {
        let (space, _directory) = self.filled(runtime, file, report)?;
        let at = file.last_time();
        for query in &file.queries {
            let ask = |strategy: &str| -> Result<(Vec<String>, u64)> {
                let request = SearchRequest {
                    scope: Scope::default(),
                    query: query.text.clone(),
                    layer: self.layer.name().into(),
                    strategy: strategy.into(),
                    limit: RESULTS,
                    query_vector: None,
                    believed_at: None,
                    true_at: None,
                    at,
                };
                let begun = Instant::now();
                let answer = space.search(request)?;
                let took_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
                Ok((file.ids(&serde_json::from_str(&answer)?), took_us))
            };
            let (found, took_us) = ask(self.strategy.name())?;
            let (control, _) = ask("keyword")?;
            report.asked.push(Asked::new(&query.category, &query.gold, &found, &control, took_us));
        }
        space.close()?;
        Ok(())
    }
}

/// Returns the folders that hold spaces, and their files in order.
fn folders(directory: &Path) -> Result<Vec<(String, Vec<PathBuf>)>> {
    let name = |path: &Path| path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let here = spaces_in(directory)?;
    if !here.is_empty() {
        return Ok(vec![(name(directory), here)]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            let spaces = spaces_in(&path)?;
            if !spaces.is_empty() {
                found.push((name(&path), spaces));
            }
        }
    }
    found.sort();
    if found.is_empty() {
        bail!("there is no space in {}: a space is a JSON file with messages and queries", directory.display());
    }
    Ok(found)
}

fn spaces_in(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        if path.is_file() && path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn print(terminal: &Terminal, name: &str, report: &Report) {
    let document = report.document();
    let percent = |document: &Value, key: &str| format!("{:5.1}", 100.0 * document[key].as_f64().unwrap_or(0.0));
    let row = |label: &str, document: &Value| {
        let between = document["interval"]
            .as_array()
            .map_or_else(String::new, |ends| format!("[{:.1}, {:.1}]", 100.0 * ends[0].as_f64().unwrap_or(0.0), 100.0 * ends[1].as_f64().unwrap_or(0.0)));
        terminal.line(format!(
            "  {label:<26} {:>5}  {}  {} {between:<14}  {}  {}  {}",
            document["queries"],
            percent(document, "recall@5"),
            percent(document, "recall@10"),
            percent(document, "recall@20"),
            percent(document, "hit@10"),
            percent(document, "mrr")
        ));
    };
    terminal.heading(&format!(
        "{name}: {} spaces, p50 {} us, p95 {} us a search",
        document["spaces"], document["latency-us"]["p50"], document["latency-us"]["p95"]
    ));
    terminal.line("                             asked    @5    @10                    @20   hit@10   MRR");
    row("all", &document);
    row("  BM25 control", &document["control"]);
    for (category, document) in document["categories"].as_object().into_iter().flatten() {
        row(category, document);
        row("  BM25 control", &document["control"]);
    }
}
