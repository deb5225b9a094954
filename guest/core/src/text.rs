//! Text to tokens, for index and query alike: words, and bigrams of scripts that have no blanks.

pub mod asker;
pub mod clauses;
pub mod dates;
mod stem;
mod stop;
pub mod terms;

/// Tokens of one text that the index keeps; later ones are not searchable by keyword.
pub const MAX_TOKENS: usize = 50_000;

/// Tokens of one query.
pub const MAX_QUERY_TOKENS: usize = 64;

/// Longest word, in characters; longer runs (hashes, encoded data) are cut.
const MAX_WORD: usize = 40;

/// Returns the tokens of `text` in order: lower-case words with plurals folded, and overlapping
/// pairs of CJK characters (a single one stands alone).
pub fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut word = String::new();
    let mut length = 0;
    let mut run: Vec<char> = Vec::new();
    for c in text.chars() {
        if is_ideograph(c) {
            end_word(&mut word, &mut length, &mut tokens);
            run.push(c);
        } else {
            end_run(&mut run, &mut tokens);
            if !c.is_alphanumeric() {
                end_word(&mut word, &mut length, &mut tokens);
            } else if length < MAX_WORD {
                word.extend(c.to_lowercase());
                length += 1;
            }
        }
        if tokens.len() + run.len() >= MAX_TOKENS {
            break;
        }
    }
    end_word(&mut word, &mut length, &mut tokens);
    end_run(&mut run, &mut tokens);
    tokens
}

/// Returns the distinct tokens of a query without stop words; all of them if nothing else is there.
pub fn query_tokens(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for token in tokens(text) {
        if !all.contains(&token) {
            all.push(token);
        }
        if all.len() >= MAX_QUERY_TOKENS * 2 {
            break;
        }
    }
    let mut telling: Vec<String> = all.iter().filter(|token| !is_stop_word(token)).cloned().collect();
    if telling.is_empty() {
        telling = all;
    }
    telling.truncate(MAX_QUERY_TOKENS);
    telling
}

/// Returns a memory without the words that all memories about a user begin with; they tell nothing of what it says.
pub fn without_subject(text: &str) -> &str {
    ["The user's ", "The user ", "用户的", "用户"].iter().find_map(|subject| text.strip_prefix(subject)).filter(|rest| !rest.is_empty()).unwrap_or(text)
}

/// Returns whether a character belongs to a script that writes without blanks between words.
pub fn is_ideograph(c: char) -> bool {
    matches!(c as u32, 0x3040..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}

fn end_word(word: &mut String, length: &mut usize, tokens: &mut Vec<String>) {
    if !word.is_empty() {
        tokens.push(stem(std::mem::take(word)));
    }
    *length = 0;
}

fn end_run(run: &mut Vec<char>, tokens: &mut Vec<String>) {
    match run[..] {
        [] => {}
        [single] => tokens.push(single.to_string()),
        _ => tokens.extend(run.windows(2).map(|pair| pair.iter().collect::<String>())),
    }
    run.clear();
}

fn stem(mut word: String) -> String {
    if word.len() > 3 && word.is_ascii() {
        if word.ends_with("ies") {
            word.truncate(word.len() - 3);
            word.push('y');
        } else if word.ends_with('s') && !word.ends_with("ss") && !word.ends_with("us") && !word.ends_with("is") {
            word.truncate(word.len() - 1);
        }
    }
    word
}

/// Words that say nothing about the subject, as they come out of [`tokens`].
const STOP_WORDS: &[&str] = &[
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did", "do", "doe", "does", "for", "from",
    "had", "has", "have", "he", "her", "him", "his", "how", "i", "if", "in", "is", "it", "its", "me", "my", "no", "not", "of", "on", "or", "our", "please",
    "she", "should", "so", "some", "that", "the", "their", "them", "there", "they", "thi", "this", "to", "us", "wa", "was", "we", "were", "what", "when",
    "where", "which", "who", "whom", "why", "will", "with", "would", "you", "your", "的", "了", "吗", "呢", "我", "你", "是", "在", "什么", "怎么", "我的",
    "你的", "是什", "一个", "哪里", "请问",
];

fn is_stop_word(token: &str) -> bool {
    STOP_WORDS.contains(&token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_pairs() {
        assert_eq!(tokens("I like Berries, 咖啡店 v2!"), ["i", "like", "berry", "咖啡", "啡店", "v2"]);
        assert_eq!(tokens("茶"), ["茶"]);
        assert_eq!(tokens("a茶b"), ["a", "茶", "b"]);
        assert_eq!(tokens("👍 -- \"OR\" *"), ["or"]);
    }

    #[test]
    fn a_query_of_stop_words_keeps_them() {
        assert_eq!(query_tokens("who am I"), ["who", "am", "i"]);
        assert_eq!(query_tokens("Where do I live?"), ["live"]);
    }
}
