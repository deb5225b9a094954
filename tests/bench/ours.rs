//! Strata's side of `make bench`: what the script asks for, measured through the runner, one JSON line each.
//!
//! ```text
//! strata-bench build DIR LAYER DOCUMENTS COUNT   a space of the first COUNT documents, in one import a slice
//! strata-bench ask DIR LAYER STRATEGY QUERIES    the space opened anew, and each query, timed
//! strata-bench found DIR LAYER STRATEGY QUERIES  the texts that each query finds
//! strata-bench turns DIR COUNT                   turns of two messages, each acknowledged and searched for
//! strata-bench embed DOCUMENTS COUNT FILE        the built-in vectors of documents, as f32, for the peers
//! ```
//!
//! Documents are JSON Lines of `{session, role, text}`, queries a JSON list of texts. Times are in milliseconds and
//! those of a caller: the space's thread, the contract's conversions and the rows that are read are in them; `cpu-ms` is
//! what the process computed.
#![allow(clippy::disallowed_methods)] // It measures time.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Instant;
use strata_host::contract::{EndEvent, Message, PromptEvent, Scope, SearchRequest};
use strata_host::{Clock, ComponentSource, Options, Runtime, Space};

/// When everything is said.
const NOW: u64 = 1_780_000_000_000;

/// Later than anything here, in seconds.
const NEVER_S: u64 = 1_000_000_000;

/// Milliseconds between two documents.
const STEP_MS: u64 = 60_000;

/// Documents of one import call, so that its records stay below the contract's 256 MB.
const A_CALL: usize = 20_000;

/// Results of a query.
const RESULTS: u32 = 10;

/// Queries before the clock counts: what a running host has in memory.
const WARM_UP: usize = 20;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let answer = match arguments[..] {
        ["build", directory, layer, documents, count] => build(Path::new(directory), layer, Path::new(documents), count.parse()?)?,
        ["ask", directory, layer, strategy, queries] => ask(Path::new(directory), layer, strategy, Path::new(queries))?,
        ["found", directory, layer, strategy, queries] => found(Path::new(directory), layer, strategy, Path::new(queries))?,
        ["embed", documents, count, file] => embed(Path::new(documents), count.parse()?, Path::new(file))?,
        ["turns", directory, count] => turns(Path::new(directory), count.parse()?)?,
        _ => bail!("build DIR LAYER DOCUMENTS COUNT | ask DIR LAYER STRATEGY QUERIES | turns DIR COUNT | embed DOCUMENTS COUNT FILE"),
    };
    println!("{answer}");
    Ok(())
}

/// Returns the component that is built in, or the one that STRATA_COMPONENT names: two builds are compared without building
/// the host twice.
fn runtime() -> Result<Runtime> {
    let source = std::env::var_os("STRATA_COMPONENT").map_or(ComponentSource::Embedded, |path| ComponentSource::File(path.into()));
    Runtime::new(&source)
}

fn open(runtime: &Runtime, directory: &Path) -> Result<Space> {
    // Only search and its index are measured here: nothing is distilled, and no scene falls due.
    let settings = json!({"extraction": {"enabled": false}, "pipeline": {"l2DelayAfterL1Seconds": NEVER_S, "l2MaxIntervalSeconds": NEVER_S}});
    let settings = settings.as_object().cloned().context("an object")?;
    let options = Options { settings, clock: Clock::Manual { opened_at: NOW }, ..Options::default() };
    Ok(Space::open_with(runtime, directory, options)?)
}

fn ms(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1000.0
}

/// Returns the milliseconds that this process has computed, all threads together: on a shared machine it is what a clock
/// would show on a quiet one. Where there is no /proc it is the clock.
fn cpu_ms(begun: Instant) -> f64 {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let computed: f64 = tasks
        .filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok())
        .filter_map(|line| line.split(' ').next().and_then(|nanoseconds| nanoseconds.parse::<f64>().ok()))
        .sum();
    if computed > 0.0 { computed / 1e6 } else { ms(begun) }
}

/// Lets the background do what is due.
fn settle(space: &Space) -> Result<()> {
    while space.tick(NOW)?.is_some_and(|next| next <= NOW) {}
    Ok(())
}

fn build(directory: &Path, layer: &str, documents: &Path, count: usize) -> Result<Value> {
    let mut records = Vec::new();
    for (place, line) in BufReader::new(File::open(documents)?).lines().take(count).enumerate() {
        let document: Value = serde_json::from_str(&line?)?;
        let at = NOW - (count - place) as u64 * STEP_MS;
        let record = match layer {
            "atoms" => json!({"record": "atom", "id": place.to_string(), "session": document["session"], "kind": "episodic", "text": document["text"],
                              "origin": "user", "created-at": at}),
            _ => json!({"record": "message", "id": place.to_string(), "session": document["session"], "role": document["role"], "text": document["text"],
                        "said-at": at}),
        };
        records.push(record.to_string());
    }
    let calls: Vec<String> = records.chunks(A_CALL).map(|call| call.join("\n")).collect();
    fs::create_dir_all(directory)?;
    let space = open(&runtime()?, directory)?;
    let begun = Instant::now();
    let before = cpu_ms(begun);
    for call in calls {
        space.import(Scope::default(), call, false, NOW)?;
    }
    settle(&space)?;
    let (settled_ms, cpu_ms) = (ms(begun), cpu_ms(begun) - before);
    space.close()?;
    Ok(json!({"documents": records.len(), "settled-ms": settled_ms, "cpu-ms": cpu_ms}))
}

