//! A disk that is full, by the limit that a shell puts on the size of files: needs neither root nor a
//! second file system.

#![cfg(unix)]

use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Messages of the conversation.
const MESSAGES: usize = 3000;

/// Runs `strata` with files of at most `blocks` blocks, if given.
fn strata(blocks: Option<u32>, data: &Path, arguments: &[&str]) -> Output {
    let limit = blocks.map_or(String::new(), |blocks| format!("ulimit -f {blocks}; "));
    // The signal is ignored, so that the write itself fails, as on a full disk.
    let script = format!("trap '' XFSZ; {limit}exec \"$@\"");
    Command::new("sh")
        .args(["-c", &script, "sh", env!("CARGO_BIN_EXE_strata")])
        .args(arguments)
        .args(["--json", "--quiet", "--data"])
        .arg(data)
        .env("XDG_CONFIG_HOME", data)
        .env_remove("STRATA_LLM_URL")
        .env_remove("STRATA_EMBEDDING_URL")
        .output()
        .expect("sh runs")
}

#[test]
fn a_full_disk_is_said_and_loses_nothing_that_was_acknowledged() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (data, file) = (place.path().join("memory"), place.path().join("chat.jsonl"));
    let mut chat = String::from("{\"type\":\"session\",\"id\":\"s1\"}\n");
    for number in 0..MESSAGES {
        let text = format!("Message {number}: {}", "the ferry to the island leaves at noon ".repeat(8));
        writeln!(
            chat,
            "{{\"type\":\"message\",\"id\":\"{number}\",\"timestamp\":\"2026-03-01T10:00:00Z\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}"
        )
        .expect("a string takes all");
    }
    fs::write(&file, chat).expect("writable");
    let name = file.to_str().expect("UTF-8");

    // The module cache is made first: the limit is on the data, not on it.
    assert!(strata(None, &place.path().join("other"), &["config-schema"]).status.success());
    let full = strata(Some(1500), &data, &["import", name]);
    assert!(!full.status.success());
    let words = String::from_utf8_lossy(&full.stderr);
    assert!(words.contains("storage-full"), "{words}");

    let again = strata(None, &data, &["import", name]);
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    let status: Value = serde_json::from_slice(&strata(None, &data, &["status"]).stdout).expect("status is JSON");
    assert_eq!(status["messages"], MESSAGES);
}
