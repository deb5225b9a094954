//! Every scenario on the core and on the component in wasmtime: each as it expects, and both alike.
//!
//! The transcripts are left in `target/transcripts/<host>/` for other hosts to be compared with.

use std::fs;
use std::path::{Path, PathBuf};
use strata_host::conformance::{self, Scenario, Target, WasmtimeTarget};
use strata_host::{ComponentSource, Runtime};
use strata_tests::core_target::CoreTarget;

fn keep(host: &str, name: &str, transcript: &str) {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"), PathBuf::from);
    let path = target.join("transcripts").join(host).join(format!("{name}.jsonl"));
    fs::create_dir_all(path.parent().expect("it is in a directory")).expect("the target directory can be written");
    fs::write(path, transcript).expect("the target directory can be written");
}

/// Returns a directory in memory where there is one: hundreds of spaces are opened, and each syncs.
fn in_memory() -> PathBuf {
    Some(PathBuf::from("/dev/shm")).filter(|path| path.is_dir()).unwrap_or_else(std::env::temp_dir)
}

/// Returns the counts of a closed space that are not what its rows give.
fn miscounted(directory: &Path) -> Vec<String> {
    let db = rusqlite::Connection::open(directory.join("strata.db")).expect("a scenario leaves a space");
    let sql = "SELECT what || ' ' || part || ': ' || coalesce(tallies.count, 0) || ', not ' || coalesce(counted.count, 0)
                 FROM counted FULL JOIN tallies USING (what, part) WHERE coalesce(tallies.count, 0) <> coalesce(counted.count, 0)";
    let mut query = db.prepare(sql).expect("a space has both");
    query.query_map([], |row| row.get(0)).and_then(Iterator::collect).expect("readable")
}

#[test]
fn every_scenario_holds_and_the_hosts_agree() {
    let runtime = Runtime::new(&ComponentSource::Embedded).expect("the component compiles");
    let scenarios = conformance::find(&Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")).expect("there are scenarios");
    let mut failures = Vec::new();
    for (name, path) in &scenarios {
        let scenario = Scenario::read(path).expect("a scenario of the repository parses");
        let mut transcripts = Vec::new();
        for host in ["core", "wasmtime"] {
            if let Some(reason) = scenario.skip.get(host) {
                println!("{name}: left out on {host}: {reason}");
                continue;
            }
            let directory = tempfile::tempdir_in(in_memory()).expect("there is a temporary directory");
            let mut target: Box<dyn Target> = match host {
                "core" => Box::new(CoreTarget::new(directory.path())),
                _ => Box::new(WasmtimeTarget::new(runtime.clone(), directory.path())),
            };
            match conformance::run(&scenario, target.as_mut()) {
                Ok(verdict) => {
                    failures.extend(verdict.differences.iter().map(|difference| format!("{name} on {host}: {difference}")));
                    keep(host, name, &verdict.transcript);
                    failures.extend(miscounted(directory.path()).into_iter().map(|count| format!("{name} on {host}: status counts {count}")));
                    transcripts.push((host, verdict.transcript));
                }
                Err(error) => failures.push(format!("{name} on {host}: {error:#}")),
            }
        }
        if let [(_, first), (_, second)] = transcripts.as_slice()
            && first != second
        {
            let line = first.lines().zip(second.lines()).find(|(first, second)| first != second);
            failures.push(format!("{name}: core and wasmtime differ: {line:?}"));
        }
    }
    assert!(!scenarios.is_empty());
    assert!(failures.is_empty(), "{} of {} scenarios\n{}", failures.len(), scenarios.len(), failures.join("\n"));
    println!("{} scenarios agree on core and wasmtime", scenarios.len());
}
