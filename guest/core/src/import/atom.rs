//! Atoms that are brought: each with the messages that it rests on, and the links between them.

use super::{Import, strings, text, time};
use crate::contract::{Result, Scope};
use crate::l0::{self, MessageId, ScopeId, SessionId};
use crate::l1::atom::{self, Evidence, Kind, NewAtom, NewRow, Origin};
use crate::pages::{self, block};
use crate::store::failure;
use rusqlite::params;
use serde_json::{Map, Value};

/// Longest text of an imported atom, in bytes.
const MAX_ATOM: usize = 16 << 10;

/// The priority of an atom that has none (the reference system's figure).
const DEFAULT_PRIORITY: i64 = 50;

impl Import<'_> {
    /// Returns the atom that a foreign or own id names in a scope; `uid` is the public id that it gets.
    pub(super) fn find_atom(&self, scope: ScopeId, id: &str, uid: &str) -> Result<Option<i64>> {
        self.row("SELECT id FROM atoms WHERE uid = ?3 OR (scope = ?1 AND uid = ?2)", params![scope.0, id, uid])
    }

    /// Returns the public id that a record's id gets.
    pub(super) fn atom_uid(&self, scope: ScopeId, id: &str) -> Result<String> {
        if block::is_atom_id(id) {
            return Ok(id.to_owned());
        }
        let uid =
            |(team, user, agent): &(String, String, String)| l0::uid("a_", &[b"import", team.as_bytes(), user.as_bytes(), agent.as_bytes(), id.as_bytes()]);
        match self.owners.iter().rev().find(|owner| owner.id == scope) {
            Some(owner) => Ok(uid(&owner.names)),
            None => Ok(uid(&pages::scope_names(self.tx, scope)?)),
        }
    }

    /// Returns the message of a scope that an atom's record names: by its public id, by the host's id in the atom's own
    /// session, or by a host's id that one session alone has. Where several have it, nobody knows which was meant.
    fn find_message(&self, scope: ScopeId, session: SessionId, id: &str) -> Result<Option<i64>> {
        if let Some(own) = self.row("SELECT id FROM messages WHERE uid = ?2 AND scope = ?1", params![scope.0, id])? {
            return Ok(Some(own));
        }
        if let Some(near) = self.row("SELECT id FROM messages WHERE session = ?1 AND host_id = ?2", params![session.0, id])? {
            return Ok(Some(near));
        }
        // A seek a session: a host's id is indexed within its session.
        self.row(
            "SELECT max(messages.id) FROM sessions CROSS JOIN messages ON messages.session = sessions.id AND host_id = ?2
             WHERE sessions.scope = ?1 HAVING count(*) = 1",
            params![scope.0, id],
        )
    }

    /// Returns whose words an atom is whose record does not say: as in distillation, those of the most trusted role among the
    /// messages that it rests on. Where it names some and none is there, nobody knows.
    fn origin(&self, record: &Map<String, Value>, evidence: &[Evidence]) -> Result<String> {
        let mut most = None;
        for part in evidence {
            most = most.max(Some(Origin::of_role(&l0::message(self.tx, MessageId(part.message))?.role)));
        }
        Ok(match most {
            Some(origin) => origin.to_string(),
            None if strings(record, "messages").is_empty() => Origin::User.to_string(),
            None => "imported".to_owned(),
        })
    }

    pub(super) fn atom(&mut self, record: &Map<String, Value>, scope: &Scope) -> Result<std::result::Result<(), String>> {
        let (Some(kind), Some(words)) = (text(record, "kind"), text(record, "text")) else {
            return Ok(Err("an atom needs `kind` and `text`".into()));
        };
        let Some(kind) = Kind::parse(kind) else { return Ok(Err(format!("`{kind}` is no kind of atom"))) };
        if words.len() > MAX_ATOM {
            return Ok(Err(format!("the atom has {} bytes, the limit is {MAX_ATOM}", words.len())));
        }
        let owner = self.owner(scope)?;
        let foreign = match text(record, "id") {
            Some(id) => id.to_owned(),
            None => l0::uid("i_", &[scope.session.as_bytes(), kind.to_string().as_bytes(), words.as_bytes()]),
        };
        let uid = self.atom_uid(owner, &foreign)?;
        if self.find_atom(owner, &foreign, &uid)?.is_some() {
            self.report.of("atom").known += 1;
            return Ok(Ok(()));
        }
        if l0::is_forgotten_identity(self.tx, &uid)? {
            self.drop_forgotten("atom");
            return Ok(Ok(()));
        }
        let created_at = time(record, "created-at").unwrap_or(self.at);
        let session = self.session(owner, &scope.session, created_at)?;
        let quotes = strings(record, "quotes");
        let mut evidence: Vec<Evidence> = Vec::new();
        for (index, id) in strings(record, "messages").iter().enumerate() {
            match self.find_message(owner, session, id)? {
                Some(message) if !evidence.iter().any(|known| known.message == message) => {
                    // What another system has distilled is not distilled again.
                    self.take("messages", "batch", message)?;
                    evidence.push(Evidence { message, quote: quotes.get(index).cloned().unwrap_or_default() });
                }
                Some(_) => {}
                None => self.report.unresolved += 1,
            }
        }
        let origin = match text(record, "origin") {
            Some(origin) => origin.to_owned(),
            None => self.origin(record, &evidence)?,
        };
        let origin = origin.as_str();
        let priority = record.get("priority").and_then(Value::as_i64).unwrap_or(DEFAULT_PRIORITY).clamp(-1, 100);
        let new = NewAtom {
            kind,
            text: words.to_owned(),
            priority: i32::try_from(priority).expect("-1 to 100 fits"),
            scene: pages::one_line(text(record, "scene").unwrap_or_default(), 200),
            origin: Origin::parse(origin),
            attribute: text(record, "attribute").map(str::to_owned),
            valid_from: time(record, "valid-from").unwrap_or(created_at),
            event_start: time(record, "event-start"),
            event_end: time(record, "event-end"),
            evidence,
        };
        let mut metadata = record.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        if foreign != uid && text(record, "id").is_some() {
            metadata.insert("imported-id".into(), foreign.into());
        }
        // `imported`: nobody knows who said it. The store keeps the word; it is trusted like a tool's.
        let is_known = ["user", "assistant", "tool", "human", "rules", "imported"].contains(&origin);
        let row = NewRow {
            uid: &uid,
            scope: owner,
            session,
            batch: None,
            origin: if is_known { origin } else { "imported" },
            metadata: &Value::Object(metadata).to_string(),
            at: created_at,
            valid_to: time(record, "valid-to"),
            believed_to: time(record, "believed-to"),
            pinned: record.get("pinned").and_then(Value::as_bool).unwrap_or(false),
        };
        atom::insert_row(self.tx, &row, &new)?;
        for older in record.get("replaces").and_then(Value::as_array).into_iter().flatten() {
            if let Some(older_id) = older.get("id").and_then(Value::as_str) {
                self.links.push((uid.clone(), older_id.to_owned(), older.get("how").and_then(Value::as_str).unwrap_or("supersedes").to_owned()));
            }
        }
        if let Some(newer) = text(record, "replaced-by") {
            let newer = self.atom_uid(owner, newer)?;
            self.links.push((newer, uid, "supersedes".to_owned()));
        }
        self.report.of("atom").added += 1;
        Ok(Ok(()))
    }

    /// Makes the links between atoms of this call and of the space.
    pub(super) fn link(&mut self) -> Result<()> {
        for (newer, older, how) in std::mem::take(&mut self.links) {
            let made = self
                .tx
                .prepare_cached(
                    "INSERT OR IGNORE INTO links (newer, older, kind, at)
                     SELECT n.id, o.id, ?3, coalesce(o.believed_to, ?4) FROM atoms AS n, atoms AS o WHERE n.uid = ?1 AND o.uid = ?2",
                )
                .and_then(|mut insert| insert.execute(params![newer, older, how, self.at as i64]))
                .map_err(failure)?;
            if made == 0 && self.row("SELECT 1 FROM links JOIN atoms ON atoms.id = newer WHERE uid = ?1", [&newer])?.is_none() {
                self.report.unresolved += 1;
            }
        }
        Ok(())
    }
}
