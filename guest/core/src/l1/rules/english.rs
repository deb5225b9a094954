//! English statements.

use super::dates::{self, Tense};
use super::sentence::Sentence;
use super::{Speaker, Statement};

/// What may stand before a statement without changing it.
const LEAD_INS: &[&str] = &[
    "hi", "hello", "hey", "well", "ok", "okay", "oh", "so", "and", "also", "btw", "by the way", "fyi", "actually", "in fact", "yes", "no", "yeah", "nope",
    "sorry", "thanks", "thank you", "just so you know", "for the record", "to be clear", "anyway", "great", "right", "sure", "please note that", "note that",
    "keep in mind that", "please keep in mind that", "as i said", "some background", "a bit about me", "about me", "update", "good news", "correction",
    "honestly", "personally",
];

/// Words that make a clause a supposition, a wish or somebody's report.
const UNSURE: &[&str] = &[
    " if ", " would ", " could ", " might ", " maybe ", " perhaps ", " wish ", " imagine ", " suppose ", " supposing ", " pretend ", " hypothetically ",
    " what if ", " let us say ", " as if ", " should i ", " do i ", " used to ", " he said", " she said", " they said", ", said ", " says ", " think i ",
    " guess ", " not sure", " probably ", " unless ", " almost ", " in the game ", " in the story ", " in my dream ", " lyrics ", " kidding", " just joking",
    " sarcas",
];

/// Returns whether what follows a sentence is material to work on.
pub(super) fn opens_material(sentence: &str) -> bool {
    const VERBS: &[&str] = &[
        "translate", "proofread", "rewrite", "rephrase", "paraphrase", "correct", "summarize", "summarise", "polish", "draft", "compose", "pretend", "imagine",
        "roleplay", "role-play", "act as", "act like", "you are now", "write a", "write an", "write me", "write the", "write some", "continue the story",
        "continue this", "complete the", "classify", "extract the", "fix the grammar", "check the grammar", "check my", "improve this", "improve my",
        "edit this", "edit my", "analyze this", "analyse this", "here is the text", "here is my essay", "here is an essay", "here is a text",
        "here is the transcript", "here are the lyrics", "let us play", "let's play", "explain the sentence", "what does this mean",
    ];
    let lower = plain(sentence);
    let mut text = lower.as_str();
    for polite in [
        "hi ", "hey ", "ok ", "please ", "now ", "can you ", "could you ", "would you ", "will you ", "i want you to ", "i need you to ", "help me ",
        "please ", "to ",
    ] {
        text = text.strip_prefix(polite).unwrap_or(text);
    }
    VERBS.iter().any(|verb| text.strip_prefix(verb).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric())))
}

/// Returns what a sentence plainly states.
pub(super) fn read(sentence: &Sentence, speaker: &Speaker<'_>) -> Vec<Statement> {
    let body = spelled_out(without_lead_ins(sentence.body()));
    let mut statements = Vec::new();
    for clause in clauses(&body) {
        let clause = without_lead_ins(clause);
        let padded = format!(" {} ", clause.to_lowercase());
        if UNSURE.iter().any(|word| padded.contains(word)) {
            continue;
        }
        statements
            .extend(instruction(clause).or_else(|| event(clause, speaker)).or_else(|| fact(clause, speaker)).or_else(|| request_to_remember(clause, speaker)));
    }
    statements
}

