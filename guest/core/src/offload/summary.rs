//! Rule-made summaries of tool results: conclusion first, at most 200 characters.

pub mod command;
pub mod names;
pub mod output;

use command::{Command, one_line, shorten};
use names::{NameClass, names};
use output::{Finding, read_output};

/// A summary is at most this long (the reference's limit).
pub const SUMMARY_MAX_CHARS: usize = 200;

/// What is kept of a result when the result itself leaves the context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The kind of output that was recognized (`cargo`, `git diff`, `json`, ...).
    pub kind: &'static str,
    /// Conclusion first, one line, at most [`SUMMARY_MAX_CHARS`].
    pub text: String,
    /// Whether the result reports a failure.
    pub failed: bool,
    /// 0 (nothing stands in for it) to 10 (the summary says it all).
    pub replaceability: u8,
}

/// Returns the summary of `result`, which `command` produced.
pub fn summarize(command: &Command, result: &str, is_error: bool) -> Summary {
    let finding = read_output(command, result, is_error);
    let text = shorten(&one_line(&finding.headline), SUMMARY_MAX_CHARS);
    let replaceability = replaceability(&finding, result);
    Summary { kind: finding.kind, text, failed: finding.failed, replaceability }
}

/// Returns the words of `result` worth keeping beside its summary, within `max_chars`: telling lines
/// first, then names by worth. `known` says which names the context holds anyway.
pub fn digest(command: &Command, result: &str, is_error: bool, max_chars: usize) -> String {
    let finding = read_output(command, result, is_error);
    let mut digest = String::new();
    for line in &finding.key_lines {
        let line = shorten(&one_line(line), 160);
        if digest.len() + line.len() + 1 > max_chars * 6 / 10 {
            break;
        }
        if !finding.headline.contains(&line) && !digest.contains(&line) {
            digest.push_str(&line);
            digest.push('\n');
        }
    }
    let mut ranked = names(finding.body);
    let lines = finding.body.len() / 40 + 1;
    ranked.sort_by_key(|name| {
        let class = match name.class {
            NameClass::Definition => 60,
            NameClass::Path => 55,
            NameClass::Id => 50,
            NameClass::Url => 30,
            NameClass::Identifier => 24,
            NameClass::Number => 8,
        };
        // A name on every line tells nothing new; a name used a few times is what the text is about.
        let use_bonus = (name.count.min(6) * 4) as i64;
        let common = if name.count as usize > lines / 2 + 3 { 12 } else { 0 };
        let early = if name.first_at < 2_000 { 4 } else { 0 };
        let cost = (name.text.len() / 8) as i64;
        (-(i64::from(class) + use_bonus + early - common - cost), name.first_at)
    });
    let mut chosen: Vec<&names::Name<'_>> = Vec::new();
    let mut used = digest.len();
    for name in &ranked {
        if finding.headline.contains(name.text) || digest.contains(name.text) {
            continue;
        }
        let cost = name.text.len() + 2;
        if used + cost > max_chars {
            if used + 12 > max_chars {
                break;
            }
            continue;
        }
        if chosen.iter().any(|other| other.text.contains(name.text)) {
            continue;
        }
        used += cost;
        chosen.push(name);
    }
    chosen.sort_by_key(|name| name.first_at);
    for (at, name) in chosen.iter().enumerate() {
        if at > 0 {
            digest.push_str(", ");
        }
        digest.push_str(name.text);
    }
    digest.trim_end().to_owned()
}

fn replaceability(finding: &Finding<'_>, result: &str) -> u8 {
    let size = match result.len() {
        0..=400 => 3,
        401..=2_000 => 5,
        2_001..=8_000 => 6,
        _ => 7,
    };
    let kind: i32 = match finding.kind {
        "listing" | "search" | "accessibility tree" | "edit" | "install" => 2,
        "log" | "html" | "file" => 1,
        "json" | "table" | "sql" | "text" => 0,
        _ => 1,
    };
    let failure = if finding.failed { -3 } else { 0 };
    (size + kind + failure).clamp(0, 10) as u8
}
