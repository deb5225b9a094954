//! Vectors by a host's model that changes, that refuses a text, or that is late while something is forgotten.

#[path = "story/space.rs"]
mod space;

use serde_json::{Value, json};
use space::{SECOND, Space};
use strata_core::contract::{EmbeddingModel, Instant, Outcome, Outgoing, PromptEvent, Scope, Selector};
use strata_core::engine::Models;

fn models(name: &str, batch: u32) -> Models {
    Models { embedding: Some(EmbeddingModel { name: name.into(), dimensions: 2, batch }), ..Models::default() }
}

/// Returns what was asked of the embedding model: ids and texts.
fn asked(space: &mut Space) -> Vec<(String, Vec<String>)> {
    let ask = |outgoing| match outgoing {
        Outgoing::Embed { id, texts } => Some((id, texts)),
        _ => None,
    };
    space.engine.drain().into_iter().filter_map(ask).collect()
}

fn answer(space: &mut Space, id: &str, vectors: &[[f32; 2]]) -> bool {
    space.engine.complete(id, Outcome::Vectors(vectors.iter().map(|vector| vector.to_vec()).collect()), space.at).expect("taken")
}

fn status(space: &Space) -> Value {
    let status: Value = serde_json::from_str(&space.engine.status().expect("a status")).expect("JSON");
    status["embedding"].clone()
}

/// Answers like a service that refuses every request with a text of `refused`; returns how many requests that took.
fn serve(space: &mut Space, models: &Models, refused: &[&str], until: Instant) -> u32 {
    let mut requests = 0;
    while space.at < until {
        let next = space.engine.tick(space.at, models.clone()).expect("ticks");
        let mut waiting = asked(space);
        while let Some((id, texts)) = waiting.pop() {
            requests += 1;
            let outcome = if texts.iter().any(|text| refused.iter().any(|refused| text.contains(refused))) {
                Outcome::Failed("400 input too long".into())
            } else {
                Outcome::Vectors(texts.iter().map(|_| vec![1.0, 0.0]).collect())
            };
            assert!(space.engine.complete(&id, outcome, space.at).expect("taken"));
            waiting.extend(asked(space));
        }
        space.at = next.unwrap_or(until).max(space.at + 30 * SECOND);
    }
    requests
}

#[test]
fn vectors_of_another_model_of_one_length_are_not_compared() {
    let mut space = Space::new(false, json!({}));
    space.say("The zebra lamp stands in the attic");
    space.say("A violet kite hangs in the hall");
    space.engine.tick(space.at, models("one", 8)).expect("ticks");
    let (id, _) = asked(&mut space).remove(0);
    assert!(answer(&mut space, &id, &[[1.0, 0.0], [0.0, 1.0]]));
    let recalled = |space: &mut Space| {
        let scope = Scope { session: "friday".into(), ..Scope::default() };
        let prompt = "What is the capital of Mongolia?".into();
        let event = PromptEvent { scope, prompt, query_vector: Some(vec![0.0, 1.0]), at: space.at, ..PromptEvent::default() };
        space.engine.before_prompt_build(&event).expect("built").dynamic.contains("A violet kite hangs in the hall")
    };
    assert!(recalled(&mut space), "the model's vectors serve");
    space.engine.tick(space.at, models("other", 8)).expect("ticks");
    assert!(!recalled(&mut space), "until the other model's are there the built-in ones serve");
    let (id, _) = asked(&mut space).remove(0);
    assert!(answer(&mut space, &id, &[[1.0, 0.0], [0.0, 1.0]]));
    assert!(recalled(&mut space));
}

#[test]
fn a_text_that_the_model_refuses_keeps_no_other_waiting() {
    for batch in [1, 2, 8] {
        let mut space = Space::new(false, json!({}));
        for text in ["Tea is green", "poison one", "poison two", "The lamp is red", "The kite is blue"] {
            space.say(text);
        }
        let until = space.at + 4 * 3_600 * SECOND;
        let requests = serve(&mut space, &models("strict", batch), &["poison"], until);
        let now = status(&space);
        assert_eq!((&now[0]["serves"], &now[0]["refused"], &now[0]["failed-attempts"]), (&json!(true), &json!(2), &json!(0)), "{batch}: {now}");
        assert!(requests < 60, "{batch}: {requests} requests");
        assert_eq!(space.row::<u32>("SELECT count(*) FROM host_vectors WHERE vector = x''"), 2);
        // Somebody mends the service and asks for another try.
        let retried: Value = serde_json::from_str(&space.engine.retry("embedding", space.at).expect("retried")).expect("JSON");
        assert_eq!(retried["batches"], 2);
        let until = space.at + 60 * SECOND;
        serve(&mut space, &models("strict", batch), &[], until);
        let now = status(&space);
        assert_eq!(now[0]["refused"], 0, "{batch}: {now}");
        assert_eq!(space.row::<u32>("SELECT count(*) FROM messages WHERE NOT EXISTS (SELECT 1 FROM host_vectors WHERE kind = 0 AND row = messages.id)"), 0);
    }
}

#[test]
fn a_service_that_is_down_refuses_no_text() {
    let mut space = Space::new(false, json!({}));
    for text in ["Tea is green", "The lamp is red", "The kite is blue"] {
        space.say(text);
    }
    let until = space.at + 48 * 3_600 * SECOND;
    let requests = serve(&mut space, &models("down", 8), &[""], until);
    assert!((40..80).contains(&requests), "{requests} requests in two days");
    assert_eq!(status(&space)[0]["refused"], 0);
    let until = space.at + 2 * 3_600 * SECOND;
    serve(&mut space, &models("down", 8), &[], until);
    let now = status(&space);
    assert_eq!((&now[0]["serves"], &now[0]["refused"], &now[0]["failed-attempts"]), (&json!(true), &json!(0), &json!(0)), "{now}");
}

#[test]
fn the_vector_of_a_forgotten_text_does_not_land_on_the_next_message() {
    let mut space = Space::new(false, json!({}));
    space.say("My locker code is 4711");
    space.engine.tick(space.at, models("one", 8)).expect("ticks");
    let (id, _) = asked(&mut space).remove(0);
    let which = Selector { query: Some("4711".into()), ..Selector::default() };
    space.engine.forget(&which, true, space.at).expect("forgotten");
    assert!(space.engine.drain().contains(&Outgoing::CancelEmbed { id: id.clone() }), "the host need not go on");
    space.say("The kite is blue");
    assert_eq!(space.row::<i64>("SELECT id FROM messages"), 1, "the row's number is given again");
    assert!(!answer(&mut space, &id, &[[1.0, 0.0]]), "a late answer is not taken");
    space.engine.tick(space.at, models("one", 8)).expect("ticks");
    assert_eq!(asked(&mut space)[0].1, ["The kite is blue"]);
}
