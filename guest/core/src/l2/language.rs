//! Whether a text is written in the script of the facts that it rests on.
//!
//! Scripts stand for languages: between English and Portuguese nothing is told apart, between English
//! and Chinese all is, and that is the mistake that models make.

use super::choose::is_wide;

/// Share of letters of scripts without blanks from which a text counts as written in one, in percent; a
/// Han character says as much as several letters.
const WIDE: usize = 60;

/// Share below which it counts as written in none, in percent: names may stand in it.
const NARROW: usize = 5;

/// Returns whether `written` is in another script than `facts`. Mixed texts and texts without letters are in no other.
pub(crate) fn differs(facts: &str, written: &str) -> bool {
    match (share(facts), share(written)) {
        (Some(facts), Some(written)) => (facts >= WIDE && written < NARROW) || (facts < NARROW && written >= WIDE),
        _ => false,
    }
}

/// Returns the percentage of letters that belong to scripts without blanks; nothing if there are no letters.
fn share(text: &str) -> Option<usize> {
    let (mut wide, mut letters) = (0_usize, 0_usize);
    for c in text.chars().filter(|c| c.is_alphabetic()) {
        letters += 1;
        wide += usize::from(is_wide(c));
    }
    (letters > 0).then(|| wide * 100 / letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_told_apart_in_both_directions_and_mixed_texts_are_let_be() {
        for (facts, written, other) in [
            ("The user lives in Lyon.", "用户住在里昂。", true),
            ("用户住在里昂。", "The user lives in Lyon.", true),
            ("The user lives in Lyon.", "L'utilisateur habite à Lyon.", false),
            ("用户住在里昂。", "用户在 Lyon 工作，用 Rust。", false),
            ("The user works at 腾讯.", "Works at 腾讯.", false),
            ("1234", "用户住在里昂。", false),
        ] {
            assert_eq!(differs(facts, written), other, "{facts} / {written}");
        }
    }
}
