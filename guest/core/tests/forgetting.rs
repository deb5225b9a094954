//! Forgetting where something stands in its way, and what comes back afterwards.

#[path = "story/space.rs"]
mod space;

use serde_json::{Value, json};
use space::{SECOND, Space};
use strata_core::contract::Selector;
use strata_core::disk;

const SECRET: &str = "zanzibar4711";

fn json(text: Result<String, strata_core::Failure>) -> Value {
    serde_json::from_str(&text.expect("answered")).expect("JSON")
}

fn space() -> Space {
    Space::new(false, json!({}))
}

fn forget(space: &mut Space, which: &Selector) -> Value {
    json(space.engine.forget(which, true, space.at))
}

fn words(query: &str) -> Selector {
    Selector { query: Some(query.into()), ..Selector::default() }
}

#[test]
fn a_damaged_backup_stops_neither_a_forgetting_nor_the_next_opening() {
    let mut space = space();
    space.say(&format!("My locker code is {SECRET}, tell nobody."));
    space.say("I moved to Porto in May.");
    for name in ["first", "second", "third"] {
        space.engine.backup(name, space.at).expect("backed up");
    }
    space.write("backups/first/manifest.json", "{\"format\": 1, \"crea");
    space.write("backups/second/strata.db", "damaged");
    let receipt = forget(&mut space, &words(SECRET));
    assert_eq!((&receipt["removed"]["messages"], &receipt["backups"]), (&json!(1), &json!(1)), "{receipt}");
    let unsearched: Vec<&Value> = receipt["unsearched-backups"].as_array().expect("a list").iter().map(|backup| &backup["name"]).collect();
    assert_eq!(unsearched, ["first", "second"]);
    assert_eq!(receipt["searched"]["where"], json!(["backups/first/strata.db"]), "what is still there is said");
    for _ in 0..2 {
        assert_eq!(json(space.engine.status())["forgetting"], json!({"unfinished": false, "backups": ["first", "second"]}));
        space.crash();
    }
    assert_eq!(json(space.engine.restore("third", space.at))["messages"], 1);
}

#[test]
fn a_backup_that_could_not_be_opened_is_forgotten_in_as_soon_as_it_can() {
    let mut space = space();
    // A scenario writes no bytes.
    space.engine.untold();
    space.say(&format!("My locker code is {SECRET}, tell nobody."));
    space.say("My bicycle is green and old.");
    space.engine.backup("first", space.at).expect("backed up");
    let database = disk::read_all(&space.disk, "backups/first/strata.db").expect("read");
    disk::replace(&space.disk, "backups/first/strata.db", &database[..5_000]).expect("cut");
    for query in [SECRET, "bicycle"] {
        let receipt = forget(&mut space, &words(query));
        assert_eq!(receipt["unsearched-backups"][0]["name"], "first", "{receipt}");
    }
    assert!(space.engine.restore("first", space.at).is_err(), "damaged");
    disk::replace(&space.disk, "backups/first/strata.db", &database).expect("mended");
    space.crash();
    assert_eq!(space.holding(SECRET), [""; 0]);
    assert_eq!(space.holding("bicycle"), [""; 0]);
    assert_eq!(json(space.engine.status())["forgetting"], json!({"unfinished": false, "backups": []}));
    assert_eq!(json(space.engine.restore("first", space.at))["messages"], 0, "its manifest fits what is left of it");
}

#[test]
fn a_backup_without_what_is_forgotten_can_be_restored_afterwards() {
    let mut space = space();
    space.say("I moved to Porto in May.");
    space.engine.backup("before", space.at).expect("backed up");
    space.say(&format!("My locker code is {SECRET}, tell nobody."));
    assert_eq!(forget(&mut space, &words(SECRET))["backups"], 0);
    assert_eq!(json(space.engine.restore("before", space.at))["messages"], 1);
}

#[test]
fn a_forgetting_that_cannot_be_finished_does_not_keep_the_space_shut() {
    let mut space = space();
    space.say(&format!("My locker code is {SECRET}, tell nobody."));
    space.engine.backup("first", space.at).expect("backed up");
    let note = json!({"needles": "of another build"}).to_string();
    space.change(&format!("INSERT INTO space VALUES ('forgetting', '{note}')"));
    space.crash();
    assert_eq!(json(space.engine.status())["forgetting"]["unfinished"], true);
    space.at += SECOND;
    space.say("And the space goes on.");
}
