//! The model of a life, which answers by a rule.

use serde_json::{Value, json};
use strata_core::contract::LlmRequest;

/// Returns ids of atoms in a text, in order, each once.
pub(super) fn atoms_in(text: &str) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for (at, _) in text.match_indices("a_") {
        if let Some(id) = text.get(at..at + 18)
            && id[2..].bytes().all(|byte| byte.is_ascii_hexdigit())
            && !ids.iter().any(|known| known == id)
        {
            ids.push(id.to_owned());
        }
    }
    ids
}

/// Returns what a model that does as it is told would answer: a function of the question.
pub(super) fn right_answer(request: &LlmRequest) -> String {
    let lines = |heading: &str| -> Vec<Value> {
        let part = request.prompt.rsplit_once(heading).map_or("", |(_, part)| part);
        part.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    let ids = atoms_in(&request.prompt);
    match request.purpose.as_str() {
        "l1-extract" => {
            let memories: Vec<Value> = lines("## New messages\n")
                .iter()
                .filter(|line| line["role"] == "user" && line["text"].as_str().is_some_and(|text| text.contains("zq")))
                .map(|line| {
                    json!({"content": format!("The user said: {}", line["text"].as_str().unwrap_or_default()), "type": "persona", "priority": 80,
                     "sources": [{"id": line["id"], "quote": line["text"]}], "start": "", "end": ""})
                })
                .collect();
            json!({"scenes": [{"scene": "life", "memories": memories}]}).to_string()
        }
        "l1-settle" => {
            let known = lines("## Known\n").iter().filter(|line| line["id"].as_str().is_some_and(|id| id.starts_with('c'))).count();
            let decisions: Vec<Value> = lines("## New\n")
                .iter()
                .enumerate()
                .map(|(index, line)| match (index + request.prompt.len()) % 4 {
                    1 if known > 0 => json!({"new": line["id"], "action": "update", "targets": ["c1"], "content": "", "type": "", "priority": 0}),
                    2 if known > 0 => json!({"new": line["id"], "action": "merge", "targets": ["c1"], "content": format!("Both: {}", line["content"].as_str().unwrap_or_default()), "type": "persona", "priority": 70}),
                    3 if known > 0 => json!({"new": line["id"], "action": "skip", "targets": ["c1"], "content": "", "type": "", "priority": 0}),
                    _ => json!({"new": line["id"], "action": "store", "targets": [], "content": "", "type": "", "priority": 0}),
                })
                .collect();
            json!({"decisions": decisions}).to_string()
        }
        "l2-scenes" => {
            let paragraphs: Vec<Value> = ids
                .iter()
                .filter(|id| !request.prompt.contains(&format!("No longer believed: {id}")) && !request.prompt.contains(&format!("stated on this page: {id}")))
                .map(|id| json!({"text": format!("Fact number {}.", &id[2..6]), "atoms": [id]}))
                .collect();
            let operation = if request.prompt.contains("There is none yet.") {
                json!({"op": "create", "name": "life", "summary": "Life.", "paragraphs": paragraphs})
            } else {
                json!({"op": "update", "scene": "life.md", "summary": "Life.", "paragraphs": paragraphs})
            };
            json!({"operations": [operation]}).to_string()
        }
        "l3-persona" => {
            let statements: Vec<Value> = ids.iter().take(20).map(|id| json!({"text": format!("Statement {}.", &id[2..6]), "atoms": [id]})).collect();
            json!({"sections": [{"heading": "Facts", "statements": statements}]}).to_string()
        }
        "offload-summary" => json!({"summaries": [{"id": "e1", "summary": "It went well.", "score": 7}]}).to_string(),
        "offload-boundary" => json!({"decision": "same", "task": 0, "goal": ""}).to_string(),
        "offload-canvas" => json!({"nodes": [{"node": "001-N1", "label": "Look", "status": "done", "summary": "Found.", "calls": []}]}).to_string(),
        other => panic!("the scripted model was not told of {other}"),
    }
}
