//! Every script and kind of word is found by a part of it, in the whole engine.

use std::rc::Rc;
use strata_core::contract::{EndEvent, Message, SearchRequest};
use strata_core::disk::StdDisk;
use strata_core::engine::{Engine, Models};

const SAID: &[&str] = &[
    "我最喜欢的咖啡店在北京路上",
    "昨日は東京タワーに登りました",
    "저는 서울에서 한국어를 가르칩니다",
    "Ich habe meine Krankenversicherung gewechselt und bin zufrieden.",
    "The parser lives in fooBar_baz and I renamed it yesterday",
    "cargo stopped with error E0433 in the build",
    "The settings are in src/store/vfs.rs of that project",
    "Our release is planned for 2024-03-15 at noon",
    "We had a party 🎂 for grandmother",
    "Ｆｕｌｌ　ｗｉｄｔｈ invoice from the café",
];

/// Messages like them about other things, a dozen of each.
fn distractors() -> Vec<String> {
    let mut texts = Vec::new();
    for number in 0..12 {
        texts.push(format!("我最喜欢的书店有{number}层楼，在南京路旁边"));
        texts.push(format!("昨日は大阪城の近くで{number}人に会いました"));
        texts.push(format!("저는 부산에서 수학을 {number}년 공부했습니다"));
        texts.push(format!("Ich habe meine Wohnungsbesichtigung am {number}. verschoben und bin müde."));
        texts.push(format!("The lexer lives in barQux_{number} and nobody touched it"));
        texts.push(format!("cargo stopped with error E01{number:02} in the release"));
        texts.push(format!("The colours are in src/theme/palette{number}.rs of that project"));
        texts.push(format!("Our holiday was planned for 2023-0{}-21 at night", number % 9 + 1));
        texts.push(format!("We had {number} guests 🎈 for uncle"));
        texts.push(format!("Half size receipt {number} from the bakery"));
    }
    texts
}

#[test]
fn the_right_message_comes_first() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut engine, _) = Engine::open(Rc::new(StdDisk::new(directory.path())), "", Models::default(), 1).expect("opened");
    let messages =
        SAID.iter().map(|text| (*text).to_owned()).chain(distractors()).map(|content| Message { role: "user".into(), content, ..Message::default() }).collect();
    engine.agent_end(&EndEvent { messages, success: true, at: 1_700_000_000_000, ..EndEvent::default() }).expect("captured");
    for (query, place) in [
        ("咖啡店在哪里？", 0),
        ("東京タワー", 1),
        ("한국어", 2),
        ("Versicherung", 3),
        ("foobar_baz", 4),
        ("foobar", 4),
        ("baz", 4),
        ("what was E0433?", 5),
        ("vfs.rs", 6),
        ("2024-03-15", 7),
        ("🎂", 8),
        ("full width", 9),
        ("cafe", 9),
    ] {
        for strategy in ["keyword", "hybrid"] {
            // The hybrid takes a date as a time; its words are looked for by keywords.
            if strategy == "hybrid" && query.starts_with("2024") {
                continue;
            }
            let request = SearchRequest {
                query: query.into(),
                layer: "messages".into(),
                strategy: strategy.into(),
                limit: 3,
                at: 1_700_000_000_000,
                ..SearchRequest::default()
            };
            let found = engine.search(&request).expect("searched");
            let first = found.split("\"text\":\"").nth(1).unwrap_or_default();
            assert!(first.starts_with(&SAID[place][..6]), "{query} by {strategy}: {found}");
        }
    }
}
