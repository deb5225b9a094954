//! Storing the atoms of a batch: a function of the atoms, the decisions and what is believed.
//!
//! Rules that hold with or without a model: the same fact is not stored twice, a new value of an
//! attribute ends the old one, pinned atoms stay, and nobody's words end or change what somebody
//! more trusted said.

use super::atom::{self, Atom, AtomId, Evidence, Kind, NewAtom, Origin};
use super::check::MAX_CONTENT;
use super::settle;
use crate::contract::{Instant, Result};
use crate::l0::{ScopeId, SessionId};
use crate::store::failure;
use crate::work::BatchId;
use rusqlite::{Transaction, params};

/// What becomes of a new atom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// It is stored.
    #[default]
    Store,
    /// Its targets say it already.
    Skip,
    /// Its targets no longer hold.
    Update,
    /// It and its targets are one fact.
    Merge,
}

/// What a decision is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A stored atom, by public id.
    Known(String),
    /// Another new atom of the batch, by index.
    New(usize),
}

/// A decision about one new atom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// What to do.
    pub action: Action,
    /// With regard to what.
    pub targets: Vec<Target>,
    /// The text of the merged fact.
    pub content: Option<String>,
    /// Its kind.
    pub kind: Option<Kind>,
    /// Its priority.
    pub priority: Option<i64>,
}

/// Where and when atoms are stored.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Whose.
    pub scope: ScopeId,
    /// In which session they came up.
    pub session: SessionId,
    /// The batch that made them.
    pub batch: BatchId,
    /// Now.
    pub at: Instant,
}

/// Steps along links from an atom that was replaced meanwhile to the one that holds.
const MAX_LINKS: usize = 64;

/// Stores atoms as `decisions` say (one for each, or none: all are stored). Returns the public ids of
/// what was made, ended or confirmed.
pub fn apply(tx: &Transaction<'_>, place: &Place, atoms: &[NewAtom], decisions: &[Decision]) -> Result<Vec<String>> {
    let store = Decision::default();
    let mut changed = Vec::new();
    // The rows of the new atoms so far; a skipped one stands for what says it already.
    let mut rows: Vec<Option<AtomId>> = vec![None; atoms.len()];
    for index in in_order_of_targets(atoms.len(), decisions) {
        let new = &atoms[index];
        let decision = decisions.get(index).unwrap_or(&store);
        let targets = resolve(tx, place, &decision.targets, &rows)?;
        rows[index] = Some(one(tx, place, new, decision, targets, &mut changed)?);
    }
    changed.dedup();
    Ok(changed)
}

/// Returns the indexes so that an atom comes after the new atoms that it targets, where that is
/// possible: of two that target each other the first comes first.
fn in_order_of_targets(count: usize, decisions: &[Decision]) -> Vec<usize> {
    let mut order = Vec::new();
    let mut placed = vec![false; count];
    while order.len() < count {
        let waits = |index: &usize, placed: &[bool]| {
            decisions.get(*index).is_some_and(|decision| decision.targets.iter().any(|target| matches!(target, Target::New(other) if !placed[*other])))
        };
        let open: Vec<usize> = (0..count).filter(|index| !placed[*index]).collect();
        let next = open.iter().copied().find(|index| !waits(index, &placed)).unwrap_or(open[0]);
        placed[next] = true;
        order.push(next);
    }
    order
}

/// Returns the believed atoms that targets mean now: one that was replaced since the question stands
/// for its successor.
fn resolve(tx: &Transaction<'_>, place: &Place, targets: &[Target], rows: &[Option<AtomId>]) -> Result<Vec<Atom>> {
    let mut found: Vec<Atom> = Vec::new();
    for target in targets {
        let mut atom = match target {
            Target::Known(uid) => atom::by_uid(tx, uid)?,
            Target::New(index) => rows[*index].map(|row| atom::by_id(tx, row)).transpose()?,
        };
        for _ in 0..MAX_LINKS {
            match &atom {
                Some(ended) if ended.believed_to.is_some() => atom = successor(tx, ended.id)?,
                _ => break,
            }
        }
        if let Some(atom) = atom.filter(|atom| atom.believed_to.is_none() && !found.iter().any(|other| other.id == atom.id))
            && is_in_scope(tx, place.scope, atom.id)?
        {
            found.push(atom);
        }
    }
    Ok(found)
}

