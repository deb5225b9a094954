//! Models behind OpenAI-compatible HTTP endpoints.
//!
//! Each request has a worker thread and a connection of its own, so that cancelling it closes the
//! connection at once. Nothing is repeated here: when to ask again is the engine's to decide.

use super::{Models, Reply, Request, Secret, chat, vectors};
use crate::config::{Config, EmbeddingEndpoint, Endpoint};
use crate::contract::{Abilities, EmbeddingModel, Outcome};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use ureq::Agent;

/// Requests under way at once; more wait.
const MAX_WORKERS: usize = 4;

/// Requests that wait at most; more fail at once.
const MAX_WAITING: usize = 1024;

/// An answer longer than this is not read, in bytes.
const MAX_ANSWER: u64 = 32 << 20;

/// How long to wait for a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// How long an embedding request may take; the engine gives no limit for it.
const EMBED: Duration = Duration::from_secs(60);

/// Words of a refusal that are kept, in characters.
const MAX_REFUSAL: usize = 300;

/// The models of one space. Request ids are unique in a space only, so each space has its own.
pub struct HttpModels {
    shared: Arc<Shared>,
}

impl fmt::Debug for HttpModels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HttpModels").field(&self.shared.llm).field(&self.shared.embedding).finish()
    }
}

struct Shared {
    llm: Option<Endpoint>,
    embedding: Option<EmbeddingEndpoint>,
    state: Mutex<State>,
    /// Told when a request waits, and when all is over.
    wake: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(Request, Reply)>,
    under_way: BTreeMap<String, Agent>,
    workers: usize,
    idle: usize,
    over: bool,
}

impl HttpModels {
    /// Returns the models that `config` names; no connection is made yet.
    pub fn new(config: &Config) -> Self {
        Self { shared: Arc::new(Shared { llm: config.llm.clone(), embedding: config.embedding.clone(), state: Mutex::default(), wake: Condvar::new() }) }
    }

    /// Returns the vector of one text and waits for it, `limit` at most: for the query of a recall, which goes into the
    /// call. `None` if there is no embedding model.
    pub fn embed(&self, text: &str, limit: Duration) -> Option<Result<Vec<f32>, String>> {
        let embedding = self.shared.embedding.as_ref()?;
        let agent = Agent::config_builder().timeout_global(Some(limit)).http_status_as_error(false).build().new_agent();
        let texts = [text.to_owned()];
        let answer = post(&agent, &embedding.endpoint, "embeddings", &vectors::body(&embedding.endpoint.model, &texts))
            .and_then(|response| vectors::answer(&response, 1, embedding.dimensions))
            .and_then(|mut vectors| vectors.pop().ok_or_else(|| "no vector came".into()));
        Some(answer)
    }
}

impl Drop for HttpModels {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.over = true;
        // The replies that drop here go to a space that is closed or closing.
        state.waiting.clear();
        for (_, agent) in std::mem::take(&mut state.under_way) {
            agent.shutdown();
        }
        self.shared.wake.notify_all();
    }
}

impl Models for HttpModels {
    fn abilities(&self) -> Abilities {
        self.shared.llm.as_ref().map_or_else(Abilities::default, |llm| Abilities { available: true, model: llm.model.clone(), json_schema: llm.json_schema })
    }

    fn embedding(&self) -> Option<EmbeddingModel> {
        self.shared.embedding.as_ref().map(|embedding| EmbeddingModel {
            name: embedding.endpoint.model.clone(),
            dimensions: embedding.dimensions,
            batch: embedding.batch,
        })
    }

    fn perform(&self, request: Request, reply: Reply) {
        let mut state = self.shared.state();
        if state.waiting.len() >= MAX_WAITING {
            drop(state);
            reply.send(Outcome::Failed(format!("{MAX_WAITING} requests wait already")));
            return;
        }
        state.waiting.push_back((request, reply));
        if state.idle == 0 && state.workers < MAX_WORKERS {
            let shared = Arc::clone(&self.shared);
            // Without a thread the request waits for the workers there are; without any it fails.
            match thread::Builder::new().name("strata-model".into()).spawn(move || shared.work()) {
                Ok(_detached) => state.workers += 1,
                Err(error) if state.workers == 0 => {
                    let waiting = state.waiting.pop_back();
                    drop(state);
                    if let Some((_, reply)) = waiting {
                        reply.send(Outcome::Failed(format!("no thread for the request: {error}")));
                    }
                    return;
                }
                Err(_) => {}
            }
        }
        self.shared.wake.notify_one();
    }

    fn cancel(&self, id: &str) {
        let mut state = self.shared.state();
        let before = state.waiting.len();
        state.waiting.retain(|(request, _)| request.id() != id);
        if state.waiting.len() == before
            && let Some(agent) = state.under_way.remove(id)
        {
            agent.shutdown();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two statements, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        loop {
            let mut state = self.state();
            state.idle += 1;
            let mut state = self.wake.wait_while(state, |state| state.waiting.is_empty() && !state.over).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
            if state.over {
                return;
            }
            let Some((request, reply)) = state.waiting.pop_front() else { continue };
            let id = request.id().to_owned();
            let agent = agent(&request);
            state.under_way.insert(id.clone(), agent.clone());
            drop(state);
            let outcome = self.ask(&agent, &request).unwrap_or_else(Outcome::Failed);
            self.state().under_way.remove(&id);
            reply.send(outcome);
        }
    }

    fn ask(&self, agent: &Agent, request: &Request) -> Result<Outcome, String> {
        match request {
            Request::Ask { request, .. } => {
                let llm = self.llm.as_ref().ok_or("this host has no language model")?;
                let response = post(agent, llm, "chat/completions", &chat::body(&llm.model, llm.json_schema, request))?;
                chat::answer(&response).map(Outcome::Text)
            }
            Request::Embed { texts, .. } => {
                let embedding = self.embedding.as_ref().ok_or("this host has no embedding model")?;
                let response = post(agent, &embedding.endpoint, "embeddings", &vectors::body(&embedding.endpoint.model, texts))?;
                vectors::answer(&response, texts.len(), embedding.dimensions).map(Outcome::Vectors)
            }
        }
    }
}

fn agent(request: &Request) -> Agent {
    let limit = match request {
        Request::Ask { request, .. } => Duration::from_millis(u64::from(request.timeout_ms)),
        Request::Embed { .. } => EMBED,
    };
    Agent::config_builder().timeout_global(Some(limit)).timeout_connect(Some(CONNECT.min(limit))).http_status_as_error(false).build().new_agent()
}

fn post(agent: &Agent, endpoint: &Endpoint, path: &str, body: &Value) -> Result<Value, String> {
    let url = format!("{}/{path}", endpoint.url.trim_end_matches('/'));
    let mut request = agent.post(&url);
    if !endpoint.key.is_empty() {
        request = request.header("authorization", endpoint.key.bearer());
    }
    let mut response = request.send_json(body).map_err(|error| unreachable(&endpoint.key, &url, &error.to_string()))?;
    let status = response.status();
    let text = response.body_mut().with_config().limit(MAX_ANSWER).read_to_string().map_err(|error| unreachable(&endpoint.key, &url, &error.to_string()))?;
    if !status.is_success() {
        let words: String = endpoint.key.struck_from(&text).chars().take(MAX_REFUSAL).collect();
        return Err(format!("{url} answered {status}: {words}"));
    }
    serde_json::from_str(&text).map_err(|error| format!("{url} answered no JSON: {error}"))
}

fn unreachable(key: &Secret, url: &str, words: &str) -> String {
    key.struck_from(&format!("{url}: {words}"))
}