/// Returns lower-case text with straight apostrophes and single blanks.
fn plain(text: &str) -> String {
    text.replace('’', "'").split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

fn without_lead_ins(text: &str) -> &str {
    let mut text = text.trim();
    while let Some(rest) = LEAD_INS.iter().find_map(|lead_in| {
        let head = text.get(..lead_in.len()).filter(|head| head.eq_ignore_ascii_case(lead_in))?;
        let rest = text[head.len()..].trim_start_matches([',', ':', '-', '—', '!', '.', ' ']);
        // "No" opens "No, I live in Rome", but "No I" and "Northern" are something else.
        (rest.len() < text.len() - head.len() && !rest.is_empty()).then_some(rest)
    }) {
        text = rest;
    }
    text
}

/// Returns the text with the contractions of the first person written out.
fn spelled_out(text: &str) -> String {
    let mut spelled = text.replace('’', "'");
    for (short, long) in [
        ("I'm ", "I am "),
        ("I've ", "I have "),
        ("I'll ", "I will "),
        ("I'd ", "I would "),
        ("don't ", "do not "),
        ("doesn't ", "does not "),
        ("can't ", "cannot "),
        ("let's ", "let us "),
        ("isn't ", "is not "),
        ("won't ", "will not "),
        ("Don't ", "Do not "),
        ("We're ", "We are "),
        ("We've ", "We have "),
        ("We'll ", "We will "),
        ("i'm ", "I am "),
        ("i've ", "I have "),
    ] {
        spelled = spelled.replace(short, long);
    }
    // Who writes without capitals means themselves all the same.
    if spelled.starts_with("i ") {
        spelled.replace_range(..1, "I");
    }
    spelled.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the clauses of a sentence that have a first person of their own.
fn clauses(body: &str) -> Vec<&str> {
    let mut clauses = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while at < body.len() {
        let rest = &body[at..];
        let joint = [", and I ", ", but I ", ", so I ", " and I ", " but I ", ", I ", ", and my ", ", but my ", " and my ", ", my "]
            .iter()
            .find(|joint| rest.starts_with(**joint));
        match joint {
            // "Yesterday, I went" is one clause: a head without a verb of its own is a time or a greeting.
            Some(joint) if body[start..at].split_whitespace().count() > 2 => {
                clauses.push(&body[start..at]);
                let subject = if joint.ends_with(" I ") { 2 } else { 3 };
                start = at + joint.len() - subject;
                at = start + subject;
            }
            _ => at += rest.chars().next().map_or(1, char::len_utf8),
        }
    }
    clauses.push(&body[start..]);
    clauses
}

fn fact(clause: &str, speaker: &Speaker<'_>) -> Option<Statement> {
    let lower = clause.to_lowercase();
    if let Some(rest) = strip(clause, &lower, "my ") {
        return about_mine(rest, speaker);
    }
    let (rest, lower) = (strip(clause, &lower, "i ")?, lower.get(2..)?);
    let (rest, lower, adverb) = adverb(rest, lower);
    let text = |verb: &str, rest: &str| format!("{} {adverb}{verb} {}.", subject(speaker), third_person(rest.trim_end_matches(',')));
    for (openings, verb, attribute, priority, fits) in FACTS {
        for opening in *openings {
            if let Some(rest) = strip(rest, lower, opening).filter(|rest| !rest.trim().is_empty() && fits(rest)) {
                let attribute = match *attribute {
                    "" => None,
                    "occupation" if !is_occupation(rest) => None,
                    "state" => state(rest),
                    attribute => Some(attribute),
                };
                return Some(Statement::fact(text(verb, rest), *priority, attribute));
            }
        }
    }
    None
}

/// Openings after "I", the verb about a third person, the attribute, the priority, and what must follow.
type Fact = (&'static [&'static str], &'static str, &'static str, i32, fn(&str) -> bool);

const FACTS: &[Fact] = &[
    (
        &["live in ", "am living in ", "live at ", "live near ", "currently live in ", "now live in ", "am based in ", "am now based in ", "reside in "],
        "lives in",
        "home",
        80,
        is_place,
    ),
    (
        &[
            "moved to ", "have moved to ", "just moved to ", "recently moved to ", "have just moved to ", "have recently moved to ", "relocated to ",
            "have relocated to ",
        ],
        "moved to",
        "home",
        80,
        is_name,
    ),
    (
        &["work at ", "am working at ", "work for ", "am working for ", "now work at ", "now work for ", "am employed at ", "am employed by "],
        "works at",
        "employer",
        80,
        is_thing,
    ),
    (
        &["joined ", "have joined ", "just joined ", "started at ", "started working at ", "just started at ", "got a job at ", "have got a job at "],
        "joined",
        "employer",
        80,
        is_name,
    ),
    (&["work as a ", "work as an ", "am working as a ", "am working as an "], "works as a", "occupation", 80, is_thing),
    (&["work in ", "work on "], "works in", "", 65, is_thing),
    (&["am allergic to ", "am severely allergic to "], "is allergic to", "", 90, is_thing),
    (&["have an allergy to "], "has an allergy to", "", 90, is_thing),
    (&["am from ", "come from "], "is from", "origin", 75, is_name),
    (&["was born in ", "was born on "], "was born in", "birth", 75, is_thing),
    (&["grew up in "], "grew up in", "", 65, is_thing),
    (&["am afraid of ", "am scared of "], "is afraid of", "", 65, is_thing),
    (&["am married to "], "is married to", "marriage", 80, is_thing),
    (&["am a big fan of ", "am a huge fan of ", "am a fan of ", "am really into ", "am into ", "am fond of "], "is a fan of", "", 60, is_thing),
    (&["am a ", "am an "], "is a", "occupation", 70, is_role),
    (&["turned ", "just turned "], "turned", "age", 70, is_age),
    (&["am "], "is", "state", 70, is_lasting_state),
    (&["prefer "], "prefers", "", 70, is_liked),
    (&["like ", "do like "], "likes", "", 65, is_liked),
    (&["love "], "loves", "", 70, is_liked),
    (&["adore "], "adores", "", 65, is_liked),
    (&["enjoy "], "enjoys", "", 65, is_liked),
    (&["hate ", "detest "], "hates", "", 70, is_liked),
    (&["dislike "], "dislikes", "", 65, is_liked),
    (&["do not like ", "do not enjoy "], "does not like", "", 65, is_liked),
    (&["cannot stand "], "cannot stand", "", 65, is_liked),
    (&["do not eat ", "cannot eat "], "does not eat", "", 80, is_liked),
    (&["do not drink "], "does not drink", "", 75, is_liked),
    (&["do not use "], "does not use", "", 60, is_liked),
    (&["switched to ", "have switched to ", "just switched to "], "switched to", "", 65, is_thing),
    (&["switched from "], "switched from", "", 65, is_thing),
    (&["use ", "mostly use ", "mainly use "], "uses", "", 60, is_liked),
    (&["drive a ", "drive an "], "drives a", "car", 65, is_thing),
    (&["own a ", "own an ", "own two "], "owns a", "", 65, is_thing),
    (&["speak "], "speaks", "", 70, is_name),
    (&["study ", "am studying "], "studies", "", 70, is_liked),
    (&["am learning ", "started learning "], "is learning", "", 65, is_liked),
    (&["play the ", "play "], "plays", "", 60, is_liked),
    (&["collect "], "collects", "", 60, is_liked),
    (&["teach "], "teaches", "", 70, is_liked),
    (&["follow a "], "follows a", "", 65, is_thing),
    (&["have a ", "have an ", "have two ", "have three ", "have four ", "have one ", "have "], "has", "", 70, is_kin_or_keep),
];

fn strip<'a>(text: &'a str, lower: &str, opening: &str) -> Option<&'a str> {
    // Byte offsets agree only where lower-casing kept the length; other text has no such opening.
    (lower.len() == text.len() && lower.starts_with(opening)).then(|| &text[opening.len()..])
}

