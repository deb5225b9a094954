//! Reading conversations of other systems.
//!
//! A reader is a function from one [`Source`] to a [`Sink`]: pure, streaming, one file a format. A broken line or element
//! is reported with its place and skipped; nothing else is skipped, because what is worth keeping is the engine's
//! decision. Every message gets an id that depends on its file's content alone, so that reading a file twice adds nothing.

pub(crate) mod chatgpt;
pub(crate) mod claude;
pub(crate) mod claude_code;
pub(crate) mod corpus;
pub(crate) mod detect;
pub(crate) mod json_stream;
pub(crate) mod markdown;
pub(crate) mod mem0;
pub(crate) mod memory_file;
pub(crate) mod openclaw;
pub(crate) mod source;
pub(crate) mod tdai;
pub(crate) mod tdai_seed;
pub(crate) mod time_text;

use anyhow::Result;
use clap::ValueEnum;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

pub(crate) use source::Source;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Format {
    /// Session transcripts of OpenClaw (`*.jsonl`), or one chat message a line
    #[value(name = "openclaw")]
    OpenClaw,
    /// `conversations.json` of a ChatGPT export
    #[value(name = "chatgpt")]
    ChatGpt,
    /// `conversations.json` of a Claude export
    Claude,
    /// Session logs of Claude Code (`~/.claude/projects/**/*.jsonl`)
    ClaudeCode,
    /// Seed files of TencentDB Agent Memory (formats A and B)
    TdaiSeed,
    /// `{"messages": [{"id", "session", "time", "speaker", "role", "text"}]}`
    Corpus,
    /// A transcript in Markdown: `**Maya** (2026-03-01 09:12): …`, `## User`, or `User: …`
    Markdown,
    /// Memories exported from mem0
    Mem0,
    /// OpenClaw's MEMORY.md or USER.md
    MemoryFile,
    /// Records that `strata export` wrote
    Strata,
}

/// A message as its file has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    /// The conversation.
    pub session: String,
    /// The file's id for it, or one made of its content.
    pub id: String,
    /// `user`, `assistant`, `tool`, `system`, or the file's own word.
    pub role: String,
    /// Who speaks, where the file says so.
    pub speaker: Option<String>,
    /// Text, or a JSON array of content parts where `structured` is set.
    pub content: String,
    /// `content` is a JSON array of parts.
    pub structured: bool,
    /// When it was said, in milliseconds since 1970.
    pub said_at: Option<u64>,
}

/// Something that could not be read, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The file.
    pub file: String,
    /// The line, from 1; 0 if the file as a whole is meant.
    pub line: u64,
    /// What is wrong, for people.
    pub reason: String,
}

/// Where readers deliver. An error from `message` or `record` means that the space refused, and stops the reader.
pub(crate) trait Sink {
    /// Takes one message.
    fn message(&mut self, message: Message) -> Result<()>;
    /// Takes one import record; see `docs/documents.md`.
    fn record(&mut self, record: Value) -> Result<()>;
    /// Takes a report of what could not be read.
    fn problem(&mut self, problem: Problem);
    /// Counts what holds nothing to remember (a settings line, a message without text), by reason.
    fn aside(&mut self, reason: &str);
}

/// What became of a line or element: taken (or refused by the sink), or unreadable, with the reason.
pub(crate) type Outcome = std::result::Result<Result<()>, String>;

/// Reads `source` as `format`.
pub(crate) fn read(format: Format, source: &mut Source, sink: &mut dyn Sink) -> Result<()> {
    match format {
        Format::OpenClaw => openclaw::read(source, sink),
        Format::ChatGpt => chatgpt::read(source, sink),
        Format::Claude => claude::read(source, sink),
        Format::ClaudeCode => claude_code::read(source, sink),
        Format::TdaiSeed => tdai_seed::read(source, sink),
        Format::Corpus => corpus::read(source, sink),
        Format::Markdown => markdown::read(source, sink),
        Format::Mem0 => mem0::read(source, sink),
        Format::MemoryFile => memory_file::read(source, sink),
        Format::Strata => {
            source.lines(sink, |_, sink, line| serde_json::from_str::<Value>(line).map_err(|error| error.to_string()).map(|record| sink.record(record)))
        }
    }
}

/// Makes ids for messages that have none: a hash of session, role and content, and which of the equal ones it is.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    seen: BTreeMap<[u8; 12], u32>,
}

impl Ids {
    /// Returns the id of the next message with this content.
    pub(crate) fn next(&mut self, session: &str, role: &str, content: &str) -> String {
        let hash = Sha256::new().chain_update(session).chain_update([0]).chain_update(role).chain_update([0]).chain_update(content).finalize();
        let mut key = [0; 12];
        key.copy_from_slice(&hash[..12]);
        let occurrence = self.seen.entry(key).or_default();
        *occurrence += 1;
        let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("import-{hex}-{occurrence}")
    }
}

/// Parses one line or element of JSON; the error names the column, because the line is named elsewhere.
pub(crate) fn json(text: &str) -> std::result::Result<Value, String> {
    serde_json::from_str(text).map_err(|error| {
        let words = error.to_string();
        let words = words.split(" at line ").next().unwrap_or(&words);
        format!("broken JSON at column {}: {words}", error.column())
    })
}

/// Returns the text of a member, if it is text and not empty.
pub(crate) fn text<'a>(value: &'a Value, member: &str) -> Option<&'a str> {
    value.get(member).and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Returns an id member: text, or a number as text.
pub(crate) fn id(value: &Value, member: &str) -> Option<String> {
    match value.get(member)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod recorder {
    //! A sink that keeps everything, for the readers' tests.
    use super::*;

    #[derive(Debug, Default)]
    pub(crate) struct Recorder {
        pub messages: Vec<Message>,
        pub records: Vec<Value>,
        pub problems: Vec<Problem>,
        pub asides: BTreeMap<String, u32>,
    }

    impl Sink for Recorder {
        fn message(&mut self, message: Message) -> Result<()> {
            self.messages.push(message);
            Ok(())
        }
        fn record(&mut self, record: Value) -> Result<()> {
            self.records.push(record);
            Ok(())
        }
        fn problem(&mut self, problem: Problem) {
            self.problems.push(problem);
        }
        fn aside(&mut self, reason: &str) {
            *self.asides.entry(reason.into()).or_default() += 1;
        }
    }

    /// Reads `text` as a file named `name`.
    pub(crate) fn read(format: Format, name: &str, text: &str) -> Recorder {
        let mut recorder = Recorder::default();
        super::read(format, &mut Source::of_text(name, text), &mut recorder).expect("a recorder takes everything");
        recorder
    }

    /// Returns `session | role | speaker | content` of each message.
    pub(crate) fn lines(recorder: &Recorder) -> Vec<String> {
        recorder.messages.iter().map(|m| format!("{} | {} | {} | {}", m.session, m.role, m.speaker.as_deref().unwrap_or("-"), m.content)).collect()
    }
}
