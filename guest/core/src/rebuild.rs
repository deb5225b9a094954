//! Rebuild: every layer derived again from messages and the ledger, beside the space, and compared.
//!
//! Batches are derived in the order in which they were applied, each at its own time, from the stored
//! answers; nobody is asked. What humans wrote and what was imported are inputs like messages and are
//! taken over at their time, as is what a forgetting has left without its answer. Nothing of the space
//! is changed: a difference is shown, not repaired.

use crate::contract::{Instant, Result};
use crate::engine::{Engine, Models};
use crate::index::Index;
use crate::index::write::Upkeep;
use crate::l1::{self, Answers};
use crate::store::{self, failure};
use crate::work::{self, BatchId, Job, Step};
use crate::{l2, l3};
use rusqlite::types::Value as Cell;
use rusqlite::{Connection, OptionalExtension, Transaction, params, params_from_iter};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Differences that an answer lists, a layer.
const MAX_LISTED: usize = 20;

impl Engine {
    /// `memory.rebuild`.
    pub fn rebuild(&mut self, at: Instant) -> Result<String> {
        self.look(at);
        let live = self.store.db();
        let mut scratch = store::scratch()?;
        let tx = scratch.transaction().map_err(failure)?;
        for (table, condition) in [("scopes", "1"), ("sessions", "1"), ("messages", "1"), ("batches", "1"), ("folders", "1"), ("forgotten", "1")] {
            copy(live, &tx, table, condition, &[])?;
        }
        let mut rebuild = Rebuild { live, tx: &tx, engine: self, index: Index::default(), derived: 0, given: 0, refused: Vec::new() };
        for batch in rebuild.applied()? {
            rebuild.batch(batch)?;
        }
        rebuild.inputs(Instant::MAX)?;
        let mut document = json!({"batches": rebuild.derived, "given": rebuild.given, "refused": rebuild.refused});
        let mut identical = true;
        for (layer, sql) in LAYERS {
            let (stored, derived) = (lines(live, sql)?, lines(&tx, sql)?);
            let differences: Vec<&String> = stored
                .iter()
                .filter(|(key, line)| derived.get(*key) != Some(line))
                .chain(derived.iter().filter(|(key, _)| !stored.contains_key(*key)))
                .map(|(key, _)| key)
                .collect();
            identical &= differences.is_empty();
            document[*layer] = json!({
                "rows": stored.len(),
                "stored": hash(&stored),
                "derived": hash(&derived),
                "identical": differences.is_empty(),
                "differences": differences.iter().take(MAX_LISTED).collect::<Vec<_>>(),
            });
        }
        document["identical"] = json!(identical);
        Ok(document.to_string())
    }
}

/// What is compared: a key and a line for each row, apart from row numbers.
const LAYERS: &[(&str, &str)] = &[
    (
        "l1",
        "SELECT uid, kind || char(31) || text || char(31) || priority || char(31) || atoms.scene || char(31) || origin || char(31) || valid_from || char(31)
           || coalesce(valid_to, '') || char(31) || believed_from || char(31) || coalesce(believed_to, '') || char(31)
           || coalesce((SELECT group_concat(line, char(30)) FROM (SELECT messages.uid || quote AS line FROM evidence JOIN messages ON messages.id = message
                WHERE atom = atoms.id ORDER BY messages.uid)), '') || char(31)
           || coalesce((SELECT group_concat(line, char(30)) FROM (SELECT o.uid || links.kind AS line FROM links JOIN atoms AS o ON o.id = older
                WHERE newer = atoms.id ORDER BY o.uid)), '')
         FROM atoms WHERE uid NOT IN (SELECT identity FROM forgotten)",
    ),
    (
        "l2",
        "SELECT uid || '@' || number, path || char(31) || hash || char(31) || summary || char(31) || heat || char(31) || author || char(31) || how || char(31) || at
         FROM pages JOIN revisions ON page = pages.id WHERE kind = 'scene'",
    ),
    (
        "l3",
        "SELECT uid || '@' || number, path || char(31) || hash || char(31) || author || char(31) || how || char(31) || at
         FROM pages JOIN revisions ON page = pages.id WHERE kind = 'persona'",
    ),
];

