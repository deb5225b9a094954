//! Directories built from the documented formats, v1 and v3, are read whole and reported exactly.

use super::super::recorder::Recorder;
use super::*;
use std::fs;

mod shapes;

fn read(dir: &Path) -> (Report, Recorder) {
    let mut recorder = Recorder::default();
    let report = read_dir(dir, &TimeZone::UTC, &mut recorder).expect("a directory of the documented shape");
    (report, recorder)
}

fn of<'a>(records: &'a [Value], kind: &str) -> Vec<&'a Value> {
    records.iter().filter(|record| record["record"] == kind).collect()
}

#[test]
fn a_v1_directory_comes_whole_and_the_report_is_exact() {
    let dir = tempfile::tempdir().expect("temporary folder");
    shapes::v1(dir.path());
    let before: Vec<_> = files::list(dir.path()).expect("readable");
    let (report, found) = read(dir.path());
    assert_eq!(files::list(dir.path()).expect("readable"), before, "the source is not touched");

    let expect: BTreeMap<String, u64> =
        [("message", 4), ("atom", 2), ("superseded atom", 1), ("scene", 1), ("persona", 1), ("vector", 2)].map(|(kind, n)| (kind.to_owned(), n)).into();
    assert_eq!(report.carried, expect);
    let left: Vec<_> = report.left_behind.iter().map(|left| (left.what.as_str(), left.count)).collect();
    assert_eq!(
        left,
        [
            ("repeated lines in conversations/", 1),
            ("vectors without a row", 1),
            (".metadata/recall_checkpoint.json", 1),
            ("files in .backup/", 1),
            ("files in refs/", 1)
        ]
    );
    assert_eq!(found.problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [5, 6]);

    let messages = of(&found.records, "message");
    let ids: Vec<_> = messages.iter().map(|m| (m["id"].as_str().expect("id"), m["distilled"].as_bool().expect("flag"))).collect();
    assert_eq!(ids, [("msg_1", true), ("msg_2", true), ("msg_3", false), ("l0_b", false)]);

    let atoms = of(&found.records, "atom");
    assert_eq!(atoms[0]["priority"], 85, "the database has the newer state");
    assert_eq!(atoms[0]["messages"], json!(["msg_1"]), "the JSONL has the evidence");
    assert!(atoms[0]["origin"].is_null(), "its messages tell whose words it is");
    assert_eq!((atoms[1]["id"].as_str(), atoms[1]["kind"].as_str()), (Some("m_0"), Some("episodic")));
    assert_eq!(atoms[1]["believed-to"], 1_780_279_860_000_u64, "superseded");
    assert_eq!(atoms[1]["event-start"], 1_777_593_600_000_u64);
    assert_eq!((atoms[2]["id"].as_str(), atoms[2]["kind"].as_str(), atoms[2]["origin"].as_str()), (Some("m_9"), Some("persona"), Some("imported")));

    let scene = of(&found.records, "scene")[0];
    assert_eq!((scene["name"].as_str(), scene["heat"].as_u64(), scene["text"].as_str()), (Some("bees"), Some(3), Some("# Bees\nTwo hives.")));
    assert_eq!(of(&found.records, "persona")[0]["text"], "# Ada\nKeeps bees.");
    assert_eq!(
        of(&found.records, "vector"),
        [
            &json!({"record": "vector", "of": "msg_1", "model": "text-2", "values": [1.0_f32, 0.0_f32]}),
            &json!({"record": "vector", "of": "m_1", "model": "text-2", "values": [0.5_f32, -1.0_f32]}),
        ]
    );
}

#[test]
fn a_v3_directory_keeps_its_scopes() {
    let dir = tempfile::tempdir().expect("temporary folder");
    shapes::v3(dir.path());
    let (report, found) = read(dir.path());
    assert_eq!(found.records.len(), 4);
    assert_eq!(found.records[0]["scope"], json!({"team": "blue", "user": "kim", "agent": "coder"}));
    assert_eq!(found.records[1]["scope"], json!({"team": "blue", "user": "kim"}));
    assert_eq!(found.records[2]["scope"], json!({"team": "blue", "agent": "coder"}));
    let left: Vec<_> = report.left_behind.iter().map(|left| (left.what.as_str(), left.count)).collect();
    assert_eq!(left, [("profiles/odd", 1), ("vectors.db table skills", 2), ("metadata.db table meta_users", 1)]);
    assert!(found.problems.is_empty());
}

#[test]
fn jsonl_without_a_database_is_all_alive() {
    let dir = tempfile::tempdir().expect("temporary folder");
    shapes::v1(dir.path());
    fs::remove_file(dir.path().join("vectors.db")).expect("writable");
    let (report, found) = read(dir.path());
    assert_eq!(report.carried.get("atom"), Some(&2));
    assert!(of(&found.records, "atom").iter().all(|atom| atom.get("believed-to").is_none()));
}

#[test]
fn a_damaged_database_is_reported_and_the_files_still_come() {
    let dir = tempfile::tempdir().expect("temporary folder");
    shapes::v1(dir.path());
    fs::write(dir.path().join("vectors.db"), b"not a database, but long enough to be looked at as one").expect("writable");
    let (report, found) = read(dir.path());
    assert_eq!(report.carried.get("message"), Some(&3));
    assert!(found.problems.iter().any(|problem| problem.file.ends_with("vectors.db")));
}

#[test]
fn another_directory_is_refused() {
    let dir = tempfile::tempdir().expect("temporary folder");
    let error = read_dir(dir.path(), &TimeZone::UTC, &mut Recorder::default()).expect_err("empty");
    assert!(error.to_string().contains("not a TencentDB Agent Memory directory"));
}
