//! Light stemming: what people inflect in a question and its answer, and no more.

use std::borrow::Cow;

/// Irregular English forms and what they are filed under.
const IRREGULAR: &[(&str, &str)] = &[
    ("am", "be"),
    ("are", "be"),
    ("ate", "eat"),
    ("became", "become"),
    ("been", "be"),
    ("began", "begin"),
    ("begun", "begin"),
    ("being", "be"),
    ("bit", "bite"),
    ("bitten", "bite"),
    ("bought", "buy"),
    ("broke", "break"),
    ("broken", "break"),
    ("brought", "bring"),
    ("built", "build"),
    ("came", "come"),
    ("caught", "catch"),
    ("children", "child"),
    ("chose", "choose"),
    ("chosen", "choose"),
    ("drank", "drink"),
    ("drawn", "draw"),
    ("drew", "draw"),
    ("driven", "drive"),
    ("drove", "drive"),
    ("drunk", "drink"),
    ("eaten", "eat"),
    ("fallen", "fall"),
    ("fed", "feed"),
    ("feet", "foot"),
    ("fell", "fall"),
    ("felt", "feel"),
    ("flew", "fly"),
    ("flown", "fly"),
    ("forgot", "forget"),
    ("forgotten", "forget"),
    ("fought", "fight"),
    ("found", "find"),
    ("gave", "give"),
    ("given", "give"),
    ("goes", "go"),
    ("gone", "go"),
    ("got", "get"),
    ("gotten", "get"),
    ("grew", "grow"),
    ("grown", "grow"),
    ("heard", "hear"),
    ("held", "hold"),
    ("hid", "hide"),
    ("hidden", "hide"),
    ("is", "be"),
    ("kept", "keep"),
    ("knew", "know"),
    ("knives", "knife"),
    ("known", "know"),
    ("laid", "lay"),
    ("led", "lead"),
    ("left", "leave"),
    ("lent", "lend"),
    ("lost", "lose"),
    ("made", "make"),
    ("men", "man"),
    ("met", "meet"),
    ("mice", "mouse"),
    ("paid", "pay"),
    ("people", "person"),
    ("ran", "run"),
    ("ridden", "ride"),
    ("rode", "ride"),
    ("said", "say"),
    ("sang", "sing"),
    ("sat", "sit"),
    ("saw", "see"),
    ("seen", "see"),
    ("sent", "send"),
    ("shot", "shoot"),
    ("slept", "sleep"),
    ("sold", "sell"),
    ("sought", "seek"),
    ("spent", "spend"),
    ("spoke", "speak"),
    ("spoken", "speak"),
    ("stood", "stand"),
    ("sung", "sing"),
    ("swam", "swim"),
    ("swum", "swim"),
    ("taken", "take"),
    ("taught", "teach"),
    ("teeth", "tooth"),
    ("thought", "think"),
    ("threw", "throw"),
    ("thrown", "throw"),
    ("told", "tell"),
    ("took", "take"),
    ("tore", "tear"),
    ("torn", "tear"),
    ("understood", "understand"),
    ("was", "be"),
    ("went", "go"),
    ("were", "be"),
    ("wives", "wife"),
    ("woke", "wake"),
    ("woken", "wake"),
    ("women", "woman"),
    ("won", "win"),
    ("wore", "wear"),
    ("worn", "wear"),
    ("written", "write"),
    ("wrote", "write"),
];

/// Returns the stem of a lower-case ASCII word.
pub(super) fn english(word: &str) -> Cow<'_, str> {
    let word = IRREGULAR.binary_search_by_key(&word, |(form, _)| form).map_or(word, |found| IRREGULAR[found].1);
    if word.len() <= 3 {
        return Cow::Borrowed(word);
    }
    let mut stem = word.to_owned();
    if stem.ends_with("ies") && stem.len() > 4 {
        stem.truncate(stem.len() - 3);
        stem.push('y');
    } else if stem.ends_with("sses") {
        stem.truncate(stem.len() - 2);
    } else if stem.ends_with('s') && !["ss", "us", "is"].iter().any(|end| stem.ends_with(end)) {
        stem.pop();
    }
    if let Some(end) = ["ingly", "edly", "ing", "ed"].iter().find(|end| {
        stem.strip_suffix(**end).is_some_and(|rest| rest.len() >= 3 && rest.bytes().any(|letter| matches!(letter, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')))
    }) {
        stem.truncate(stem.len() - end.len());
        let bytes = stem.as_bytes();
        if let [.., before, last] = bytes
            && bytes.len() > 3
            && before == last
            && !matches!(last, b'l' | b's' | b'z')
        {
            stem.pop();
        }
    }
    if let Some(end) = ["ly", "ment", "ness"].iter().find(|end| stem.ends_with(**end) && stem.len() - end.len() >= 4) {
        stem.truncate(stem.len() - end.len());
    }
    if stem.ends_with('e') && stem.len() > 3 {
        stem.pop();
    }
    if stem.ends_with('i') && stem.len() > 3 {
        stem.pop();
        stem.push('y');
    }
    Cow::Owned(stem)
}

/// Returns the stem of a German word, folded to lower case without umlauts: endings of number and case go.
pub(super) fn german(word: &str) -> &str {
    ["ern", "en", "em", "er", "es", "e", "n", "s"].iter().find_map(|end| word.strip_suffix(end).filter(|rest| rest.len() >= 4)).unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_irregular_forms_are_sorted() {
        assert!(IRREGULAR.is_sorted_by(|one, other| one.0 < other.0));
    }

    #[test]
    fn forms_of_a_word_meet() {
        for (one, other) in
            [("researching", "researched"), ("berries", "berry"), ("bought", "buy"), ("planned", "plans"), ("classes", "class"), ("camped", "camping")]
        {
            assert_eq!(english(one), english(other));
        }
        for (one, other) in [("bus", "bu"), ("thing", "th")] {
            assert_ne!(english(one), other, "{one}");
        }
        assert_eq!(german("versicherungen"), german("versicherung"));
    }
}
