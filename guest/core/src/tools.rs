//! Tools that a host offers to its model.

use crate::calendar::Calendar;
use crate::contract::{Answer, Failure, Invocation, Result, SearchRequest};
use crate::index::Index;
use crate::l0;
use crate::l1::atom::{Atom, Kind};
use crate::offload::trace::Asker;
use crate::recall::{self, Query};
use crate::settings::Settings;
use crate::store::Store;
use crate::trace;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Calls that a turn may make in all (the reference system only asks for it).
pub const CALLS_A_TURN: u32 = 3;

/// Sessions whose turn is remembered; beyond it the allowance of the smallest name is forgotten.
const MAX_TURNS: usize = 4096;

/// Results that a model gets without asking for a number, and at most.
const DEFAULT_LIMIT: u64 = 5;
const MAX_LIMIT: u64 = 20;

/// Characters of one message in a search result for a model.
const MAX_SHOWN: usize = 600;

/// Names of other systems for our tools.
const ALIASES: &[(&str, &str)] = &[
    ("tdai_memory_search", "memory_search"),
    ("tdai_conversation_search", "conversation_search"),
    ("memory_tencentdb_memory_search", "memory_search"),
    ("memory_tencentdb_conversation_search", "conversation_search"),
];

/// The calls that turns have made. It lives in memory: a restart gives a turn its calls back.
#[derive(Debug, Default)]
pub struct Allowance {
    /// By session: the turn, and the calls it has made.
    turns: BTreeMap<String, (String, u32)>,
}

impl Allowance {
    /// Starts a turn of a session, unless it has started.
    pub fn begin(&mut self, session: String, turn: String) {
        if self.turns.get(&session).is_none_or(|(known, _)| *known != turn) {
            if self.turns.len() >= MAX_TURNS {
                self.turns.pop_first();
            }
            self.turns.insert(session, (turn, 0));
        }
    }

    /// Counts a call; returns false if the turn has made all of its calls. Without a turn it belongs to
    /// the session's last one.
    fn spend(&mut self, session: &str, turn: Option<&str>) -> bool {
        if let Some(turn) = turn {
            self.begin(session.to_owned(), turn.to_owned());
        } else if !self.turns.contains_key(session) {
            self.begin(session.to_owned(), String::new());
        }
        let (_, calls) = self.turns.get_mut(session).expect("the turn was just begun");
        if *calls >= CALLS_A_TURN {
            return false;
        }
        *calls += 1;
        true
    }
}

/// `tools.list`.
pub fn list() -> Value {
    let limit = json!({"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT});
    json!([
        {
            "name": "memory_search",
            "description": "Searches long-term memory: facts about the user, past events and decisions, standing rules. At most three memory calls a turn, all tools together.",
            "parameters": {
                "type": "object", "required": ["query"],
                "properties": {
                    "query": {"type": "string", "description": "What to look for, in the user's words."},
                    "limit": limit,
                    "type": {"type": "string", "enum": ["persona", "episodic", "instruction"]},
                    "scene": {"type": "string", "description": "Only memories of scenes whose name holds this text."}
                }
            }
        },
        {
            "name": "conversation_search",
            "description": "Searches past conversations word by word. At most three memory calls a turn, all tools together.",
            "parameters": {
                "type": "object", "required": ["query"],
                "properties": {
                    "query": {"type": "string"},
                    "limit": limit,
                    "session_key": {"type": "string", "description": "Only this session."}
                }
            }
        },
        {
            "name": "memory_trace",
            "description": "Shows the messages behind a memory, what was remembered from a message, or what a scene says and rests on. At most three memory calls a turn, all tools together.",
            "parameters": {
                "type": "object", "required": ["id"],
                "properties": {"id": {"type": "string", "description": "An id such as a_0123456789abcdef, or a scene's path such as scenes/porto.md."}}
            }
        }
    ])
}

/// `tools.call`.
pub fn call(store: &Store, settings: &Settings, allowance: &mut Allowance, invocation: &Invocation) -> Result<Answer> {
    let name = ALIASES.iter().find(|(alias, _)| *alias == invocation.name).map_or(invocation.name.as_str(), |(_, name)| name);
    if !["memory_search", "conversation_search", "memory_trace"].contains(&name) {
        return Err(Failure::not_found(format!("there is no tool `{}`", invocation.name)));
    }
    let arguments: Value = match serde_json::from_str(if invocation.arguments_json.trim().is_empty() { "{}" } else { &invocation.arguments_json }) {
        Ok(arguments @ Value::Object(_)) => arguments,
        _ => return Ok(refusal("the arguments must be a JSON object")),
    };
    let session = session_key(&invocation.scope);
    if !allowance.spend(&session, invocation.turn_id.as_deref()) {
        return Ok(refusal("this turn has made its three memory calls; answer with what you have"));
    }
    let calendar = Calendar::new(&settings.timezone.0)?;
    let (db, index) = (store.db(), &store.index());
    match name {
        "memory_search" => search_atoms(db, index, settings, &calendar, invocation, &arguments),
        "conversation_search" => search_messages(db, index, settings, &calendar, invocation, &arguments),
        _ => trace_id(store, &calendar, invocation, &arguments),
    }
}

/// Returns the name under which a session's turns are counted.
pub fn session_key(scope: &crate::contract::Scope) -> String {
    [scope.team.as_str(), &scope.user, &scope.agent, &scope.session].join("\u{0}")
}

fn refusal(message: &str) -> Answer {
    Answer { text: message.into(), structured_json: json!({"error": message}).to_string(), is_error: true }
}

fn text_of<'a>(arguments: &'a Value, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
}

fn limit_of(arguments: &Value) -> usize {
    let asked = arguments.get("limit").and_then(|limit| limit.as_u64().or_else(|| limit.as_str().and_then(|text| text.parse().ok())));
    usize::try_from(asked.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT)).expect("1 to 20 fits")
}

