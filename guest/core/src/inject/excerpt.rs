//! The passage of a long message that fits a query.

use crate::recall::relevance::Clue;
use crate::text::terms::{self, Term};
use std::collections::{BTreeMap, BTreeSet};

/// A passage of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The passage; `…` stands where text was left out.
    pub text: String,
    /// Text was left out.
    pub is_cut: bool,
}

/// Returns the passage of at most `room` characters whose words tell most of what `clues` ask for: the best sentence, and
/// what follows and comes before it while there is room.
pub fn excerpt(text: &str, room: usize, clues: &[Clue]) -> Passage {
    let text = text.trim();
    if text.chars().count() <= room {
        return Passage { text: text.to_owned(), is_cut: false };
    }
    // Room for the marks of what is left out.
    let room = room.saturating_sub(2);
    let sentences = sentences(text);
    let lengths: Vec<usize> = sentences.iter().map(|sentence| sentence.chars().count()).collect();
    let best = best(&sentences, clues);
    let (mut first, mut last, mut used) = (best, best, lengths[best]);
    while last + 1 < sentences.len() && used + lengths[last + 1] <= room {
        last += 1;
        used += lengths[last];
    }
    while first > 0 && used + lengths[first - 1] <= room {
        first -= 1;
        used += lengths[first];
    }
    let whole: String = sentences[first..=last].concat();
    let kept: String = whole.trim().chars().take(room).collect();
    let ends = last + 1 == sentences.len() && kept.len() == whole.trim().len();
    Passage { text: format!("{}{}{}", if first > 0 { "…" } else { "" }, kept.trim_end(), if ends { "" } else { "…" }), is_cut: true }
}

/// Returns the sentences of a text with what separates them.
fn sentences(text: &str) -> Vec<&str> {
    text.split_inclusive(['.', '!', '?', '\n', '。', '！', '？', '；']).collect()
}

/// Returns the place of the sentence whose words tell most, the first among equals.
fn best(sentences: &[&str], clues: &[Clue]) -> usize {
    let wanted: BTreeMap<Term, f32> = clues.iter().map(|clue| (clue.term, clue.information)).collect();
    let (mut best, mut most) = (0, 0.0);
    for (place, sentence) in sentences.iter().enumerate() {
        let distinct: BTreeSet<Term> = terms::terms(sentence).into_iter().collect();
        let told: f32 = distinct.iter().filter_map(|term| wanted.get(term)).sum();
        if told > most {
            (best, most) = (place, told);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embed::Embedder;
    use crate::recall::relevance;
    use proptest::prelude::*;

    #[test]
    fn the_fitting_sentence_is_kept() {
        let clues = relevance::clues(&Embedder::new(), "When is the dentist?");
        let text = format!("{}The dentist is on Monday. {}", "We talked about the garden for long. ".repeat(20), "Then we went home. ".repeat(20));
        let passage = excerpt(&text, 100, &clues);
        assert!(passage.text.contains("The dentist is on Monday.") && passage.text.starts_with('…') && passage.text.ends_with('…'), "{passage:?}");
        assert_eq!(excerpt("Short.", 100, &clues), Passage { text: "Short.".into(), is_cut: false });
    }

    proptest! {
        #[test]
        fn a_passage_keeps_its_bound(text in "[a-z字.。 \n]{0,300}", room in 40usize..200) {
            let passage = excerpt(&text, room, &[]);
            prop_assert!(passage.text.chars().count() <= room, "{}", passage.text);
        }
    }
}
