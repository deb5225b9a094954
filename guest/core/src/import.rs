//! Import: records of an export, or of a reader of another system, become rows.
//!
//! One call is one transaction, and a dry run is the same transaction taken back. A record that is
//! there already is counted, not written again; a line that cannot be used is named and skipped.

mod atom;
mod page;

use crate::capture;
use crate::contract::{EndEvent, Failure, FailureCode, Instant, MAX_INSTANT, Message, Result, Scope, check_time};
use crate::engine::Engine;
use crate::l0::{self, NewMessage, ScopeId, SessionId};
use crate::pages::{self, Kind};
use crate::settings::Settings;
use crate::store::failure;
use rusqlite::{OptionalExtension, Transaction, params};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Bytes of records that one call takes.
const MAX_RECORDS: usize = 256 << 20;

/// Errors that an answer lists.
const MAX_ERRORS: usize = 100;

/// The batch that marks rows as taken by an import: no batch has the number.
const TAKEN: i64 = 0;

/// Scopes that one call remembers; a record of another one is looked up again.
const MAX_OWNERS: usize = 64;

/// What records say of time, in milliseconds since 1970.
const TIMES: [&str; 10] =
    ["said-at", "recorded-at", "created-at", "updated-at", "archived-at", "valid-from", "valid-to", "believed-to", "event-start", "event-end"];

/// The session of records that name none.
const SESSION: &str = "imported";

#[derive(Debug, Default)]
struct Tally {
    added: u64,
    known: u64,
    dropped: BTreeMap<String, u64>,
    conflicts: u64,
    ignored: u64,
}

#[derive(Debug, Default)]
struct Report {
    kinds: BTreeMap<&'static str, Tally>,
    unresolved: u64,
    errors: Vec<Value>,
    errors_left_out: u64,
}

impl Report {
    fn of(&mut self, kind: &'static str) -> &mut Tally {
        self.kinds.entry(kind).or_default()
    }

    fn document(&self, dry_run: bool) -> Value {
        let mut document = json!({"dry-run": dry_run});
        for kind in ["message", "atom", "scene", "persona"] {
            let empty = Tally::default();
            let tally = self.kinds.get(kind).unwrap_or(&empty);
            document[kind] = json!({"added": tally.added, "known": tally.known, "dropped": tally.dropped, "conflict": tally.conflicts});
        }
        for kind in ["vector", "request"] {
            let tally = self.kinds.get(kind);
            document[kind] = json!({"added": 0, "ignored": tally.map_or(0, |tally| tally.ignored)});
        }
        document["unresolved"] = json!(self.unresolved);
        document["errors"] = json!(self.errors);
        document["errors-left-out"] = json!(self.errors_left_out);
        document
    }
}

impl Engine {
    /// `memory.import`.
    pub fn import(&mut self, scope: &Scope, records: &str, dry_run: bool, at: Instant) -> Result<String> {
        if records.len() > MAX_RECORDS {
            return Err(Failure::new(FailureCode::TooLarge, format!("{} bytes of records, the limit is {MAX_RECORDS}; import them in parts", records.len())));
        }
        check_time(at)?;
        let mut report = Report::default();
        let settings = &self.settings;
        let outcome = self.store.write(|tx| {
            let mut import = Import {
                tx,
                settings,
                scope,
                at,
                report: &mut report,
                seen: BTreeMap::new(),
                links: Vec::new(),
                owners: Vec::new(),
                sessions: BTreeMap::new(),
            };
            for (index, line) in records.lines().enumerate() {
                if !line.trim().is_empty() {
                    import.line(index + 1, line)?;
                }
            }
            import.link()?;
            import.note_activity()?;
            if dry_run { Err(Failure::invalid("taken back")) } else { Ok(()) }
        });
        if !dry_run {
            outcome?;
            self.show(at);
        }
        Ok(report.document(dry_run).to_string())
    }
}

struct Import<'a> {
    tx: &'a Transaction<'a>,
    settings: &'a Settings,
    scope: &'a Scope,
    at: Instant,
    report: &'a mut Report,
    /// How often an equal message without an id has come in this call.
    seen: BTreeMap<String, u32>,
    /// Links to make when all atoms are there: newer, older (public ids), how.
    links: Vec<(String, String, String)>,
    /// Scopes of records of this call: as the record names it, and as the store does.
    owners: Vec<Owner>,
    /// Sessions of records of this call, by name.
    sessions: BTreeMap<ScopeId, BTreeMap<String, KnownSession>>,
}

/// A scope that a record of this call named.
struct Owner {
    named: Scope,
    id: ScopeId,
    names: (String, String, String),
}

