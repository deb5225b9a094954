//! The one message that stands for what was folded: canvas, earlier tasks, names in use.

use crate::offload::canvas::{CANVAS_MAX_CHARS, NodeNote, Task, draw};
use crate::offload::ledger::Entry;
use crate::offload::summary::command::shorten;
use crate::offload::token_estimate::{MESSAGE_OVERHEAD_TOKENS, estimate};
use std::collections::BTreeMap;

/// How the message begins; a list that holds it was assembled before.
pub const CONTEXT_HEAD: &str = "<current_task_context>";
const CONTEXT_TAIL: &str = "</current_task_context>";

/// The language of the few sentences that tell how to drill down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// English.
    English,
    /// Simplified Chinese.
    Chinese,
}

impl Language {
    /// Returns the language that `text` is mostly written in.
    pub fn of(text: &str) -> Self {
        let wide = text.chars().filter(|c| ('\u{4e00}'..='\u{9fff}').contains(c)).count();
        let letters = text.chars().filter(char::is_ascii_alphabetic).count();
        if wide * 3 > letters { Self::Chinese } else { Self::English }
    }
}

/// Names in use take at most this many characters.
const NAMES_MAX_CHARS: usize = 1_500;
/// Earlier tasks listed, newest first.
const PAST_TASKS_MAX: usize = 12;
/// Of the newest of them, so many show the stretches of their work,
const PAST_DRAWN_MAX: usize = 3;
/// if they have more calls than one page of `node_read` tells in full,
const PAST_DRAWN_CALLS: usize = 24;
/// folded to a drawing of so many characters,
const PAST_DRAWN_CHARS: usize = 1_100;
/// a line a node.
const PAST_LINE_CHARS: usize = 90;
/// A use so many calls ago counts half.
const NAME_HALF_LIFE_CALLS: u32 = 40;

/// What the context is made from.
#[derive(Clone, Copy, Debug)]
pub struct Story<'a> {
    /// All tasks.
    pub tasks: &'a [Task],
    /// The running task.
    pub current: u32,
    /// What a model said of nodes.
    pub notes: &'a BTreeMap<String, NodeNote>,
    /// The user's language.
    pub language: Language,
}

/// Returns the context for `entries` (the oldest of the session, up to the brief mark), in at most about `max_chars`
/// characters and as a message of less than `below_tokens` tokens, at least [`CONTEXT_TOKENS_MIN`]. Empty without entries.
pub fn context(story: Story<'_>, entries: &[Entry], max_chars: usize, below_tokens: u64) -> String {
    let sizes = (0..SIZES).map(|halvings| Some(max_chars >> halvings)).chain([None]);
    let fits = |text: &String| context_tokens(text) < below_tokens;
    if entries.is_empty() {
        return String::new();
    }
    let mut texts = sizes.map(|size| size.map_or_else(|| smallest(&story, entries), |chars| sized(&story, entries, chars)));
    texts.find(fits).unwrap_or_default()
}

/// Returns the tokens of the message that says `text`.
pub fn context_tokens(text: &str) -> u64 {
    MESSAGE_OVERHEAD_TOKENS + estimate(text)
}

/// The smallest context message has fewer tokens than this, however long the session is.
pub const CONTEXT_TOKENS_MIN: u64 = 190;
/// A context that does not fit is tried in half the room, so many times, before it is only the smallest one.
const SIZES: u32 = 4;

fn how(language: Language) -> &'static str {
    match language {
        Language::English => {
            "Older tool results were moved out of this conversation; nothing is lost. `ref_read` with a ref (line range or grep) gives the exact bytes, without a ref it greps all of them; \
             `node_read` with a node id, a range as a folded node shows it, or a task number lists the calls with their refs (`grep` picks among them); `canvas_read` draws a task. \
             This is a record, not an instruction."
        }
        Language::Chinese => {
            "较早的工具结果已移出对话，内容没有丢失。用 `ref_read` 按 ref 读取原文（可指定行范围或 grep），不给 ref 时在全部结果中 grep；\
             用 `node_read` 按节点 id、折叠节点所示范围或任务号列出调用和 ref（可用 grep 筛选）；用 `canvas_read` 查看任务图。这是记录，不是指令。"
        }
    }
}

/// Returns the context that only names the tasks: `node_read` of their range leads to every call.
fn smallest(story: &Story<'_>, entries: &[Entry]) -> String {
    let tasks = || entries.iter().filter_map(Entry::task);
    let (Some(first), Some(last)) = (tasks().min(), tasks().max()) else { return String::new() };
    let range = if first == last { format!("{first:03}") } else { format!("{first:03}..{last:03}") };
    format!("{CONTEXT_HEAD}\n{}\ntask {range} ({} calls)\n{CONTEXT_TAIL}", how(story.language), entries.len())
}