fn successor(tx: &Transaction<'_>, older: AtomId) -> Result<Option<Atom>> {
    use rusqlite::OptionalExtension;
    let newer: Option<i64> = tx
        .prepare_cached("SELECT max(newer) FROM links WHERE older = ?1")
        .and_then(|mut query| query.query_row([older.0], |row| row.get(0)).optional())
        .map(Option::flatten)
        .map_err(failure)?;
    newer.map(|row| atom::by_id(tx, AtomId(row))).transpose()
}

fn is_in_scope(tx: &Transaction<'_>, scope: ScopeId, id: AtomId) -> Result<bool> {
    tx.prepare_cached("SELECT 1 FROM atoms WHERE id = ?1 AND scope = ?2").and_then(|mut query| query.exists(params![id.0, scope.0])).map_err(failure)
}

/// Stores one atom, or confirms the one that says it already; returns the row that stands for it.
fn one(tx: &Transaction<'_>, place: &Place, new: &NewAtom, decision: &Decision, targets: Vec<Atom>, changed: &mut Vec<String>) -> Result<AtomId> {
    if let Some(same) = atom::same(tx, place.scope, new.kind, &new.text)? {
        if same.origin >= new.origin || same.pinned {
            return confirm(tx, &same, new, changed);
        }
        // The user says now what only an assistant, a tool or the rules had said: it becomes the
        // user's word.
        return merge(tx, place, new, &Decision::default(), &new.text, &[&same], changed);
    }
    match decision.action {
        Action::Skip => {
            if let Some(target) = targets.iter().find(|target| may_stand_for(target, new)) {
                return confirm(tx, target, new, changed);
            }
        }
        Action::Merge => {
            let parts: Vec<&Atom> = targets.iter().filter(|target| !target.pinned && target.origin.is_the_users() == new.origin.is_the_users()).collect();
            if let Some(content) = decision.content.as_deref().filter(|content| !parts.is_empty() && content.chars().count() <= MAX_CONTENT) {
                return merge(tx, place, new, decision, content, &parts, changed);
            }
        }
        Action::Store | Action::Update => {}
    }
    let mut replaced: Vec<Atom> = if decision.action == Action::Update { targets } else { Vec::new() };
    if let Some(attribute) = &new.attribute {
        for atom in atom::with_attribute(tx, place.scope, attribute)? {
            if !replaced.iter().any(|other| other.id == atom.id) {
                replaced.push(atom);
            }
        }
    }
    replaced.retain(|old| !old.pinned && (new.origin.is_the_users() || !old.origin.is_the_users()));
    let (row, uid) = atom::insert(tx, place.scope, place.session, Some(place.batch), new, place.at)?;
    changed.push(uid);
    // A fact that was said before the one it speaks against is history that arrived late.
    if let Some(later) = replaced.iter().filter(|old| old.valid_from > new.valid_from).min_by_key(|old| old.valid_from) {
        atom::supersede(tx, row, later.id, later.valid_from, place.at)?;
        return Ok(later.id);
    }
    for old in &replaced {
        atom::supersede(tx, old.id, row, new.valid_from, place.at)?;
        changed.push(old.uid.clone());
    }
    Ok(row)
}

/// Returns whether an atom may take the evidence of a new one instead of it: what an assistant or a
/// tool said must not swallow what the user said.
fn may_stand_for(old: &Atom, new: &NewAtom) -> bool {
    old.origin.is_the_users() || !new.origin.is_the_users()
}

