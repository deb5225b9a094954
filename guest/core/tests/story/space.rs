//! A space on a simulated disk with a scripted model, told by tests of the core.

#![allow(dead_code, unreachable_pub, reason = "each test crate uses its part")]

use serde_json::{Value, json};
use std::rc::Rc;
use strata_core::contract::{Abilities, EndEvent, Instant, LlmAnswer, LlmRequest, Message, Outcome, Outgoing, PromptEvent, Scope};
use strata_core::disk::{self, Disk, SimDisk};
use strata_core::engine::{Engine, Models};

#[path = "telling.rs"]
mod telling;

use telling::Telling;

pub const START: Instant = 1_780_000_000_000;
pub const SECOND: Instant = 1_000;

pub struct Space {
    pub engine: Telling,
    pub disk: SimDisk,
    pub at: Instant,
    pub model: bool,
    settings: Value,
}

pub fn models(available: bool) -> Models {
    Models { llm: Abilities { available, model: "scripted".into(), json_schema: true }, embedding: None }
}

pub fn scope() -> Scope {
    Scope { session: "s".into(), ..Scope::default() }
}

impl Space {
    pub fn new(model: bool, config: Value) -> Self {
        Self::on(SimDisk::new(), model, config)
    }

    pub fn on(disk: SimDisk, model: bool, config: Value) -> Self {
        let mut settings = json!({"extraction": {"enableDedup": false}, "pipeline": {"everyNConversations": 1}});
        for (group, values) in config.as_object().expect("an object") {
            settings[group] = values.clone();
        }
        let config = settings.clone();
        settings["holder"] = json!({"id": "test"});
        let port: Rc<dyn Disk> = Rc::new(disk.clone());
        let (engine, _) = Engine::open(port, &settings.to_string(), models(model), START).expect("opens");
        Self { engine: Telling::new(engine, config, models(model)), disk, at: START, model, settings }
    }

    /// Drops the engine as a kill does, and opens the space again.
    pub fn crash(&mut self) {
        let (disk, settings, model, at) = (self.disk.clone(), self.settings.to_string(), self.model, self.at);
        self.engine.crash(|| {
            let port: Rc<dyn Disk> = Rc::new(disk);
            Engine::open(port, &settings, models(model), at).expect("opens again").0
        });
    }

    pub fn say(&mut self, text: &str) {
        self.at += SECOND;
        let messages = vec![Message { role: "user".into(), content: text.into(), id: Some(self.at.to_string()), ..Message::default() }];
        self.engine.agent_end(&EndEvent { scope: scope(), messages, success: true, at: self.at }).expect("captured");
    }

    pub fn tick(&mut self, later: Instant) -> Option<Instant> {
        self.at += later;
        self.engine.tick(self.at, models(self.model)).expect("ticks")
    }

    /// Ticks and returns when to look again, which the story is about.
    pub fn deadline(&mut self, later: Instant) -> Option<Instant> {
        self.at += later;
        self.engine.deadline(self.at, models(self.model)).expect("ticks")
    }

    pub fn asked(&mut self) -> Vec<(String, LlmRequest)> {
        let ask = |outgoing| match outgoing {
            Outgoing::AskModel { id, request } => Some((id, request)),
            _ => None,
        };
        self.engine.drain().into_iter().filter_map(ask).collect()
    }

    pub fn one(&mut self, purpose: &str) -> (String, LlmRequest) {
        let mut asked = self.asked();
        assert_eq!(asked.iter().map(|(_, request)| request.purpose.as_str()).collect::<Vec<_>>(), [purpose]);
        asked.remove(0)
    }

    pub fn complete(&mut self, id: &str, text: &str) {
        let answer = LlmAnswer { text: text.into(), model: "scripted".into(), ..LlmAnswer::default() };
        assert!(self.engine.complete(id, Outcome::Text(answer), self.at).expect("taken"));
    }

    /// Says something and has the scripted model make one atom of it; returns the atom's id.
    pub fn learn(&mut self, text: &str, kind: &str, scene: &str) -> String {
        self.say(text);
        self.tick(0);
        let (id, _) = self.one("l1-extract");
        let memory = json!({"content": text, "type": kind, "priority": 90, "sources": [{"id": "m1", "quote": text}], "start": "", "end": ""});
        self.complete(&id, &json!({"scenes": [{"scene": scene, "memories": [memory]}]}).to_string());
        self.atom(text)
    }

    pub fn atom(&self, text: &str) -> String {
        self.engine.store().db().query_row("SELECT uid FROM atoms WHERE text = ?1 ORDER BY id DESC LIMIT 1", [text], |row| row.get(0)).expect("an atom")
    }

    /// Ticks past the delay; returns the question about scenes.
    pub fn scenes(&mut self, later: Instant) -> (String, LlmRequest) {
        self.tick(later);
        self.one("l2-scenes")
    }

    pub fn file(&self, path: &str) -> Option<String> {
        let text = disk::read_all(&self.disk, path).ok().map(|bytes| String::from_utf8(bytes).expect("text"));
        // An export holds the ledger with prompts and schemas, which change without its shape.
        let expect = match text.as_ref().and_then(|text| text.lines().next()) {
            Some(first) if path.starts_with("exports/") => json!({"$contains": first}),
            _ => json!(text),
        };
        self.engine.step(json!({"call": "file", "with": {"path": path}, "expect": expect}));
        text
    }

    pub fn write(&self, path: &str, text: &str) {
        disk::replace(&self.disk, path, text.as_bytes()).expect("written");
        self.engine.step(json!({"call": "write-file", "with": {"path": path, "text": text}}));
    }

    /// Changes rows behind the engine's back.
    pub fn change(&self, sql: &str) {
        self.engine.untold();
        self.engine.store().db().execute_batch(sql).expect("changed");
    }

    pub fn row<T: rusqlite::types::FromSql>(&self, sql: &str) -> T {
        self.engine.store().db().query_row(sql, [], |row| row.get(0)).expect("a row")
    }

    pub fn state(&self) -> String {
        self.row("SELECT group_concat(layer || ' ' || state || ' ' || attempts || ' ' || reason, '; ') FROM batches WHERE layer IN ('l2', 'l3')")
    }

    pub fn stable(&mut self) -> String {
        let event = PromptEvent { scope: scope(), prompt: "hello there".into(), at: self.at, ..PromptEvent::default() };
        self.engine.before_prompt_build(&event).expect("built").stable
    }

    /// Returns the files of the data directory whose bytes hold a text.
    pub fn holding(&self, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            for name in self.disk.list(&folder).expect("listed") {
                let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                if let Some(sub) = path.strip_suffix('/') {
                    folders.push(sub.to_owned());
                    continue;
                }
                let bytes = disk::read_all(&self.disk, &path).expect("read").to_ascii_lowercase();
                let needle = text.to_ascii_lowercase();
                if bytes.windows(needle.len()).any(|window| window == needle.as_bytes()) {
                    found.push(path);
                }
            }
        }
        found.sort();
        found
    }
}

pub fn create(name: &str, text: &str, atom: &str) -> Value {
    json!({"op": "create", "name": name, "summary": format!("About {name}."), "paragraphs": [{"text": text, "atoms": [atom]}]})
}

pub fn update(scene: &str, paragraphs: Value) -> Value {
    json!({"op": "update", "scene": scene, "summary": "Updated.", "paragraphs": paragraphs})
}

pub fn answer(operations: Value) -> String {
    json!({"operations": operations}).to_string()
}

pub fn profile(text: &str, atom: &str) -> String {
    json!({"sections": [{"heading": "Facts", "statements": [{"text": text, "atoms": [atom]}]}]}).to_string()
}
