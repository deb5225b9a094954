//! A data directory that has lost its database, or part of it, is never taken for a new one; a backup
//! can take its place, and what was there is kept.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::rc::Rc;
use strata_core::contract::{EndEvent, Failure, Message, Scope, Selector};
use strata_core::disk::{Crash, Disk, OpenMode, SimDisk, read_all};
use strata_core::engine::{Engine, Models};
use strata_core::{FailureCode, disk};

const START: u64 = 1_780_000_000_000;
const DAY: u64 = 86_400_000;

fn open(disk: &SimDisk, restore: Option<&str>) -> Result<Engine, Failure> {
    let port: Rc<dyn Disk> = Rc::new(disk.clone());
    let config = json!({"holder": {"id": "test"}, "restoreIfDamaged": restore});
    Engine::open(port, &config.to_string(), Models::default(), START + DAY).map(|(engine, _)| engine)
}

fn say(engine: &mut Engine, text: &str, at: u64) {
    let message = Message { role: "user".into(), id: Some(text.into()), content: text.into(), ..Message::default() };
    engine.agent_end(&EndEvent { scope: Scope { session: "s".into(), ..Scope::default() }, messages: vec![message], success: true, at }).expect("captured");
}

/// Returns a disk with a space of three messages, two of which are in the backup `one`.
fn filled() -> SimDisk {
    let disk = SimDisk::new();
    let mut engine = open(&disk, None).expect("opens");
    say(&mut engine, "I live in Porto.", START);
    say(&mut engine, "I drink green tea.", START + 1_000);
    engine.tick(START + 2_000, Models::default()).expect("ticks");
    engine.backup("one", START + 3_000).expect("backed up");
    say(&mut engine, "My locker code is zanzibar4711.", START + 4_000);
    engine.tick(START + 5_000, Models::default()).expect("ticks");
    engine.close(START + 6_000).expect("closes");
    disk
}

fn messages(engine: &Engine) -> u64 {
    engine.store().db().query_row("SELECT count(*) FROM messages", [], |row| row.get(0)).expect("SQLite answers")
}

fn cut(disk: &SimDisk, path: &str, length: u64) {
    disk.open(path, OpenMode::Write).expect("there").set_len(length).expect("cut");
}

/// Returns the files of a disk without claims of the lock.
fn files(disk: &SimDisk) -> BTreeMap<String, Vec<u8>> {
    disk.files().into_iter().filter(|(path, _)| !path.starts_with("lock/")).collect()
}

#[test]
fn a_database_cut_at_any_page_is_refused_and_left_as_it_is() {
    let whole = filled();
    let size = read_all(&whole, "strata.db").expect("read").len() as u64;
    let mut lengths: Vec<u64> = (0..size).step_by(4096).collect();
    lengths.extend([1, 15, 16, 50, 99, 100, 101, 512, 4095, 4097, size - 1, size - 512]);
    for length in &lengths {
        let disk = whole.after(Crash::Kill);
        cut(&disk, "strata.db", *length);
        let before = files(&disk);
        let failure = open(&disk, None).err().unwrap_or_else(|| panic!("{length} of {size} bytes: it is damaged, and opens"));
        assert_eq!(failure.code, FailureCode::Corrupt, "{length} bytes: {failure}");
        assert_eq!(files(&disk), before, "{length} bytes: something was changed");
    }
    println!("{} lengths refused", lengths.len());
}

#[test]
fn a_database_that_is_missing_is_refused_with_or_without_its_log() {
    let whole = filled();
    let closed = whole.after(Crash::Kill);
    closed.remove("strata.db").expect("removed");
    let running = whole.after(Crash::Kill);
    let mut engine = open(&running, None).expect("opens");
    say(&mut engine, "I own a boat.", START + 10_000);
    let running = running.after(Crash::Kill);
    for (disk, sign) in [(closed, "backups/one/"), (running, "strata.db-wal")] {
        if disk.exists("strata.db").expect("looked") {
            assert!(!read_all(&disk, "strata.db-wal").expect("a log").is_empty());
            cut(&disk, "strata.db", 0);
        }
        let before = files(&disk);
        let failure = open(&disk, None).expect_err("it is lost");
        assert_eq!(failure.code, FailureCode::Corrupt);
        assert!(failure.message.contains("Nothing was changed") && failure.message.contains(sign) || failure.message.contains("conversations/"), "{failure}");
        assert_eq!(files(&disk), before);
    }
}

