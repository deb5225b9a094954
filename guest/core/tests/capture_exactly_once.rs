//! The same messages delivered twice, by id or by content, make one row each.

use std::rc::Rc;
use strata_core::contract::{EndEvent, Message, Scope};
use strata_core::disk::StdDisk;
use strata_core::engine::{Engine, Models};

fn message(id: Option<&str>, role: &str, content: &str) -> Message {
    Message { id: id.map(str::to_owned), role: role.into(), content: content.into(), ..Message::default() }
}

fn event(messages: Vec<Message>) -> EndEvent {
    EndEvent { scope: Scope { session: "s".into(), ..Scope::default() }, messages, success: true, at: 1_700_000_000_000 }
}

#[test]
fn equal_messages_are_kept_apart_and_redelivery_adds_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let disk = Rc::new(StdDisk::new(directory.path()));
    let (mut engine, _) = Engine::open(disk.clone(), "", Models::default(), 0).expect("opens");
    let talk = vec![message(None, "user", "ok"), message(None, "assistant", "done"), message(None, "user", "ok")];
    assert_eq!(engine.agent_end(&event(talk.clone())).expect("captured").stored.len(), 3);
    engine.close(0).expect("closes");

    let (mut engine, _) = Engine::open(disk, "", Models::default(), 0).expect("opens again");
    let again = engine.agent_end(&event(talk)).expect("captured");
    assert_eq!((again.stored.len(), again.known), (0, 3));
    let with_ids =
        vec![message(Some("1"), "user", "ok"), message(Some("2"), "assistant", "done"), message(Some("3"), "user", "ok"), message(Some("4"), "user", "ok")];
    let report = engine.agent_end(&event(with_ids)).expect("captured");
    assert_eq!((report.stored.len(), report.known), (1, 3));
}
