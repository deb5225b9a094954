//! A conversation with questions, as a file.

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Milliseconds of a day, and its noon.
const DAY_MS: i64 = 86_400_000;

/// A space of a corpus.
#[derive(Debug, Deserialize)]
pub(super) struct SpaceFile {
    messages: Vec<Message>,
    /// The questions.
    pub(super) queries: Vec<Query>,
}

#[derive(Debug, Deserialize)]
struct Message {
    id: String,
    session: String,
    #[serde(default)]
    time: String,
    speaker: Option<String>,
    role: String,
    text: String,
}

/// A question and the messages that answer it.
#[derive(Debug, Deserialize)]
pub(super) struct Query {
    /// What kind of question.
    #[serde(default)]
    pub(super) category: String,
    /// The question.
    pub(super) text: String,
    /// Ids of messages.
    pub(super) gold: Vec<String>,
}

impl SpaceFile {
    /// Reads a space.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        serde_json::from_str(&text).with_context(|| format!("{}: not a space", path.display()))
    }

    /// Returns the time after which nothing is said.
    pub(super) fn last_time(&self) -> u64 {
        self.messages.iter().filter_map(|message| time(&message.time)).max().unwrap_or(DAY_MS as u64)
    }

    /// Returns the messages as records of an import; as atoms if asked to, each resting on nothing.
    pub(super) fn records(&self, as_atoms: bool) -> Vec<String> {
        let record = |message: &Message| {
            let at = time(&message.time);
            if as_atoms {
                json!({"record": "atom", "id": message.id, "session": message.session, "kind": "episodic", "text": message.text, "priority": 70,
                       "origin": "user", "created-at": at})
            } else {
                let speaker = message.speaker.as_ref().filter(|speaker| **speaker != message.role);
                json!({"record": "message", "id": message.id, "session": message.session, "role": message.role, "speaker": speaker, "text": message.text,
                       "said-at": at})
            }
        };
        self.messages.iter().map(|message| record(message).to_string()).collect()
    }

    /// Returns the ids of the messages that a search found, best first.
    pub(super) fn ids(&self, answer: &Value) -> Vec<String> {
        let mut by_text: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for message in &self.messages {
            by_text.entry(message.text.trim()).or_default().push(&message.id);
        }
        let mut ids = Vec::new();
        for result in answer["results"].as_array().into_iter().flatten() {
            match result["host-id"].as_str() {
                Some(id) => ids.push(id.to_owned()),
                // Atoms carry no foreign id: equal texts are told apart by nothing.
                None => ids.extend(result["text"].as_str().and_then(|text| by_text.get(text.trim())).into_iter().flatten().map(|id| (*id).to_owned())),
            }
        }
        ids
    }
}

impl SpaceFile {
    /// Returns the ids of the messages that have the text of a message document.
    pub(super) fn ids_of_text(&self, document: &Value) -> Vec<String> {
        let Some(text) = document["text"].as_str().map(str::trim) else { return Vec::new() };
        self.messages.iter().filter(|message| message.text.trim() == text).map(|message| message.id.clone()).collect()
    }
}

/// Returns the noon of the day that a time names: its year, its month as a word or a number, its day.
fn time(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let numbers: Vec<i64> = text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect();
    let lower = text.to_ascii_lowercase();
    let word = lower.split(|c: char| !c.is_ascii_alphabetic()).find_map(|word| MONTHS.iter().position(|month| word.len() >= 3 && word.starts_with(month)));
    let year_at = numbers.iter().position(|number| (1900..2200).contains(number))?;
    let (year, month, day) = match word {
        // The number before the year: `8 May, 2023`, `March-15-2024`.
        Some(month) => (numbers[year_at], month as i64 + 1, *numbers.get(year_at.checked_sub(1)?)?),
        None => (numbers[year_at], *numbers.get(year_at + 1)?, *numbers.get(year_at + 2)?),
    };
    let date = jiff::civil::Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    let noon = jiff::tz::TimeZone::UTC.to_timestamp(date.at(12, 0, 0, 0)).ok()?;
    u64::try_from(noon.as_millisecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_corpora() {
        for text in ["1:56 pm on 8 May, 2023", "May-8-2023", "2023年05月08日 周一 08:30", "2023-05-08T10:00:00Z"] {
            assert_eq!(time(text), Some(1_683_547_200_000), "{text}");
        }
        assert_eq!(time("yesterday"), None);
    }
}
