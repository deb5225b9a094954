//! The ways that lead down from what a context shows: scenes by their paths, and offload's nodes, entries and texts.

#[path = "story/space.rs"]
mod space;

use serde_json::{Value, json};
use space::{SECOND, Space, answer, create};
use strata_core::contract::{Answer, FailureCode, Invocation, Scope, ToolEvent};

const OUTPUT: &str = "Cargo.toml\nsrc/main.rs\n";

fn ask(space: &mut Space, scope: Scope, id: &str) -> Answer {
    let invocation = Invocation {
        scope,
        turn_id: Some(format!("turn for {id}")),
        name: "memory_trace".into(),
        arguments_json: json!({"id": id}).to_string(),
        at: space.at,
        ..Invocation::default()
    };
    space.engine.call_tool(&invocation).expect("a tool answers")
}

fn trace(space: &Space, id: &str) -> Value {
    serde_json::from_str(&space.engine.trace(id).expect(id)).expect("a document")
}

fn listing(space: &mut Space, scope: Scope, call: &str) -> (String, String) {
    let event = ToolEvent {
        scope,
        tool_call_id: call.into(),
        tool_name: "bash".into(),
        arguments_json: r#"{"command": "ls"}"#.into(),
        output: OUTPUT.into(),
        at: space.at,
        ..ToolEvent::default()
    };
    let receipt = space.engine.after_tool_call(&event).expect("stored");
    (receipt.entry, receipt.result_ref)
}

#[test]
fn a_scene_that_the_prompt_shows_by_its_path_is_read_by_that_path() {
    let mut space = Space::new(true, json!({"pipeline": {"everyNConversations": 1, "l2MinIntervalSeconds": 0}}));
    let porto = space.learn("I moved to Porto in May.", "episodic", "Porto");
    let (id, _) = space.scenes(10 * SECOND);
    space.complete(&id, &answer(json!([create("porto", "The user moved to Porto in May.", &porto)])));
    for name in ["scenes/porto.md", "porto.md", "porto", "scenes/porto.md@1"] {
        let read = ask(&mut space, space::scope(), name);
        assert!(!read.is_error, "{name}: {}", read.text);
        assert!(read.text.starts_with("scenes/porto.md, revision 1 of "), "{}", read.text);
        assert!(read.text.ends_with(&format!(", by model:\nThe user moved to Porto in May. [{porto}]\n")), "{}", read.text);
        assert!(read.structured_json.contains("I moved to Porto in May."), "the document has the messages");
    }
    assert_eq!(trace(&space, "scenes/porto.md")["statements"][0]["rests-on"][0]["id"], porto.as_str());
    let other = Scope { user: "somebody else".into(), ..space::scope() };
    listing(&mut space, other.clone(), "c1");
    let refused = ask(&mut space, other, "scenes/porto.md");
    assert_eq!((refused.is_error, refused.text.as_str()), (true, "nothing has the id `scenes/porto.md`"));
}

#[test]
fn a_trace_goes_from_a_node_and_an_entry_to_the_exact_text_and_back() {
    let mut space = Space::new(true, json!({}));
    let (entry, path) = listing(&mut space, space::scope(), "c1");
    let node = trace(&space, "001-N1");
    assert_eq!((&node["layer"], &node["rests-on"][0]["id"]), (&json!("node"), &json!(entry)));
    assert_eq!(
        node["rests-on"][0]["rests-on"][0],
        json!({"id": path, "layer": "ref", "kind": "result", "bytes": OUTPUT.len(), "sha256": node["rests-on"][0]["rests-on"][0]["sha256"]})
    );
    let called = trace(&space, &entry);
    assert_eq!((&called["layer"], &called["tool"], &called["node"]), (&json!("entry"), &json!("bash"), &json!("001-N1")));
    assert_eq!((&called["rests-on"][0]["text"], &called["rests-on"][0]["cut"]), (&json!(OUTPUT), &json!(false)));
    let text = trace(&space, &path);
    assert_eq!((&text["text"], &text["built-on-it"][0]["id"]), (&json!(OUTPUT), &json!(entry)));
    for id in ["001-N1", &entry, &path] {
        assert!(!ask(&mut space, space::scope(), id).is_error, "{id}");
    }
    for id in ["001-N9", "o_0000000000000000", "refs/0000000000000000.md", "refs/", "-N", "001-N", ""] {
        assert_eq!(space.engine.trace(id).expect_err(id).code, FailureCode::NotFound, "{id}");
    }
}

#[test]
fn a_tool_traces_neither_calls_of_another_scope_nor_nodes_of_another_session() {
    let mut space = Space::new(true, json!({}));
    let (entry, path) = listing(&mut space, space::scope(), "c1");
    let other = Scope { user: "somebody else".into(), ..space::scope() };
    let message = strata_core::contract::Message { role: "user".into(), content: "We meet on Mondays.".into(), ..Default::default() };
    let event = strata_core::contract::EndEvent { scope: other.clone(), messages: vec![message], success: true, at: space.at };
    space.engine.agent_end(&event).expect("stored");
    for id in ["001-N1", &entry, &path] {
        let refused = ask(&mut space, other.clone(), id);
        assert_eq!((refused.is_error, refused.text), (true, format!("nothing has the id `{id}`")));
    }
    let later = Scope { session: "later".into(), ..space::scope() };
    assert!(ask(&mut space, later.clone(), "001-N1").is_error, "each session has its own nodes");
    assert!(!ask(&mut space, later, &path).is_error, "a session of the scope may read its texts, as by ref_read");
}
