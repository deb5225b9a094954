//! A query's clauses: what is asked for, and what is only said around it.

/// Clauses of one query; later ones join the last.
pub const MAX_CLAUSES: usize = 16;

/// Words that join two questions as a full stop would.
const JOINTS: &[&str] = &["另外", "还有就是"];

/// One sentence of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clause<'a> {
    /// Its text, with its mark.
    pub text: &'a str,
    /// It ends with a question mark.
    pub question: bool,
}

/// Returns the sentences of a query, cut at full stops, question marks and line ends outside of
/// quotation marks.
pub fn clauses(query: &str) -> Vec<Clause<'_>> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut closing: Option<char> = None;
    let mut take = |from: usize, to: usize| {
        let text = query[from..to].trim();
        if !text.is_empty() {
            found.push(Clause { text, question: text.ends_with(['?', '？']) });
        }
    };
    let mut indices = query.char_indices().peekable();
    let mut cuts = 1;
    // Where each closing mark stands last: an opening one before it is closed.
    let last = ['"', '”', '」', '』'].map(|mark| query.rfind(mark));
    let closes = |place: usize, at: usize| last[place].is_some_and(|last| last > at);
    while let Some((at, c)) = indices.next() {
        if let Some(mark) = closing {
            if c == mark {
                closing = None;
            }
            continue;
        }
        closing = match c {
            '"' if closes(0, at) => Some('"'),
            '“' if closes(1, at) => Some('”'),
            '「' if closes(2, at) => Some('」'),
            '『' if closes(3, at) => Some('』'),
            _ => None,
        };
        if closing.is_some() || cuts == MAX_CLAUSES {
            continue;
        }
        let after = at + c.len_utf8();
        let ends = match c {
            '。' | '！' | '？' | '!' | '?' | '；' | ';' | '\n' => true,
            '.' => indices.peek().is_none_or(|(_, next)| next.is_whitespace()),
            _ => false,
        };
        if ends {
            take(start, after);
            start = after;
            cuts += 1;
        } else if let Some(joint) = JOINTS.iter().find(|joint| query[at..].starts_with(**joint)) {
            take(start, at);
            start = at + joint.len();
            cuts += 1;
        }
    }
    take(start, query.len());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, expected: &[(&str, bool)]) {
        let found = clauses(query);
        assert_eq!(found.iter().map(|clause| (clause.text, clause.question)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn sentences_and_joined_questions() {
        check("Where do I live?", &[("Where do I live?", true)]);
        check("I use Flask 2.0. What next?", &[("I use Flask 2.0.", false), ("What next?", true)]);
        check("我几岁？另外，他几岁？", &[("我几岁？", true), ("，他几岁？", true)]);
        check("主题是\"a。b！\"的活动？", &[("主题是\"a。b！\"的活动？", true)]);
        check("say \"hi. bye", &[("say \"hi.", false), ("bye", false)]);
        check("", &[]);
    }
}
