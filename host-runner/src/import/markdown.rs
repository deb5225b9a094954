//! Transcripts in Markdown or plain text.
//!
//! A turn begins with `**Maya** (2026-03-01 09:12): text`, `**User:** text`, a heading `## Assistant`, or `User: text` where
//! the name is a known word for a role or is named in the front matter (`user: Maya`, `assistant: Juno`). Any other
//! heading begins a new session; a date in it is the date of its turns. Without front matter the first unknown name is
//! the user, because transcripts begin with a person.

use super::{Ids, Message, Sink, Source, time_text};
use anyhow::Result;
use jiff::tz::TimeZone;

const USER_WORDS: [&str; 9] = ["user", "you", "human", "me", "i", "用户", "我", "人类", "prompt"];
const ASSISTANT_WORDS: [&str; 12] = ["assistant", "ai", "chatgpt", "gpt", "claude", "bot", "model", "gemini", "copilot", "response", "助手", "模型"];
const OTHER_WORDS: [(&str, &str); 4] = [("system", "system"), ("系统", "system"), ("tool", "tool"), ("工具", "tool")];

/// Reads a transcript.
pub(crate) fn read(source: &mut Source, sink: &mut dyn Sink) -> Result<()> {
    let text = source.text(sink)?;
    let mut reader = Reader {
        zone: source.zone.clone(),
        stem: source.stem.clone(),
        session: source.stem.clone(),
        date: None,
        user: None,
        assistant: None,
        turn: None,
        turns: 0,
        ids: Ids::default(),
    };
    let mut fenced = false;
    let mut before_first = 0;
    for line in reader.front_matter(&text).lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let opened = !fenced && reader.open(line, sink)?;
        if opened {
            continue;
        }
        match &mut reader.turn {
            Some(turn) => {
                turn.content.push_str(line);
                turn.content.push('\n');
            }
            None if !line.trim().is_empty() => before_first += 1,
            None => {}
        }
    }
    reader.close(sink)?;
    if reader.turns == 0 {
        sink.problem(source.problem(0, "no turn found; a turn begins with `**Name:** text`, `## User` or `User: text`"));
    } else if before_first > 0 {
        sink.aside(&format!("{before_first} lines outside of turns"));
    }
    Ok(())
}

struct Reader {
    zone: TimeZone,
    stem: String,
    session: String,
    /// The date of the session's heading, as text: turns that give only a time of day are on it.
    date: Option<String>,
    user: Option<String>,
    assistant: Option<String>,
    turn: Option<Message>,
    turns: u32,
    ids: Ids,
}

/// What a line says about a turn that begins with it.
struct Opening<'a> {
    name: &'a str,
    time: Option<&'a str>,
    text: &'a str,
    /// The form alone proves a turn, whatever the name.
    certain: bool,
}

