//! A canvas as Mermaid text, under a limit, from the entries of its task.

use super::{Status, Task};
use crate::offload::ledger::Entry;
use crate::offload::summary::command::{Intent, one_line, shorten};
use std::collections::BTreeMap;

/// A canvas is shorter than this many characters.
pub const CANVAS_MAX_CHARS: usize = 4_000;
/// A node's summary is at most this long, conclusion first.
const NODE_SUMMARY_MAX_CHARS: usize = 150;
/// Files named in a node's label.
const LABEL_FILES: usize = 2;

/// A node, as derived from its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// `001-N1`.
    pub id: String,
    /// Intent, count and main files.
    pub label: String,
    /// Where it stands.
    pub status: Status,
    /// Conclusion first.
    pub summary: String,
    /// Ids of nodes that this one stands for, itself first.
    pub covers: Vec<String>,
    /// Calls on it.
    pub calls: usize,
}

/// A drawn canvas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawing {
    /// Mermaid text. The metadata line is a comment: the reference's `%%{ … }%%` is a directive to
    /// Mermaid, whose parser refuses it.
    pub text: String,
    /// The nodes as drawn, folded ones as one.
    pub nodes: Vec<Node>,
    /// Nodes that are done, before folding.
    pub done: usize,
}

/// What a model said of a node, which goes before the rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeNote {
    /// Intent, count and main files.
    pub label: String,
    /// Where it stands, if the model said so.
    pub status: Option<Status>,
    /// Conclusion first.
    pub summary: String,
}

/// Draws `task` from `entries` (those of other tasks are skipped) in at most `max_chars` characters.
/// `running` says whether the task is the current one. `notes` are what a model said of nodes.
pub fn draw(task: &Task, entries: &[Entry], running: bool, notes: &BTreeMap<String, NodeNote>, max_chars: usize) -> Drawing {
    let mut nodes = derive(task, entries, running, notes);
    let all = nodes.len();
    let done = nodes.iter().filter(|node| node.status == Status::Done).count();
    let mut summary_chars = NODE_SUMMARY_MAX_CHARS;
    loop {
        let text = render(task, &nodes, done, all, summary_chars);
        if text.chars().count() < max_chars {
            return Drawing { text, nodes, done };
        }
        // First fold the oldest done nodes together, then shorten what is left.
        if !fold_oldest(&mut nodes) {
            if summary_chars > 40 {
                summary_chars -= 30;
            } else if nodes.len() > 2 {
                fold_any(&mut nodes);
            } else {
                let text = shorten(&render(task, &nodes, done, all, 20), max_chars.saturating_sub(1));
                return Drawing { text, nodes, done };
            }
        }
    }
}

fn derive(task: &Task, entries: &[Entry], running: bool, notes: &BTreeMap<String, NodeNote>) -> Vec<Node> {
    let prefix = format!("{:03}-", task.number);
    let mut order: Vec<&str> = Vec::new();
    let mut members: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.node_id.starts_with(&prefix)) {
        members
            .entry(&entry.node_id)
            .or_insert_with(|| {
                order.push(&entry.node_id);
                Vec::new()
            })
            .push(entry);
    }
    let last = order.len().saturating_sub(1);
    order
        .iter()
        .enumerate()
        .map(|(at, id)| {
            let calls = &members[id];
            let mut node = derive_node(id, calls, at == last, running);
            if let Some(note) = notes.get(*id) {
                if !note.label.is_empty() {
                    node.label = note.label.clone();
                }
                if !note.summary.is_empty() {
                    node.summary = note.summary.clone();
                }
                node.status = note.status.unwrap_or(node.status);
            }
            node
        })
        .collect()
}

