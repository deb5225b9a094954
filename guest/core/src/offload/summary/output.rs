//! Recognizes the output of common tools and finds what it concludes.

mod build;
mod data;
mod listing;
mod source;
mod trace;
mod vcs;

use super::command::Command;

/// What a tool's output says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding<'a> {
    /// What was recognized.
    pub kind: &'static str,
    /// Conclusion first. May be longer than a summary; callers cut it.
    pub headline: String,
    /// Lines that carry the evidence: errors, failing tests, changed files.
    pub key_lines: Vec<String>,
    /// The output reports a failure.
    pub failed: bool,
    /// The output without the wrapping of the agent's harness.
    pub body: &'a str,
}

/// At most this many key lines are kept of one output.
pub const KEY_LINES_MAX: usize = 12;

/// Returns what `result` says. Every text gets an answer; `kind` is `text` when no tool is recognized.
pub fn read_output<'a>(command: &Command, result: &'a str, is_error: bool) -> Finding<'a> {
    let wrapped = unwrap_harness(result);
    let body = wrapped.body;
    let text = Text { body, command };
    let mut finding = recognize(&text);
    finding.body = body;
    if finding.key_lines.len() > KEY_LINES_MAX {
        finding.key_lines.truncate(KEY_LINES_MAX);
    }
    match wrapped.exit_code {
        Some(0) if finding.headline.is_empty() => finding.headline = "exit 0".to_owned(),
        Some(0) => {}
        Some(code) => {
            // grep and diff say "nothing found" and "differs" with 1.
            let quiet = code == 1 && matches!(finding.kind, "search" | "diff" | "git diff");
            finding.failed |= !quiet;
            finding.headline = format!("exit {code}; {}", finding.headline);
        }
        None => {}
    }
    if wrapped.running {
        finding.headline = format!("still running; {}", finding.headline);
    }
    if (is_error || wrapped.refused) && !finding.failed {
        finding.failed = true;
        finding.headline = format!("error: {}", finding.headline);
    }
    finding
}

struct Wrapped<'a> {
    body: &'a str,
    exit_code: Option<i64>,
    running: bool,
    /// The harness says that the tool was used wrongly or failed.
    refused: bool,
}

/// Lines of harness wrapping are looked for in this many lines from the top.
const HARNESS_HEAD_LINES: usize = 8;

/// Takes off what agents put around an output: exit codes, timings, tags.
fn unwrap_harness(result: &str) -> Wrapped<'_> {
    let mut wrapped = Wrapped { body: result, exit_code: None, running: false, refused: false };
    let mut offset = 0;
    for line in result.split_inclusive('\n').take(HARNESS_HEAD_LINES) {
        offset += line.len();
        let line = line.trim();
        if let Some(code) = exit_code_of(line) {
            wrapped.exit_code = Some(code);
        } else if line.starts_with("Process running with session ID") {
            wrapped.running = true;
        } else if line == "Output:" {
            wrapped.body = &result[offset..];
            break;
        }
    }
    let rest = wrapped.body.trim_start();
    for tag in ["tool_use_error", "error", "tool_error"] {
        // Both tags around all of it, or it is an output that speaks of tags.
        let inside = rest.trim_end().strip_prefix(&format!("<{tag}>")).and_then(|inside| inside.strip_suffix(&format!("</{tag}>")));
        if let Some(inside) = inside {
            wrapped.body = inside;
            wrapped.refused = true;
        }
    }
    for tag in ["<untrusted_context>\nOutput: ", "<untrusted_context>\n", "<output>\n", "<result>", "Output: "] {
        if let Some(inner) = rest.strip_prefix(tag) {
            wrapped.body = inner;
        }
    }
    if wrapped.exit_code.is_none() {
        let tail_at = tail_start(result, 240);
        for line in result[tail_at..].lines() {
            if let Some(code) = exit_code_of(line.trim()) {
                wrapped.exit_code = Some(code);
            }
        }
    }
    wrapped
}

