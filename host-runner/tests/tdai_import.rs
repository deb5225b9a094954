//! Moving in from TencentDB Agent Memory as its users do: one command, and then what came is recalled and traced.

#[path = "../src/import/tdai/tests/shapes.rs"]
mod shapes;

use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// Runs `strata … --json` on the data directory `data`; returns how it ended and its document.
fn strata(data: &Path, arguments: &[&str]) -> (i32, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strata"));
    for name in ["STRATA_DATA", "STRATA_LLM_URL", "STRATA_EMBEDDING_URL", "STRATA_USER", "STRATA_AGENT", "STRATA_TEAM", "STRATA_TIMEZONE", "STRATA_CONFIG"] {
        command.env_remove(name);
    }
    let output = command.env("XDG_CONFIG_HOME", data).args(arguments).args(["--json", "--data"]).arg(data).output().expect("the program starts");
    let document = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code().expect("it ended by itself"), document)
}

fn left_behind(report: &Value) -> Vec<(&str, u64)> {
    let left = report["files"][0]["left-behind"].as_array().expect("a list");
    left.iter().map(|left| (left["what"].as_str().expect("words"), left["count"].as_u64().expect("a count"))).collect()
}

#[test]
fn a_v1_directory_moves_in_and_its_memories_are_recalled_with_their_evidence() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let (data, old) = (place.path().join("memory"), place.path().join("memory-tdai"));
    shapes::v1(&old);
    let old = old.to_str().expect("UTF-8");

    let (exit, plan) = strata(&data, &["import", "--from", "tdai", old, "--dry-run"]);
    assert_eq!(exit, 6, "two lines cannot be read: {plan}");
    assert!(!data.exists(), "a dry run makes nothing");
    let (exit, report) = strata(&data, &["import", "--from", "tdai", old]);
    assert_eq!(exit, 6);
    for (kind, added) in [("message", 4), ("atom", 3), ("scene", 1), ("persona", 1)] {
        assert_eq!((plan["records"][kind]["added"].as_u64(), report["records"][kind]["added"].as_u64()), (Some(added), Some(added)), "{kind}: {report}");
    }
    assert_eq!(report["records"]["vector"], json!({"added": 0, "ignored": 2}), "vectors of another model are counted, not used");
    assert_eq!(report["records"]["unresolved"], 0);
    assert_eq!(
        left_behind(&report),
        [
            ("repeated lines in conversations/", 1),
            ("vectors without a row", 1),
            (".metadata/recall_checkpoint.json", 1),
            ("files in .backup/", 1),
            ("files in refs/", 1)
        ]
    );
    let lines: Vec<Option<u64>> = report["problems"].as_array().expect("a list").iter().map(|problem| problem["line"].as_u64()).collect();
    assert_eq!(lines, [Some(5), Some(6)]);

    let (_, injection) = strata(&data, &["recall", "what about my bees?"]);
    let dynamic = injection["dynamic"].as_str().expect("text");
    assert!(dynamic.contains("The user keeps bees."), "{injection}");
    assert!(!dynamic.contains("has one hive"), "what was superseded there is history here: {injection}");
    assert!(injection["stable"].as_str().is_some_and(|stable| stable.contains("Keeps bees.") && stable.contains("scenes/bees.md")), "{injection}");
    let (_, found) = strata(&data, &["browse", "atoms"]);
    let atoms = found["items"].as_array().expect("a list");
    let atom = atoms.iter().find(|atom| atom["text"] == "The user keeps bees.").expect("the atom");
    let (exit, trace) = strata(&data, &["trace", atom["id"].as_str().expect("an id")]);
    assert_eq!((exit, trace["rests-on"][0]["text"].as_str(), trace["priority"].as_i64()), (0, Some("I keep bees."), Some(85)), "{trace}");
    let (exit, persona) = strata(&data, &["persona"]);
    assert!(exit == 0 && persona["items"][0]["text"].as_str().is_some_and(|text| text.contains("Keeps bees.")), "{persona}");
    let (_, scenes) = strata(&data, &["scenes"]);
    let scene = &scenes["items"][0];
    assert_eq!(scene["path"], "scenes/bees.md");
    assert!(scene["text"].as_str().is_some_and(|text| text.contains("Two hives.")), "what came is kept where the rules add to it: {scenes}");

    let (_, again) = strata(&data, &["import", "--from", "tdai", old]);
    for kind in ["message", "atom", "scene", "persona"] {
        assert_eq!(again["records"][kind]["added"], 0, "{kind}: {again}");
    }
}

#[test]
fn a_v3_directory_moves_in_with_its_scopes() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let (data, old) = (place.path().join("memory"), place.path().join("memory-tdai"));
    shapes::v3(&old);
    let old = old.to_str().expect("UTF-8");
    let (exit, report) = strata(&data, &["import", "--from", "tdai", old]);
    assert_eq!(exit, 0, "{report}");
    for (kind, added) in [("message", 1), ("atom", 1), ("scene", 1), ("persona", 1)] {
        assert_eq!(report["records"][kind]["added"], added, "{kind}: {report}");
    }
    assert_eq!(left_behind(&report), [("profiles/odd", 1), ("vectors.db table skills", 2), ("metadata.db table meta_users", 1)]);
    assert_eq!(report["problems"], json!([]));

    let kim = ["recall", "who am I, Kim?", "--team", "blue", "--user", "kim"];
    let (_, injection) = strata(&data, &kim);
    assert!(injection["dynamic"].as_str().is_some_and(|text| text.contains("The user is Kim.")), "{injection}");
    let (_, injection) = strata(&data, &["recall", "who am I, Kim?", "--user", "lee"]);
    assert_eq!(injection["dynamic"], "", "nobody else's memory: {injection}");
    let (_, injection) = strata(&data, &["recall", "who am I?", "--team", "blue", "--agent", "coder"]);
    assert!(injection["stable"].as_str().is_some_and(|text| text.contains("Kim writes Rust.")), "{injection}");
}