fn derive_node(id: &str, calls: &[&Entry], newest: bool, running: bool) -> Node {
    let mut counts: BTreeMap<Intent, usize> = BTreeMap::new();
    let mut files: Vec<(&str, usize)> = Vec::new();
    for entry in calls {
        *counts.entry(entry.intent).or_default() += 1;
        if let Some(target) = &entry.target {
            let name = target.rsplit('/').next().unwrap_or(target);
            match files.iter_mut().find(|(seen, _)| *seen == name) {
                Some((_, count)) => *count += 1,
                None => files.push((name, 1)),
            }
        }
    }
    files.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let main = counts.iter().max_by_key(|(intent, count)| (**count, std::cmp::Reverse(**intent))).map_or(Intent::Operate, |(intent, _)| *intent);
    let named: Vec<&str> = files.iter().take(LABEL_FILES).map(|(name, _)| *name).collect();
    let label = if named.is_empty() { format!("{} x{}", main.word(), calls.len()) } else { format!("{} x{}: {}", main.word(), calls.len(), named.join(", ")) };
    let telling = calls
        .iter()
        .rev()
        .find(|entry| matches!(entry.intent, Intent::Verify | Intent::Record))
        .or_else(|| calls.iter().rev().find(|entry| entry.failed))
        .or_else(|| calls.last());
    let ended_badly =
        telling.is_some_and(|entry| entry.failed) && calls.last().is_some_and(|entry| entry.failed || telling.is_some_and(|t| t.ordinal + 3 > entry.ordinal));
    let status = match (newest, running, ended_badly) {
        (true, true, _) => Status::Doing,
        (true, false, false) => Status::Paused,
        (_, _, true) => Status::Blocked,
        _ => Status::Done,
    };
    let summary = telling.map_or(String::new(), |entry| entry.summary.clone());
    Node { id: id.to_owned(), label, status, summary, covers: vec![id.to_owned()], calls: calls.len() }
}

/// Folds the first two neighbours that are both done; returns whether there were any. The newest
/// node is never folded.
fn fold_oldest(nodes: &mut Vec<Node>) -> bool {
    let last = nodes.len().saturating_sub(1);
    let pair = (1..last).find(|at| nodes[*at].status == Status::Done && nodes[*at - 1].status == Status::Done);
    let Some(at) = pair else { return false };
    fold_pair(nodes, at);
    true
}

/// Folds the two oldest nodes, dead ends included, when nothing else is left.
fn fold_any(nodes: &mut Vec<Node>) {
    if nodes.len() > 2 {
        fold_pair(nodes, 1);
    }
}

fn fold_pair(nodes: &mut Vec<Node>, at: usize) {
    let newer = nodes.remove(at);
    let older = &mut nodes[at - 1];
    older.covers.extend(newer.covers);
    older.calls += newer.calls;
    older.summary = newer.summary;
    older.label = format!("folded {}, {} calls", ranges(&older.covers), older.calls);
}

/// Returns node ids as ranges: `001-N1..N4,N6`.
fn ranges(ids: &[String]) -> String {
    let numbers: Vec<u32> = ids.iter().filter_map(|id| id.rsplit_once("-N")?.1.parse().ok()).collect();
    let prefix = ids.first().and_then(|id| id.split_once("-N")).map_or("", |(prefix, _)| prefix);
    let mut text = format!("{prefix}-");
    let mut at = 0;
    while at < numbers.len() {
        let start = at;
        while at + 1 < numbers.len() && numbers[at + 1] == numbers[at] + 1 {
            at += 1;
        }
        if start > 0 {
            text.push(',');
        }
        if at > start {
            text.push_str(&format!("N{}..N{}", numbers[start], numbers[at]));
        } else {
            text.push_str(&format!("N{}", numbers[start]));
        }
        at += 1;
    }
    text
}

fn render(task: &Task, nodes: &[Node], done: usize, all: usize, summary_chars: usize) -> String {
    let goal = shorten(&plain(&task.goal), 160);
    let mut text = format!("%% {{ \"taskGoal\":\"{goal}\",\"progress\":\"{done} of {all} nodes done\" }}\nflowchart TD\n");
    for (at, node) in nodes.iter().enumerate() {
        text.push_str(&format!(
            "{}[\"{}<br/>status: {}<br/>summary: {}\"]\n",
            node.id,
            plain(&shorten(&node.label, 110)),
            node.status.word(),
            plain(&shorten(&node.summary, summary_chars)),
        ));
        if at > 0 {
            let dead = nodes[at - 1].status == Status::Blocked;
            text.push_str(&format!("{} {} {}\n", nodes[at - 1].id, if dead { "-.->" } else { "-->" }, node.id));
        }
    }
    text
}

/// Returns `text` as it may stand in a quoted Mermaid label and in the metadata line.
fn plain(text: &str) -> String {
    one_line(text)
        .chars()
        .map(|c| match c {
            '"' | '`' => '\'',
            '<' => '‹',
            '>' => '›',
            '{' => '(',
            '}' => ')',
            '[' => '(',
            ']' => ')',
            '\\' => '/',
            '#' => '＃',
            ';' => ',',
            '%' => '％',
            c if c.is_control() => ' ',
            c => c,
        })
        .collect()
}