/// Takes an adverb off the front; those that change nothing are dropped, frequencies are kept.
fn adverb<'a>(rest: &'a str, lower: &'a str) -> (&'a str, &'a str, &'static str) {
    for word in [
        "really ", "absolutely ", "personally ", "strongly ", "generally ", "still ", "also ", "just ", "actually ", "definitely ", "especially ",
        "particularly ",
    ] {
        // "just moved" and the like have openings of their own.
        if lower.starts_with(word) && word != "just " {
            return (&rest[word.len()..], &lower[word.len()..], if word == "strongly " { "strongly " } else { "" });
        }
    }
    for word in ["always ", "usually ", "often ", "never "] {
        if lower.starts_with(word) {
            return (
                &rest[word.len()..],
                &lower[word.len()..],
                if word == "never " {
                    "never "
                } else if word == "often " {
                    "often "
                } else {
                    "usually "
                },
            );
        }
    }
    (rest, lower, "")
}

fn subject(speaker: &Speaker<'_>) -> String {
    speaker.name.unwrap_or("The user").to_owned()
}

fn first_word(text: &str) -> String {
    text.split(|c: char| !c.is_alphanumeric() && c != '\'').next().unwrap_or_default().to_lowercase()
}

fn is_name(rest: &str) -> bool {
    let rest = ["the ", "near "].iter().find_map(|article| rest.strip_prefix(article)).unwrap_or(rest);
    rest.chars().next().is_some_and(char::is_uppercase) && first_word(rest) != "i"
}

fn is_place(rest: &str) -> bool {
    is_name(rest) || ["a", "an", "the"].contains(&first_word(rest).as_str()) && !rest.contains("moment") && !rest.contains("past") && !rest.contains("world")
}

fn is_thing(rest: &str) -> bool {
    !matches!(
        first_word(rest).as_str(),
        "it" | "this"
            | "that"
            | "these"
            | "those"
            | "you"
            | "your"
            | "him"
            | "her"
            | "them"
            | "what"
            | "how"
            | "when"
            | "where"
            | "it's"
            | ""
            | "which"
            | "something"
    )
}

fn is_liked(rest: &str) -> bool {
    let word = first_word(rest);
    // "I like to think", "I love how you", "I like the idea" comment on the talk itself.
    is_thing(rest)
        && !rest.to_lowercase().starts_with("the idea")
        && !rest.to_lowercase().starts_with("the way")
        && !rest.to_lowercase().starts_with("to think")
        && !rest.to_lowercase().starts_with("to know")
        && !matches!(
            word.as_str(),
            "not" | "its" | "his" | "their" | "both" | "one" | "option" | "version" | "and" | "or" | "but" | "as" | "so" | "at" | "with" | "too" | "as well"
        )
}

fn is_role(rest: &str) -> bool {
    is_thing(rest)
        && !matches!(first_word(rest).as_str(), "bit" | "little" | "lot" | "tad" | "mess" | "while" | "few" | "couple" | "idiot" | "huge" | "big" | "failure")
}

fn is_age(rest: &str) -> bool {
    let number = first_word(rest);
    number.parse::<u32>().is_ok_and(|age| (3..=120).contains(&age)) && !rest.contains("minutes") && !rest.contains('%')
}

