//! One file being read: its lines or bytes, and where the reader is.

use super::{Outcome, Problem, Sink};
use anyhow::{Context, Result};
use jiff::tz::TimeZone;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::rc::Rc;

/// Bytes of one line; a longer one is reported and skipped, so that memory stays bounded.
pub(crate) const MAX_LINE: u64 = 64 << 20;

/// Bytes that detection looks at.
pub(crate) const HEAD: usize = 256 << 10;

/// Where a reader is in its file.
#[derive(Debug, Default)]
pub(crate) struct Position {
    /// Bytes read.
    pub bytes: Cell<u64>,
    /// Newlines read.
    pub newlines: Cell<u64>,
}

/// A file to read.
pub(crate) struct Source {
    /// The file as people should see it in a report.
    pub name: String,
    /// The file's name without folder and extension: names a session where the file does not.
    pub stem: String,
    /// The zone of times that name none.
    pub zone: TimeZone,
    /// Names of sessions by the ids that the file has for them; what is not here keeps its id.
    pub session_keys: BTreeMap<String, String>,
    /// Shared with the progress bar.
    pub position: Rc<Position>,
    input: Box<dyn BufRead>,
}

impl Source {
    /// Opens a file.
    pub(crate) fn open(path: &Path, zone: TimeZone) -> Result<Self> {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self::new(&path.display().to_string(), zone, Box::new(BufReader::with_capacity(256 << 10, file))))
    }

    /// Returns a source that reads `text`, in UTC.
    pub(crate) fn of_text(name: &str, text: &str) -> Self {
        Self::new(name, TimeZone::UTC, Box::new(Cursor::new(text.as_bytes().to_vec())))
    }

    fn new(name: &str, zone: TimeZone, input: Box<dyn BufRead>) -> Self {
        let stem = Path::new(name).file_stem().map_or_else(|| "import".into(), |stem| stem.to_string_lossy().into_owned());
        Self { name: name.into(), stem, zone, session_keys: BTreeMap::new(), position: Rc::default(), input }
    }

    /// Returns the first bytes, which stay to be read.
    pub(crate) fn head(&mut self) -> Result<Vec<u8>> {
        let mut head = Vec::new();
        self.input.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
        let rest = std::mem::replace(&mut self.input, Box::new(Cursor::new(Vec::new())));
        self.input = Box::new(BufReader::with_capacity(256 << 10, Cursor::new(head.clone()).chain(rest)));
        Ok(head)
    }

    /// Returns the name of the session that the file calls `id`.
    pub(crate) fn session_name(&self, id: &str) -> String {
        self.session_keys.get(id).map_or(id, String::as_str).to_owned()
    }

    /// Returns the line that the reader is in, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.position.newlines.get() + 1
    }

    /// Returns a report about line `line`.
    pub(crate) fn problem(&self, line: u64, reason: impl Into<String>) -> Problem {
        Problem { file: self.name.clone(), line, reason: reason.into() }
    }

    /// Returns the whole file as text; bytes that are not UTF-8 are reported once and replaced.
    pub(crate) fn text(&mut self, sink: &mut dyn Sink) -> Result<String> {
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes)?;
        Ok(String::from_utf8(bytes).unwrap_or_else(|error| {
            let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count() as u64;
            sink.problem(self.problem(line, "not UTF-8; the unreadable bytes are replaced"));
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        }))
    }

    /// Gives each line that is not blank to `each`. What `each` cannot read is reported with its line and skipped.
    pub(crate) fn lines(&mut self, sink: &mut dyn Sink, mut each: impl FnMut(&Self, &mut dyn Sink, &str) -> Outcome) -> Result<()> {
        let mut buffer = Vec::new();
        loop {
            buffer.clear();
            let line = self.line();
            let read = self.input.by_ref().take(MAX_LINE).read_until(b'\n', &mut buffer).with_context(|| format!("{}:{line}", self.name))?;
            if read == 0 {
                return Ok(());
            }
            self.advance(&buffer);
            if read as u64 == MAX_LINE && buffer.last() != Some(&b'\n') {
                self.skip_line()?;
                sink.problem(self.problem(line, format!("a line of more than {} MiB", MAX_LINE >> 20)));
                continue;
            }
            let outcome = match std::str::from_utf8(&buffer) {
                Ok(text) if text.trim().trim_start_matches('\u{feff}').is_empty() => continue,
                Ok(text) => each(self, sink, text.trim().trim_start_matches('\u{feff}')),
                Err(error) => Err(error.to_string()),
            };
            match outcome {
                Ok(taken) => taken?,
                Err(reason) => sink.problem(self.problem(line, reason)),
            }
        }
    }

    fn skip_line(&mut self) -> Result<()> {
        loop {
            let available = self.input.fill_buf()?;
            let end = available.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(available.len(), |at| at + 1);
            if used == 0 {
                return Ok(());
            }
            let part = available[..used].to_vec();
            self.input.consume(used);
            self.advance(&part);
            if end.is_some() {
                return Ok(());
            }
        }
    }

    fn advance(&self, read: &[u8]) {
        self.position.bytes.set(self.position.bytes.get() + read.len() as u64);
        let newlines = read.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.position.newlines.set(self.position.newlines.get() + newlines);
    }
}

/// Reads bytes and keeps the position exact, which the JSON reader needs to name lines.
impl Read for Source {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.input.read(into)?;
        self.advance(&into[..read]);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::super::recorder::Recorder;
    use super::*;

    #[test]
    fn lines_are_numbered_and_broken_ones_skipped() {
        let mut source = Source::of_text("x/a.jsonl", "\u{feff}one\n\n  \nbad\nlast");
        let mut sink = Recorder::default();
        let mut seen = Vec::new();
        source
            .lines(&mut sink, |source, _, line| {
                if line == "bad" {
                    return Err("no".into());
                }
                seen.push((source.name.clone(), line.to_owned()));
                Ok(Ok(()))
            })
            .expect("text is readable");
        assert_eq!(seen.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>(), ["one", "last"]);
        assert_eq!(sink.problems, [Problem { file: "x/a.jsonl".into(), line: 4, reason: "no".into() }]);
        assert_eq!(source.stem, "a");
    }

    #[test]
    fn a_line_that_is_not_utf8_is_reported_and_the_next_one_read() {
        let mut source = Source::new("a.jsonl", TimeZone::UTC, Box::new(Cursor::new(b"\xff\xfe\nfine\n".to_vec())));
        let mut sink = Recorder::default();
        let mut count = 0;
        source
            .lines(&mut sink, |_, _, _| {
                count += 1;
                Ok(Ok(()))
            })
            .expect("text is readable");
        assert_eq!((count, sink.problems.len(), sink.problems[0].line), (1, 1, 1));
    }

    #[test]
    fn the_head_stays_to_be_read() {
        let mut source = Source::of_text("a", "hello\nworld\n");
        assert_eq!(source.head().expect("readable"), b"hello\nworld\n");
        let mut text = String::new();
        source.read_to_string(&mut text).expect("readable");
        assert_eq!((text.as_str(), source.line()), ("hello\nworld\n", 3));
    }
}