fn request(layer: &str, strategy: &str, query: &str) -> SearchRequest {
    SearchRequest { query: query.into(), layer: layer.into(), strategy: strategy.into(), limit: RESULTS, at: NOW, ..SearchRequest::default() }
}

fn found(directory: &Path, layer: &str, strategy: &str, queries: &Path) -> Result<Value> {
    let queries: Vec<String> = serde_json::from_slice(&fs::read(queries)?)?;
    let space = open(&runtime()?, directory)?;
    let mut found = Vec::new();
    for query in &queries {
        let answer: Value = serde_json::from_str(&space.search(request(layer, strategy, query))?)?;
        found.push(answer["results"].as_array().into_iter().flatten().map(|result| result["text"].clone()).collect::<Vec<_>>());
    }
    space.abandon()?;
    Ok(json!({"found": found}))
}

fn ask(directory: &Path, layer: &str, strategy: &str, queries: &Path) -> Result<Value> {
    let queries: Vec<String> = serde_json::from_slice(&fs::read(queries)?)?;
    let first = queries.first().context("no queries")?;
    let runtime = runtime()?;
    let begun = Instant::now();
    let before = cpu_ms(begun);
    let space = open(&runtime, directory)?;
    let open_ms = cpu_ms(begun) - before;
    let request = |query: &str| request(layer, strategy, query);
    let answer = space.search(request(first))?;
    let (first_ms, first_cpu_ms) = (ms(begun), cpu_ms(begun) - before);
    let first_found = serde_json::from_str::<Value>(&answer)?["results"].as_array().map_or(0, Vec::len);
    for query in queries.iter().take(WARM_UP) {
        space.search(request(query))?;
    }
    let (mut times, mut cpu) = (Vec::new(), Vec::new());
    for query in &queries {
        let (before, called) = (cpu_ms(begun), Instant::now());
        space.search(request(query))?;
        times.push(ms(called));
        cpu.push(cpu_ms(begun) - before);
    }
    let mut prompts = Vec::new();
    for query in queries.iter().filter(|_| layer == "atoms" && strategy == "hybrid") {
        let before = cpu_ms(begun);
        space.before_prompt_build(PromptEvent { prompt: query.clone(), at: NOW, ..PromptEvent::default() })?;
        prompts.push(cpu_ms(begun) - before);
    }
    let (resident, peak) = resident_mb();
    let guest_mb = space.peak_memory()? as f64 / 1e6;
    space.abandon()?;
    Ok(json!({"open-ms": open_ms, "open-to-first-ms": first_ms, "open-to-first-cpu-ms": first_cpu_ms, "first-found": first_found,
              "times-ms": times, "cpu-ms": cpu, "prompt-ms": prompts,
              "resident-mb": resident, "peak-resident-mb": peak, "guest-mb": guest_mb}))
}

/// Writes the built-in vectors of the first documents; a list of texts is one too.
fn embed(documents: &Path, count: usize, file: &Path) -> Result<Value> {
    let embedder = strata_core::embed::Embedder::new();
    let mut bytes = Vec::new();
    let mut embedded = 0;
    for line in BufReader::new(File::open(documents)?).lines().take(count) {
        let document: Value = serde_json::from_str(&line?)?;
        let vector = embedder.embed(document["text"].as_str().context("a document has a text")?);
        bytes.extend(vector.iter().flat_map(|value| value.to_le_bytes()));
        embedded += 1;
    }
    fs::write(file, bytes)?;
    Ok(json!({"documents": embedded, "dimensions": strata_core::embed::DIMENSIONS}))
}

/// Returns resident memory of this process, now and at its peak; zeros where there is no /proc.
fn resident_mb() -> (f64, f64) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let figure = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().next().and_then(|kilobytes| kilobytes.parse::<f64>().ok()).unwrap_or(0.0) / 1000.0
    };
    (figure("VmRSS:"), figure("VmHWM:"))
}

/// A turn: a question and its answer, stored durably; then each is looked for.
fn turns(directory: &Path, count: usize) -> Result<Value> {
    let space = open(&runtime()?, directory)?;
    let (mut times, mut cpu, mut found) = (Vec::new(), Vec::new(), 0);
    for turn in 0..count {
        let word = format!("w{turn}x");
        let said = |role: &str, content: String| Message { role: role.into(), content, ..Message::default() };
        let event = EndEvent {
            scope: Scope { session: format!("turns-{}", turn / 20), ..Scope::default() },
            messages: vec![
                said("user", format!("Please remember that the ticket of errand {word} is due on Friday, and that the shop closes early.")),
                said("assistant", format!("Noted: {word} is due on Friday, and I will remind you before the shop closes.")),
            ],
            success: true,
            at: NOW + turn as u64 * 1000,
        };
        let called = Instant::now();
        let before = cpu_ms(called);
        space.agent_end(event)?;
        times.push(ms(called));
        cpu.push(cpu_ms(called) - before);
        let request = SearchRequest { query: word, layer: "messages".into(), strategy: "keyword".into(), limit: 2, at: NOW, ..SearchRequest::default() };
        found += serde_json::from_str::<Value>(&space.search(request)?)?["results"].as_array().map_or(0, Vec::len);
        settle(&space)?;
    }
    space.close()?;
    Ok(json!({"turns": count, "found": found, "times-ms": times, "cpu-ms": cpu}))
}
