//! Moving in from TencentDB Agent Memory: a data directory of v1 (0.3.x) or v3.
//!
//! JSONL files and `vectors.db` hold the same rows under ids that do not join, and only the JSONL knows the evidence of an
//! atom, while only the database knows which atoms are alive. Both are read and joined; either may be missing. The
//! directory is only read: the database is opened as a copy.

mod database;
mod files;

use super::{Sink, Source};
use anyhow::{Result, bail};
use database::Database;
use files::{L0Line, L1Line};
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

/// What was found, and what of it cannot come along.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Report {
    /// Records handed over, by kind.
    pub carried: BTreeMap<String, u64>,
    /// What stays behind: how much, and why.
    pub left_behind: Vec<LeftBehind>,
}

/// A kind of thing that stays behind.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LeftBehind {
    /// What it is.
    pub what: String,
    /// How many.
    pub count: u64,
    /// Why.
    pub why: &'static str,
}

impl Report {
    fn carry(&mut self, kind: &str) {
        *self.carried.entry(kind.into()).or_default() += 1;
    }

    fn leave(&mut self, what: impl Into<String>, count: u64, why: &'static str) {
        if count > 0 {
            self.left_behind.push(LeftBehind { what: what.into(), count, why });
        }
    }
}

/// Reads the data directory `dir` and gives its memory to `sink` as import records.
pub(crate) fn read_dir(dir: &Path, zone: &TimeZone, sink: &mut dyn Sink) -> Result<Report> {
    let known = ["conversations", "records", "scene_blocks", "profiles", "vectors.db", "persona.md"];
    if !known.iter().any(|name| dir.join(name).exists()) {
        bail!("{} is not a TencentDB Agent Memory directory: it has none of {}", dir.display(), known.join(", "));
    }
    let mut report = Report::default();
    let database = Database::read(&dir.join("vectors.db"), sink)?;
    let l0_ids = messages(dir, zone, &database, sink, &mut report)?;
    let atoms = atoms(dir, zone, &database, sink, &mut report)?;
    for root in profiles(dir, &mut report)? {
        profile(&root, zone, sink, &mut report)?;
    }
    vectors(&database, &l0_ids, &atoms, sink, &mut report)?;
    left_behind(dir, &database, sink, &mut report)?;
    Ok(report)
}

/// Hands over the messages; returns the id under which each database row was handed over.
fn messages(dir: &Path, zone: &TimeZone, database: &Database, sink: &mut dyn Sink, report: &mut Report) -> Result<BTreeMap<String, String>> {
    let cursors = files::cursors(dir, zone, sink)?;
    // Rows without a line of their own: what is left of these when all lines were read.
    let said = |line: &L0Line| (line.session.clone(), line.role.clone(), line.text.clone());
    let mut rows: BTreeMap<(String, String, String), VecDeque<&L0Line>> = BTreeMap::new();
    for row in &database.messages {
        rows.entry(said(row)).or_default().push_back(row);
    }
    let mut ids = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut repeated = 0;
    for mut line in files::jsonl(&dir.join("conversations"), sink, |value| L0Line::of(value, zone))? {
        if !seen.insert(line.id.clone()) {
            repeated += 1;
            continue;
        }
        if let Some(row) = rows.get_mut(&said(&line)).and_then(VecDeque::pop_front) {
            ids.insert(row.id.clone(), line.id.clone());
            // Only the rows of v3 say whose a message is.
            line.scope = line.scope.or_else(|| row.scope.clone());
        }
        sink.record(line.record(&cursors))?;
        report.carry("message");
    }
    report.leave("repeated lines in conversations/", repeated, "their id was read already");
    for row in &database.messages {
        if !ids.contains_key(&row.id) {
            sink.record(row.record(&cursors))?;
            report.carry("message");
            ids.insert(row.id.clone(), row.id.clone());
        }
    }
    Ok(ids)
}

/// Hands over the atoms; returns their ids. Lines of atoms that the database no longer has are handed over as history.
fn atoms(dir: &Path, zone: &TimeZone, database: &Database, sink: &mut dyn Sink, report: &mut Report) -> Result<BTreeSet<String>> {
    let lines = files::jsonl(&dir.join("records"), sink, |value| L1Line::of(value, zone))?;
    // A later line of the same id is a later state of the atom.
    let mut by_id: BTreeMap<String, L1Line> = BTreeMap::new();
    let mut order = Vec::new();
    for line in lines {
        if by_id.insert(line.id.clone(), line.clone()).is_none() {
            order.push(line.id);
        }
    }
    let alive: BTreeMap<&str, &L1Line> = database.atoms.iter().map(|row| (row.id.as_str(), row)).collect();
    let mut ids = BTreeSet::new();
    for id in order {
        let line = &by_id[&id];
        let record = match alive.get(id.as_str()) {
            Some(row) => row.record(&line.messages, false),
            None => line.record(&line.messages, database.has_atoms),
        };
        sink.record(record)?;
        report.carry(if database.has_atoms && !alive.contains_key(id.as_str()) { "superseded atom" } else { "atom" });
        ids.insert(id);
    }
    for row in &database.atoms {
        if ids.insert(row.id.clone()) {
            sink.record(row.record(&[], false))?;
            report.carry("atom");
        }
    }
    Ok(ids)
}

