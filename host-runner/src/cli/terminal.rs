//! What people see: text on standard output, remarks and progress on standard error.

use super::clock;
use super::exit::Exit;
use console::{Style, measure_text_width};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use strata_host::SpaceError;
use strata_host::contract::{Failure, FailureCode};

/// Widest line of text; longer ones are hard to read.
const MAX_WIDTH: usize = 100;

/// Narrowest line of text.
const MIN_WIDTH: usize = 40;

/// The way out to people and programs.
#[derive(Debug)]
pub(crate) struct Terminal {
    /// One JSON document instead of text.
    pub json: bool,
    /// The zone in which times are shown.
    pub zone: TimeZone,
    quiet: bool,
    width: usize,
}

impl Terminal {
    /// Returns the terminal that the process has.
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        let columns = console::Term::stdout().size_checked().map_or(MAX_WIDTH, |(_, columns)| usize::from(columns));
        Self { json, zone: TimeZone::UTC, quiet, width: columns.clamp(MIN_WIDTH, MAX_WIDTH) }
    }

    /// Prints a line.
    pub(crate) fn line(&self, text: impl AsRef<str>) {
        print(text.as_ref());
    }

    /// Prints a document as JSON.
    pub(crate) fn document(&self, document: &Value) {
        print(&serde_json::to_string_pretty(document).unwrap_or_else(|error| error.to_string()));
    }

    /// Prints a document: as JSON, or as an outline.
    pub(crate) fn outline(&self, document: &Value) {
        if self.json { self.document(document) } else { self.line(outline(document, &self.zone)) }
    }

    /// Prints a heading.
    pub(crate) fn heading(&self, text: &str) {
        self.line(format!("\n{}", strong().apply_to(text)));
    }

    /// Prints text in lines that fit, each behind `indent`.
    pub(crate) fn text(&self, indent: &str, text: &str) {
        for line in wrapped(text, self.width.saturating_sub(measure_text_width(indent))) {
            self.line(format!("{indent}{line}").trim_end());
        }
    }

    /// Prints text in lines that fit behind `lead`, the later ones under its beginning.
    pub(crate) fn led(&self, lead: &str, text: &str) {
        let under = " ".repeat(measure_text_width(lead));
        for (at, line) in wrapped(text, self.width.saturating_sub(under.len())).iter().enumerate() {
            self.line(format!("{}{line}", if at == 0 { lead } else { &under }));
        }
    }

    /// Prints text in lines that fit, in a quiet colour.
    pub(crate) fn remark(&self, indent: &str, text: &str) {
        for line in wrapped(text, self.width.saturating_sub(measure_text_width(indent))) {
            self.line(format!("{indent}{}", faint().apply_to(line)));
        }
    }

    /// Prints `name  value`.
    pub(crate) fn field(&self, name: &str, value: impl AsRef<str>) {
        let pad = " ".repeat(14_usize.saturating_sub(measure_text_width(name)));
        self.line(format!("  {}{pad}  {}", faint().apply_to(name), value.as_ref()));
    }

    /// Prints text that is passed on unchanged (an injection, a diff), with a bar at its left.
    pub(crate) fn quoted(&self, text: &str) {
        for line in text.lines() {
            self.line(format!("  {} {line}", faint().apply_to("│")));
        }
    }

    /// Says something beside the answer, unless it should be quiet.
    pub(crate) fn note(&self, text: impl AsRef<str>) {
        if !self.quiet {
            complain(&Style::new().for_stderr().dim().apply_to(text.as_ref()).to_string());
        }
    }

    /// Warns, even where it should be quiet.
    pub(crate) fn warn(&self, text: impl AsRef<str>) {
        complain(&format!("{} {}", Style::new().for_stderr().yellow().apply_to("!"), text.as_ref()));
    }

    /// Says why a command failed and what to do.
    pub(crate) fn error(&self, error: &anyhow::Error, exit: Exit) {
        let failure = match error.downcast_ref::<SpaceError>() {
            Some(SpaceError::Refused(failure)) => Some(failure),
            _ => None,
        };
        let message = failure.map_or_else(|| format!("{error:#}"), sentence);
        if self.json {
            let code = failure.map(|failure| failure.code);
            complain(&json!({"error": {"code": code, "exit": exit.number(), "message": message}}).to_string());
            return;
        }
        complain(&format!("{} {message}", Style::new().for_stderr().red().bold().apply_to("strata:")));
        if let Some(advice) = failure.and_then(|failure| advice(failure.code)) {
            complain(&format!("  {advice}"));
        }
    }

    /// Returns a progress bar over `length` units; hidden where nobody looks.
    pub(crate) fn bar(&self, length: u64, template: &str) -> ProgressBar {
        self.progress(ProgressBar::new(length), template)
    }

    /// Returns a spinner; hidden where nobody looks.
    pub(crate) fn spinner(&self, template: &str) -> ProgressBar {
        self.progress(ProgressBar::no_length(), template)
    }

    fn progress(&self, bar: ProgressBar, template: &str) -> ProgressBar {
        if self.json || self.quiet {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.with_style(style.progress_chars("━╸─"))
    }
}

