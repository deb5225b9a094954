//! A keyword search finds what BM25 over every document finds, in tail and segments alike.

use serde_json::Value;
use std::collections::BTreeMap;
use std::rc::Rc;
use strata_core::contract::{EndEvent, Message, SearchRequest};
use strata_core::disk::{Disk, SimDisk};
use strata_core::engine::{Engine, Models};
use strata_core::text::terms::{self, Term};

/// Enough for segments of the lowest level and a tail beside them.
const MESSAGES: usize = 2600;

/// Draws like a linear congruential generator (Knuth's MMIX).
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// A word of 2,000, the first ones far more often.
    fn word(&mut self) -> String {
        let bound = 1 + self.below(2000);
        format!("zq{}v", self.below(bound))
    }

    fn text(&mut self, words: u64) -> String {
        (0..words).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }
}

type Counts = BTreeMap<Term, f64>;

fn counts(text: &str) -> Counts {
    let mut counts = Counts::new();
    terms::terms(text).into_iter().for_each(|term| *counts.entry(term).or_insert(0.0) += 1.0);
    counts
}

fn scores(documents: &[Counts], query: &str) -> Vec<f64> {
    let length = |document: &Counts| document.values().sum::<f64>();
    let mean = documents.iter().map(length).sum::<f64>() / documents.len() as f64;
    let mut asked = terms::terms(query);
    asked.sort_unstable();
    asked.dedup();
    let mut scores = vec![0.0; documents.len()];
    for term in asked {
        let with = documents.iter().filter(|document| document.contains_key(&term)).count() as f64;
        let idf = (1.0 + (documents.len() as f64 - with + 0.5) / (with + 0.5)).ln();
        for (score, document) in scores.iter_mut().zip(documents) {
            let count = document.get(&term).copied().unwrap_or(0.0);
            *score += idf * 2.2 * count / (count + 1.2 * (0.25 + 0.75 * length(document) / mean));
        }
    }
    scores
}

#[test]
fn keywords_find_what_exhaustive_bm25_finds() {
    let disk: Rc<dyn Disk> = Rc::new(SimDisk::new());
    let (mut engine, _) = Engine::open(disk, "", Models::default(), 1).expect("opened");
    let mut draw = Draw(7);
    let texts: Vec<String> = (0..MESSAGES)
        .map(|_| {
            let words = 3 + draw.below(30);
            draw.text(words)
        })
        .collect();
    // Bulk goes into segments at once, what is little into the tail, and the next bulk finds it there.
    let mut rest = texts.as_slice();
    for (part, count) in [40, 1100, 40, 1300, 120].into_iter().enumerate() {
        let (texts, after) = rest.split_at(count);
        rest = after;
        let messages = texts.iter().map(|text| Message { role: "user".into(), content: text.clone(), ..Message::default() }).collect();
        engine.agent_end(&EndEvent { messages, success: true, at: 1_700_000_000_000 + part as u64, ..EndEvent::default() }).expect("captured");
    }
    assert!(rest.is_empty());
    let documents: Vec<Counts> = texts.iter().map(|text| counts(text)).collect();
    for _ in 0..40 {
        let words = 1 + draw.below(12);
        let query = draw.text(words);
        let request = SearchRequest {
            query: query.clone(),
            layer: "messages".into(),
            strategy: "keyword".into(),
            limit: 10,
            at: 1_700_000_000_000,
            ..Default::default()
        };
        let found: Value = serde_json::from_str(&engine.search(&request).expect("an answer")).expect("JSON");
        let all = scores(&documents, &query);
        let mut best: Vec<f64> = all.iter().copied().filter(|score| *score > 0.0).collect();
        best.sort_by(|one, other| other.total_cmp(one));
        best.truncate(10);
        let results = found["results"].as_array().expect("results");
        assert_eq!(results.len(), best.len(), "{query}");
        for (result, best) in results.iter().zip(&best) {
            let text = result["text"].as_str().expect("a text");
            let own = texts.iter().zip(&all).filter(|(other, _)| *other == text).map(|(_, score)| *score).fold(0.0, f64::max);
            let told = result["score"].as_f64().expect("a score");
            assert!((own - best).abs() < 1e-3 && (told - best).abs() < 1e-3, "{query}: {text} has {own}, told {told}, the exact one {best}");
        }
    }
}