fn lines(db: &Connection, sql: &str) -> Result<BTreeMap<String, String>> {
    db.prepare(sql).and_then(|mut query| query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()).map_err(failure)
}

fn hash(lines: &BTreeMap<String, String>) -> String {
    let mut hash = Sha256::new();
    for (key, line) in lines {
        hash.update(key);
        hash.update([31]);
        hash.update(line);
        hash.update([10]);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Copies rows of a table as they are, but for columns that `cleared` names.
fn copy(from: &Connection, to: &Transaction<'_>, table: &str, condition: &str, cleared: &[&str]) -> Result<usize> {
    let mut query = from.prepare(&format!("SELECT * FROM {table} WHERE {condition}")).map_err(failure)?;
    let names: Vec<String> = query.column_names().map(str::to_owned).collect();
    let marks = vec!["?"; names.len()].join(", ");
    let mut insert = to.prepare(&format!("INSERT OR IGNORE INTO {table} ({}) VALUES ({marks})", names.join(", "))).map_err(failure)?;
    let mut rows = query.query([]).map_err(failure)?;
    let mut count = 0;
    while let Some(row) = rows.next().map_err(failure)? {
        let mut cells: Vec<Cell> = Vec::with_capacity(names.len());
        for (index, name) in names.iter().enumerate() {
            cells.push(if cleared.contains(&name.as_str()) { Cell::Null } else { row.get(index).map_err(failure)? });
        }
        count += insert.execute(params_from_iter(cells)).map_err(failure)?;
    }
    Ok(count)
}

struct Rebuild<'a> {
    live: &'a Connection,
    tx: &'a Transaction<'a>,
    engine: &'a Engine,
    /// The copy's own search index: what is derived is held against what was derived before.
    index: Index,
    derived: u64,
    given: u64,
    refused: Vec<Value>,
}

impl Rebuild<'_> {
    fn applied(&self) -> Result<Vec<(i64, Instant)>> {
        self.live
            .prepare("SELECT id, done_at FROM batches WHERE state = 'done' AND layer IN ('l1', 'l2', 'l3') ORDER BY applied IS NULL, applied, id")
            .and_then(|mut query| query.query_map([], |row| Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?.unwrap_or(0) as Instant)))?.collect())
            .map_err(failure)
    }

    fn answer(&self, batch: i64, purpose: &str) -> Result<Option<String>> {
        self.live
            .prepare_cached(
                "SELECT answer FROM requests WHERE batch = ?1 AND purpose = ?2 AND state = 'answered' AND answer IS NOT NULL ORDER BY id DESC LIMIT 1",
            )
            .and_then(|mut query| query.query_row(params![batch, purpose], |row| row.get(0)).optional())
            .map_err(failure)
    }

    fn batch(&mut self, (id, at): (i64, Instant)) -> Result<()> {
        // Inputs of the same millisecond came before: a human's edit ends what a batch had read.
        self.inputs(at)?;
        let given: bool = self
            .live
            .prepare_cached(
                "SELECT 1 FROM requests WHERE batch = ?1 AND state = 'forgotten'
                 UNION ALL SELECT 1 FROM batches WHERE id = ?1 AND json_valid(draft) AND json_extract(draft, '$.given')",
            )
            .and_then(|mut query| query.exists([id]))
            .map_err(failure)?;
        if given {
            self.given += 1;
            return self.given_batch(id, i64::try_from(at).unwrap_or(i64::MAX));
        }
        let batch = work::batch(self.tx, BatchId(id))?;
        if batch.layer == "l1" && batch.session.is_none() {
            // Its session was forgotten, and with it what it read.
            self.given += 1;
            return self.given_batch(id, i64::try_from(at).unwrap_or(i64::MAX));
        }
        let mut out = Vec::new();
        // Nobody is asked: what has no stored answer is derived by the rules, as it was.
        let models = Models::default();
        let (extract, settle) = (self.answer(id, "l1-extract")?, self.answer(id, "l1-settle")?);
        let scenes = self.answer(id, "l2-scenes")?;
        let persona = self.answer(id, "l3-persona")?;
        self.index.follow(self.tx, Upkeep::Write)?;
        let mut job = Job { tx: self.tx, index: &self.index, settings: &self.engine.settings, models: &models, at, out: &mut out };
        let step = match batch.layer.as_str() {
            "l1" => Step::Done(l1::derive(&mut job, &batch, &Answers { extract: extract.as_deref(), settle: settle.as_deref() })?),
            "l2" => l2::derive(&mut job, &batch, scenes.as_deref())?,
            _ => l3::derive(&mut job, &batch, persona.as_deref())?,
        };
        if batch.layer == "l1" {
            self.leave_out_forgotten()?;
        }
        self.derived += 1;
        if let Step::Failed(reason) = step
            && self.refused.len() < MAX_LISTED
        {
            self.refused.push(json!({"batch": id, "layer": batch.layer, "reason": reason}));
        }
        Ok(())
    }

    /// Takes out atoms that were forgotten while the messages that they rest on stayed; what they had ended holds again.
    fn leave_out_forgotten(&self) -> Result<()> {
        const FORGOTTEN: &str = "SELECT id FROM atoms WHERE uid IN (SELECT identity FROM forgotten)";
        for sql in [
            format!(
                "UPDATE atoms SET believed_to = NULL, valid_to = NULL WHERE id IN (SELECT older FROM links WHERE newer IN ({FORGOTTEN}))
                    AND NOT EXISTS (SELECT 1 FROM links WHERE older = atoms.id AND newer NOT IN ({FORGOTTEN}))"
            ),
            format!("DELETE FROM evidence WHERE atom IN ({FORGOTTEN})"),
            format!("DELETE FROM links WHERE newer IN ({FORGOTTEN}) OR older IN ({FORGOTTEN})"),
            format!("DELETE FROM atoms WHERE id IN ({FORGOTTEN})"),
        ] {
            self.tx.execute(&sql, []).map_err(failure)?;
        }
        Ok(())
    }

    /// Takes over what humans wrote and what was imported up to a time.
    fn inputs(&mut self, until: Instant) -> Result<()> {
        let until = i64::try_from(until).unwrap_or(i64::MAX);
        let atoms: Vec<i64> = self
            .live
            .prepare_cached("SELECT id FROM atoms WHERE batch IS NULL AND believed_from <= ?1 ORDER BY id")
            .and_then(|mut query| query.query_map([until], |row| row.get(0))?.collect())
            .map_err(failure)?;
        self.atoms(&atoms, until)?;
        let revisions: Vec<(i64, u32)> = self
            .live
            .prepare_cached("SELECT page, number FROM revisions WHERE batch IS NULL AND at <= ?1 ORDER BY at, page, number")
            .and_then(|mut query| query.query_map([until], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
            .map_err(failure)?;
        for (page, number) in revisions {
            self.revision(page, number)?;
        }
        Ok(())
    }

    /// Takes over the results of a batch whose answer was forgotten, or whose messages another batch has taken since.
    fn given_batch(&mut self, id: i64, at: i64) -> Result<()> {
        let list = |sql: &str| -> Result<Vec<(i64, u32)>> {
            self.live.prepare(sql).and_then(|mut query| query.query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()).map_err(failure)
        };
        let atoms: Vec<i64> = list("SELECT id, 0 FROM atoms WHERE batch = ?1 ORDER BY id")?.into_iter().map(|(atom, _)| atom).collect();
        let revisions = list("SELECT page, number FROM revisions WHERE batch = ?1 ORDER BY page, number")?;
        self.atoms(&atoms, at)?;
        self.confirmations(id)?;
        for (page, number) in revisions {
            self.revision(page, number)?;
        }
        let batch = work::batch(self.tx, BatchId(id))?;
        if batch.layer == "l3" {
            l3::given(self.tx, batch.scope, u64::try_from(at).unwrap_or(0))?;
        }
        Ok(())
    }

    fn uid(&self, table: &str, row: i64) -> Result<String> {
        self.live.query_row(&format!("SELECT uid FROM {table} WHERE id = ?1"), [row], |row| row.get(0)).map_err(failure)
    }

    fn here(&self, table: &str, uid: &str) -> Result<Option<i64>> {
        self.tx.query_row(&format!("SELECT id FROM {table} WHERE uid = ?1"), [uid], |row| row.get(0)).optional().map_err(failure)
    }

    /// Copies atoms that are not here yet, with their evidence; then what they replaced ends as it did, which may be one
    /// of them with a later row.
    fn atoms(&mut self, rows: &[i64], until: i64) -> Result<()> {
        let mut new = Vec::new();
        for row in rows {
            if let Some(here) = self.atom(*row)? {
                new.push((*row, here));
            }
        }
        new.into_iter().try_for_each(|(row, here)| self.ends(row, here, until))
    }

    /// Copies an atom with its evidence; returns its number here if it is new.
    fn atom(&mut self, row: i64) -> Result<Option<i64>> {
        let uid = self.uid("atoms", row)?;
        if self.here("atoms", &uid)?.is_some() {
            return Ok(None);
        }
        // Rows here have numbers of their own.
        copy(self.live, self.tx, "atoms", &format!("id = {row}"), &["id", "believed_to", "valid_to"])?;
        let Some(here) = self.here("atoms", &uid)? else { return Ok(None) };
        let evidence: Vec<(i64, String)> = self
            .live
            .prepare_cached("SELECT message, quote FROM evidence WHERE atom = ?1")
            .and_then(|mut query| query.query_map([row], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
            .map_err(failure)?;
        for (message, quote) in evidence {
            self.tx.execute("INSERT OR IGNORE INTO evidence (atom, message, quote) VALUES (?1, ?2, ?3)", params![here, message, quote]).map_err(failure)?;
        }
        Ok(Some(here))
    }

    /// Lets the messages of a batch stand behind the facts that it only confirmed.
    fn confirmations(&self, batch: i64) -> Result<()> {
        let confirmed: Vec<(String, i64, String)> = self
            .live
            .prepare_cached(
                "SELECT atoms.uid, evidence.message, evidence.quote FROM evidence JOIN messages ON messages.id = evidence.message
                   JOIN atoms ON atoms.id = evidence.atom WHERE messages.batch = ?1 AND atoms.batch IS NOT ?1",
            )
            .and_then(|mut query| query.query_map([batch], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect())
            .map_err(failure)?;
        for (uid, message, quote) in confirmed {
            if let Some(here) = self.here("atoms", &uid)? {
                self.tx.execute("INSERT OR IGNORE INTO evidence (atom, message, quote) VALUES (?1, ?2, ?3)", params![here, message, quote]).map_err(failure)?;
            }
        }
        Ok(())
    }

    /// Ends what an atom replaced by then, and the atom itself: replaced by one that was said later, although it came first,
    /// or ended without a successor, which an imported one may have.
    fn ends(&mut self, row: i64, here: i64, until: i64) -> Result<()> {
        let links: Vec<(i64, i64, String, i64)> = self
            .live
            .prepare_cached("SELECT newer, older, kind, at FROM links WHERE (newer = ?1 OR older = ?1) AND at <= ?2")
            .and_then(|mut query| query.query_map([row, until], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?.collect())
            .map_err(failure)?;
        for (newer, older, kind, at) in links {
            let (Some(new), Some(old)) = (self.here("atoms", &self.uid("atoms", newer)?)?, self.here("atoms", &self.uid("atoms", older)?)?) else { continue };
            let ends: (Option<i64>, Option<i64>) =
                self.live.query_row("SELECT believed_to, valid_to FROM atoms WHERE id = ?1", [older], |row| Ok((row.get(0)?, row.get(1)?))).map_err(failure)?;
            self.tx.execute("UPDATE atoms SET believed_to = ?2, valid_to = ?3 WHERE id = ?1", params![old, ends.0, ends.1]).map_err(failure)?;
            self.tx.execute("INSERT OR IGNORE INTO links (newer, older, kind, at) VALUES (?1, ?2, ?3, ?4)", params![new, old, kind, at]).map_err(failure)?;
        }
        let ends: Option<(Option<i64>, Option<i64>)> = self
            .live
            .prepare_cached("SELECT believed_to, valid_to FROM atoms WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM links WHERE older = ?1)")
            .and_then(|mut query| query.query_row([row], |row| Ok((row.get(0)?, row.get(1)?))).optional())
            .map_err(failure)?;
        if let Some((believed_to, valid_to)) = ends {
            self.tx.execute("UPDATE atoms SET believed_to = ?2, valid_to = ?3 WHERE id = ?1", params![here, believed_to, valid_to]).map_err(failure)?;
        }
        Ok(())
    }

    /// Copies one revision of a page and makes it current there.
    fn revision(&mut self, page: i64, number: u32) -> Result<()> {
        let uid = self.uid("pages", page)?;
        let here = match self.here("pages", &uid)? {
            Some(here) => here,
            None => {
                copy(self.live, self.tx, "pages", &format!("id = {page}"), &["id", "archived_at", "merged_into"])?;
                let Some(here) = self.here("pages", &uid)? else { return Ok(()) };
                self.tx.execute("UPDATE pages SET revision = 0, updated_at = created_at WHERE id = ?1", [here]).map_err(failure)?;
                here
            }
        };
        let known = self
            .tx
            .prepare_cached("SELECT 1 FROM revisions WHERE page = ?1 AND number = ?2")
            .and_then(|mut query| query.exists(params![here, number]))
            .map_err(failure)?;
        if known {
            return Ok(());
        }
        let mut query = self
            .live
            .prepare_cached("SELECT body, summary, heat, author, how, hand, hash, beats, pruned, batch, at FROM revisions WHERE page = ?1 AND number = ?2")
            .map_err(failure)?;
        let cells: Vec<Cell> = query.query_row(params![page, number], |row| (0..11).map(|index| row.get::<_, Cell>(index)).collect()).map_err(failure)?;
        let values = [Cell::Integer(here), Cell::Integer(i64::from(number))].into_iter().chain(cells);
        self.tx
            .execute(
                "INSERT INTO revisions (page, number, body, summary, heat, author, how, hand, hash, beats, pruned, batch, at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
                params_from_iter(values),
            )
            .map_err(failure)?;
        let grounds: Vec<(i64, String)> = self
            .live
            .prepare_cached("SELECT place, atom FROM grounds WHERE page = ?1 AND revision = ?2")
            .and_then(|mut query| query.query_map(params![page, number], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
            .map_err(failure)?;
        for (place, atom) in grounds {
            self.tx
                .execute("INSERT OR IGNORE INTO grounds (page, revision, place, atom) VALUES (?1, ?2, ?3, ?4)", params![here, number, place, atom])
                .map_err(failure)?;
        }
        let struck: Vec<String> = self
            .live
            .prepare_cached("SELECT atom FROM struck WHERE page = ?1")
            .and_then(|mut query| query.query_map([page], |row| row.get(0))?.collect())
            .map_err(failure)?;
        for atom in struck {
            self.tx.execute("INSERT OR IGNORE INTO struck (page, atom) VALUES (?1, ?2)", params![here, atom]).map_err(failure)?;
        }
        self.tx
            .execute(
                "UPDATE pages SET revision = max(revision, ?2), archived_at = NULL, merged_into = NULL,
                   updated_at = max(updated_at, (SELECT at FROM revisions WHERE page = ?1 AND number = ?2)) WHERE id = ?1",
                params![here, number],
            )
            .map(|_| ())
            .map_err(failure)
    }
}
