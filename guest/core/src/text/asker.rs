//! Whether a question is about the person who asks it: then a memory is what it is after.

use super::clauses::clauses;

/// Words by which somebody speaks of themselves. English, German, French, Spanish, Portuguese, Italian, Dutch.
const OWN_WORDS: &[&str] = &[
    "i", "i'm", "i've", "i'd", "i'll", "me", "my", "mine", "myself", "we", "our", "ours", "us", "ich", "mich", "mir", "mein", "meine", "meinen", "meiner",
    "meinem", "meines", "wir", "unser", "unsere", "unseren", "je", "moi", "mon", "ma", "mes", "nous", "notre", "nos", "yo", "mi", "mis", "mí", "nuestro",
    "nuestra", "eu", "meu", "minha", "meus", "minhas", "nosso", "nossa", "io", "mio", "mia", "miei", "mie", "nostro", "nostra", "ik", "mijn", "ons", "onze",
];

/// The same in scripts without blanks.
const OWN_CHARACTERS: &[&str] = &["我", "咱", "俺", "私", "僕", "내", "나의", "나는", "제가", "저는", "저의", "우리"];

/// Words of who goes back to what was said before.
const BEFORE: &[&str] = &["remember", "remind", "记得", "記得", "上次", "上回", "以前说", "覚えて", "erinnerst", "souviens", "recuerdas", "lembras"];

/// Beginnings of questions, where no mark ends them.
const ASKS: &[&str] = &[
    "what", "which", "who", "whom", "whose", "when", "where", "how old", "how much", "how many", "how long", "how often", "how tall", "do i", "did i", "am i",
    "was i", "have i", "had i", "do we", "did we", "are we", "is my", "are my", "was my", "were my", "does my", "did my", "has my", "tell me", "remind me",
    "do you remember", "do you know my", "wo ", "wer ", "wann ", "wie heißt", "welche", "où ", "quel", "qui ", "quand ", "dónde", "quién", "cuál", "cuándo",
    "onde ", "quem ", "qual ", "quando ",
];

/// The same anywhere in a question without blanks.
const ASKS_CHARACTERS: &[&str] =
    &["什么", "什麼", "谁", "誰", "哪", "几", "多少", "多大", "吗", "嗎", "呢", "何", "どこ", "いつ", "か。", "뭐", "누구", "어디", "언제"];

/// Beginnings of questions that ask for help and not for a memory, though they say *I* or *my*.
const HELP: &[&str] = &[
    "how do i ", "how do we ", "how can ", "how could ", "how should ", "how would ", "how to ", "can ", "could ", "would ", "will ", "should ", "may ",
    "shall ", "why ", "wie kann ", "wie kriege ", "warum ", "kannst ", "könntest ", "pourquoi ", "comment ", "peux", "pouvez", "por que ", "por qué ", "cómo ",
    "como ", "puedes ", "podes ", "pode ",
];

/// The same anywhere in a question without blanks.
const HELP_CHARACTERS: &[&str] =
    &["为什么", "為什麼", "怎么", "怎麼", "如何", "能不能", "可以帮", "帮我", "幫我", "请你", "應該", "应该", "どうやって", "なぜ", "어떻게", "왜"];

/// Returns whether a clause of a text asks about the one who wrote it, and not for help with something.
pub fn asks_about_the_asker(text: &str) -> bool {
    clauses(text).iter().any(|clause| is_about_the_asker(clause.text))
}

/// Returns whether a question asks about the one who asks it, and not for help with something.
fn is_about_the_asker(question: &str) -> bool {
    let text = question.trim().to_lowercase().replace('’', "'");
    if HELP.iter().any(|beginning| text.starts_with(beginning)) || HELP_CHARACTERS.iter().any(|part| text.contains(part)) {
        return false;
    }
    let is_question = text.ends_with(['?', '？']) || ASKS.iter().any(|asks| text.starts_with(asks)) || ASKS_CHARACTERS.iter().any(|asks| text.contains(asks));
    if !is_question {
        return false;
    }
    let mut words = question.split(|c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '’'));
    // What is written in capitals is a name: US, EU, IO.
    let is_name = |word: &str| word.chars().count() > 1 && word.chars().all(char::is_uppercase);
    words.any(|word| !is_name(word) && OWN_WORDS.contains(&word.to_lowercase().replace('’', "'").as_str()))
        || BEFORE.iter().any(|before| text.contains(before))
        || OWN_CHARACTERS.iter().any(|own| text.contains(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_about_themselves_and_who_asks_for_help() {
        for question in
            ["Where do I live?", "What's my sister called?", "Am I vegetarian?", "我的雇主是谁？", "Wo wohne ich?", "Où est mon vélo ?", "私の名前は？"]
        {
            assert!(is_about_the_asker(question), "{question}");
        }
        for question in [
            "What is the capital of Mongolia?",
            "How do I undo the last commit?",
            "Can you review my code?",
            "我的程序为什么报错？",
            "Why does my build fail?",
            "What is the capital of the US?",
            "What does the EU AI act say?",
        ] {
            assert!(!is_about_the_asker(question), "{question}");
        }
    }
}
