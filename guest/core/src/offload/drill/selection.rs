//! Which nodes an agent means: what a canvas shows may be handed back as it stands there.

use crate::offload::canvas::FOLDED_HEAD;
use crate::offload::ledger::Entry;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Nodes of one task, or all nodes of some tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    tasks: RangeInclusive<u32>,
    /// Ranges of node numbers; empty for all.
    nodes: Vec<RangeInclusive<u32>>,
}

/// Ranges named at once.
const RANGES_MAX: usize = 200;

impl Selection {
    /// Returns what `named` selects, or `None` if it is no such name: `001-N3`, `001-N1..N4,N6`, `001`, `task 001`,
    /// `001..004`. The id of a node that the newest of `contexts` shows as folded selects all that it stands for.
    pub(super) fn parse(named: &str, contexts: &BTreeMap<u32, String>) -> Option<Self> {
        let named = named.trim().trim_start_matches("task").trim();
        let Some((task, own)) = named.split_once('-') else { return Some(Self { tasks: range(named, &[])?, nodes: Vec::new() }) };
        let task: u32 = task.parse().ok()?;
        let folded = contexts.values().rev().find(|text| text.contains(&format!("\n{named}[\""))).and_then(|text| folded_ids(text, named));
        // A label that was cut holds no whole ranges; then the id means itself.
        let nodes = folded.and_then(|ids| ranges(ids.split_once('-')?.1)).or_else(|| ranges(own))?;
        Some(Self { tasks: task..=task, nodes })
    }

    /// Returns whether the call of `entry` is on one of the nodes, or was before a correction.
    pub(super) fn holds(&self, entry: &Entry) -> bool {
        [&entry.node_id, &entry.placed_node].into_iter().any(|id| {
            let Some((task, node)) = id.split_once("-N") else { return false };
            let (Ok(task), Ok(node)) = (task.parse::<u32>(), node.parse::<u32>()) else { return false };
            self.tasks.contains(&task) && (self.nodes.is_empty() || self.nodes.iter().any(|range| range.contains(&node)))
        })
    }

    /// Returns whether it may hold calls of several nodes.
    pub(super) fn is_wide(&self) -> bool {
        !matches!(self.nodes.as_slice(), [range] if range.start() == range.end())
    }
}

/// Returns the ids in the label of node `id`, where `context` draws it as folded.
fn folded_ids<'a>(context: &'a str, id: &str) -> Option<&'a str> {
    let line = context.lines().find_map(|line| line.strip_prefix(id)?.strip_prefix("[\""))?;
    line.strip_prefix(FOLDED_HEAD)?.split(", ").next()
}

fn ranges(text: &str) -> Option<Vec<RangeInclusive<u32>>> {
    text.split(',').take(RANGES_MAX).map(|part| range(part, &['N'])).collect()
}

/// Reads `3` or `1..3`, each number behind any of `marks`.
fn range(text: &str, marks: &[char]) -> Option<RangeInclusive<u32>> {
    let number = |text: &str| text.trim().trim_start_matches(marks).parse::<u32>().ok();
    match text.split_once("..") {
        Some((first, last)) => Some(number(first)?..=number(last)?),
        None => number(text).map(|number| number..=number),
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;

    fn numbers(named: &str, context: &str) -> Option<(RangeInclusive<u32>, Vec<RangeInclusive<u32>>)> {
        let contexts = BTreeMap::from([(7, context.to_owned())]);
        Selection::parse(named, &contexts).map(|selection| (selection.tasks, selection.nodes))
    }

    #[test]
    fn what_a_canvas_shows_can_be_handed_back() {
        assert_eq!(numbers("002-N3", ""), Some((2..=2, vec![3..=3])));
        assert_eq!(numbers("002-N1..N4,N6", ""), Some((2..=2, vec![1..=4, 6..=6])));
        assert_eq!(numbers("task 002", ""), Some((2..=2, vec![])));
        assert_eq!(numbers("001..004", ""), Some((1..=4, vec![])));
        let canvas = "flowchart TD\n002-N1[\"folded 002-N1..N4,N6, 34 calls: a.rs<br/>status: done\"]\n002-N7[\"explore x2\"]\n";
        assert_eq!(numbers("002-N1", canvas), Some((2..=2, vec![1..=4, 6..=6])));
        assert_eq!(numbers("002-N7", canvas), Some((2..=2, vec![7..=7])));
        for wrong in ["", "N3", "002-", "002-N", "x-N1", "002-N1..", "refs/0123456789abcdef.md"] {
            assert_eq!(numbers(wrong, canvas), None, "{wrong}");
        }
    }
}