/// Returns whether "I am …" tells something lasting.
fn is_lasting_state(rest: &str) -> bool {
    const STATES: &[&str] = &[
        "vegetarian", "vegan", "pescatarian", "lactose", "gluten", "diabetic", "asthmatic", "colorblind", "colourblind", "color-blind", "left-handed",
        "right-handed", "dyslexic", "deaf", "celiac", "married", "single", "divorced", "engaged", "retired", "unemployed", "self-employed", "bilingual",
        "trilingual", "widowed", "nearsighted", "intolerant",
    ];
    let word = rest.split([' ', ',', ';']).next().unwrap_or_default().to_lowercase();
    STATES.contains(&word.as_str()) || (is_age(rest) && rest.to_lowercase().contains("years old"))
}

/// Returns what a lasting state gives a value to.
fn state(rest: &str) -> Option<&'static str> {
    match first_word(rest).as_str() {
        "vegetarian" | "vegan" | "pescatarian" => Some("diet"),
        "married" | "single" | "divorced" | "engaged" | "widowed" => Some("marriage"),
        number if number.parse::<u32>().is_ok() => Some("age"),
        _ => None,
    }
}

/// Returns whether "I have …" is about family, animals or a lasting possession or condition.
fn is_kin_or_keep(rest: &str) -> bool {
    const KEPT: &[&str] = &[
        "son", "sons", "daughter", "daughters", "kid", "kids", "child", "children", "brother", "brothers", "sister", "sisters", "sibling", "siblings", "twin",
        "twins", "wife", "husband", "dog", "dogs", "cat", "cats", "parrot", "horse", "rabbit", "hamster", "puppy", "kitten", "car", "motorcycle", "boat",
        "garden", "degree", "phd", "tattoo", "diabetes", "asthma", "adhd", "migraines", "insomnia", "celiac", "allergy", "allergies",
    ];
    let head: Vec<String> = rest.split([',', '.', ';']).next().unwrap_or_default().split_whitespace().take(5).map(|word| word.to_lowercase()).collect();
    // The noun that "have" governs comes before any preposition.
    let noun =
        head.iter().take_while(|word| !["in", "on", "with", "for", "at", "of", "about", "from", "to", "who", "that", "and", "which"].contains(&word.as_str()));
    noun.last().is_some_and(|noun| KEPT.contains(&noun.as_str()))
        || head.iter().any(|word| word == "named" || word == "called") && head.iter().any(|word| KEPT.contains(&word.as_str()))
}

fn is_occupation(rest: &str) -> bool {
    const ROLES: &[&str] = &[
        "engineer", "developer", "teacher", "nurse", "doctor", "designer", "student", "lawyer", "chef", "writer", "manager", "scientist", "architect",
        "accountant", "programmer", "researcher", "professor", "journalist", "musician", "photographer", "artist", "consultant", "analyst", "electrician",
        "plumber", "carpenter", "farmer", "pilot", "dentist", "pharmacist", "vet", "veterinarian", "librarian", "driver", "barista", "baker", "founder",
        "freelancer", "translator", "editor", "therapist", "psychologist", "paramedic", "firefighter", "officer", "sysadmin", "administrator", "mechanic",
        "surgeon", "biologist", "chemist", "physicist", "mathematician", "economist", "cook", "waiter", "waitress", "gardener", "tailor", "actor", "actress",
        "director", "producer",
    ];
    let head = rest.split([',', ';', '(']).next().unwrap_or_default().to_lowercase();
    let head = [" at ", " in ", " for ", " from ", " with ", " who ", " and ", " by ", " working "]
        .iter()
        .fold(head.as_str(), |head, joint| head.split(joint).next().unwrap_or(head))
        .trim()
        .to_owned();
    head.rsplit(' ').next().is_some_and(|noun| ROLES.contains(&noun))
}

/// Relatives and companions whose plain facts are facts about the user's life.
const KIN: &[&str] = &[
    "wife", "husband", "partner", "girlfriend", "boyfriend", "fiance", "fiancée", "spouse", "mother", "mom", "mum", "father", "dad", "son", "daughter",
    "brother", "sister", "grandmother", "grandma", "grandfather", "grandpa", "aunt", "uncle", "cousin", "niece", "nephew", "dog", "cat", "boss", "manager",
    "roommate", "flatmate", "best friend", "colleague",
];

/// What has one value at a time.
const TRAITS: &[&str] = &[
    "name", "full name", "nickname", "job", "profession", "occupation", "birthday", "phone number", "email", "email address", "address", "time zone",
    "timezone", "hometown", "nationality", "native language", "mother tongue", "first language", "blood type", "shoe size", "height", "diet", "hobby", "major",
    "editor", "operating system", "shell", "laptop", "car", "religion", "dream", "dream job", "employer", "company", "school", "university", "workplace",
    "zodiac sign", "pronouns",
];

