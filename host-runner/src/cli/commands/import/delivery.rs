//! From readers to the space: messages in calls of bounded size, each durable before the next.

use crate::cli::open;
use crate::import::source::Position;
use crate::import::{Message, Problem, Sink, Source};
use anyhow::Result;
use indicatif::ProgressBar;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use strata_host::Space;
use strata_host::contract::{self, EndEvent, Scope};

/// Messages that wait before they are delivered, unless told otherwise: enough that syncs do not count.
pub(super) const MAX_MESSAGES: u32 = 500;

/// Bytes that wait before they are delivered.
const MAX_BYTES: usize = 4 << 20;

/// Import records a call, as the contract's documents advise.
const MAX_RECORDS: usize = 1000;

/// Collects what readers deliver and hands it to the space.
pub(super) struct Delivery<'a> {
    space: &'a Space,
    scope: &'a Scope,
    dry_run: bool,
    batch: u32,
    /// Messages by session, the sessions in the order of their first message.
    waiting: Vec<(String, Vec<contract::Message>)>,
    waiting_messages: u32,
    waiting_bytes: usize,
    records: Vec<String>,
    records_bytes: usize,
    /// Records handed over in earlier calls.
    delivered: u64,
    taken: Map<String, Value>,
    read: u64,
    stored: u64,
    known: u64,
    dropped: BTreeMap<String, u64>,
    aside: BTreeMap<String, u64>,
    sessions: BTreeSet<String>,
    problems: Vec<Problem>,
    watched: Option<(ProgressBar, Rc<Position>, u64)>,
}

impl<'a> Delivery<'a> {
    pub(super) fn new(space: &'a Space, scope: &'a Scope, dry_run: bool, batch: u32) -> Self {
        Self {
            space,
            scope,
            dry_run,
            batch,
            waiting: Vec::new(),
            waiting_messages: 0,
            waiting_bytes: 0,
            records: Vec::new(),
            records_bytes: 0,
            delivered: 0,
            taken: Map::new(),
            read: 0,
            stored: 0,
            known: 0,
            dropped: BTreeMap::new(),
            aside: BTreeMap::new(),
            sessions: BTreeSet::new(),
            problems: Vec::new(),
            watched: None,
        }
    }

    /// Returns how many messages were read.
    pub(super) fn read(&self) -> u64 {
        self.read
    }

    /// Moves `bar` along with the reader of `source`.
    pub(super) fn watch(&mut self, bar: &ProgressBar, source: &Source) {
        self.watched = Some((bar.clone(), Rc::clone(&source.position), bar.position()));
    }

    /// Ends watching: the file has been read.
    pub(super) fn unwatch(&mut self) {
        self.glance();
        self.watched = None;
    }

    /// Takes a report of a file that no reader knows.
    pub(super) fn unknown(&mut self, path: &Path, reason: &str) {
        self.problems.push(Problem { file: path.display().to_string(), line: 0, reason: reason.into() });
    }

    fn glance(&self) {
        if let Some((bar, position, start)) = &self.watched {
            bar.set_position(start + position.bytes.get());
        }
    }