/// A folder with scenes and a persona, and whose they are.
#[derive(Debug)]
struct Profile {
    dir: PathBuf,
    scope: Option<Value>,
}

/// Returns the directory itself (v1) and its `profiles/*` (v3: `team%3A<team>%7Cagent%3A<agent>`).
fn profiles(dir: &Path, report: &mut Report) -> Result<Vec<Profile>> {
    let mut found = vec![Profile { dir: dir.to_owned(), scope: None }];
    for path in files::list(&dir.join("profiles"))? {
        let name = path.file_name().map(|name| files::percent_decoded(&name.to_string_lossy())).unwrap_or_default();
        let mut scope = Map::new();
        for (key, value) in name.split('|').filter_map(|part| part.split_once(':')) {
            if matches!(key, "team" | "agent" | "user") {
                scope.insert(key.into(), value.into());
            }
        }
        if scope.is_empty() {
            report.leave(format!("profiles/{name}"), 1, "its name does not say whose it is");
        } else {
            found.push(Profile { dir: path, scope: Some(scope.into()) });
        }
    }
    Ok(found)
}

fn profile(profile: &Profile, zone: &TimeZone, sink: &mut dyn Sink, report: &mut Report) -> Result<()> {
    for path in files::list(&profile.dir.join("scene_blocks"))? {
        if path.extension().is_none_or(|extension| extension != "md") {
            report.leave(path.display().to_string(), 1, "not a scene");
            continue;
        }
        let text = Source::open(&path, zone.clone())?.text(sink)?;
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        sink.record(scoped(files::scene(&name, &text, zone), profile))?;
        report.carry("scene");
    }
    let persona = profile.dir.join("persona.md");
    if persona.exists() {
        let text = Source::open(&persona, zone.clone())?.text(sink)?;
        let body = files::persona_body(&text);
        if body.is_empty() {
            report.leave("persona.md", 1, "it has no body");
        } else {
            sink.record(scoped(json!({"record": "persona", "text": body, "origin": "imported"}), profile))?;
            report.carry("persona");
        }
    }
    Ok(())
}

fn scoped(mut record: Value, profile: &Profile) -> Value {
    if let Some(scope) = &profile.scope {
        record["scope"] = scope.clone();
    }
    record
}

fn vectors(database: &Database, l0_ids: &BTreeMap<String, String>, atoms: &BTreeSet<String>, sink: &mut dyn Sink, report: &mut Report) -> Result<()> {
    let mut orphans = 0;
    for (id, values) in &database.vectors {
        let of = l0_ids.get(id).or_else(|| atoms.get(id));
        let Some(of) = of else {
            orphans += 1;
            continue;
        };
        sink.record(json!({"record": "vector", "of": of, "model": database.model, "values": values}))?;
        report.carry("vector");
    }
    report.leave("vectors without a row", orphans, "the row that they belong to is gone");
    Ok(())
}

/// Reports what no record can carry, by count.
fn left_behind(dir: &Path, database: &Database, sink: &mut dyn Sink, report: &mut Report) -> Result<()> {
    for (table, rows) in &database.other_tables {
        report.leave(format!("vectors.db table {table}"), *rows, "no counterpart here");
    }
    let metadata = dir.join("metadata.db");
    if metadata.exists() {
        for (table, rows) in database::row_counts(&metadata, sink)? {
            report.leave(format!("metadata.db table {table}"), rows, "accounts, keys and assets of the server, not memory");
        }
    }
    for name in ["recall_checkpoint.json", "checkpoint.json"] {
        let found = dir.join(".metadata").join(name).exists();
        report.leave(format!(".metadata/{name}"), found.into(), "only the extraction cursors are used: counters are derived from rows here");
    }
    for (folder, why) in [
        (".backup", "old copies of scenes and personas"),
        ("refs", "short-term memory of tasks that have ended"),
        ("mmds", "short-term memory of tasks that have ended"),
        ("offload", "short-term memory of tasks that have ended"),
    ] {
        report.leave(format!("files in {folder}/"), files::count(&dir.join(folder))?, why);
    }
    let offload = files::list(dir)?.iter().filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("offload-"))).count();
    report.leave("offload logs", offload as u64, "short-term memory of tasks that have ended");
    Ok(())
}

/// Returns an error's context for a file of the directory.
fn reading(path: &Path) -> String {
    format!("cannot read {}", path.display())
}

#[cfg(test)]
mod tests;