fn search_atoms(db: &Connection, index: &Index, settings: &Settings, calendar: &Calendar, invocation: &Invocation, arguments: &Value) -> Result<Answer> {
    let Some(query) = text_of(arguments, "query") else { return Ok(refusal("`query` is missing: say what to look for")) };
    let kind = match text_of(arguments, "type").map(Kind::parse) {
        Some(None) => return Ok(refusal("`type` must be persona, episodic or instruction")),
        kind => kind.flatten(),
    };
    let scene = text_of(arguments, "scene").map(str::to_lowercase);
    let keep = |atom: &Atom| kind.is_none_or(|kind| atom.kind == kind) && scene.as_ref().is_none_or(|scene| atom.scene.to_lowercase().contains(scene));
    let found = match l0::find_scope(db, &invocation.scope)? {
        Some(scope) => recall::atoms(db, index, scope, &query_of(query, settings, invocation), limit_of(arguments), keep)?,
        None => Vec::new(),
    };
    let mut text = format!("Found {} matching memories.\n", found.len());
    let mut results = Vec::new();
    for found in &found {
        let atom = &found.item;
        let rule = if atom.priority == -1 { ", standing rule" } else { "" };
        text.push_str(&format!("- [{}] {} (priority {}{rule}, since {}): {}\n", atom.uid, atom.kind, atom.priority, calendar.day(atom.valid_from), atom.text));
        let mut result = trace::atom_json(calendar, atom);
        result["score"] = round(found.score);
        results.push(result);
    }
    Ok(Answer { text, structured_json: json!({"results": results}).to_string(), is_error: false })
}

fn search_messages(db: &Connection, index: &Index, settings: &Settings, calendar: &Calendar, invocation: &Invocation, arguments: &Value) -> Result<Answer> {
    let Some(query) = text_of(arguments, "query") else { return Ok(refusal("`query` is missing: say what to look for")) };
    let session = text_of(arguments, "session_key");
    let scope = l0::find_scope(db, &invocation.scope)?;
    let session_id = match (scope, session) {
        (Some(scope), Some(name)) => l0::find_session(db, scope, name)?,
        _ => None,
    };
    let found = match scope {
        // A session that is not there has no messages.
        Some(scope) if session.is_none() || session_id.is_some() => {
            let query = Query { session: session_id, ..query_of(query, settings, invocation) };
            recall::messages(db, index, scope, &query, limit_of(arguments), |_| true)?
        }
        _ => Vec::new(),
    };
    let mut text = format!("Found {} matching messages.\n", found.len());
    let mut results = Vec::new();
    for found in &found {
        let message = &found.item;
        let shown: String = message.text.chars().take(MAX_SHOWN).collect();
        let cut = if shown.len() < message.text.len() { "… (`memory_trace` shows all of it)" } else { "" };
        let session = l0::session_name(db, message.session)?;
        text.push_str(&format!("- [{}] {} in session {session}, {}: {shown}{cut}\n", message.uid, message.role, calendar.iso(message.said_at)));
        let mut result = trace::message_json(db, calendar, message)?;
        result["score"] = round(found.score);
        results.push(result);
    }
    Ok(Answer { text, structured_json: json!({"results": results}).to_string(), is_error: false })
}