fn tail_start(text: &str, bytes: usize) -> usize {
    let mut at = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

fn exit_code_of(line: &str) -> Option<i64> {
    const MARKS: [&str; 10] = [
        "exit code: ", "exit code ", "Exit code: ", "Exit code ", "Exit Code: ", "Process exited with code ", "exit status ", "Command exited with code ",
        "exited with code ", "finished with exit code ",
    ];
    if line.len() > 120 {
        return None;
    }
    MARKS.iter().find_map(|mark| {
        let rest = &line[line.find(mark)? + mark.len()..];
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
        rest[..end].parse().ok()
    })
}

/// An output and the command behind it.
#[derive(Clone, Copy)]
struct Text<'a, 'c> {
    body: &'a str,
    command: &'c Command,
}

impl<'a> Text<'a, '_> {
    fn lines(&self) -> impl DoubleEndedIterator<Item = &'a str> {
        self.body.lines()
    }

    fn ran(&self, programs: &[&str]) -> bool {
        programs.iter().any(|program| self.command.program == *program || self.command.shell.as_deref().is_some_and(|line| line.contains(program)))
    }

    fn has(&self, needle: &str) -> bool {
        self.body.contains(needle)
    }
}

fn finding<'a>(kind: &'static str, headline: String, key_lines: Vec<String>, failed: bool) -> Finding<'a> {
    Finding { kind, headline, key_lines, failed, body: "" }
}

/// Tries the readers from the most telling to the least.
fn recognize<'a>(text: &Text<'a, '_>) -> Finding<'a> {
    if text.body.trim().is_empty() {
        return finding("text", "no output".to_owned(), Vec::new(), false);
    }
    let readers: [fn(&Text<'_, '_>) -> Option<Finding<'static>>; 20] = [
        data::accessibility_tree,
        source::edit_receipt,
        build::cargo,
        build::pytest,
        build::go_test,
        build::javascript_tests,
        build::typescript,
        build::npm,
        build::compiler,
        vcs::git,
        vcs::diff,
        data::json,
        source::file_read,
        trace::stack_trace,
        listing::search,
        listing::sql,
        data::http,
        listing::table_or_listing,
        trace::log,
        data::html,
    ];
    for reader in readers {
        if let Some(found) = reader(text) {
            return found;
        }
    }
    source::plain(text)
}

/// Returns the distinct lines of `text` for which `wanted` holds, trimmed, at most [`KEY_LINES_MAX`].
fn pick_lines(text: &str, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let mut picked: Vec<String> = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if wanted(line) && !picked.iter().any(|seen| seen == line) {
            picked.push(super::command::shorten(line, 200));
            if picked.len() == KEY_LINES_MAX {
                break;
            }
        }
    }
    picked
}

/// Returns the whole number that stands right before `word` in `text`.
fn number_before(text: &str, word: &str) -> Option<u64> {
    let before = text[..text.find(word)?].trim_end();
    let start = before.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    // The byte before may start a wide character; rfind gives its first byte.
    before.get(start..).and_then(|digits| digits.parse().ok())
}

/// Returns `count noun`, with an `s` for any count but one.
fn counted(count: usize, noun: &str) -> String {
    match (count, noun.ends_with('y'), noun.ends_with(['h', 's'])) {
        (1, _, _) => format!("1 {noun}"),
        (_, true, _) => format!("{count} {}ies", &noun[..noun.len() - 1]),
        (_, _, true) => format!("{count} {noun}es"),
        _ => format!("{count} {noun}s"),
    }
}

/// Returns the first `most` items joined by commas, and how many more there are.
fn some_of<T: AsRef<str>>(items: &[T], most: usize) -> String {
    let mut joined = items.iter().take(most).map(|item| item.as_ref().to_owned()).collect::<Vec<_>>().join(", ");
    if items.len() > most {
        joined.push_str(&format!(" +{}", items.len() - most));
    }
    joined
}
