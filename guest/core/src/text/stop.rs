//! Words that say nothing about a subject. They are neither indexed nor looked for.

/// English; every form as it is written, lower case.
const ENGLISH: &[&str] = &[
    "a", "about", "above", "after", "again", "against", "ago", "all", "also", "am", "an", "and", "any", "are", "aren", "as", "at", "be", "because", "been",
    "before", "being", "below", "between", "both", "but", "by", "can", "could", "couldn", "d", "did", "didn", "do", "does", "doesn", "doing", "don", "down",
    "during", "each", "either", "else", "ever", "few", "for", "from", "further", "get", "give", "go", "got", "had", "hadn", "has", "hasn", "have", "haven",
    "having", "he", "her", "here", "hers", "herself", "him", "himself", "his", "how", "i", "if", "im", "in", "into", "is", "isn", "it", "its", "itself", "ive",
    "just", "kind", "let", "like", "ll", "lot", "m", "many", "may", "me", "might", "more", "most", "much", "must", "my", "myself", "neither", "no", "nor",
    "not", "of", "off", "on", "once", "only", "onto", "or", "other", "our", "ours", "ourselves", "out", "over", "own", "per", "please", "re", "s", "same",
    "shall", "she", "should", "shouldn", "so", "some", "such", "t", "than", "that", "the", "their", "theirs", "them", "themselves", "then", "there", "these",
    "they", "this", "those", "through", "to", "too", "under", "until", "up", "upon", "us", "ve", "very", "was", "wasn", "we", "were", "weren", "what",
    "whatever", "when", "whenever", "where", "wherever", "whether", "which", "while", "who", "whoever", "whom", "whose", "why", "will", "with", "within",
    "without", "won", "would", "wouldn", "yes", "yet", "you", "your", "yours", "yourself", "yourselves",
];

/// German; folded to lower case without umlauts.
const GERMAN: &[&str] = &[
    "aber", "als", "am", "an", "auch", "auf", "aus", "bei", "bin", "bist", "das", "dass", "dein", "deine", "dem", "den", "der", "des", "die", "dir", "du",
    "ein", "eine", "einem", "einen", "einer", "er", "es", "fur", "habe", "haben", "hat", "hatte", "ich", "ihr", "im", "in", "ist", "ja", "kann", "mein",
    "meine", "meinem", "meinen", "meiner", "mich", "mir", "mit", "nach", "nicht", "noch", "nur", "oder", "sein", "sich", "sie", "sind", "so", "um", "und",
    "uns", "von", "wann", "war", "warum", "was", "welche", "welcher", "welches", "wenn", "wer", "wie", "wir", "wird", "wo", "zu", "zum", "zur",
];

/// Chinese: single characters of grammar and of asking. Pairs are kept, whatever they are of.
const CHINESE: &str = "的了是我你他她它们在有和就不人都一个也很到说要去会着没看好这那吗呢吧啊呀哪什么怎谁几多少其与及或被把给对为以之";

/// Returns whether a lower-case word is one of English grammar.
pub(super) fn english(word: &str) -> bool {
    ENGLISH.binary_search(&word).is_ok()
}

/// Returns whether a lower-case word without umlauts is one of German grammar.
pub(super) fn german(word: &str) -> bool {
    GERMAN.binary_search(&word).is_ok()
}

/// Returns whether a Han character alone says nothing.
pub(super) fn han(character: char) -> bool {
    CHINESE.contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted() {
        assert!(ENGLISH.is_sorted() && GERMAN.is_sorted());
    }
}