fn query_of<'a>(text: &'a str, settings: &'a Settings, invocation: &'a Invocation) -> Query<'a> {
    Query {
        text,
        vector: invocation.query_vector.as_deref(),
        strategy: &settings.recall.strategy,
        threshold: settings.recall.score_threshold,
        sought: true,
        ..Query::default()
    }
}

/// Returns a score with six digits: what differs beyond them is not a difference.
fn round(score: f64) -> Value {
    json!((score * 1e6).round() / 1e6)
}

fn trace_id(store: &Store, calendar: &Calendar, invocation: &Invocation, arguments: &Value) -> Result<Answer> {
    let Some(id) = text_of(arguments, "id") else { return Ok(refusal("`id` is missing")) };
    // What another scope holds is not there: a group must not read its owner's memory.
    let traced = match l0::find_scope(store.db(), &invocation.scope)? {
        Some(row) => trace::trace_within(store.db(), store.disk(), calendar, Asker { row, scope: &invocation.scope }, id),
        None => Err(trace::unknown(id)),
    };
    match traced {
        Ok(document) => {
            let text = match document["layer"].as_str() {
                Some("scene" | "persona") => page_text(&document),
                _ => serde_json::to_string_pretty(&document).expect("a document serializes"),
            };
            Ok(Answer { text, structured_json: document.to_string(), is_error: false })
        }
        Err(failure) if failure.code == crate::contract::FailureCode::NotFound => Ok(refusal(&failure.message)),
        Err(failure) => Err(failure),
    }
}

/// Returns a page to be read: each statement with the ids that it rests on. With all their messages, which a trace of
/// those ids shows, it would fill the context.
fn page_text(document: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut page = format!("{}, revision {} of {}, by {}:\n", text(&document["path"]), document["revision"], text(&document["at"]), text(&document["by"]));
    for statement in document["statements"].as_array().into_iter().flatten() {
        let atoms: Vec<String> = statement["rests-on"].as_array().into_iter().flatten().map(|atom| text(&atom["id"])).collect();
        let grounds = if atoms.is_empty() { String::new() } else { format!(" [{}]", atoms.join(", ")) };
        page.push_str(&format!("{}{grounds}\n", text(&statement["text"])));
    }
    page
}

/// `memory.search`: no allowance, both layers, all times.
pub fn search(db: &Connection, index: &Index, settings: &Settings, request: &SearchRequest) -> Result<Value> {
    if !(1..=100).contains(&request.limit) {
        return Err(Failure::invalid(format!("limit: {} is not between 1 and 100", request.limit)));
    }
    let strategy = match request.strategy.as_str() {
        "" => settings.recall.strategy.as_str(),
        known @ ("keyword" | "vector" | "hybrid") => known,
        other => return Err(Failure::invalid(format!("strategy: `{other}` is not keyword, vector or hybrid"))),
    };
    let query = Query {
        text: &request.query,
        vector: request.query_vector.as_deref(),
        strategy,
        believed_at: request.believed_at,
        true_at: request.true_at,
        threshold: settings.recall.score_threshold,
        sought: true,
        session: None,
    };
    let calendar = Calendar::new(&settings.timezone.0)?;
    let scope = l0::find_scope(db, &request.scope)?;
    let mut results = Vec::new();
    match (request.layer.as_str(), scope) {
        ("atoms" | "messages", None) => {}
        ("atoms", Some(scope)) => {
            for found in recall::atoms(db, index, scope, &query, request.limit as usize, |_| true)? {
                let mut result = trace::atom_json(&calendar, &found.item);
                result["score"] = round(found.score);
                results.push(result);
            }
        }
        ("messages", Some(scope)) => {
            for found in recall::messages(db, index, scope, &query, request.limit as usize, |_| true)? {
                let mut result = trace::message_json(db, &calendar, &found.item)?;
                if let Some(host_id) = l0::host_id(db, found.item.id)? {
                    result["host-id"] = json!(host_id);
                }
                result["score"] = round(found.score);
                results.push(result);
            }
        }
        (other, _) => return Err(Failure::invalid(format!("layer: `{other}` is not atoms or messages"))),
    }
    Ok(json!({"layer": request.layer, "query": request.query, "results": results}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_calls_a_turn_and_three_more_in_the_next() {
        let mut allowance = Allowance::default();
        allowance.begin("s".into(), "t1".into());
        assert_eq!((0..4).map(|_| allowance.spend("s", None)).collect::<Vec<_>>(), [true, true, true, false]);
        assert!(!allowance.spend("s", Some("t1")));
        assert!(allowance.spend("s", Some("t2")));
        assert!(allowance.spend("other", None));
    }
}
