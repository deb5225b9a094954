//! Real recorded sessions through short-term memory: what a model reads, what stays in sight, what comes back.
//!
//! The recordings are not part of the repository. `STRATA_SHARED` names the folder that holds `sessions/` with `*.json`
//! or `*.json.xz` of OpenAI chat messages; without it the test says so and measures nothing. `STRATA_RECORDING` picks
//! those whose name contains it, `STRATA_LISTS` names a folder for the last list of each, to be looked at.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use strata_core::contract::{AssembleRequest, PromptEvent, Scope, ToolEvent};
use strata_core::disk::{Disk, SimDisk};
use strata_core::engine::{Engine, Models};
use strata_core::offload::message_shape::{Role, view};
use strata_tests::random_lists::Dice;
use strata_tests::seeker::{Output, Seeker, Way, fact, readable, spoken, strings};

const START: u64 = 1_780_000_000_000;
const WINDOWS: [u32; 2] = [200_000, 64_000];
/// Facts drawn of one session.
const FACTS: usize = 50;
const SEED: u64 = 20_261_130;
/// Share of a session's facts that must be in context or within two calls.
const REACHABLE: f64 = 0.98;
/// Share of all facts that must be found without knowing them.
const FOUND_UNKNOWN: f64 = 0.95;
/// Sessions with more characters of tool output than this make the median of what is saved.
const LARGE_CHARS: usize = 100_000;
/// Tokens that a large session must save, at the median.
const SAVED: f64 = 0.6;
/// Share of the previous list's bytes that must stay in front, at the median.
const PREFIX_KEPT: f64 = 0.9;

fn scope() -> Scope {
    Scope { session: "recorded".into(), ..Scope::default() }
}

fn recordings() -> Vec<PathBuf> {
    let shared = std::env::var_os("STRATA_SHARED").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let mut files: Vec<PathBuf> = std::fs::read_dir(shared.join("sessions"))
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.to_string_lossy().ends_with(".json") || path.to_string_lossy().ends_with(".json.xz"))
        .collect();
    files.sort();
    files
}

fn messages(path: &Path) -> Vec<Value> {
    let bytes = std::fs::read(path).expect("a recording can be read");
    let text = if path.extension().is_some_and(|extension| extension == "xz") {
        let mut text = Vec::new();
        lzma_rs::xz_decompress(&mut bytes.as_slice(), &mut text).expect("a whole .xz file");
        text
    } else {
        bytes
    };
    let mut document: Value = serde_json::from_slice(&text).expect("a recording is JSON");
    serde_json::from_value(document["messages"].take()).expect("a list of messages")
}

#[derive(Default)]
struct Measured {
    turns: u64,
    output_chars: usize,
    before: u64,
    /// The same where a list that exceeds the window counts as the window.
    before_cut: u64,
    after: u64,
    /// Turns whose list got larger.
    larger: u64,
    /// Turns over the window without a reason.
    over: u64,
    used: u64,
    used_in_sight: u64,
    prefixes: Vec<f64>,
    bytes: usize,
    bytes_exact: usize,
    facts: BTreeMap<Way, usize>,
}

impl Measured {
    fn saved(&self) -> f64 {
        1.0 - self.after as f64 / self.before.max(1) as f64
    }

    fn drawn(&self) -> usize {
        self.facts.values().sum()
    }