/// Returns the style of what stands out.
pub(crate) fn strong() -> Style {
    Style::new().bold()
}

/// Returns the style of what stands back.
pub(crate) fn faint() -> Style {
    Style::new().dim()
}

/// Returns the style of ids.
pub(crate) fn id() -> Style {
    Style::new().cyan()
}

/// Returns a failure as a sentence. The engine answers `busy` with the holder's JSON.
fn sentence(failure: &Failure) -> String {
    if failure.code != FailureCode::Busy {
        return failure.message.clone();
    }
    let holder: Value = serde_json::from_str(&failure.message).unwrap_or_default();
    match holder.get("pid") {
        Some(pid) => format!("this memory is in use by process {pid}"),
        None => format!("this memory is in use: {}", failure.message),
    }
}

/// Returns what to do about a failure, where its message does not say so.
fn advice(code: FailureCode) -> Option<&'static str> {
    match code {
        FailureCode::Busy => Some("Wait until it is done, or name another directory with --data DIR."),
        FailureCode::NotFound => Some("`strata browse atoms` and `strata search WORDS` list ids."),
        FailureCode::StorageFull => Some("Nothing was changed. Make room and repeat the command."),
        FailureCode::ReadOnly => Some("Name a directory that you may write with --data DIR."),
        FailureCode::NewerVersion => Some("Install a newer strata; this one leaves the data alone."),
        FailureCode::Corrupt => Some("`strata restore NAME` goes back to a backup."),
        _ => None,
    }
}

/// Prints to standard output. A reader that has gone away (`| head`) ends the process quietly, as pipes expect.
fn print(text: &str) {
    if writeln!(io::stdout().lock(), "{text}").is_err() {
        std::process::exit(i32::from(Exit::Done.number()));
    }
}

/// Prints to standard error; where even that is closed there is nobody left to tell.
fn complain(text: &str) {
    let _closed = writeln!(io::stderr().lock(), "{text}");
}

/// Returns the text in lines of at most `width` columns. Words are kept whole where they fit; wide characters count two.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in pieces(paragraph) {
            if !line.is_empty() && measure_text_width(&line) + measure_text_width(word) > width {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
            }
            line.push_str(if line.is_empty() { word.trim_start() } else { word });
        }
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// Splits a paragraph where a line may end: before a space, and around wide characters.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut wide_before = false;
    for (at, c) in text.char_indices() {
        let wide = u32::from(c) >= 0x2E80;
        let closes = matches!(c, '，' | '。' | '、' | '？' | '！' | '：' | '；' | '）' | '」');
        if at > start && (c == ' ' || wide || wide_before) && !closes {
            pieces.push(&text[start..at]);
            start = at;
        }
        wide_before = wide;
    }
    if start < text.len() {
        pieces.push(&text[start..]);
    }
    pieces
}

