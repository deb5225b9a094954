//! Random lists through `assemble` on the core and in wasmtime: the same bytes, refs on the disk included.
//!
//! The lists are written as scenarios under `target/offload-drivers`, with the core's transcripts beside them, so that
//! Node runs the same (`make proof-offload`). `STRATA_OFFLOAD_DRIVER_CASES` sets how many lists there are.

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use strata_host::conformance::{self, Scenario, WasmtimeTarget};
use strata_host::{ComponentSource, Runtime};
use strata_tests::core_target::CoreTarget;
use strata_tests::random_lists::{Dice, list};

const DEFAULT_CASES: u64 = 100;
/// Lists of one space.
const CASES_A_SPACE: u64 = 50;
const START: u64 = 1_780_000_000_000;
/// Small, so that lists of some thousand tokens meet every pressure.
const WINDOWS: [u32; 4] = [600, 1_500, 4_000, 16_000];

fn place() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"), PathBuf::from).join("offload-drivers")
}

fn in_memory() -> PathBuf {
    Some(PathBuf::from("/dev/shm")).filter(|path| path.is_dir()).unwrap_or_else(std::env::temp_dir)
}

/// Returns the scenario of the lists with the seeds from `first` on.
fn scenario(first: u64, cases: u64) -> Value {
    let steps: Vec<Value> = (first..first + cases)
        .map(|seed| {
            let mut dice = Dice(seed);
            let messages = Value::Array(list(&mut dice));
            let window = WINDOWS[dice.below(WINDOWS.len() as u64) as usize];
            json!({"call": "assemble", "with": {"scope": {"session": format!("list-{seed}")}, "messages-json": messages.to_string(),
                   "window-tokens": window, "overhead-tokens": dice.below(200), "at": START + seed}})
        })
        .collect();
    json!({"about": "Random lists are reduced to the same bytes everywhere.", "at": START, "steps": steps})
}

#[test]
fn random_lists_give_the_same_bytes_on_core_and_wasmtime() {
    let cases = std::env::var("STRATA_OFFLOAD_DRIVER_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(DEFAULT_CASES);
    let runtime = Runtime::new(&ComponentSource::Embedded).expect("the component compiles");
    let place = place();
    if place.exists() {
        fs::remove_dir_all(&place).expect("the target directory can be written");
    }
    for folder in ["scenarios/random", "core/random"] {
        fs::create_dir_all(place.join(folder)).expect("the target directory can be written");
    }
    let mut reduced = 0;
    let mut first = 1;
    while first <= cases {
        let document = scenario(first, CASES_A_SPACE.min(cases - first + 1));
        let name = format!("from-{first:07}");
        fs::write(place.join(format!("scenarios/random/{name}.json")), document.to_string()).expect("the target directory can be written");
        let scenario: Scenario = serde_json::from_value(document).expect("a scenario");
        let directory = tempfile::tempdir_in(in_memory()).expect("there is a temporary directory");
        let core = conformance::run(&scenario, &mut CoreTarget::new(directory.path())).expect("the core runs it");
        let directory = tempfile::tempdir_in(in_memory()).expect("there is a temporary directory");
        let wasmtime = conformance::run(&scenario, &mut WasmtimeTarget::new(runtime.clone(), directory.path())).expect("wasmtime runs it");
        assert_eq!(core.differences, Vec::<String>::new(), "{name}");
        let line = core.transcript.lines().zip(wasmtime.transcript.lines()).position(|(core, wasmtime)| core != wasmtime);
        assert!(core.transcript == wasmtime.transcript, "{name}: core and wasmtime differ in line {line:?}");
        reduced += core.transcript.lines().filter(|line| line.contains("\"mode\":") && !line.contains("\"mode\":\"none\"")).count();
        fs::write(place.join(format!("core/random/{name}.jsonl")), core.transcript).expect("the target directory can be written");
        first += CASES_A_SPACE;
    }
    assert!(reduced as u64 * 10 > cases, "the lists hardly reach the code: {reduced} of {cases} were reduced");
    println!("{cases} lists give the same bytes on core and wasmtime, {reduced} of them reduced");
}