/// Reads what follows "my".
fn about_mine(rest: &str, speaker: &Speaker<'_>) -> Option<Statement> {
    let lower = rest.to_lowercase();
    let owner = speaker.name.map_or_else(|| "The user's".to_owned(), |name| format!("{name}'s"));
    for favorite in ["favorite ", "favourite "] {
        let Some(subject) = lower.strip_prefix(favorite) else { continue };
        let (thing, value) = subject.split_once(" is ").or_else(|| subject.split_once(" are "))?;
        if thing.split_whitespace().count() > 4 || !is_thing(value) {
            return None;
        }
        let value = &rest[rest.len() - value.len()..];
        return Some(Statement::fact(format!("{owner} favorite {thing} is {}.", third_person(value)), 75, Some(&format!("favorite {thing}"))));
    }
    if let Some((relative, after)) =
        KIN.iter().filter_map(|relative| Some((*relative, lower.strip_prefix(relative)?))).max_by_key(|(relative, _)| relative.len())
    {
        let after_text = &rest[rest.len() - after.len()..];
        let facts: &[(&str, &str, &str)] = &[
            ("'s name is ", "is called", "name"),
            (" is called ", "is called", "name"),
            (" is named ", "is called", "name"),
            (" lives in ", "lives in", "home"),
            (" moved to ", "moved to", "home"),
            (" works at ", "works at", "employer"),
            (" works for ", "works at", "employer"),
            (" works as ", "works as", "occupation"),
            (" is allergic to ", "is allergic to", ""),
            (" loves ", "loves", ""),
            (" likes ", "likes", ""),
            (" hates ", "hates", ""),
            (" is a ", "is a", ""),
            (" is an ", "is an", ""),
            ("'s birthday is ", "has their birthday", "birthday"),
        ];
        for (opening, verb, attribute) in facts {
            if let Some(value) = strip(after_text, after, opening).filter(|value| is_role(value)) {
                let attribute = (!attribute.is_empty()).then(|| format!("{relative}: {attribute}"));
                return Some(Statement::fact(format!("{owner} {relative} {verb} {}.", third_person(value)), 65, attribute.as_deref()));
            }
        }
        // "My wife Anna loves tea": the name stands beside the relative.
        return None;
    }
    let (trait_name, value) = lower.split_once(" is ").or_else(|| lower.split_once("'s "))?;
    let known = TRAITS.iter().find(|known| **known == trait_name)?;
    let value = rest[rest.len() - value.len()..].trim();
    if !is_thing(value) || matches!(first_word(value).as_str(), "not" | "being" | "still" | "now" | "too" | "very" | "so" | "broken" | "slow" | "in") {
        return None;
    }
    let attribute = match *known {
        "job" | "profession" | "occupation" => "occupation",
        "employer" | "company" | "workplace" => "employer",
        "hometown" => "origin",
        "timezone" => "time zone",
        "email address" => "email",
        "address" => "home",
        "full name" => "name",
        known => known,
    };
    let priority = if attribute == "name" { 90 } else { 75 };
    Some(Statement::fact(format!("{owner} {known} is {}.", third_person(value)), priority, Some(attribute)))
}

fn instruction(clause: &str) -> Option<Statement> {
    let lower = clause.to_lowercase();
    let polite = lower.strip_prefix("please ").unwrap_or(&lower);
    let skipped = lower.len() - polite.len();
    if lower.len() != clause.len() {
        return None;
    }
    // "Call me Bo" sets a name; "call me later" does not.
    if let Some(rest) = polite.strip_prefix("call me ").or_else(|| polite.strip_prefix("you can call me ")).or_else(|| polite.strip_prefix("people call me ")) {
        let name = &clause[clause.len() - rest.len()..];
        return (is_name(name) && name.split_whitespace().count() <= 3)
            .then(|| Statement { attribute: Some("form of address".into()), ..Statement::rule(format!("Call the user {name}.")) });
    }
    let body = sentence_case(&clause[skipped..]);
    let standing = ["from now on", "going forward", "in the future", "in future", "for future reference", "from today on", "henceforth"];
    if let Some(after) = standing.iter().find_map(|opening| polite.strip_prefix(opening)) {
        let after = after.trim_start_matches([',', ':', ' ']);
        let after = after.strip_prefix("please ").unwrap_or(after);
        return is_order(after).then(|| Statement::rule(format!("{body}.")));
    }
    for wish in
        ["i want you to ", "you should ", "you must ", "make sure to ", "make sure you ", "remember to ", "be sure to ", "i would like you to ", "try to "]
    {
        if let Some(after) = polite.strip_prefix(wish).filter(|after| after.starts_with("always ") || after.starts_with("never ")) {
            return is_frequent_order(after).then(|| Statement::rule(format!("{}.", sentence_case(&clause[clause.len() - after.len()..]))));
        }
    }
    if is_frequent_order(polite) {
        return Some(Statement::rule(format!("{body}.")));
    }
    for opening in ["do not ever ", "never ever ", "under no circumstances "] {
        if polite.starts_with(opening) {
            return Some(Statement::rule(format!("{body}.")));
        }
    }
    if let Some(after) = polite
        .strip_prefix("do not ")
        .filter(|after| after.ends_with(" again") || after.ends_with(" anymore") || after.ends_with(" any more") || after.contains("unless i ask"))
    {
        return is_order(after).then(|| Statement::rule(format!("{body}.")));
    }
    for opening in [
        "whenever ", "every time ", "each time ", "when i say ", "when i ask ", "when i mention ", "when i write ", "when you write ", "when you answer ",
        "when you reply ",
    ] {
        if polite.starts_with(opening) {
            let (_, order) = polite.split_once(',')?;
            let order = order.trim();
            let order = order.strip_prefix("please ").unwrap_or(order);
            return (is_order(order) || is_frequent_order(order)).then(|| Statement::rule(format!("{body}.")));
        }
    }
    // "In this project, always use tabs" holds there, and says so.
    if ["in ", "for ", "on "].iter().any(|opening| polite.starts_with(opening)) {
        let (_, order) = polite.split_once(", ")?;
        return is_frequent_order(order.strip_prefix("please ").unwrap_or(order)).then(|| Statement::rule(format!("{body}.")));
    }
    None
}