impl Reader {
    /// Takes the front matter and returns the text after it.
    fn front_matter<'a>(&mut self, text: &'a str) -> &'a str {
        let Some((front, body)) = text.trim_start_matches('\u{feff}').strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n")) else {
            return text;
        };
        for (key, value) in front.lines().filter_map(|line| line.split_once(':')) {
            let value = value.trim().trim_matches('"').to_owned();
            match key.trim() {
                "user" => self.user = Some(value),
                "assistant" => self.assistant = Some(value),
                "session" => {
                    self.stem.clone_from(&value);
                    self.session = value;
                }
                "date" => self.date = Some(value),
                "timezone" => self.zone = TimeZone::get(&value).unwrap_or_else(|_| self.zone.clone()),
                _ => {}
            }
        }
        body
    }

    /// Takes a line that begins a turn or a session; returns whether it did.
    fn open(&mut self, line: &str, sink: &mut dyn Sink) -> Result<bool> {
        if let Some(heading) = heading(line) {
            let opening = opening(heading).unwrap_or(Opening { name: heading, time: None, text: "", certain: false });
            if let Some(role) = self.role(opening.name, false) {
                self.begin(role, &opening, sink)?;
            } else {
                self.close(sink)?;
                self.session = format!("{}#{}", self.stem, slug(heading));
                self.date = date_in(heading, &self.zone).or_else(|| self.date.take());
            }
            return Ok(true);
        }
        let Some(opening) = opening(line) else { return Ok(false) };
        let Some(role) = self.role(opening.name, opening.certain) else { return Ok(false) };
        self.begin(role, &opening, sink)?;
        Ok(true)
    }

    /// Returns the role of a name; a name never seen gets one only where the form is certain.
    fn role(&mut self, name: &str, certain: bool) -> Option<&'static str> {
        let lower = name.to_lowercase();
        let is = |known: &Option<String>| known.as_ref().is_some_and(|known| known.to_lowercase() == lower);
        if is(&self.user) || USER_WORDS.contains(&lower.as_str()) {
            Some("user")
        } else if is(&self.assistant) || ASSISTANT_WORDS.contains(&lower.as_str()) {
            Some("assistant")
        } else if let Some((_, role)) = OTHER_WORDS.iter().find(|(word, _)| *word == lower) {
            Some(role)
        } else if !certain {
            None
        } else if self.user.is_none() {
            self.user = Some(name.to_owned());
            Some("user")
        } else {
            Some("assistant")
        }
    }

    fn begin(&mut self, role: &str, opening: &Opening<'_>, sink: &mut dyn Sink) -> Result<()> {
        self.close(sink)?;
        let named = !USER_WORDS.iter().chain(&ASSISTANT_WORDS).any(|word| *word == opening.name.to_lowercase());
        let said_at = match (opening.time, &self.date) {
            (Some(time), Some(date)) => time_text::parse(time, &self.zone).or_else(|| time_text::parse(&format!("{date} {time}"), &self.zone)),
            (Some(time), None) => time_text::parse(time, &self.zone),
            (None, Some(date)) => time_text::parse(date, &self.zone),
            (None, None) => None,
        };
        let speaker = named.then(|| opening.name.to_owned());
        let content = if opening.text.is_empty() { String::new() } else { format!("{}\n", opening.text) };
        self.turn = Some(Message { session: self.session.clone(), role: role.into(), speaker, content, said_at, ..Message::default() });
        Ok(())
    }

    fn close(&mut self, sink: &mut dyn Sink) -> Result<()> {
        let Some(mut turn) = self.turn.take() else { return Ok(()) };
        turn.content = turn.content.trim().trim_end_matches("\n---").trim_end().to_owned();
        if turn.content.is_empty() {
            sink.aside("turns without text");
            return Ok(());
        }
        turn.id = self.ids.next(&turn.session, &turn.role, &turn.content);
        self.turns += 1;
        sink.message(turn)
    }
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let depth = line.len() - text.len();
    (1..=6).contains(&depth).then(|| text.strip_prefix(' ')).flatten().map(str::trim)
}

/// Longest name of a speaker, in characters.
const MAX_NAME: usize = 40;

/// Reads `**Name** (time): text`, `**Name:** text`, `[time] Name: text`, `Name (time): text`, `Name: text`.
fn opening(line: &str) -> Option<Opening<'_>> {
    let line = line.trim();
    let (mut time, rest) = match line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((time, rest)) if time.contains(|c: char| c.is_ascii_digit()) => (Some(time.trim()), rest.trim_start()),
        _ => (None, line),
    };
    let (name, rest, certain) = match rest.strip_prefix("**") {
        Some(bold) => {
            let (name, rest) = bold.split_once("**")?;
            match name.trim_end().strip_suffix([':', '：']) {
                Some(name) => return named(name, time, rest, true),
                None => (name, rest, true),
            }
        }
        None => {
            let end = rest.find([':', '：', '('])?;
            (&rest[..end], &rest[end..], time.is_some())
        }
    };
    let mut rest = rest.trim_start();
    if let Some((inside, after)) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        time = Some(inside.trim());
        rest = after.trim_start();
    }
    let text = rest.strip_prefix([':', '：']).or_else(|| rest.is_empty().then_some(""))?;
    named(name, time, text, certain && (text.len() < rest.len() || time.is_some()))
}

