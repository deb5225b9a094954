//! Files that were read or edited, and plain text.

use super::{Finding, Text, counted, finding, pick_lines, some_of};
use crate::offload::summary::command::shorten;
use crate::offload::summary::names::{NameClass, names};

/// The short receipts of editing tools.
pub(super) fn edit_receipt(text: &Text<'_, '_>) -> Option<Finding<'static>> {
    let first = text.lines().find(|line| !line.trim().is_empty())?.trim();
    const DONE: [&str; 10] = [
        "Successfully replaced", "Successfully wrote", "The file ", "File created successfully", "Success. Updated", "Edited ", "Applied ", "Wrote ",
        "File updated", "All occurrences",
    ];
    if !DONE.iter().any(|mark| first.starts_with(mark)) {
        return None;
    }
    if first.starts_with("The file ") && !first.contains("has been") {
        return None;
    }
    let changed = pick_lines(text.body, |line| line.len() < 240 && (line.starts_with("M ") || line.starts_with("A ") || line.starts_with("D ")));
    let place = if changed.is_empty() { shorten(first, 160) } else { format!("{first} {}", some_of(&changed, 5)) };
    Some(finding("edit", place, Vec::new(), false))
}

/// A file or a part of one: which lines, what it defines.
pub(super) fn file_read(text: &Text<'_, '_>) -> Option<Finding<'static>> {
    let tool = text.command.tool.to_ascii_lowercase();
    let shell = text.command.shell.as_deref().unwrap_or("").trim_start();
    let reads = match &text.command.shell {
        // `cargo test | tail` reads no file: the program counts, not what its output goes through.
        Some(_) => matches!(text.command.program.as_str(), "cat" | "sed" | "head" | "tail" | "nl" | "bat" | "less"),
        None => tool.contains("read") || tool.contains("view") || text.has("result of running `cat -n`"),
    };
    if !reads || shell.contains(" | grep") {
        return None;
    }
    let lines = text.lines().count();
    if lines < 4 {
        return None;
    }
    // A harness may put notes before and behind the numbered lines.
    let numbers = (text.lines().take(NOTE_LINES).find_map(line_number), text.lines().rev().take(NOTE_LINES).find_map(line_number));
    let range = match numbers {
        (Some(first), Some(last)) if last > first => format!("lines {first}-{last}"),
        _ => counted(lines, "line"),
    };
    let defined: Vec<&str> = names(text.body).into_iter().filter(|name| name.class == NameClass::Definition).map(|name| name.text).collect();
    let file = text.command.target.as_deref().map_or("file", tail_of);
    let told = if defined.is_empty() {
        text.lines().map(unnumbered).find(|line| line.len() > 12).map_or(String::new(), |line| shorten(line, 80))
    } else {
        format!("defines {}", some_of(&defined, 12))
    };
    Some(finding("file", format!("{file}, {range}: {told}"), Vec::new(), false))
}

/// Lines before and behind a file's own that a harness may add.
const NOTE_LINES: usize = 12;

/// Returns the last parts of a path: the call beside the summary has it whole.
fn tail_of(path: &str) -> &str {
    let cut = path.rmatch_indices('/').nth(PATH_PARTS - 1).map_or(0, |(at, _)| at + 1);
    &path[cut..]
}

/// Parts of a path that a summary shows.
const PATH_PARTS: usize = 3;

/// Returns a line without the number in front of it.
fn unnumbered(line: &str) -> &str {
    match line_number(line) {
        Some(_) => line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches(['→', '\t', ':']).trim(),
        None => line.trim(),
    }
}

/// The number in front of a numbered line (`  12→`, `  12\t`, `12: `).
fn line_number(line: &str) -> Option<u64> {
    let line = line.trim_start();
    let end = line.find(|c: char| !c.is_ascii_digit())?;
    let rest = &line[end..];
    (rest.starts_with('→') || rest.starts_with('\t') || rest.starts_with(": ")).then(|| line[..end].parse().ok())?
}

/// Any other text: the first telling line, error lines, and how much there is.
pub(super) fn plain<'a>(text: &Text<'_, '_>) -> Finding<'a> {
    const BAD: [&str; 12] =
        ["error:", "Error:", "ERROR", "error ", "fatal:", "failed", "FAILED", "Exception", "not found", "No such file", "denied", "cannot "];
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    let short = text.body.len() < 4_000;
    let bad = pick_lines(text.body, |line| line.len() < 300 && BAD.iter().any(|word| line.contains(word)));
    let first = text.lines().map(str::trim).find(|line| line.chars().any(char::is_alphanumeric)).unwrap_or("");
    let last = text.lines().rev().map(str::trim).find(|line| line.chars().any(char::is_alphanumeric)).unwrap_or("");
    let failed = short
        && text.lines().take(3).any(|line| {
            let line = line.trim_start();
            line.starts_with("Error")
                || line.starts_with("error")
                || line.starts_with("fatal")
                || line.contains("command not found")
                || line.contains("No such file or directory")
        });
    let headline = match (bad.first(), lines) {
        (Some(line), _) if short && failed => line.clone(),
        (_, 0..=1) => first.to_owned(),
        _ => format!("{}: {} … {}", counted(lines, "line"), shorten(first, 90), shorten(last, 80)),
    };
    let mut key_lines = if short { bad } else { Vec::new() };
    if lines > 1 {
        key_lines.push(shorten(first, 160));
        key_lines.push(shorten(last, 160));
    }
    finding("text", headline, key_lines, failed)
}