/// Returns whether a text begins like "always answer …", not like "never mind" or "always wanted".
fn is_frequent_order(text: &str) -> bool {
    text.strip_prefix("always ").or_else(|| text.strip_prefix("never ")).is_some_and(is_order)
}

/// Returns whether a text begins with a verb in the imperative, as far as its form shows.
fn is_order(text: &str) -> bool {
    let text = ["please ", "do not ", "always ", "never ", "only ", "just ", "you should ", "you must ", "i want you to ", "also "]
        .iter()
        .fold(text, |text, word| text.strip_prefix(word).unwrap_or(text));
    let verb = first_word(text);
    const NOT_VERBS: &[&str] = &[
        "mind", "again", "ever", "been", "had", "thought", "knew", "seen", "heard", "a", "an", "the", "good", "nice", "happy", "fun", "great", "better",
        "really", "so", "once", "i", "my", "it", "we", "he", "she", "they", "this", "that", "there", "said", "in", "on", "at", "too", "not", "more", "less",
        "felt", "was", "were", "is", "are", "did", "got", "saw", "found", "came", "went", "took", "up", "down", "worked", "fails", "works", "you", "your",
        "our", "his", "her", "if", "what", "why", "how", "who", "1", "2",
    ];
    verb.len() > 1
        && verb.chars().all(char::is_alphabetic)
        && !NOT_VERBS.contains(&verb.as_str())
        && !(verb.ends_with("ed") && verb != "need" && verb != "embed" && verb != "feed")
        && !verb.ends_with("ing")
}

fn event(clause: &str, speaker: &Speaker<'_>) -> Option<Statement> {
    let lower = clause.to_lowercase();
    // A birthday is a fact, though it has a date.
    if lower.len() != clause.len() || lower.starts_with("my birthday") {
        return None;
    }
    let padded = format!(" {lower} ");
    let future = [" will ", " going to ", " have to ", " have a ", " have an ", " plan to ", " fly ", " leave ", " is on ", " starts ", " is due "]
        .iter()
        .any(|word| padded.contains(word));
    let tense = if future || !is_past(&lower) { Tense::Future } else { Tense::Past };
    let dated = dates::english(&lower, speaker.today, tense)?;
    // The date goes to the end, written out; what is left must be the first person's own deed.
    let before = clause[..dated.place.0].trim_end().trim_end_matches(',').trim_end_matches(" on").trim_end_matches("On").trim_end();
    let after = clause[dated.place.1..].trim_start_matches([',', ' ']);
    let rest = [before, after].iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(" ");
    let told = told(&rest, speaker)?;
    let when = if dated.first == dated.last { format!("on {}", dated.first) } else { format!("between {} and {}", dated.first, dated.last) };
    Some(Statement::event(format!("{told} {when}."), dated))
}

fn is_past(lower: &str) -> bool {
    const PAST: &[&str] = &[
        "was", "were", "went", "had", "did", "got", "saw", "met", "bought", "took", "came", "made", "left", "ran", "won", "lost", "ate", "broke", "began",
        "flew", "gave", "found", "told", "spent", "slept", "wrote", "read", "drove", "sold", "paid", "quit", "fell",
    ];
    lower.split_whitespace().any(|word| PAST.contains(&word) || (word.ends_with("ed") && word.len() > 4))
}