/// A session that a record of this call named. When it was last active is stored once, at the end.
struct KnownSession {
    id: SessionId,
    stored: Instant,
    active: Instant,
}

fn text<'v>(record: &'v Map<String, Value>, key: &str) -> Option<&'v str> {
    record.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn time(record: &Map<String, Value>, key: &str) -> Option<Instant> {
    record.get(key).and_then(Value::as_u64)
}

/// Returns a time of the record that is none: no row may hold it, because every later reading of the row would fail.
fn bad_time(record: &Map<String, Value>) -> Option<&'static str> {
    TIMES.into_iter().find(|key| record.get(*key).is_some_and(|value| !value.is_null() && value.as_u64().is_none_or(|at| at > MAX_INSTANT)))
}

fn strings(record: &Map<String, Value>, key: &str) -> Vec<String> {
    record.get(key).and_then(Value::as_array).map(|list| list.iter().filter_map(Value::as_str).map(str::to_owned).collect()).unwrap_or_default()
}

impl Import<'_> {
    fn line(&mut self, number: usize, line: &str) -> Result<()> {
        let record = match serde_json::from_str::<Value>(line) {
            Ok(Value::Object(record)) => record,
            Ok(_) => {
                self.error(number, "a record is a JSON object");
                return Ok(());
            }
            Err(error) => {
                self.error(number, &format!("not JSON: {error}"));
                return Ok(());
            }
        };
        if let Some(key) = bad_time(&record) {
            self.error(number, &format!("`{key}` is no time: milliseconds since 1970, up to the end of the year 9999"));
            return Ok(());
        }
        let scope = self.scope_of(&record);
        let outcome = match text(&record, "record") {
            Some("message") => self.message(&record, &scope)?,
            Some("atom") => self.atom(&record, &scope)?,
            Some("scene") => self.page(&record, &scope, Kind::Scene)?,
            Some("persona") => self.page(&record, &scope, Kind::Persona)?,
            Some("vector") => {
                self.report.of("vector").ignored += 1;
                Ok(())
            }
            Some("request") => {
                self.report.of("request").ignored += 1;
                Ok(())
            }
            Some(other) => Err(format!("there is no record `{other}`")),
            None => Err("a record needs `record`".to_owned()),
        };
        if let Err(reason) = outcome {
            self.error(number, &reason);
        }
        Ok(())
    }

    fn error(&mut self, line: usize, reason: &str) {
        if self.report.errors.len() < MAX_ERRORS {
            self.report.errors.push(json!({"line": line, "reason": reason}));
        } else {
            self.report.errors_left_out += 1;
        }
    }

    fn scope_of(&self, record: &Map<String, Value>) -> Scope {
        let given = record.get("scope").and_then(Value::as_object);
        let part = |key: &str, otherwise: &str| given.and_then(|given| text(given, key)).unwrap_or(otherwise).to_owned();
        Scope {
            team: part("team", &self.scope.team),
            user: part("user", &self.scope.user),
            agent: part("agent", &self.scope.agent),
            session: text(record, "session").unwrap_or(if self.scope.session.is_empty() { SESSION } else { &self.scope.session }).to_owned(),
        }
    }

    fn row(&self, sql: &str, values: impl rusqlite::Params) -> Result<Option<i64>> {
        self.tx.prepare_cached(sql).and_then(|mut query| query.query_row(values, |row| row.get(0)).optional()).map_err(failure)
    }

    /// Returns the row of a scope, making it if needed.
    fn owner(&mut self, scope: &Scope) -> Result<ScopeId> {
        let is_it = |owner: &&Owner| (&owner.named.team, &owner.named.user, &owner.named.agent) == (&scope.team, &scope.user, &scope.agent);
        // The last one first: records of a scope stand together.
        if let Some(known) = self.owners.iter().rev().find(is_it) {
            return Ok(known.id);
        }
        let id = l0::scope(self.tx, scope)?;
        let names = pages::scope_names(self.tx, id)?;
        if self.owners.len() == MAX_OWNERS {
            self.owners.remove(0);
        }
        self.owners.push(Owner { named: scope.clone(), id, names });
        Ok(id)
    }

    /// Returns the row of a session, making it if needed, and notes that it was active at `at`.
    fn session(&mut self, owner: ScopeId, name: &str, at: Instant) -> Result<SessionId> {
        if let Some(known) = self.sessions.get_mut(&owner).and_then(|sessions| sessions.get_mut(name)) {
            known.active = known.active.max(at);
            return Ok(known.id);
        }
        let id = l0::session(self.tx, owner, name, at)?;
        self.sessions.entry(owner).or_default().insert(name.to_owned(), KnownSession { id, stored: at, active: at });
        Ok(id)
    }

    /// Stores when the sessions were last active.
    fn note_activity(&self) -> Result<()> {
        for (owner, sessions) in &self.sessions {
            for (name, session) in sessions.iter().filter(|(_, session)| session.active > session.stored) {
                l0::session(self.tx, *owner, name, session.active)?;
            }
        }
        Ok(())
    }

    fn message(&mut self, record: &Map<String, Value>, scope: &Scope) -> Result<std::result::Result<(), String>> {
        let (Some(role), Some(words)) = (text(record, "role"), record.get("text").and_then(Value::as_str)) else {
            return Ok(Err("a message needs `session`, `role` and `text`".into()));
        };
        let said_at = time(record, "said-at").unwrap_or(self.at);
        if let Some(uid) = text(record, "uid") {
            return self.exported_message(record, scope, uid, role, words, said_at).map(Ok);
        }
        let id = match text(record, "id") {
            Some(id) => id.to_owned(),
            None => {
                let key = l0::uid("i_", &[scope.session.as_bytes(), role.as_bytes(), words.as_bytes(), &said_at.to_be_bytes()]);
                let place = self.seen.entry(key.clone()).or_insert(0);
                *place += 1;
                format!("{key}-{place}")
            }
        };
        let message = Message {
            id: Some(id),
            role: role.to_owned(),
            speaker: text(record, "speaker").map(str::to_owned),
            content: words.to_owned(),
            structured: false,
            said_at: Some(said_at),
        };
        let event = EndEvent { scope: scope.clone(), messages: vec![message], success: true, at: self.at };
        let report = capture::capture(self.tx, &self.settings.capture, &event)?;
        let tally = self.report.of("message");
        tally.added += report.stored.len() as u64;
        tally.known += u64::from(report.known);
        for (reason, count) in report.dropped {
            *tally.dropped.entry(reason).or_insert(0) += u64::from(count);
        }
        Ok(Ok(()))
    }

    /// Stores a message of an export under its own identity.
    fn exported_message(&mut self, record: &Map<String, Value>, scope: &Scope, uid: &str, role: &str, words: &str, said_at: Instant) -> Result<()> {
        if self.row("SELECT id FROM messages WHERE uid = ?1", [uid])?.is_some() {
            self.report.of("message").known += 1;
            return Ok(());
        }
        let owner = self.owner(scope)?;
        let recorded_at = time(record, "recorded-at").unwrap_or(self.at);
        let session = self.session(owner, &scope.session, recorded_at)?;
        let digest = l0::digest(role, words);
        let occurrence = record.get("occurrence").and_then(Value::as_u64).and_then(|occurrence| u32::try_from(occurrence).ok()).unwrap_or(0);
        let host_id = text(record, "id");
        let named = match host_id {
            Some(id) if l0::has_host_id(self.tx, session, id)? => {
                // The session has a message of this id with another text: the first one stays, as in capture.
                self.report.of("message").known += 1;
                return Ok(());
            }
            Some(id) => l0::is_forgotten_host_id(self.tx, session, id)?,
            None => false,
        };
        if named || l0::is_forgotten(self.tx, session, &digest, occurrence)? {
            self.drop_forgotten("message");
            return Ok(());
        }
        if self.row("SELECT id FROM messages WHERE session = ?1 AND digest = ?2 AND occurrence = ?3", params![session.0, digest, occurrence])?.is_some() {
            self.report.of("message").known += 1;
            return Ok(());
        }
        let new = NewMessage {
            host_id,
            digest,
            occurrence,
            role,
            speaker: text(record, "speaker"),
            text: words,
            said_at,
            recorded_at,
            worth: capture::noise::is_worth_distilling(words),
        };
        let (id, _) = l0::insert(self.tx, owner, session, &new)?;
        if record.get("distilled").and_then(Value::as_bool) == Some(true) {
            self.take("messages", "batch", id.0)?;
        }
        self.report.of("message").added += 1;
        Ok(())
    }

    fn drop_forgotten(&mut self, kind: &'static str) {
        *self.report.of(kind).dropped.entry("forgotten".into()).or_insert(0) += 1;
    }

    fn take(&self, table: &str, column: &str, id: i64) -> Result<()> {
        let sql = format!("UPDATE {table} SET {column} = ?2 WHERE id = ?1 AND {column} IS NULL");
        self.tx.prepare_cached(&sql).and_then(|mut update| update.execute(params![id, TAKEN])).map(|_| ()).map_err(failure)
    }
}
