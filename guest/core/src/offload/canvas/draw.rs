//! A canvas as Mermaid text, under a limit, from the entries of its task.

use super::{Status, Task};
use crate::offload::ledger::Entry;
use crate::offload::summary::command::{Intent, one_line, shorten};
use std::collections::BTreeMap;

/// A canvas is shorter than this many characters.
pub const CANVAS_MAX_CHARS: usize = 4_000;
/// A node's summary is at most this long, conclusion first.
const NODE_SUMMARY_MAX_CHARS: usize = 150;
/// Summaries get shorter in such steps where the drawing has no room,
const NODE_SUMMARY_STEP_CHARS: usize = 30;
/// down to this.
const NODE_SUMMARY_MIN_CHARS: usize = 30;
const LABEL_MAX_CHARS: usize = 110;
const GOAL_MAX_CHARS: usize = 160;
/// The metadata line and the word `flowchart`, at most.
const HEAD_MAX_CHARS: usize = 250;
/// What a node takes beside its texts: brackets, breaks, `status: blocked`, its arrow.
const NODE_MARKS_CHARS: usize = 52;
/// Files named in a node's label.
const LABEL_FILES: usize = 2;
/// Files named in the label of folded nodes.
const FOLDED_FILES: usize = 4;
/// Files named in the summary of a node that only looked around.
const EXPLORED_FILES: usize = 5;
/// Files kept of a node.
const FILES_MAX: usize = 12;
/// What a call was aimed at may be a query; more characters of it tell nothing in a label.
const FILE_MAX_CHARS: usize = 48;

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
    /// Files that its calls were aimed at, by name, those aimed at most often first.
    pub files: Vec<String>,
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
    let (all, done) = (nodes.len(), nodes.iter().filter(|node| node.status == Status::Done).count());
    // First the oldest done nodes fold together, then summaries get shorter, then dead ends fold too.
    let mut summary_chars = NODE_SUMMARY_MAX_CHARS;
    let fits = loop {
        nodes = fold(nodes, summary_chars, max_chars, |older, newer| older == Status::Done && newer == Status::Done);
        if size(&nodes, summary_chars) < max_chars {
            break true;
        }
        if summary_chars <= NODE_SUMMARY_MIN_CHARS {
            nodes = fold(nodes, summary_chars, max_chars, |_, _| true);
            break size(&nodes, summary_chars) < max_chars;
        }
        summary_chars -= NODE_SUMMARY_STEP_CHARS;
    };
    for node in nodes.iter_mut().filter(|node| node.covers.len() > 1) {
        let files = node.files[..node.files.len().min(FOLDED_FILES)].join(", ");
        node.label = format!("{FOLDED_HEAD}{}, {} calls: {files}", ranges(&node.covers), node.calls);
    }
    let text = render(task, &nodes, done, all, summary_chars);
    let text = if fits { text } else { shorten(&text, max_chars.saturating_sub(1)) };
    Drawing { text, nodes, done }
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
    for entry in calls {
        *counts.entry(entry.intent).or_default() += 1;
    }
    let main = counts.iter().max_by_key(|(intent, count)| (**count, std::cmp::Reverse(**intent))).map_or(Intent::Operate, |(intent, _)| *intent);
    let files = files_of(calls);
    let named = files.iter().take(LABEL_FILES).map(String::as_str).collect::<Vec<_>>().join(", ");
    let label = if named.is_empty() { format!("{} x{}", main.word(), calls.len()) } else { format!("{} x{}: {named}", main.word(), calls.len()) };
    let checked = calls.iter().rev().find(|entry| matches!(entry.intent, Intent::Verify | Intent::Record));
    let telling = checked.or_else(|| calls.iter().rev().find(|entry| entry.failed)).or_else(|| calls.last());
    let ended_badly =
        telling.is_some_and(|entry| entry.failed) && calls.last().is_some_and(|entry| entry.failed || telling.is_some_and(|t| t.ordinal + 3 > entry.ordinal));
    let status = match (newest, running, ended_badly) {
        (true, true, _) => Status::Doing,
        (true, false, false) => Status::Paused,
        (_, _, true) => Status::Blocked,
        _ => Status::Done,
    };
    let said = telling.map_or(String::new(), |entry| told(entry));
    // Of a node that only looked around, what it looked at tells more than the head of its last file.
    let summary = if main == Intent::Explore && checked.is_none() && !ended_badly && files.len() > LABEL_FILES {
        format!("also {}; last: {said}", files.iter().skip(LABEL_FILES).take(EXPLORED_FILES).map(String::as_str).collect::<Vec<_>>().join(", "))
    } else {
        said
    };
    Node { id: id.to_owned(), label, status, summary, covers: vec![id.to_owned()], calls: calls.len(), files }
}