/// Returns a deed of the first person about a third person.
fn told(text: &str, speaker: &Speaker<'_>) -> Option<String> {
    let lower = text.to_lowercase();
    let (who, rest) = if let Some(rest) = strip(text, &lower, "i ") {
        (subject(speaker), rest)
    } else if let Some(rest) = strip(text, &lower, "we ") {
        (format!("{} and others", subject(speaker)), rest)
    } else if let Some(rest) = strip(text, &lower, "my ") {
        (speaker.name.map_or_else(|| "The user's".to_owned(), |name| format!("{name}'s")), rest)
    } else {
        return None;
    };
    let verb = first_word(rest);
    if matches!(verb.as_str(), "want" | "need" | "think" | "know" | "guess" | "like" | "asked" | "wanted" | "hope" | "see" | "" | "tried" | "get")
        || rest.split_whitespace().count() < 2
    {
        return None;
    }
    let rest = if who.ends_with("others") || who.ends_with("'s") { third_person(rest) } else { singular(&verb, &third_person(rest)) };
    Some(format!("{who} {rest}"))
}

/// Returns a clause whose first verb agrees with a third person.
fn singular(verb: &str, rest: &str) -> String {
    let changed = match verb {
        "am" | "are" => "is",
        "have" => "has",
        "do" => "does",
        "go" => "goes",
        "fly" => "flies",
        "leave" => "leaves",
        "start" => "starts",
        "meet" => "meets",
        "travel" => "travels",
        "move" => "moves",
        "plan" => "plans",
        _ => return rest.to_owned(),
    };
    format!("{changed}{}", &rest[verb.len().min(rest.len())..])
}

fn request_to_remember(clause: &str, speaker: &Speaker<'_>) -> Option<Statement> {
    let lower = clause.to_lowercase();
    let openings = ["please remember that ", "remember that ", "please remember: ", "remember: ", "do not forget that ", "please do not forget that "];
    let rest = openings.iter().find_map(|opening| strip(clause, &lower, opening))?;
    // "Remember that time we…" tells a story.
    if matches!(first_word(rest).as_str(), "time" | "day" | "when" | "how" | "one" | "you" | "thing") {
        return None;
    }
    let inner = spelled_out(rest);
    if let Some(statement) = event(&inner, speaker).or_else(|| fact(&inner, speaker)) {
        return Some(statement);
    }
    Some(Statement::fact(format!("{} asked to remember that {}.", subject(speaker), third_person(&inner)), 80, None))
}

/// Returns a text with the first person replaced by the third.
fn third_person(text: &str) -> String {
    let mut changed = Vec::new();
    let words: Vec<&str> = text.split(' ').collect();
    for (place, word) in words.iter().enumerate() {
        let core = word.trim_matches(|c: char| c.is_ascii_punctuation() && c != '\'');
        let replacement = match core {
            "I" => "they",
            "me" => "them",
            "my" | "My" => "their",
            "mine" => "theirs",
            "myself" => "themselves",
            "we" | "We" => "they",
            "us" => "them",
            "our" => "their",
            "ours" => "theirs",
            "am" if place > 0 && words[place - 1] == "I" => "are",
            "was" if place > 0 && words[place - 1] == "I" => "were",
            _ => {
                changed.push((*word).to_owned());
                continue;
            }
        };
        changed.push(word.replacen(core, replacement, 1));
    }
    changed.join(" ")
}