fn named<'a>(name: &'a str, time: Option<&'a str>, text: &'a str, certain: bool) -> Option<Opening<'a>> {
    let name = name.trim();
    let fits = !name.is_empty() && name.chars().count() <= MAX_NAME;
    fits.then(|| Opening { name, time, text: text.trim(), certain })
}

/// Returns the date in a heading (`Day 3, 8 May 2023` has one, `Day 3` has none), as text that `time_text` understands.
fn date_in(heading: &str, zone: &TimeZone) -> Option<String> {
    let ends = [" - ", " – ", " — ", ": ", "("].iter().filter_map(|split| heading.split_once(split)).flat_map(|(a, b)| [a, b.trim_end_matches(')')]);
    std::iter::once(heading).chain(ends).map(str::trim).find(|part| time_text::parse(part, zone).is_some() && part.len() >= 6).map(str::to_owned)
}

fn slug(heading: &str) -> String {
    let lower = heading.to_lowercase();
    lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::recorder::{lines, read};

    #[test]
    fn names_times_and_sessions() {
        let text = "---\nuser: Maya\nassistant: Juno\n---\n# Garden\n\n## 2026-03-01 — Beds\n\n**Maya** (09:12): I bought seeds.\nThree kinds.\n\n\
                    **Juno** (09:13): Which?\n\n## Harvest (8 May 2026)\nMaya: Beans first.\nNote: this line is text.\n";
        let read = read(Format::Markdown, "garden.md", text);
        assert_eq!(
            lines(&read),
            [
                "garden#2026-03-01-beds | user | Maya | I bought seeds.\nThree kinds.",
                "garden#2026-03-01-beds | assistant | Juno | Which?",
                "garden#harvest-8-may-2026 | user | Maya | Beans first.\nNote: this line is text.",
            ]
        );
        assert_eq!(read.messages[0].said_at, Some(1_772_356_320_000), "the heading's date and the turn's time");
        assert_eq!(read.messages[2].said_at, Some(1_778_198_400_000));
        assert!(read.problems.is_empty());
    }

    #[test]
    fn role_headings_words_and_code_fences() {
        let text = "## User\nRun this:\n```\nUser: not a turn\n# not a heading\n```\n## Assistant\nDone.\nUser: thanks\n用户：再见\n";
        let read = read(Format::Markdown, "chat.md", text);
        assert_eq!(
            lines(&read),
            [
                "chat | user | - | Run this:\n```\nUser: not a turn\n# not a heading\n```",
                "chat | assistant | - | Done.",
                "chat | user | - | thanks",
                "chat | user | - | 再见"
            ]
        );
    }

    #[test]
    fn unknown_bold_names_are_people_in_turn_and_bold_words_are_text() {
        let read = read(Format::Markdown, "chat.md", "**Ann:** Hi.\n**Bo:** Hello, this is **important**.\n**Remember** the milk.\n[10:00] Ann: Bye\n");
        assert_eq!(
            lines(&read),
            ["chat | user | Ann | Hi.", "chat | assistant | Bo | Hello, this is **important**.\n**Remember** the milk.", "chat | user | Ann | Bye"]
        );
    }

    #[test]
    fn a_text_without_turns_is_reported() {
        let read = read(Format::Markdown, "notes.md", "Just a note.\n");
        assert_eq!((read.messages.len(), read.problems.len(), read.problems[0].line), (0, 1, 0));
    }

    #[test]
    fn the_same_text_gives_the_same_ids() {
        let text = "User: yes\nUser: yes\n";
        let first = read(Format::Markdown, "a.md", text);
        assert_eq!(first.messages, read(Format::Markdown, "a.md", text).messages);
        assert_ne!(first.messages[0].id, first.messages[1].id);
    }
}