/// Returns what an entry concludes; of a call that said nothing, the call.
fn told(entry: &Entry) -> String {
    match entry.summary.as_str() {
        "" | "no output" => format!("{}: no output", shorten(&entry.call_line, 100)),
        summary => summary.to_owned(),
    }
}

/// Returns the names of the files that `calls` were aimed at, those aimed at most often first.
fn files_of(calls: &[&Entry]) -> Vec<String> {
    let mut files: Vec<(&str, usize)> = Vec::new();
    for target in calls.iter().filter_map(|entry| entry.target.as_deref()) {
        let name = target.trim_end_matches('/').rsplit('/').next().unwrap_or(target);
        // `./...` and the like name nothing.
        if !name.contains(char::is_alphanumeric) {
            continue;
        }
        match files.iter_mut().find(|(seen, _)| *seen == name) {
            Some((_, count)) => *count += 1,
            None => files.push((name, 1)),
        }
    }
    files.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    files.into_iter().take(FILES_MAX).map(|(name, _)| shorten(name, FILE_MAX_CHARS)).collect()
}

/// Folds neighbours that `may` fold, from the oldest on, until the drawing fits `max_chars`. The newest node stays by
/// itself.
fn fold(nodes: Vec<Node>, summary_chars: usize, max_chars: usize, may: impl Fn(Status, Status) -> bool) -> Vec<Node> {
    let mut total = size(&nodes, summary_chars);
    let last = nodes.len().saturating_sub(1);
    let mut folded: Vec<Node> = Vec::new();
    for (at, newer) in nodes.into_iter().enumerate() {
        match folded.last_mut() {
            Some(older) if total >= max_chars && at < last && may(older.status, newer.status) => {
                total -= node_size(older, summary_chars) + node_size(&newer, summary_chars);
                join(older, newer);
                total += node_size(older, summary_chars);
            }
            _ => folded.push(newer),
        }
    }
    folded
}

fn join(older: &mut Node, newer: Node) {
    older.covers.extend(newer.covers);
    older.calls += newer.calls;
    older.status = if older.status == newer.status { older.status } else { Status::Done };
    older.summary = newer.summary;
    for file in newer.files {
        if !older.files.contains(&file) && older.files.len() < FILES_MAX {
            older.files.push(file);
        }
    }
}

/// Returns at most how many characters a drawing of `nodes` takes.
fn size(nodes: &[Node], summary_chars: usize) -> usize {
    HEAD_MAX_CHARS + nodes.iter().map(|node| node_size(node, summary_chars)).sum::<usize>()
}

fn node_size(node: &Node, summary_chars: usize) -> usize {
    let label = if node.covers.len() > 1 { LABEL_MAX_CHARS } else { node.label.chars().count().min(LABEL_MAX_CHARS) };
    NODE_MARKS_CHARS + 2 * node.id.len() + label + node.summary.chars().count().min(summary_chars)
}

/// How the label of a node begins that stands for several; their ids follow, up to a comma and a blank.
pub const FOLDED_HEAD: &str = "folded ";

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
    let goal = shorten(&plain(&task.goal), GOAL_MAX_CHARS);
    let mut text = format!("%% {{ \"taskGoal\":\"{goal}\",\"progress\":\"{done} of {all} nodes done\" }}\nflowchart TD\n");
    for node in nodes {
        text.push_str(&format!(
            "{}[\"{}<br/>status: {}<br/>summary: {}\"]\n",
            node.id,
            plain(&shorten(&node.label, LABEL_MAX_CHARS)),
            node.status.word(),
            plain(&shorten(&node.summary, summary_chars)),
        ));
    }
    // One chain names each node once more, where an arrow a line would name it twice.
    for (at, node) in nodes.iter().enumerate().filter(|_| nodes.len() > 1) {
        if at > 0 {
            text.push_str(if nodes[at - 1].status == Status::Blocked { " -.-> " } else { " --> " });
        }
        text.push_str(&node.id);
    }
    if nodes.len() > 1 {
        text.push('\n');
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
