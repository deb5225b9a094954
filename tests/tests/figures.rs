//! Figures of the runner beside the core: imports, opening, recall, memory, size. Opt-in: they want a
//! quiet machine and the shared corpora.
//!
//! ```sh
//! cargo test --release -p strata-tests --features hosts --test figures -- --ignored --nocapture
//! ```
//! `STRATA_FIGURES_COMPONENT=FILE` measures another build of the component.
#![allow(clippy::disallowed_methods)] // It measures time.

use serde_json::Value;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;
use strata_core::contract as core;
use strata_core::disk::StdDisk;
use strata_core::engine::{Engine, Models};
use strata_host::contract::{EndEvent, Message, PromptEvent, Scope};
use strata_host::{Clock, ComponentSource, Options, Runtime, Space};

const NOW: u64 = 1_780_000_000_000;

/// Rounds of which the best counts: a shared machine is never faster than it is.
const ROUNDS: usize = 3;

fn corpora() -> Option<PathBuf> {
    let shared = env::var_os("STRATA_SHARED").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    Some(shared.join("corpora")).filter(|path| path.is_dir())
}

/// Returns the conversations of all corpora, a session an event, and some of their questions.
fn conversations(corpora: &Path) -> (Vec<EndEvent>, Vec<String>) {
    let (mut events, mut questions) = (Vec::new(), Vec::new());
    for folder in ["locomo", "beam-100k", "memdaily-zh"] {
        let mut paths: Vec<_> = fs::read_dir(corpora.join(folder)).expect("a corpus").map(|entry| entry.expect("a file").path()).collect();
        paths.sort();
        for path in paths {
            let space: Value = serde_json::from_slice(&fs::read(&path).expect("readable")).expect("JSON");
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let mut last = String::new();
            for message in space["messages"].as_array().expect("messages") {
                let text = |key: &str| message[key].as_str().map(str::to_owned);
                let session = format!("{name}/{}", message["session"].as_str().map_or_else(|| message["session"].to_string(), str::to_owned));
                if session != last {
                    events.push(EndEvent { scope: Scope { session: session.clone(), ..Scope::default() }, messages: Vec::new(), success: true, at: NOW });
                    last = session;
                }
                let message = Message {
                    id: text("id"),
                    role: text("role").unwrap_or_else(|| "user".into()),
                    speaker: text("speaker"),
                    content: text("text").unwrap_or_default(),
                    ..Message::default()
                };
                events.last_mut().expect("just made").messages.push(message);
            }
            questions.extend(space["queries"].as_array().expect("queries").iter().filter_map(|query| query["text"].as_str().map(str::to_owned)).take(5));
        }
    }
    (events, questions)
}

fn for_core(event: &EndEvent) -> core::EndEvent {
    serde_json::from_value(serde_json::to_value(event).expect("JSON")).expect("the same contract")
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[test]
#[ignore = "a measurement; wants a quiet machine and the shared corpora"]
fn the_runner_beside_the_core() {
    let Some(corpora) = corpora() else { panic!("NO SHARED CORPORA; set STRATA_SHARED") };
    let (events, questions) = conversations(&corpora);
    let total: usize = events.iter().map(|event| event.messages.len()).sum();
    println!("{total} messages in {} sessions", events.len());

    let native: Vec<core::EndEvent> = events.iter().map(for_core).collect();
    let (mut best_core, mut best_wasm) = (f64::MAX, f64::MAX);
    let runtime =
        Runtime::new(&env::var_os("STRATA_FIGURES_COMPONENT").map_or(ComponentSource::Embedded, |path| ComponentSource::File(path.into()))).expect("compiles");
    let kept = tempfile::tempdir().expect("temporary");
    for round in 0..ROUNDS {
        let directory = tempfile::tempdir().expect("temporary");
        let (mut engine, _) = Engine::open(Rc::new(StdDisk::new(directory.path())), "", Models::default(), NOW).expect("opens");
        let start = Instant::now();
        for event in &native {
            engine.agent_end(event).expect("stored");
            engine.drain();
        }
        best_core = best_core.min(start.elapsed().as_secs_f64());

        let fresh = tempfile::tempdir().expect("temporary");
        let place = if round + 1 == ROUNDS { kept.path() } else { fresh.path() };
        let space = Space::open_with(&runtime, place, Options { clock: Clock::Manual { opened_at: NOW }, ..Options::default() }).expect("opens");
        let copies = events.clone();
        let start = Instant::now();
        for event in copies {
            space.agent_end(event).expect("stored");
        }
        best_wasm = best_wasm.min(start.elapsed().as_secs_f64());
        space.close().expect("closes");
    }
    let (core_rate, wasm_rate) = (total as f64 / best_core, total as f64 / best_wasm);
    println!("import: core {core_rate:.0}/s, wasmtime {wasm_rate:.0}/s, ratio {:.2}", core_rate / wasm_rate);

    let mut opened = Vec::new();
    for _ in 0..9 {
        let start = Instant::now();
        let space = Space::open(kept.path(), Options { clock: Clock::Manual { opened_at: NOW }, ..Options::default() }).expect("opens");
        opened.push(start.elapsed().as_secs_f64() * 1000.0);
        space.close().expect("closes");
    }
    println!("open with a warm module cache, {total} messages: p50 {:.1} ms", median(opened));

    let space = Space::open_with(&runtime, kept.path(), Options { clock: Clock::Manual { opened_at: NOW }, ..Options::default() }).expect("opens");
    let mut times = Vec::new();
    for question in &questions {
        let event = PromptEvent { prompt: question.clone(), at: NOW, ..PromptEvent::default() };
        let start = Instant::now();
        space.before_prompt_build(event).expect("answers");
        times.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    println!("recall over {total} messages: p50 {:.2} ms of {} questions", median(times), questions.len());
    println!("peak memory of the guest: {:.1} MiB", space.peak_memory().expect("known") as f64 / f64::from(1 << 20));
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    println!("of this process (core and corpora included): {}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("unknown"));
}
