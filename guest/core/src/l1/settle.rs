//! The second question of a batch: what becomes of each new atom, given what is believed?

use super::answer;
use super::apply::{Action, Decision, Target};
use super::atom::{self, Atom, Kind, NewAtom};
use crate::calendar::Calendar;
use crate::contract::{Abilities, Instant, LlmRequest, Result};
use crate::index::Index;
use crate::l0::ScopeId;
use crate::recall;
use crate::store::failure;
use crate::text;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The system prompt; people review it there.
const PROMPT: &str = include_str!("../../prompts/l1-settle.md");

/// Believed atoms that each new atom is held against (the reference system's figure).
pub const CANDIDATES: usize = 5;

/// Share of telling words from which two new atoms of a batch are held against each other.
const OVERLAP: f64 = 0.5;

/// Bound on the answer, in tokens.
const MAX_ANSWER_TOKENS: u32 = 4096;

/// Returns the believed atoms that the new ones may repeat or contradict, in the order of their rows.
pub fn pool(db: &Connection, index: &Index, scope: ScopeId, atoms: &[NewAtom]) -> Result<Vec<Atom>> {
    let mut rows = BTreeSet::new();
    for new in atoms {
        let words = telling(&new.text).into_iter().collect::<Vec<_>>().join(" ");
        rows.extend(recall::alike(db, index, scope, &new.text, &words, CANDIDATES)?);
    }
    rows.into_iter().map(|row| atom::by_id(db, row)).collect()
}

/// Returns whether two new atoms are so alike that they may repeat or contradict each other.
pub fn overlap(atoms: &[NewAtom]) -> bool {
    let words: Vec<BTreeSet<String>> = atoms.iter().map(|new| telling(&new.text)).collect();
    words.iter().enumerate().any(|(index, one)| words[..index].iter().any(|other| are_alike(one, other)))
}

/// Returns whether two facts share so many of the fewer words that they may be about the same thing.
pub fn are_alike(one: &BTreeSet<String>, other: &BTreeSet<String>) -> bool {
    let shared = one.intersection(other).count();
    shared > 0 && shared as f64 >= one.len().min(other.len()) as f64 * OVERLAP
}

/// Returns the words of an atom that tell what it is about; nearly all are about the user.
pub fn telling(text: &str) -> BTreeSet<String> {
    text::query_tokens(text).into_iter().filter(|token| token != "user" && token != "用户").collect()
}

/// Returns whether a settlement of the scope waits for its answer.
pub fn is_in_flight(db: &Connection, scope: ScopeId) -> Result<bool> {
    db.prepare_cached("SELECT 1 FROM requests JOIN batches ON batches.id = batch WHERE requests.state = 'asked' AND purpose = 'l1-settle' AND scope = ?1")
        .and_then(|mut query| query.exists([scope.0]))
        .map_err(failure)
}

/// Returns the question.
pub fn request(atoms: &[NewAtom], pool: &[Atom], calendar: &Calendar, model: &Abilities) -> LlmRequest {
    let mut prompt = String::from("## Known\n");
    let mut push = |id: String, kind: Kind, priority: i32, at: Instant, content: &str| {
        let line = json!({"id": id, "type": kind.to_string(), "priority": priority, "time": calendar.iso(at), "content": content});
        prompt.push_str(&line.to_string());
        prompt.push('\n');
    };
    for (index, atom) in pool.iter().enumerate() {
        push(format!("c{}", index + 1), atom.kind, atom.priority, atom.valid_from, &atom.text);
    }
    let mut new_lines = String::from("\n## New\n");
    for (index, atom) in atoms.iter().enumerate() {
        let line = json!({"id": format!("n{}", index + 1), "type": atom.kind.to_string(), "priority": atom.priority, "time": calendar.iso(atom.valid_from), "content": atom.text});
        new_lines.push_str(&line.to_string());
        new_lines.push('\n');
    }
    prompt.push_str(&new_lines);
    LlmRequest {
        purpose: "l1-settle".into(),
        system: PROMPT.into(),
        prompt,
        schema_json: if model.json_schema { schema(atoms.len(), pool.len()).to_string() } else { String::new() },
        max_tokens: MAX_ANSWER_TOKENS,
        timeout_ms: super::extract::TIMEOUT_MS,
    }
}