#[test]
fn a_directory_without_a_memory_opens_as_new() {
    let disk = SimDisk::new();
    disk::replace(&disk, "notes.txt", b"mine").expect("written");
    disk::replace(&disk, "persona.md", b"# Me\n\nI am Ana.\n").expect("written");
    disk::replace(&disk, "scenes/garden.md", b"Tomatoes.\n").expect("written");
    disk.open("strata.db", OpenMode::Create).expect("an empty file, as a crash of the first opening leaves it");
    assert_eq!(messages(&open(&disk, None).expect("opens")), 0);
}

#[test]
fn a_backup_takes_the_place_of_a_lost_database_once() {
    let whole = filled();
    for length in [None, Some(0), Some(100), Some(8192)] {
        let disk = whole.after(Crash::Kill);
        match length {
            Some(length) => cut(&disk, "strata.db", length),
            None => disk.remove("strata.db").expect("removed"),
        }
        assert!(open(&disk, Some("none")).is_err(), "a backup that is not there changes nothing");
        let engine = open(&disk, Some("one")).expect("the backup is taken");
        assert_eq!(messages(&engine), 2, "{length:?}");
        engine.close(START + DAY).expect("closes");
        assert_eq!(disk.exists("set-aside/1/strata.db").expect("looked"), length.is_some());
        let mirror = String::from_utf8(read_all(&disk, "conversations/2026-05-28.jsonl").expect("a mirror")).expect("text");
        assert!(mirror.contains("green tea") && !mirror.contains("zanzibar"), "mirrors follow the rows: {mirror}");

        // The setting stays in somebody's file: a sound database is left alone.
        let mut engine = open(&disk, Some("one")).expect("opens");
        say(&mut engine, "I own a boat.", START + DAY);
        engine.close(START + DAY).expect("closes");
        let mut engine = open(&disk, Some("one")).expect("opens");
        assert_eq!(messages(&engine), 3);
        let which = Selector { query: Some("tea".into()), ..Selector::default() };
        let receipt: Value = serde_json::from_str(&engine.forget(&which, true, START + DAY).expect("forgotten")).expect("JSON");
        assert_eq!(receipt["ruined-copies"].as_u64(), Some(u64::from(length.is_some())), "nobody can forget in a damaged database: {receipt}");
        assert!(!disk.exists("set-aside/1/strata.db").expect("looked"));
    }
}

#[test]
fn going_back_to_a_backup_survives_a_crash_after_every_file_operation() {
    let damaged = filled();
    cut(&damaged, "strata.db", 8192);
    let disk = damaged.after(Crash::Kill);
    let before = disk.operations();
    open(&disk, Some("one")).expect("the backup is taken").close(START + DAY).expect("closes");
    let operations = disk.operations() - before;
    for point in 1..=operations {
        let disk = damaged.after(Crash::Kill);
        disk.crash_at(point);
        if let Ok(engine) = open(&disk, Some("one")) {
            let _ = engine.close(START + DAY).is_ok();
        }
        assert!(disk.crashed(), "operation {point} of {operations} was not reached");
        for crash in [Crash::Kill, Crash::PowerCut(point)] {
            let disk = disk.after(crash);
            let place = format!("operation {point} of {operations}, {crash:?}");
            let engine = open(&disk, Some("one")).unwrap_or_else(|failure| panic!("{place}: {failure}"));
            assert_eq!(messages(&engine), 2, "{place}");
            let integrity: String = engine.store().db().query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("SQLite answers");
            assert_eq!(integrity, "ok", "{place}");
        }
    }
    println!("restore in the place of a damaged database: {operations} crash points, each as kill and as power cut");
}

#[test]
fn a_database_damaged_in_the_middle_can_be_restored_while_it_is_open() {
    let disk = filled();
    // The pages of messages and their indexes, not the first page.
    let length = read_all(&disk, "strata.db").expect("read").len() as u64;
    let mut file = disk.open("strata.db", OpenMode::Write).expect("there");
    for page in 2..length / 4096 {
        file.write_at(&[0xA5; 64], page * 4096).expect("written");
    }
    drop(file);
    let Ok(mut engine) = open(&disk, None) else {
        let engine = open(&disk, Some("one")).expect("the backup is taken");
        assert_eq!(messages(&engine), 2);
        return;
    };
    let report: Value = serde_json::from_str(&engine.restore("one", START + DAY).expect("restored")).expect("JSON");
    assert_eq!((messages(&engine), report["kept-before"].as_str()), (2, Some("set-aside/1")));
}
