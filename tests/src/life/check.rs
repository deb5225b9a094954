//! What must hold: at any time, after a crash, and at the end of a life.

use super::model::right_answer;
use super::{DAY, Life, MAX_ROUNDS, SECOND};
use serde_json::Value;
use sha2::Digest;
use strata_core::contract::EndEvent;
use strata_core::disk::Crash;
use strata_core::offload::refs;

impl Life {
    pub(super) fn relent(&mut self) {
        self.disk.set_room(None);
        self.disk.set_read_only(false);
        self.limited = false;
    }

    /// Opens again after a crash, and checks what must hold at once.
    pub(super) fn settle(&mut self) {
        while self.disk.crashed() {
            self.counts.crashes += 1;
            let crash = if self.dice.below(2) == 0 { Crash::Kill } else { Crash::PowerCut(self.dice.draw()) };
            drop(self.engine.take());
            self.disk = self.disk.after(crash);
            self.limited = false;
            self.log.update(format!("{} {crash:?}\n", self.step));
            self.open();
            self.check();
        }
    }

    pub(super) fn heal(&mut self) {
        self.relent();
        drop(self.engine.take());
        self.disk = self.disk.after(Crash::Kill);
        self.open();
        self.check();
    }

    /// Every host delivers all it has once more.
    pub(super) fn redeliver(&mut self) {
        for session in 0..self.sessions.len() {
            let all = self.sessions[session].clone();
            if all.is_empty() {
                continue;
            }
            let scope = Self::scope(session);
            let event = EndEvent { scope: scope.clone(), messages: all.clone(), success: true, at: self.now };
            let report = self.call("agent-end", |engine, _| engine.agent_end(&event)).expect("a healthy disk takes messages");
            self.acknowledged.extend(report.stored.clone());
            let forgotten: u32 = report.dropped.iter().filter(|(reason, _)| reason == "forgotten").map(|(_, count)| count).sum();
            let of = |table: &str| {
                let sql = format!("SELECT count(*) FROM {table} JOIN sessions ON sessions.id = {table}.session WHERE sessions.name = '{}'", scope.session);
                self.number(&sql) as usize
            };
            assert_eq!(
                of("messages") + of("drops"),
                all.len() - forgotten as usize,
                "{}: session {session} has a message twice, or lost one: {report:?}",
                self.place()
            );
        }
    }

    /// Ticks and answers rightly until nothing is due within a day.
    pub(super) fn rest(&mut self) {
        for _ in 0..MAX_ROUNDS {
            while let Some((id, request)) = self.waiting.pop() {
                self.complete(&id, right_answer(&request));
            }
            let models = self.models();
            let next = self.call("tick", |engine, at| engine.tick(at, models)).flatten();
            match next {
                _ if !self.waiting.is_empty() => self.now += SECOND,
                Some(next) if next < self.now + DAY => self.now = next.max(self.now + 1),
                _ => return,
            }
        }
        // Clocks such as the lock's heartbeat go on for ever; what must not go on is work.
        let status: Value = serde_json::from_str(&self.engine.as_ref().expect("open").status().expect("a status")).expect("JSON");
        assert!(self.waiting.is_empty(), "{}: the space does not come to rest: {status}", self.place());
    }

    /// Checks what must hold at any time.
    pub(super) fn check(&self) {
        let place = self.place();
        let db = self.engine.as_ref().expect("open").store().db();
        let integrity: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("SQLite answers");
        assert_eq!(integrity, "ok", "{place}");
        for uid in &self.acknowledged {
            let there = db.prepare_cached("SELECT 1 FROM messages WHERE uid = ?1").and_then(|mut query| query.exists([uid])).expect("SQLite answers");
            assert!(there, "{place}: acknowledged message {uid} is gone");
        }
        for (what, sql) in [
            (
                "a fact without evidence",
                "SELECT count(*) FROM atoms WHERE origin NOT IN ('human', 'import') AND NOT EXISTS (SELECT 1 FROM evidence WHERE atom = atoms.id)",
            ),
            (
                "a message of a host twice",
                "SELECT count(*) FROM (SELECT 1 FROM messages WHERE host_id IS NOT NULL GROUP BY scope, session, host_id HAVING count(*) > 1)",
            ),
            ("a page without its text", "SELECT count(*) FROM pages WHERE NOT EXISTS (SELECT 1 FROM revisions WHERE page = pages.id AND number = revision)"),
        ] {
            assert_eq!(self.number(sql), 0, "{place}: {what}");
        }
        for (path, output) in &self.refs {
            // A text stands in its row until its file is written.
            let row: Option<String> = db
                .query_row("SELECT content FROM offload_refs WHERE path = ?1", [path], |row| row.get(0))
                .unwrap_or_else(|error| panic!("{place}: {path} has no row: {error}"));
            let text = row.map_or_else(|| refs::read(&self.disk, path), Ok).unwrap_or_else(|error| panic!("{place}: {path}: {error}"));
            assert_eq!(&text, output, "{place}: {path} has another text");
        }
    }

    pub(super) fn check_all(&mut self) {
        self.check();
        for word in &self.gone {
            let left = self.holding(word);
            assert!(left.is_empty(), "{}: {word} was forgotten, and is in {left:?}", self.place());
        }
        let rebuilt = self.call("rebuild", |engine, at| engine.rebuild(at)).expect("a rebuild reads only");
        let rebuilt: Value = serde_json::from_str(&rebuilt).expect("JSON");
        // After a forgetting nobody can say what a page of before would have been without what is gone; facts can.
        let layers: &[&str] = if self.tried_to_forget { &["l1"] } else { &["l1", "l2", "l3"] };
        for layer in layers {
            assert_eq!(rebuilt[layer]["identical"], true, "{}: {layer}: {rebuilt:#}", self.place());
        }
    }

    pub(super) fn number(&self, sql: &str) -> u32 {
        self.engine.as_ref().expect("open").store().db().query_row(sql, [], |row| row.get(0)).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    pub(super) fn holding(&self, word: &str) -> Vec<String> {
        let holds = |bytes: &[u8]| bytes.windows(word.len()).any(|window| window == word.as_bytes());
        self.disk.files().into_iter().filter(|(_, bytes)| holds(bytes)).map(|(path, _)| path).collect()
    }
}