/// Returns one decision for each of `count` new atoms, or why the answer cannot be read. An atom
/// without a usable decision is stored; a target that was not offered is not a target.
pub fn parse(text: &str, count: usize, pool: &[String]) -> std::result::Result<Vec<Decision>, String> {
    const NAMES: &[&str] = &["decisions", "result", "data"];
    let root = answer::json(text, |value| answer::list(value, NAMES).is_some())?;
    let items = answer::list(&root, NAMES).expect("the search accepted only such a value");
    let mut decided: BTreeMap<usize, Decision> = BTreeMap::new();
    for item in items {
        let Some(index) = label(&answer::string(item, &["new", "record_id", "id"]), 'n', count) else { continue };
        decided.entry(index).or_insert_with(|| decision(item, index, count, pool));
    }
    if decided.is_empty() && count > 0 {
        return Err("the answer decides about none of the new memories".into());
    }
    Ok((0..count).map(|index| decided.remove(&index).unwrap_or_default()).collect())
}

fn decision(item: &Value, index: usize, count: usize, pool: &[String]) -> Decision {
    let names = ["targets", "target_ids"].iter().find_map(|name| item.get(*name));
    let names: Vec<&str> = match names {
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(one)) => vec![one],
        _ => Vec::new(),
    };
    let mut targets = Vec::new();
    for name in names {
        let target = label(name, 'c', pool.len())
            .map(|known| Target::Known(pool[known].clone()))
            .or_else(|| label(name, 'n', count).filter(|new| *new != index).map(Target::New))
            .or_else(|| pool.iter().find(|uid| *uid == name).cloned().map(Target::Known));
        if let Some(target) = target.filter(|target| !targets.contains(target)) {
            targets.push(target);
        }
    }
    let action = match answer::string(item, &["action"]).to_ascii_lowercase().as_str() {
        "skip" => Action::Skip,
        "update" if !targets.is_empty() => Action::Update,
        "merge" if !targets.is_empty() => Action::Merge,
        _ => Action::Store,
    };
    let content = answer::string(item, &["content", "merged_content"]);
    Decision {
        action,
        targets,
        content: Some(content).filter(|content| !content.is_empty()),
        kind: Kind::parse(&answer::string(item, &["type", "merged_type"])),
        priority: ["priority", "merged_priority"].iter().find_map(|name| item.get(*name).and_then(answer::number)).filter(|priority| *priority != 0),
    }
}

/// Returns the index that a label such as `c3` names, if it is one of `count`.
fn label(name: &str, prefix: char, count: usize) -> Option<usize> {
    let number: usize = name.trim().strip_prefix(prefix)?.parse().ok()?;
    number.checked_sub(1).filter(|index| *index < count)
}

/// Returns the shape of the answer about `new` atoms and `known` ones, with everything bounded that a model could draw out.
fn schema(new: usize, known: usize) -> Value {
    let new_labels: Vec<String> = (1..=new).map(|index| format!("n{index}")).collect();
    let targets: Vec<String> = (1..=known).map(|index| format!("c{index}")).chain(new_labels.iter().cloned()).collect();
    json!({
        "type": "object", "required": ["decisions"], "additionalProperties": false,
        "properties": {"decisions": {"type": "array", "maxItems": new, "items": {
            "type": "object", "required": ["new", "action", "targets", "content", "type", "priority"], "additionalProperties": false,
            "properties": {
                "new": {"type": "string", "enum": new_labels},
                "action": {"type": "string", "enum": ["store", "skip", "update", "merge"]},
                "targets": {"type": "array", "maxItems": targets.len(), "items": {"type": "string", "enum": targets}},
                "content": {"type": "string", "maxLength": super::extract::MAX_FACT},
                "type": {"type": "string", "enum": ["", "persona", "episodic", "instruction"]},
                "priority": {"type": "integer"}
            }
        }}}
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> Vec<String> {
        vec!["a_1".into(), "a_2".into()]
    }

    #[test]
    fn decisions_by_label_with_targets_that_were_offered() {
        let text = r#"{"decisions":[{"new":"n1","action":"update","targets":["c2","c9","a_7"]},{"new":"n2","action":"merge","targets":["n1","n2"],"content":"x","type":"persona","priority":90},{"new":"n7","action":"skip"}]}"#;
        let decisions = parse(text, 3, &pool()).expect("readable");
        assert_eq!((decisions[0].action, &decisions[0].targets[..]), (Action::Update, &[Target::Known("a_2".into())][..]));
        assert_eq!((decisions[1].action, &decisions[1].targets[..]), (Action::Merge, &[Target::New(0)][..]));
        assert_eq!(decisions[2].action, Action::Store);
    }

    #[test]
    fn wrong_targets_and_unknown_actions_store() {
        let text = r#"[{"record_id":"n1","action":"update","target_ids":["c5"]},{"record_id":"n2","action":"obliterate","target_ids":["c1"]}]"#;
        assert!(parse(text, 2, &pool()).expect("readable").iter().all(|decision| decision.action == Action::Store));
    }

    #[test]
    fn prose_is_not_a_decision() {
        assert!(parse("All of these look fine to me.", 1, &pool()).is_err());
        assert!(parse("[]", 1, &pool()).is_err());
    }
}