    /// Delivers what waits. On return it is durable.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.glance();
        self.waiting_messages = 0;
        self.waiting_bytes = 0;
        for (session, messages) in std::mem::take(&mut self.waiting) {
            if self.dry_run {
                continue;
            }
            let scope = Scope { session, ..self.scope.clone() };
            let report = self.space.agent_end(EndEvent { scope, messages, success: true, at: strata_host::now() })?;
            self.stored += report.stored.len() as u64;
            self.known += u64::from(report.known);
            for (reason, count) in report.dropped {
                *self.dropped.entry(reason).or_default() += u64::from(count);
            }
        }
        if !self.records.is_empty() {
            let records = std::mem::take(&mut self.records);
            let (before, count) = (self.delivered, records.len() as u64);
            let records = records.join("\n");
            self.delivered += count;
            self.records_bytes = 0;
            let answer = open::document(self.space.import(self.scope.clone(), records, self.dry_run, strata_host::now()))?;
            if let Value::Object(answer) = answer {
                self.add(answer, before);
            }
        }
        Ok(())
    }

    /// Adds the answer of one call to the sum of all.
    fn add(&mut self, answer: Map<String, Value>, before: u64) {
        for error in answer.get("errors").and_then(Value::as_array).into_iter().flatten() {
            let reason = error.get("reason").and_then(Value::as_str).unwrap_or_default();
            let line = before + error.get("line").and_then(Value::as_u64).unwrap_or(0);
            self.problems.push(Problem { file: "record".into(), line, reason: reason.into() });
        }
        let counts = answer.into_iter().filter(|(name, _)| !matches!(name.as_str(), "errors" | "dry-run"));
        sum(&mut self.taken, counts);
    }

    /// Returns the report of the whole import.
    pub(super) fn report(self, files: Vec<Value>, seconds: f64, space: &Space) -> Result<Value> {
        let status = open::document(space.status())?;
        let problems: Vec<Value> = self.problems.iter().map(|problem| json!({"file": problem.file, "line": problem.line, "reason": problem.reason})).collect();
        Ok(json!({
            "dry-run": self.dry_run,
            "read": self.read,
            "stored": self.stored,
            "known": self.known,
            "dropped": self.dropped,
            "aside": self.aside,
            "sessions": self.sessions.len(),
            "records": if self.taken.is_empty() { Value::Null } else { Value::Object(self.taken) },
            "problems": problems,
            "files": files,
            "seconds": seconds,
            "messages-per-second": if seconds > 0.0 { self.read as f64 / seconds } else { 0.0 },
            "messages": status["messages"],
            "atoms": status["atoms"],
        }))
    }
}

/// Adds numbers member by member, and down into objects.
fn sum(into: &mut Map<String, Value>, counts: impl IntoIterator<Item = (String, Value)>) {
    for (name, count) in counts {
        match count {
            Value::Object(members) => {
                if let Value::Object(into) = into.entry(name).or_insert_with(|| json!({})) {
                    sum(into, members);
                }
            }
            count => {
                let before = into.get(&name).and_then(Value::as_u64).unwrap_or(0);
                into.insert(name, json!(before + count.as_u64().unwrap_or(0)));
            }
        }
    }
}

impl Sink for Delivery<'_> {
    fn message(&mut self, message: Message) -> Result<()> {
        self.read += 1;
        let session = if self.scope.session.is_empty() { message.session } else { self.scope.session.clone() };
        if !self.sessions.contains(&session) {
            self.sessions.insert(session.clone());
        }
        self.waiting_messages += 1;
        self.waiting_bytes += message.content.len();
        let message = contract::Message {
            id: Some(message.id),
            role: message.role,
            speaker: message.speaker,
            content: message.content,
            structured: message.structured,
            said_at: message.said_at,
        };
        match self.waiting.iter_mut().rev().find(|(name, _)| *name == session) {
            Some((_, messages)) => messages.push(message),
            None => self.waiting.push((session, vec![message])),
        }
        if self.waiting_messages >= self.batch || self.waiting_bytes >= MAX_BYTES { self.flush() } else { Ok(()) }
    }

    fn record(&mut self, record: Value) -> Result<()> {
        let record = record.to_string();
        self.records_bytes += record.len();
        self.records.push(record);
        if self.records.len() >= MAX_RECORDS || self.records_bytes >= MAX_BYTES { self.flush() } else { Ok(()) }
    }

    fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    fn aside(&mut self, reason: &str) {
        *self.aside.entry(reason.into()).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_of_several_calls_add_up() {
        let mut total = Map::new();
        for _ in 0..2 {
            let Value::Object(answer) = json!({"atom": {"added": 2, "known": 1, "dropped": {"empty": 1}}, "unresolved": 3}) else { continue };
            sum(&mut total, answer);
        }
        assert_eq!(Value::Object(total), json!({"atom": {"added": 4, "known": 2, "dropped": {"empty": 2}}, "unresolved": 6}));
    }
}
