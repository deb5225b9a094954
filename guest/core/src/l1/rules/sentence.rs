//! Sentences of a message, without what is not the speaker's own statement.

/// A sentence as it stands in its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sentence {
    /// Its text with its final mark.
    pub text: String,
    /// It stands inside of quotation marks, or holds some.
    pub is_quoted: bool,
}

impl Sentence {
    /// Returns whether the sentence asks.
    pub(super) fn is_question(&self) -> bool {
        self.text.trim_end_matches(['"', '\'', ')', '”', '」', '）', ' ']).ends_with(['?', '？'])
    }

    /// Returns the text without its final marks.
    pub(super) fn body(&self) -> &str {
        self.text.trim_end_matches(['.', '!', '。', '！', '~', '～', ' ', ';', '；'])
    }
}

/// Returns the sentences of `text` in order. Lines that quote (`>`) or show code (indented by four) are
/// left out, and so is inline code.
pub(super) fn sentences(text: &str) -> Vec<Sentence> {
    let mut sentences = Vec::new();
    for line in text.lines() {
        if line.starts_with("    ") || line.starts_with('\t') || line.trim_start().starts_with(['>', '|', '#']) {
            continue;
        }
        let line = line.trim().trim_start_matches(['-', '*', '•']).trim_start();
        // Quotation marks are paired within a line, so that a lone inch mark spoils one line at most.
        let mut depth = 0_i32;
        let mut straight = false;
        let mut start = 0;
        let mut quoted = false;
        let mut in_code = false;
        let characters: Vec<(usize, char)> = line.char_indices().collect();
        for (place, (at, c)) in characters.iter().enumerate() {
            match c {
                '`' => in_code = !in_code,
                '"' => straight = !straight,
                '“' | '「' | '『' | '《' => depth += 1,
                '”' | '」' | '』' | '》' => depth -= 1,
                _ => {}
            }
            quoted |= straight || depth > 0 || in_code;
            let next = characters.get(place + 1).map(|(_, next)| *next);
            let ends = match c {
                '。' | '！' | '？' | '；' => true,
                // `v1.2` and `e.g. this` do not end a sentence.
                '.' | '!' | '?' => next.is_none_or(|next| next.is_whitespace() || matches!(next, '"' | '”')) && !is_abbreviation(&line[start..*at]),
                ';' => next.is_none_or(char::is_whitespace),
                _ => false,
            };
            if ends {
                push(&mut sentences, &line[start..at + c.len_utf8()], quoted);
                start = at + c.len_utf8();
                quoted = straight || depth > 0 || in_code;
            }
        }
        push(&mut sentences, &line[start..], quoted);
    }
    sentences
}

fn push(sentences: &mut Vec<Sentence>, text: &str, is_quoted: bool) {
    let text = text.trim();
    if !text.is_empty() {
        sentences.push(Sentence { text: text.to_owned(), is_quoted });
    }
}

fn is_abbreviation(before: &str) -> bool {
    let word = before.rsplit(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
    matches!(word.to_ascii_lowercase().as_str(), "mr" | "mrs" | "ms" | "dr" | "st" | "e.g" | "i.e" | "etc" | "vs" | "no")
        || (word.len() == 1 && word.chars().all(char::is_uppercase) && word != "I")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_know_where_quotes_are() {
        let found = sentences("I met Dr. Wu. He said: \"Fine. I live in Rome.\" I use v1.2 now!\n> I like quotes\n- 我住在上海。他说“我住在北京”。");
        let shown: Vec<(&str, bool)> = found.iter().map(|sentence| (sentence.text.as_str(), sentence.is_quoted)).collect();
        assert_eq!(
            shown,
            [
                ("I met Dr. Wu.", false),
                ("He said: \"Fine.", true),
                ("I live in Rome.", true),
                ("\" I use v1.2 now!", true),
                ("我住在上海。", false),
                ("他说“我住在北京”。", true),
            ]
        );
    }
}
