//! The command line as its users have it: the program, a directory, what it prints and how it ends.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Runs `strata` on the data directory `data`, without the caller's configuration.
fn strata(data: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strata"));
    for name in ["STRATA_DATA", "STRATA_LLM_URL", "STRATA_EMBEDDING_URL", "STRATA_USER", "STRATA_AGENT", "STRATA_TEAM", "STRATA_TIMEZONE", "STRATA_CONFIG"] {
        command.env_remove(name);
    }
    command.env("XDG_CONFIG_HOME", data).args(arguments).arg("--data").arg(data).output().expect("the program starts")
}

/// Runs `strata … --json` and returns how it ended and its document.
fn json(data: &Path, arguments: &[&str]) -> (i32, Value) {
    let output = strata(data, &[arguments, &["--json"]].concat());
    let document = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code().expect("it ended by itself"), document)
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

const CHAT: &str = "{\"type\":\"session\",\"id\":\"s1\"}
{\"type\":\"message\",\"id\":\"1\",\"timestamp\":\"2026-03-01T10:00:00Z\",\"message\":{\"role\":\"user\",\"content\":\"I am allergic to walnuts and I live in Turku.\"}}
{broken
{\"type\":\"message\",\"id\":\"2\",\"timestamp\":\"2026-03-01T10:00:05Z\",\"message\":{\"role\":\"assistant\",\"content\":\"I will keep walnuts away from you.\"}}
";

#[test]
fn a_file_comes_once_and_its_broken_line_is_named() {
    let place = folder();
    let (data, file) = (place.path().join("memory"), place.path().join("chat.jsonl"));
    fs::write(&file, CHAT).expect("writable");
    let name = file.to_str().expect("UTF-8");
    let (exit, report) = json(&data, &["import", name]);
    assert_eq!(exit, 6, "some input could not be read");
    assert_eq!((report["stored"].as_u64(), report["known"].as_u64()), (Some(2), Some(0)));
    assert_eq!((report["problems"][0]["file"].as_str(), report["problems"][0]["line"].as_u64()), (Some(name), Some(3)));
    let (_, again) = json(&data, &["import", name]);
    assert_eq!((again["stored"].as_u64(), again["known"].as_u64(), again["messages"].as_u64()), (Some(0), Some(2), Some(2)));
    let (exit, status) = json(&data, &["status"]);
    assert_eq!((exit, status["messages"].as_u64()), (0, Some(2)));
    let printed = strata(&data, &["import", name]);
    assert!(String::from_utf8_lossy(&printed.stderr).contains("chat.jsonl:3:"), "people see FILE:LINE");
}

#[test]
fn what_was_said_comes_back_and_leads_back() {
    let place = folder();
    let (data, file) = (place.path().join("memory"), place.path().join("chat.jsonl"));
    fs::write(&file, CHAT).expect("writable");
    json(&data, &["import", file.to_str().expect("UTF-8")]);
    let prompt = strata(&data, &["recall", "may I eat walnuts?"]);
    let text = String::from_utf8_lossy(&prompt.stdout);
    assert!(text.contains("<relevant-memories>") && text.contains("walnuts"), "{text}");
    let (_, injection) = json(&data, &["recall", "may I eat walnuts?"]);
    let id = injection["recalled"][0].as_str().expect("something is recalled").to_owned();
    let (exit, trace) = json(&data, &["trace", &id]);
    assert_eq!((exit, trace["rests-on"][0]["text"].as_str()), (0, Some("I am allergic to walnuts and I live in Turku.")));
    let (exit, found) = json(&data, &["search", "walnuts", "--messages"]);
    assert_eq!(exit, 0);
    assert!(found["results"].as_array().is_some_and(|rows| !rows.is_empty()));
}

#[test]
fn a_dry_run_makes_nothing() {
    let place = folder();
    let (data, file) = (place.path().join("memory"), place.path().join("chat.jsonl"));
    fs::write(&file, CHAT).expect("writable");
    let (_, report) = json(&data, &["import", file.to_str().expect("UTF-8"), "--dry-run"]);
    assert_eq!((report["read"].as_u64(), report["stored"].as_u64()), (Some(2), Some(0)));
    assert!(!data.exists(), "not even the directory");
}

#[test]
fn each_end_has_its_number() {
    let place = folder();
    let data = place.path().join("memory");
    assert_eq!(strata(&data, &["status"]).status.code(), Some(4), "no memory there yet");
    assert!(!data.exists(), "looking makes nothing");
    assert_eq!(strata(&data, &["import", "no/such/file"]).status.code(), Some(2));
    assert_eq!(strata(&data, &["nonsense"]).status.code(), Some(2));
    let file = place.path().join("chat.jsonl");
    fs::write(&file, CHAT).expect("writable");
    json(&data, &["import", file.to_str().expect("UTF-8")]);
    assert_eq!(strata(&data, &["trace", "a_0000000000000000"]).status.code(), Some(4));
    assert_eq!(strata(&data, &["search", "x", "--believed-at", "soon"]).status.code(), Some(2));
    assert_eq!(strata(&data, &["forget"]).status.code(), Some(2), "forgetting everything must be meant");
}

#[test]
fn the_user_of_the_configuration_alone_is_no_condition_for_forgetting() {
    let place = folder();
    let (data, file, config) = (place.path().join("memory"), place.path().join("chat.jsonl"), place.path().join("config.toml"));
    fs::write(&file, CHAT).expect("writable");
    fs::write(&config, "user = \"kim\"\n").expect("writable");
    let config = config.to_str().expect("UTF-8");
    json(&data, &["import", file.to_str().expect("UTF-8"), "--config", config]);
    assert_eq!(strata(&data, &["forget", "--yes", "--config", config]).status.code(), Some(2), "everything of kim's must be meant");
    assert_eq!(json(&data, &["status", "--config", config]).1["messages"].as_u64(), Some(2));
    assert_eq!(strata(&data, &["forget", "--yes", "--user", "kim", "--config", config]).status.code(), Some(0));
    assert_eq!(json(&data, &["status", "--config", config]).1["messages"].as_u64(), Some(0));
}

#[test]
fn a_second_opener_is_told_who_is_in() {
    let place = folder();
    let data = place.path().join("memory");
    let space = strata_host::Space::open(&data, strata_host::Options::default()).expect("an empty directory opens");
    let output = strata(&data, &["status"]);
    assert_eq!(output.status.code(), Some(3));
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains(&format!("process {}", std::process::id())), "{words}");
    space.close().expect("closes");
    assert_eq!(strata(&data, &["status"]).status.code(), Some(0));
}

#[test]
fn the_demonstration_does_the_main_job() {
    let place = folder();
    let (exit, document) = json(&place.path().join("memory"), &["demo"]);
    assert_eq!((exit, document["messages"].as_u64()), (0, Some(164)));
    assert!(document["atoms"].as_array().is_some_and(|atoms| atoms.len() >= 10), "{}", document["atoms"]);
    assert!(document["injection"]["dynamic"].as_str().is_some_and(|text| text.contains("<relevant-memories>")));
    assert!(document["trace"]["rests-on"][0]["text"].is_string());
}

#[test]
fn a_lost_database_is_announced_and_a_backup_takes_its_place() {
    let place = folder();
    let (data, file) = (place.path().join("memory"), place.path().join("chat.jsonl"));
    fs::write(&file, CHAT).expect("writable");
    json(&data, &["import", file.to_str().expect("UTF-8")]);
    json(&data, &["backup", "one"]);
    for lost in [true, false] {
        if lost {
            fs::remove_file(data.join("strata.db")).expect("there");
        } else {
            fs::write(data.join("strata.db"), "").expect("writable");
        }
        let output = strata(&data, &["recall", "walnuts"]);
        assert_eq!(output.status.code(), Some(5), "an empty memory would look like success");
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(words.contains("shows that a memory was here") && words.contains("strata restore"), "{words}");
        assert_eq!(strata(&data, &["restore", "none", "--yes"]).status.code(), Some(4));
        let (exit, report) = json(&data, &["restore", "one", "--yes"]);
        assert_eq!((exit, report["messages"].as_u64()), (0, Some(2)), "{report}");
        let (exit, status) = json(&data, &["status"]);
        assert_eq!((exit, status["messages"].as_u64()), (0, Some(2)));
    }
    assert!(data.join("set-aside/1/strata.db").exists() || data.join("set-aside/2/strata.db").exists(), "what was there is kept");
}
