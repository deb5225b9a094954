//! Stack traces in six languages, and logs.

use std::collections::BTreeMap;

use super::{Finding, Text, counted, finding, pick_lines, some_of};

/// An error's message, and the file and line of the frame that tells most.
type ErrorAt = (String, Option<String>);

/// Python, JavaScript, Java, Go, Rust and C# stack traces.
pub(super) fn stack_trace(text: &Text<'_, '_>) -> Option<Finding<'static>> {
    let readers: [fn(&str) -> Option<ErrorAt>; 6] = [python, rust, go, java, csharp, javascript];
    let (error, place) = readers.iter().find_map(|reader| reader(text.body))?;
    let headline = match &place {
        Some(place) => format!("{error} at {place}"),
        None => error.clone(),
    };
    let mut key_lines = vec![error];
    key_lines.extend(place);
    key_lines.extend(pick_lines(text.body, |line| line.starts_with("Caused by:") || line.starts_with("caused by:")));
    Some(finding("stack trace", headline, key_lines, true))
}

fn python(text: &str) -> Option<ErrorAt> {
    let trace = &text[text.rfind("Traceback (most recent call last)")?..];
    let mut place = None;
    for line in trace.lines().skip(1) {
        if let Some(rest) = line.trim().strip_prefix("File \"") {
            let (file, rest) = rest.split_once('"')?;
            let number: String = rest.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
            place = Some(format!("{file}:{number}"));
        } else if !line.starts_with(' ') && line.contains(|c: char| c.is_alphabetic()) {
            return Some((line.trim().to_owned(), place));
        }
    }
    place.map(|place| ("Traceback".to_owned(), Some(place)))
}

fn rust(text: &str) -> Option<ErrorAt> {
    let at = text.find("panicked at ")?;
    let rest = &text[at + "panicked at ".len()..];
    let mut lines = rest.lines();
    let first = lines.next()?;
    if let Some((message, place)) = first.strip_prefix('\'').and_then(|inner| inner.rsplit_once("', ")) {
        return Some((format!("panic: {message}"), Some(place.to_owned())));
    }
    let message = lines.next().unwrap_or("").trim();
    Some((format!("panic: {message}"), Some(first.trim_end_matches(':').to_owned())))
}

fn go(text: &str) -> Option<ErrorAt> {
    let at = if text.starts_with("panic: ") { 0 } else { text.find("\npanic: ")? + 1 };
    let message = text[at..].lines().next()?;
    let place = text[at..].lines().map(str::trim).find(|line| line.contains(".go:") && !line.contains("/runtime/") && !line.contains("panic.go"));
    Some((message.to_owned(), place.map(|line| line.split(' ').next().unwrap_or(line).to_owned())))
}

fn java(text: &str) -> Option<ErrorAt> {
    let frame = text.lines().position(|line| {
        let line = line.trim_start();
        line.starts_with("at ") && (line.contains(".java:") || line.contains(".kt:") || line.contains("(Native Method)"))
    })?;
    let lines: Vec<&str> = text.lines().collect();
    let error = lines[..frame].iter().rev().find(|line| !line.trim().is_empty())?;
    let root = lines.iter().rev().find_map(|line| line.trim().strip_prefix("Caused by: "));
    let place = lines[frame].split('(').nth(1).map(|place| place.trim_end_matches(')').to_owned());
    let error = error.trim().trim_start_matches("Exception in thread ").to_owned();
    Some((root.map_or(error.clone(), |root| format!("{root} (under {error})")), place))
}

fn csharp(text: &str) -> Option<ErrorAt> {
    let frame = text.lines().position(|line| line.trim_start().starts_with("at ") && line.contains(" in ") && line.contains(":line "))?;
    let lines: Vec<&str> = text.lines().collect();
    let error = lines[..frame].iter().rev().find(|line| !line.trim_start().starts_with("at ") && !line.trim().is_empty())?;
    let place = lines[frame].split(" in ").nth(1).map(|place| place.trim().replace(":line ", ":"));
    Some((error.trim().trim_start_matches("Unhandled exception. ").to_owned(), place))
}

fn javascript(text: &str) -> Option<ErrorAt> {
    let is_frame = |line: &str| {
        let line = line.trim_start();
        line.starts_with("at ")
            && (line.contains(".js:") || line.contains(".ts:") || line.contains(".mjs:") || line.contains("node:") || line.contains(".tsx:"))
    };
    let frame = text.lines().position(is_frame)?;
    let lines: Vec<&str> = text.lines().collect();
    let error = lines[..frame].iter().rev().find(|line| line.contains("Error") || !line.trim().is_empty())?;
    let own = lines[frame..].iter().take_while(|line| is_frame(line)).find(|line| !line.contains("node:") && !line.contains("node_modules"));
    let place = own.unwrap_or(&lines[frame]).rsplit(['(', ' ']).next().map(|place| place.trim_end_matches(')').to_owned());
    Some((error.trim().to_owned(), place))
}

/// Lines that start with a time or a level.
pub(super) fn log(text: &Text<'_, '_>) -> Option<Finding<'static>> {
    let mut total = 0;
    let mut stamped = 0;
    let mut levels: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut first_error: Option<&str> = None;
    for line in text.lines() {
        if line.trim().is_empty() {
            continue;
        }
        total += 1;
        let head = super::super::names::clip(line, 120);
        stamped += usize::from(has_time(head));
        for (level, words) in [
            ("error", ["ERROR", "error:", "level=error", "\"level\":\"error\"", "FATAL"]),
            ("warning", ["WARN", "warning:", "level=warn", "\"level\":\"warn", "WARNING"]),
        ] {
            if words.iter().any(|word| head.contains(word)) {
                *levels.entry(level).or_default() += 1;
                if level == "error" && first_error.is_none() {
                    first_error = Some(line.trim());
                }
                break;
            }
        }
    }
    if total < 3 || stamped * 2 < total {
        return None;
    }
    let counts: Vec<String> = levels.iter().map(|(level, count)| counted(*count, level)).collect();
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("").trim();
    let told = first_error.unwrap_or(last);
    let headline = format!("{}, {}: {told}", counted(total, "log line"), if counts.is_empty() { "no errors".to_owned() } else { some_of(&counts, 2) });
    let mut key_lines = pick_lines(text.body, |line| ["ERROR", "level=error", "FATAL", "error:"].iter().any(|word| line.contains(word)));
    key_lines.push(last.to_owned());
    Some(finding("log", headline, key_lines, !levels.is_empty() && levels.contains_key("error")))
}

/// Returns whether `head` holds a clock time (`12:34:56`) within it.
fn has_time(head: &str) -> bool {
    let bytes = head.as_bytes();
    bytes.len() >= 8
        && (0..bytes.len() - 7).take(60).any(|at| {
            let digit = |offset: usize| bytes[at + offset].is_ascii_digit();
            digit(0) && digit(1) && bytes[at + 2] == b':' && digit(3) && digit(4) && bytes[at + 5] == b':' && digit(6) && digit(7)
        })
}
