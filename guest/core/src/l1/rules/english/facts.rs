//! Facts about the speaker and the people around them.

use super::{first_word, strip, subject, third_person};
use crate::l1::rules::{Speaker, Statement};

/// Returns the fact that a clause states.
pub(super) fn fact(clause: &str, speaker: &Speaker<'_>) -> Option<Statement> {
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
        if let Some(after) = lower.strip_prefix(word) {
            return (
                &rest[word.len()..],
                after,
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

pub(super) fn is_name(rest: &str) -> bool {
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
        && !rest.to_lowercase().starts_with("the new ")
        && !rest.to_lowercase().starts_with("the fact")
        && !rest.to_lowercase().starts_with("all the ")
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