/// Returns a document as indented text, for commands whose answers need no form of their own.
pub(crate) fn outline(document: &Value, zone: &TimeZone) -> String {
    let mut out = String::new();
    write_outline(&mut out, document, 0, zone);
    out.trim_end().to_owned()
}

fn write_outline(out: &mut String, value: &Value, depth: usize, zone: &TimeZone) {
    let indent = "  ".repeat(depth);
    let nested = |value: &Value| value.is_object() || value.as_array().is_some_and(|list| list.iter().any(|item| item.is_object() || item.is_array()));
    match value {
        Value::Object(members) => {
            for (name, value) in members.iter().filter(|(_, value)| !is_empty(value)) {
                if nested(value) {
                    out.push_str(&format!("{indent}{}\n", faint().apply_to(name)));
                    write_outline(out, value, depth + 1, zone);
                } else {
                    let shown = if is_time(name) { clock::shown(value, zone) } else { None };
                    out.push_str(&format!("{indent}{}  {}\n", faint().apply_to(name), shown.unwrap_or_else(|| scalar(value))));
                }
            }
        }
        Value::Array(list) => {
            for (at, item) in list.iter().enumerate() {
                if at > 0 && item.is_object() {
                    out.push('\n');
                }
                write_outline(out, item, depth, zone);
            }
        }
        other => {
            let _infallible = writeln!(out, "{indent}{}", scalar(other));
        }
    }
}

/// Returns whether the documents give times under this name, in milliseconds since 1970.
fn is_time(name: &str) -> bool {
    name == "at" || name == "since" || name == "cutoff" || ["-at", "-from", "-to", "-start", "-end"].iter().any(|end| name.ends_with(end))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(scalar).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Returns a page without the comments that name its grounds: people ask `strata trace` for them.
pub(crate) fn without_comments(page: &str) -> String {
    let mut shown = String::new();
    let mut rest = page;
    while let Some((before, comment)) = rest.split_once("<!--") {
        let Some((_, after)) = comment.split_once("-->") else { break };
        shown.push_str(before.trim_end_matches(' '));
        rest = after;
    }
    shown.push_str(rest);
    shown.trim_end().to_owned()
}

/// Returns `1 message`, `2 messages`, `3 memories`.
pub(crate) fn counted(count: u64, one: &str) -> String {
    match (count, one.strip_suffix('y')) {
        (1, _) => format!("1 {one}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        _ => format!("{count} {one}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_and_wide_characters_count_two() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("一二三四。五", 10), ["一二三四。", "五"]);
        assert_eq!(wrapped("a\n\nb", 8), ["a", "", "b"]);
        assert_eq!(wrapped("unbreakable", 4), ["unbreakable"]);
    }

    #[test]
    fn an_outline_leaves_out_what_is_empty() {
        let text = outline(&json!({"a": 1, "b": [], "c": {"d": ["x", "y"]}, "e": [{"f": "g"}], "done-at": 86_400_000}), &TimeZone::UTC);
        assert_eq!(console::strip_ansi_codes(&text), "a  1\nc\n  d  x, y\ne\n  f  g\ndone-at  1970-01-02 00:00");
    }

    #[test]
    fn a_page_is_shown_without_its_grounds() {
        assert_eq!(without_comments("# A\n\nOne. <!-- a_1 a_2 -->\n\nTwo <!-- open\n"), "# A\n\nOne.\n\nTwo <!-- open");
    }

    #[test]
    fn busy_names_the_process() {
        let busy = |message: &str| sentence(&Failure { code: FailureCode::Busy, message: message.into() });
        assert_eq!(busy(r#"{"id": "x", "pid": 7}"#), "this memory is in use by process 7");
        assert_eq!(busy("elsewhere"), "this memory is in use: elsewhere");
    }
}