    fn found(&self, ways: &[Way]) -> usize {
        ways.iter().filter_map(|way| self.facts.get(way)).sum()
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(1.0)
}

fn measure(name: &str, messages: &[Value], window: u32) -> Measured {
    let disk: Rc<dyn Disk> = Rc::new(SimDisk::new());
    let (mut engine, _) = Engine::open(disk, r#"{"holder": {"id": "recordings"}}"#, Models::default(), START).expect("opens");
    let mut found = Measured::default();
    let mut calls: BTreeMap<String, (String, String)> = BTreeMap::new();
    let mut outputs: Vec<Output> = Vec::new();
    let mut seen_before: BTreeSet<String> = BTreeSet::new();
    let mut list = String::from("[");
    let mut last = String::new();
    for (at, message) in messages.iter().enumerate() {
        let now = START + at as u64 * 1_000;
        let seen = view(message);
        if seen.role == Role::Assistant && at > 0 {
            let request = AssembleRequest { scope: scope(), messages_json: format!("{list}]"), window_tokens: window, at: now, ..AssembleRequest::default() };
            let reduced = engine.assemble(&request).expect("a reduced list");
            found.turns += 1;
            found.before += u64::from(reduced.tokens_before);
            found.before_cut += u64::from(reduced.tokens_before.min(window));
            found.after += u64::from(reduced.tokens_after);
            found.larger += u64::from(reduced.tokens_after > reduced.tokens_before);
            found.over += u64::from(reduced.tokens_after > window && reduced.reason.is_empty());
            if !last.is_empty() {
                let previous = last.trim_end_matches(']').as_bytes();
                let same = previous.iter().zip(reduced.messages_json.as_bytes()).take_while(|(a, b)| a == b).count();
                found.prefixes.push(same as f64 / previous.len() as f64);
            }
            if !seen.calls.is_empty() {
                let spoken: String = seen.calls.iter().map(|call| spoken(&call.arguments)).collect();
                let wanted: BTreeSet<&str> = strings(&spoken).into_iter().filter(|word| seen_before.contains(*word)).collect();
                let text = readable(&reduced.messages_json);
                found.used += wanted.len() as u64;
                found.used_in_sight += wanted.iter().filter(|word| text.contains(**word)).count() as u64;
            }
            last = reduced.messages_json;
        }
        if seen.role == Role::User && !seen.text.is_empty() {
            engine.before_prompt_build(&PromptEvent { scope: scope(), prompt: seen.text.clone(), at: now, ..PromptEvent::default() }).expect("a prompt");
        }
        for call in &seen.calls {
            calls.insert(call.id.clone(), (call.name.clone(), call.arguments.clone()));
        }
        for result in &seen.results {
            let (tool, arguments) = calls.get(&result.call_id).cloned().unwrap_or_default();
            let event = ToolEvent {
                scope: scope(),
                tool_call_id: result.call_id.clone(),
                tool_name: tool,
                arguments_json: arguments.clone(),
                output: result.text.clone(),
                at: now,
                ..ToolEvent::default()
            };
            let receipt = engine.after_tool_call(&event).expect("stored");
            seen_before.extend(strings(&result.text).into_iter().map(str::to_owned));
            found.output_chars += result.text.chars().count();
            if receipt.filtered.is_empty() {
                outputs.push(Output { path: receipt.result_ref, arguments, text: result.text.clone() });
            }
        }
        if list.len() > 1 {
            list.push(',');
        }
        list.push_str(&message.to_string());
    }
    if let Some(folder) = std::env::var_os("STRATA_LISTS") {
        std::fs::write(PathBuf::from(folder).join(format!("{name}.{window}.json")), &last).expect("the folder for lists can be written");
    }
    look_back(&mut engine, &last, &outputs, START + messages.len() as u64 * 1_000, &mut found);
    found
}

/// Reads every output back, then draws the facts and looks for each.
fn look_back(engine: &mut Engine, last: &str, outputs: &[Output], now: u64, found: &mut Measured) {
    let mut seeker = Seeker::new(engine, scope(), now, last);
    for output in outputs {
        found.bytes += output.text.len();
        found.bytes_exact += if seeker.whole(&output.path) == output.text { output.text.len() } else { 0 };
    }
    let mut dice = Dice(SEED);
    let mut tries = 0;
    while found.drawn() < FACTS && tries < FACTS * 20 {
        tries += 1;
        let output = &outputs[dice.below(outputs.len() as u64) as usize];
        let Some(fact) = fact(&output.text, &mut dice) else { continue };
        let way = seeker.seek(&fact, output);
        if matches!(way, Way::Itself | Way::Lost) && std::env::var_os("STRATA_LISTS").is_some() {
            println!("  {way:?}: {} of {}", fact.text, output.path);
        }
        *found.facts.entry(way).or_default() += 1;
    }
}

const UNKNOWN: [Way; 5] = [Way::InContext, Way::NamedRef, Way::NamedNode, Way::Clue, Way::NodeAndClue];

fn row(window: u32, name: &str, found: &Measured) -> String {
    let ways = UNKNOWN.iter().chain(&[Way::Itself, Way::Lost]).map(|way| found.found(&[*way]).to_string()).collect::<Vec<_>>().join(" / ");
    format!(
        "| {window} | {name} | {} | {} | {} | -{:.1} % | {} | {:.3} | {:.2} | {:.3} of {} | {ways} |",
        found.turns,
        found.before,
        found.after,
        100.0 * found.saved(),
        found.larger,
        found.bytes_exact as f64 / found.bytes.max(1) as f64,
        median(found.prefixes.clone()),
        found.used_in_sight as f64 / found.used.max(1) as f64,
        found.used,
    )
}

#[test]
fn recorded_sessions_are_shorter_and_stay_within_reach() {
    let only = std::env::var("STRATA_RECORDING").unwrap_or_default();
    let files: Vec<PathBuf> = recordings().into_iter().filter(|path| path.to_string_lossy().contains(&only)).collect();
    if files.is_empty() {
        println!("SKIPPED: no recordings; STRATA_SHARED names the folder that holds sessions/*.json.xz");
        return;
    }
    println!(
        "| window | session | turns | tokens before | after | saved | larger | exact | prefix | strings in sight | facts: context / ref / node / clue / node+clue / itself / lost |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let mut broken = Vec::new();
    for window in WINDOWS {
        let (mut saved, mut saved_cut, mut prefixes) = (Vec::new(), Vec::new(), Vec::new());
        let (mut drawn, mut unknown) = (0, 0);
        for path in &files {
            let name: String = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().split('.').next().unwrap_or_default().to_owned());
            let found = measure(&name, &messages(path), window);
            println!("{}", row(window, &name, &found));
            if found.output_chars > LARGE_CHARS {
                saved.push(found.saved());
                saved_cut.push(1.0 - found.after as f64 / found.before_cut.max(1) as f64);
            }
            prefixes.push(median(found.prefixes.clone()));
            drawn += found.drawn();
            unknown += found.found(&UNKNOWN);
            let reached = found.drawn() - found.found(&[Way::Lost]);
            let complaints = [
                (found.larger > 0, "a turn got larger"),
                (found.over > 0, "a turn is over the window without a reason"),
                (found.bytes_exact != found.bytes, "bytes did not come back"),
                ((reached as f64) < found.drawn() as f64 * REACHABLE, "facts are out of reach"),
            ];
            broken.extend(complaints.iter().filter(|(holds, _)| *holds).map(|(_, complaint)| format!("{window} {name}: {complaint}")));
        }
        let large = saved.len();
        let (saved, saved_cut, prefix) = (median(saved), median(saved_cut), median(prefixes));
        println!(
            "{window}: median of the {large} large sessions -{:.1} % (-{:.1} % of what the window holds), prefix kept {prefix:.3}, {unknown} of {drawn} facts found unknown",
            100.0 * saved,
            100.0 * saved_cut
        );
        if large > 0 && saved < SAVED {
            broken.push(format!("{window}: the large sessions save {saved:.3}"));
        }
        if prefix < PREFIX_KEPT {
            broken.push(format!("{window}: the prefix kept is {prefix:.3}"));
        }
        if (unknown as f64) < drawn as f64 * FOUND_UNKNOWN {
            broken.push(format!("{window}: {unknown} of {drawn} facts are found by somebody who does not know them"));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
