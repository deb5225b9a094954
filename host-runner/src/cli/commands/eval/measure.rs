//! Measures of found evidence.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Resamples of a bootstrap interval; 95 % of their means lie in it.
const RESAMPLES: usize = 1000;

/// The measures of one question, in [`NAMES`]' order.
type Scores = [f64; 5];

const NAMES: [&str; 5] = ["recall@5", "recall@10", "recall@20", "hit@10", "mrr"];

/// The place of recall@10, which has an interval.
const RECALL_10: usize = 1;

/// One question, asked.
#[derive(Debug)]
pub(super) struct Asked {
    category: String,
    scores: Scores,
    control: Scores,
    took_us: u64,
}

impl Asked {
    /// Returns the measures of what was found for a question, and of what the control found.
    pub(super) fn new(category: &str, gold: &[String], found: &[String], control: &[String], took_us: u64) -> Self {
        Self { category: category.to_owned(), scores: scores(gold, found), control: scores(gold, control), took_us }
    }
}

fn scores(gold: &[String], found: &[String]) -> Scores {
    let recall = |k: usize| gold.iter().filter(|id| found.iter().take(k).any(|found| found == *id)).count() as f64 / gold.len().max(1) as f64;
    let first = found.iter().position(|id| gold.contains(id));
    [recall(5), recall(10), recall(20), if first.is_some_and(|place| place < 10) { 1.0 } else { 0.0 }, first.map_or(0.0, |place| 1.0 / (place as f64 + 1.0))]
}

/// All questions of some spaces.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Spaces that were measured.
    pub(super) spaces: u64,
    /// Messages that capture did not keep.
    pub(super) dropped: u64,
    /// The questions.
    pub(super) asked: Vec<Asked>,
}

impl Report {
    /// Takes another report's questions.
    pub(super) fn add(&mut self, other: Self) {
        self.spaces += other.spaces;
        self.dropped += other.dropped;
        self.asked.extend(other.asked);
    }

    /// Returns the report: shares of one, times in microseconds.
    pub(super) fn document(&self) -> Value {
        let asked: Vec<&Asked> = self.asked.iter().collect();
        let mut document = summary(&asked);
        let mut by_category: BTreeMap<&str, Vec<&Asked>> = BTreeMap::new();
        for one in &self.asked {
            by_category.entry(&one.category).or_default().push(one);
        }
        let mut times: Vec<u64> = self.asked.iter().map(|asked| asked.took_us).collect();
        times.sort_unstable();
        let share = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or(0);
        document["spaces"] = json!(self.spaces);
        document["messages-dropped"] = json!(self.dropped);
        document["latency-us"] = json!({"p50": share(0.5), "p95": share(0.95)});
        document["categories"] = Value::Object(by_category.into_iter().map(|(name, asked)| (name.to_owned(), summary(&asked))).collect());
        document
    }
}

fn summary(asked: &[&Asked]) -> Value {
    let mut document = Map::new();
    document.insert("queries".into(), json!(asked.len()));
    means(&mut document, &asked.iter().map(|asked| asked.scores).collect::<Vec<_>>());
    let mut control = Map::new();
    control.insert("queries".into(), json!(asked.len()));
    means(&mut control, &asked.iter().map(|asked| asked.control).collect::<Vec<_>>());
    document.insert("control".into(), Value::Object(control));
    Value::Object(document)
}

fn means(document: &mut Map<String, Value>, scores: &[Scores]) {
    let count = scores.len().max(1) as f64;
    for (place, name) in NAMES.iter().enumerate() {
        document.insert((*name).to_owned(), json!(round(scores.iter().map(|scores| scores[place]).sum::<f64>() / count)));
    }
    let recalls: Vec<f64> = scores.iter().map(|scores| scores[RECALL_10]).collect();
    document.insert("interval".into(), json!(interval(&recalls)));
}

/// Returns the 95 % bootstrap interval of a mean; the same values give the same interval.
fn interval(values: &[f64]) -> [f64; 2] {
    if values.is_empty() {
        return [0.0, 0.0];
    }
    // A linear congruential generator (Knuth's MMIX): a seed is part of the measure.
    let mut state = 0x5DEE_CE66_D569_1234_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let mut means: Vec<f64> = (0..RESAMPLES).map(|_| (0..values.len()).map(|_| values[next() % values.len()]).sum::<f64>() / values.len() as f64).collect();
    means.sort_unstable_by(f64::total_cmp);
    [round(means[RESAMPLES / 40]), round(means[RESAMPLES - 1 - RESAMPLES / 40])]
}

fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_gold() {
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        let found = ids(&["x", "a", "y", "z", "w", "b"]);
        assert_eq!(scores(&ids(&["a", "b"]), &found), [0.5, 1.0, 1.0, 1.0, 0.5]);
        assert_eq!(scores(&ids(&["q"]), &found), [0.0; 5]);
    }

    #[test]
    fn an_interval_holds_its_mean() {
        let values: Vec<f64> = (0..200).map(|place| f64::from(place % 2)).collect();
        let [low, high] = interval(&values);
        assert!(low < 0.5 && 0.5 < high && high - low < 0.2);
    }
}
