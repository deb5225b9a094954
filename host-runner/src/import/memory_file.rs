//! OpenClaw's MEMORY.md and USER.md: notes that a person or their agent keeps by hand.
//!
//! Each list item or paragraph is one statement. Its headings stay with it as its scene, so that "Pets > Miso" is not
//! lost. USER.md is about the user; in MEMORY.md a section whose heading speaks of rules or instructions holds
//! instructions, and one whose heading is a date holds events of that day. The origin is `human`: people edit these files.

use super::{Ids, Sink, Source, time_text};
use anyhow::Result;
use serde_json::json;

/// The priority of what somebody wrote down by hand.
const PRIORITY: u32 = 80;

const INSTRUCTION_WORDS: [&str; 10] = ["rule", "instruction", "always", "never", "guideline", "how to work", "规则", "指令", "约定", "要求"];

/// Reads a memory file.
pub(crate) fn read(source: &mut Source, sink: &mut dyn Sink) -> Result<()> {
    let text = source.text(sink)?;
    let mut headings: Vec<(usize, String)> = Vec::new();
    let mut ids = Ids::default();
    let mut statement = String::new();
    let mut fenced = false;
    for line in text.lines().chain([""]) {
        let trimmed = line.trim();
        if trimmed.starts_with("```") || trimmed.starts_with("<!--") && trimmed.ends_with("-->") {
            fenced ^= trimmed.starts_with("```");
            continue;
        }
        let item = ["- ", "* ", "+ "].iter().find_map(|bullet| trimmed.strip_prefix(bullet)).or_else(|| numbered(trimmed));
        let depth = line.len() - line.trim_start_matches('#').len();
        let heading = (!fenced && (1..=6).contains(&depth)).then(|| line[depth..].strip_prefix(' ')).flatten();
        if trimmed.is_empty() || trimmed == "---" || item.is_some() || heading.is_some() {
            emit(&std::mem::take(&mut statement), &headings, &mut ids, source, sink)?;
        }
        if let Some(heading) = heading {
            headings.retain(|(level, _)| *level < depth);
            headings.push((depth, heading.trim().to_owned()));
        } else if trimmed != "---" {
            if !statement.is_empty() {
                statement.push(' ');
            }
            statement.push_str(item.unwrap_or(trimmed));
        }
    }
    Ok(())
}

/// Returns the text of `1. text`.
fn numbered(line: &str) -> Option<&str> {
    let (number, text) = line.split_once(". ")?;
    (!number.is_empty() && number.len() <= 3 && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(text)
}

fn emit(statement: &str, headings: &[(usize, String)], ids: &mut Ids, source: &Source, sink: &mut dyn Sink) -> Result<()> {
    let statement = statement.trim();
    // A table's rule line or a lone mark says nothing.
    if !statement.chars().any(char::is_alphanumeric) {
        return Ok(());
    }
    let scene = headings.iter().map(|(_, heading)| heading.as_str()).collect::<Vec<_>>().join(" > ");
    let lower = scene.to_lowercase();
    let day = headings.iter().rev().find_map(|(_, heading)| time_text::parse(heading, &source.zone).filter(|_| heading.len() >= 8));
    let kind = match day {
        Some(_) => "episodic",
        None if INSTRUCTION_WORDS.iter().any(|word| lower.contains(word)) => "instruction",
        None => "persona",
    };
    sink.record(json!({
        "record": "atom",
        "id": ids.next(&source.stem, &scene, statement),
        "kind": kind,
        "text": statement,
        "priority": PRIORITY,
        "scene": scene,
        "origin": "human",
        "event-start": day,
        "metadata": {"file": format!("{}.md", source.stem)},
    }))
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::recorder::read;

    #[test]
    fn items_and_paragraphs_keep_their_headings() {
        let text = "# Memory\n\nA paragraph\nof two lines.\n\n## Pets\n- Miso is a cat\n  who hates rain\n1. Second item\n\n## Rules\n* Answer in short sentences\n\n## 2026-03-01\n- Signed the lease\n---\n";
        let read = read(Format::MemoryFile, "x/MEMORY.md", text);
        let found: Vec<_> = read
            .records
            .iter()
            .map(|r| format!("{} | {} | {}", r["kind"].as_str().unwrap_or(""), r["scene"].as_str().unwrap_or(""), r["text"].as_str().unwrap_or("")))
            .collect();
        assert_eq!(
            found,
            [
                "persona | Memory | A paragraph of two lines.",
                "persona | Memory > Pets | Miso is a cat who hates rain",
                "persona | Memory > Pets | Second item",
                "instruction | Memory > Rules | Answer in short sentences",
                "episodic | Memory > 2026-03-01 | Signed the lease",
            ]
        );
        assert_eq!(read.records[4]["event-start"], 1_772_323_200_000_u64);
    }
}