fn sentence_case(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::l1::rules::sentence;

    fn all(text: &str) -> Vec<Statement> {
        // A Wednesday.
        let speaker = Speaker { name: None, today: jiff::civil::date(2026, 5, 13) };
        sentence::sentences(text)
            .iter()
            .filter(|sentence| !sentence.is_quoted && !sentence.is_question())
            .flat_map(|sentence| read(sentence, &speaker))
            .collect()
    }

    #[test]
    fn statements_become_facts() {
        for (said, fact, attribute) in [
            ("I live in Lyon.", "The user lives in Lyon.", "home"),
            ("Hi! By the way, I've moved to Turin!", "The user moved to Turin.", "home"),
            ("i'm based in New York", "The user lives in New York.", "home"),
            ("My name is Ada Lovelace.", "The user's name is Ada Lovelace.", "name"),
            ("I work at Acme as a buyer.", "The user works at Acme as a buyer.", "employer"),
            ("I just joined Initech.", "The user joined Initech.", "employer"),
            ("I'm a software engineer at Acme.", "The user is a software engineer at Acme.", "occupation"),
            ("I'm a morning person.", "The user is a morning person.", ""),
            ("I'm allergic to peanuts.", "The user is allergic to peanuts.", ""),
            ("I'm vegetarian.", "The user is vegetarian.", "diet"),
            ("I'm 34 years old.", "The user is 34 years old.", "age"),
            ("I really love hiking with my dog.", "The user loves hiking with their dog.", ""),
            ("I don't like cilantro.", "The user does not like cilantro.", ""),
            ("Actually, I prefer tabs over spaces.", "The user prefers tabs over spaces.", ""),
            ("My favourite color is teal.", "The user's favorite color is teal.", "favorite color"),
            ("My sister lives in Oslo.", "The user's sister lives in Oslo.", "sister: home"),
            ("My dog's name is Rex.", "The user's dog is called Rex.", "dog: name"),
            ("My birthday is on 3 May.", "The user's birthday is on 3 May.", "birthday"),
            ("I have two cats named Mio and Mia.", "The user has cats named Mio and Mia.", ""),
            ("I use Neovim for everything.", "The user uses Neovim for everything.", ""),
            ("I don't drink coffee.", "The user does not drink coffee.", ""),
            ("Remember that the wifi is in the cellar.", "The user asked to remember that the wifi is in the cellar.", ""),
        ] {
            let found = all(said);
            assert_eq!(found.iter().map(|one| one.text.as_str()).collect::<Vec<_>>(), [fact], "{said}");
            assert_eq!(found[0].attribute.as_deref().unwrap_or_default(), attribute, "{said}");
        }
    }

    #[test]
    fn two_clauses_are_two_facts() {
        let texts: Vec<String> = all("I live in Lyon and I work at Acme, but I'm from Norway.").into_iter().map(|one| one.text).collect();
        assert_eq!(texts, ["The user lives in Lyon.", "The user works at Acme.", "The user is from Norway."]);
    }

    #[test]
    fn standing_orders_become_rules() {
        for (said, rule) in [
            ("Always answer in metric units.", "Always answer in metric units."),
            ("Please never use emojis.", "Never use emojis."),
            ("From now on, reply in French.", "From now on, reply in French."),
            ("I want you to always show the command first.", "Always show the command first."),
            ("Whenever I paste a log, summarize it first.", "Whenever I paste a log, summarize it first."),
            ("In this project, always use tabs.", "In this project, always use tabs."),
            ("Don't call me sir again.", "Do not call me sir again."),
            ("Call me Bo.", "Call the user Bo."),
        ] {
            let found = all(said);
            assert_eq!(found.iter().map(|one| (one.kind, one.text.as_str())).collect::<Vec<_>>(), [(crate::l1::atom::Kind::Instruction, rule)], "{said}");
        }
    }

    #[test]
    fn dated_deeds_become_events() {
        for (said, event) in [
            ("Yesterday I went to the dentist.", "The user went to the dentist on 2026-05-12."),
            ("I had lunch with my sister last Friday.", "The user had lunch with their sister on 2026-05-08."),
            ("I have a job interview next Wednesday.", "The user has a job interview on 2026-05-20."),
            ("We flew to Rome two weeks ago.", "The user and others flew to Rome on 2026-04-29."),
            ("Next week I'm going to visit Oslo.", "The user is going to visit Oslo between 2026-05-18 and 2026-05-24."),
            ("I started at Acme on Monday.", "The user started at Acme on 2026-05-11."),
            ("My flight leaves tomorrow at 9.", "The user's flight leaves at 9 on 2026-05-14."),
        ] {
            assert_eq!(all(said).iter().map(|one| one.text.as_str()).collect::<Vec<_>>(), [event], "{said}");
        }
    }

    #[test]
    fn what_is_no_statement_of_the_user_stays_out() {
        for said in [
            "Do I live in Lyon?",
            "Where do I live?",
            "If I live in Lyon, what changes?",
            "I would live in Lyon.",
            "Maybe I live in the wrong city.",
            "I wish I live in Lyon one day.",
            "I'd like a coffee.",
            "I like that.",
            "I like how you did it.",
            "I love it!",
            "I like the idea.",
            "My friend likes tea.",
            "She says I live in Rome.",
            "I live in Lyon, he said.",
            "I live in fear of bugs.",
            "I moved to the next step.",
            "I have a question.",
            "I have three errors in my log.",
            "I am a bit confused.",
            "I am tired.",
            "I'm running the tests.",
            "I used to live in Lyon.",
            "Never mind.",
            "Always a pleasure!",
            "Always wanted to try that.",
            "Never heard of it.",
            "From now on I am happy.",
            "Call me later.",
            "I don't know.",
            "I use it daily.",
            "My code is broken.",
            "My laptop is slow.",
            "My password is hunter2.",
            "I think I live near you.",
            "Tomorrow is Thursday.",
            "The build failed yesterday.",
            "I want to finish this tomorrow.",
            "Remember that time we met?",
            "Thanks!",
            "You live in Lyon.",
            "He lives in Lyon.",
            "I guess I like tea.",
            "I am not a doctor.",
            "I do not live in Lyon.",
        ] {
            assert_eq!(all(said).into_iter().map(|one| one.text).collect::<Vec<_>>(), [""; 0], "{said}");
        }
    }
}
