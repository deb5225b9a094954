//! What people do to a space by hand: edit, pin, forget.

use super::Life;
use serde_json::Value;
use strata_core::contract::Selector;
use strata_core::disk;

impl Life {
    /// A person writes into a page's file.
    pub(super) fn edit_file(&mut self) {
        let pages: Vec<String> = self.disk.files().into_keys().filter(|path| path.ends_with("persona.md") || path.contains("scenes/")).collect();
        if pages.is_empty() || self.limited {
            return;
        }
        let path = &pages[self.dice.below(pages.len() as u64) as usize];
        let Ok(bytes) = disk::read_all(&self.disk, path) else { return };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let edited = match self.dice.below(3) {
            0 => format!("{text}\n\nBy hand, at step {}.\n", self.step),
            1 => text.replace("Fact", "Truth"),
            _ => text.lines().rev().collect::<Vec<_>>().join("\n"),
        };
        // The person's editor may find the disk ending too.
        if disk::replace(&self.disk, path, edited.as_bytes()).is_err() {
            assert!(self.disk.crashed(), "{}: an editor cannot write", self.place());
        }
    }

    pub(super) fn govern(&mut self) {
        let id = self.some_id();
        // Pins are left out: when one was set is not on record, so a rebuild cannot follow them.
        match self.dice.below(7) {
            0 => drop(self.call("edit", |engine, at| engine.edit(&id, "The user says it in other words.", at))),
            1 => drop(self.call("rollback", |engine, at| engine.rollback(&id, 1, at))),
            2 => drop(self.call("trace", |engine, _| engine.trace(&id))),
            3 => drop(self.call("history", |engine, _| engine.history(&id))),
            4 => drop(self.call("why", |engine, _| engine.why(&id))),
            5 => drop(self.call("browse", |engine, _| engine.browse("atoms", &Selector::default(), None, 10))),
            _ => drop(self.call("retry", |engine, at| engine.retry("", at))),
        }
        self.call("status", |engine, _| engine.status());
    }

    pub(super) fn forget(&mut self) {
        let word = self.some_word();
        let which = match self.dice.below(4) {
            0 => Selector { ids: vec![self.some_id()], ..Selector::default() },
            _ => Selector { query: Some(word.clone()), ..Selector::default() },
        };
        let Some(preview) = self.call("forget", |engine, at| engine.forget(&which, false, at)) else { return };
        let ids = |receipt: &str| -> Vec<String> {
            let receipt: Value = serde_json::from_str(receipt).expect("a receipt is JSON");
            receipt["ids"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let doomed = ids(&preview);
        if doomed.is_empty() || self.dice.below(4) == 0 {
            return;
        }
        self.tried_to_forget = true;
        // A message that never arrived comes with the next delivery, and nobody has forgotten it.
        let arrived = self.number(&format!("SELECT count(*) FROM messages WHERE text LIKE '%{word}%'")) > 0;
        // If the call is cut off, nobody knows whether these are gone.
        for id in &doomed {
            self.acknowledged.remove(id);
        }
        let Some(receipt) = self.call("forget", |engine, at| engine.forget(&which, true, at)) else {
            self.refs.clear();
            return;
        };
        let gone = ids(&receipt);
        assert_eq!(gone, doomed, "{}: a forgetting removed something else than its preview showed", self.place());
        self.counts.forgettings += 1;
        let db = self.engine.as_ref().expect("open").store().db();
        let known =
            |path: &String| db.prepare_cached("SELECT 1 FROM offload_refs WHERE path = ?1").and_then(|mut query| query.exists([path])).expect("SQLite answers");
        self.refs.retain(|path, _| known(path));
        if which.query.is_some() && arrived {
            let left = self.holding(&word);
            assert!(left.is_empty(), "{}: {word} was forgotten, and is in {left:?}", self.place());
            self.gone.insert(word);
        }
    }
}