fn sized(story: &Story<'_>, entries: &[Entry], max_chars: usize) -> String {
    let current = entries.last().and_then(Entry::task).unwrap_or(story.current);
    let mut text = format!("{CONTEXT_HEAD}\n{}\n", how(story.language));
    let canvas_room = CANVAS_MAX_CHARS.min(max_chars.saturating_sub(text.len() + CONTEXT_TAIL.len() + 200) * 7 / 10);
    text.push_str(&past_tasks(story, current, entries, max_chars.saturating_sub(text.len() + canvas_room)));
    if let Some(task) = story.tasks.iter().find(|task| task.number == current) {
        let drawing = draw(task, entries, true, story.notes, canvas_room.max(200));
        text.push_str("```mermaid\n");
        text.push_str(&drawing.text);
        text.push_str("```\n");
    }
    let room = max_chars.saturating_sub(text.len() + CONTEXT_TAIL.len() + 20).min(NAMES_MAX_CHARS);
    let names = names_in_use(entries, room);
    if !names.is_empty() {
        text.push_str("in use: ");
        text.push_str(&names);
        text.push('\n');
    }
    text.push_str(CONTEXT_TAIL);
    text
}

/// Returns a line for each of the newest earlier tasks, and one for those before them. The large ones among the newest get
/// a line for each stretch of their work, as far as `room` characters allow: what was done there is then two calls away,
/// `node_read` of the stretch and `ref_read`.
fn past_tasks(story: &Story<'_>, current: u32, entries: &[Entry], room: usize) -> String {
    let mut calls: BTreeMap<u32, usize> = BTreeMap::new();
    for task in entries.iter().filter_map(Entry::task) {
        *calls.entry(task).or_default() += 1;
    }
    let past: Vec<&Task> = story.tasks.iter().filter(|task| task.number != current && calls.contains_key(&task.number)).collect();
    let mut text = String::new();
    for (at, task) in past.iter().rev().take(PAST_TASKS_MAX).enumerate() {
        text.push_str(&format!("task {:03}: {} ({} calls)\n", task.number, shorten(&task.goal, 90), calls[&task.number]));
        if at >= PAST_DRAWN_MAX || calls[&task.number] <= PAST_DRAWN_CALLS || text.len() + PAST_DRAWN_CHARS > room {
            continue;
        }
        for node in draw(task, entries, false, story.notes, PAST_DRAWN_CHARS).nodes {
            text.push_str(&format!("  {}: {}\n", node.id, shorten(&node.label, PAST_LINE_CHARS)));
        }
    }
    let older = &past[..past.len().saturating_sub(PAST_TASKS_MAX)];
    if let (Some(first), Some(last)) = (older.first(), older.last()) {
        let sum: usize = older.iter().map(|task| calls[&task.number]).sum();
        text.push_str(&format!("task {:03}..{:03}: earlier ones ({sum} calls)\n", first.number, last.number));
    }
    text
}

/// Returns the names that calls used, those used often and lately first.
fn names_in_use(entries: &[Entry], max_chars: usize) -> String {
    let newest = entries.last().map_or(0, |entry| entry.ordinal);
    let mut weights: BTreeMap<&str, (u64, u32)> = BTreeMap::new();
    for entry in entries {
        let age = (newest - entry.ordinal) / NAME_HALF_LIFE_CALLS;
        let weight = 1_000_u64 >> age.min(9);
        for name in &entry.names_used {
            let slot = weights.entry(name).or_default();
            slot.0 += weight.max(1);
            slot.1 = entry.ordinal;
        }
    }
    let mut ranked: Vec<(&str, u64, u32)> = weights.into_iter().map(|(name, (weight, last))| (name, weight, last)).collect();
    ranked.sort_by_key(|(name, weight, last)| (std::cmp::Reverse(*weight), std::cmp::Reverse(*last), *name));
    let mut text = String::new();
    for (name, _, _) in ranked {
        if text.len() + name.len() + 2 > max_chars || text.contains(name) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offload::canvas::Board;
    use crate::offload::summary::command::Intent;

    fn on_task(task: u32) -> Entry {
        Entry {
            ordinal: 0,
            call_id: String::new(),
            result_print: 0,
            result_bytes: 0,
            node_id: format!("{task:03}-N1"),
            placed_node: String::new(),
            uid: String::new(),
            tool: String::new(),
            at_ms: 0,
            call_line: String::new(),
            intent: Intent::Explore,
            target: None,
            result_ref: String::new(),
            arguments_ref: None,
            summary: String::new(),
            shown: None,
            digest: String::new(),
            failed: false,
            score: 0,
            names_used: Vec::new(),
        }
    }

    #[test]
    fn the_smallest_context_fits_whatever_the_session() {
        let board = Board::default();
        let notes = BTreeMap::new();
        for language in [Language::English, Language::Chinese] {
            let story = Story { tasks: &board.tasks, current: 1, notes: &notes, language };
            let mut entries = Vec::new();
            for task in [1, 2, 999_999_999] {
                entries.push(on_task(task));
            }
            let text = smallest(&story, &entries);
            assert!(text.contains("task 001..999999999 (3 calls)"), "{text}");
            let tokens = context_tokens(&text);
            assert!(tokens < CONTEXT_TOKENS_MIN, "{language:?}: {tokens}");
            let given = context(story, &entries, 6_500, CONTEXT_TOKENS_MIN);
            assert!(!given.is_empty() && context_tokens(&given) < CONTEXT_TOKENS_MIN, "{given}");
            assert_eq!(context(story, &[], 6_500, 10_000), "");
        }
    }
}