fn confirm(tx: &Transaction<'_>, old: &Atom, new: &NewAtom, changed: &mut Vec<String>) -> Result<AtomId> {
    atom::add_evidence(tx, old.id, &new.evidence)?;
    changed.push(old.uid.clone());
    Ok(old.id)
}

fn merge(tx: &Transaction<'_>, place: &Place, new: &NewAtom, decision: &Decision, content: &str, parts: &[&Atom], changed: &mut Vec<String>) -> Result<AtomId> {
    let mut evidence: Vec<Evidence> = new.evidence.clone();
    for part in parts {
        for source in atom::evidence(tx, part.id)? {
            if !evidence.iter().any(|known| known.message == source.message) {
                evidence.push(source);
            }
        }
    }
    let kind = decision.kind.filter(|kind| *kind == Kind::Episodic || new.origin.is_the_users()).unwrap_or(new.kind);
    let priorities = || parts.iter().map(|part| part.priority).chain([new.priority]);
    let highest = if priorities().any(|priority| priority == -1) { -1 } else { priorities().max().unwrap_or(new.priority) };
    let asked = decision.priority.map(|priority| i32::try_from(priority.clamp(-1, 100)).expect("-1 to 100 fits"));
    // A merged fact is worth at least what is stored at all.
    let priority = asked.filter(|asked| *asked >= kind.drop_line() || (*asked == -1 && kind == Kind::Instruction)).unwrap_or(highest);
    let merged = NewAtom {
        kind,
        text: content.split_whitespace().collect::<Vec<_>>().join(" "),
        priority,
        scene: new.scene.clone(),
        // What says more than the new atom is only as trustworthy as the least trusted of its parts.
        origin: if content == new.text { new.origin } else { parts.iter().map(|part| part.origin).chain([new.origin]).min().unwrap_or(Origin::Tool) },
        attribute: new.attribute.clone().or_else(|| parts.iter().find_map(|part| part.attribute.clone())),
        valid_from: parts.iter().map(|part| part.valid_from).chain([new.valid_from]).min().unwrap_or(new.valid_from),
        event_start: parts.iter().filter_map(|part| part.event_start).chain(new.event_start).min(),
        event_end: parts.iter().filter_map(|part| part.event_end).chain(new.event_end).max(),
        evidence,
    };
    let (row, uid) = atom::insert(tx, place.scope, place.session, Some(place.batch), &merged, place.at)?;
    changed.push(uid);
    for part in parts {
        atom::merge(tx, part.id, row, place.at)?;
        changed.push(part.uid.clone());
    }
    Ok(row)
}

/// Ends what the rules had made of a batch where a model has made an atom of the same kind from the
/// same message. Returns the public ids of what was ended.
pub fn replace_rules(tx: &Transaction<'_>, place: &Place, by_rules: BatchId) -> Result<Vec<String>> {
    let pairs: Vec<(i64, i64)> = tx
        .prepare_cached(
            "SELECT DISTINCT old.id, new.id FROM atoms AS old
             JOIN evidence AS o ON o.atom = old.id
             JOIN evidence AS n ON n.message = o.message
             JOIN atoms AS new ON new.id = n.atom
             WHERE old.batch = ?1 AND old.scope = ?3 AND old.origin = 'rules' AND old.believed_to IS NULL AND old.pinned = 0
               AND new.batch = ?2 AND new.believed_to IS NULL AND new.kind = old.kind
             ORDER BY old.id, new.id",
        )
        .and_then(|mut query| query.query_map(params![by_rules.0, place.batch.0, place.scope.0], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .map_err(failure)?;
    let mut ended = Vec::new();
    for (old, new) in pairs {
        let (old, new) = (atom::by_id(tx, AtomId(old))?, atom::by_id(tx, AtomId(new))?);
        // Two facts of one message are not the same fact.
        if old.believed_to.is_none() && settle::are_alike(&settle::telling(&old.text), &settle::telling(&new.text)) {
            atom::merge(tx, old.id, new.id, place.at)?;
            ended.push(old.uid);
        }
    }
    Ok(ended)
}
