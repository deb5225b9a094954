//! Cleaning: what hosts and memory had wrapped around a message is taken off, in a fixed order.
//!
//! The rules and their order are the reference system's. Each rule is anchored (to a line's start, a
//! closing mark, a time that parses), so that a text that only speaks of such marks keeps them.

use super::injected;

/// Shortest unbroken run that counts as base64 outside of a `data:` address. A SHA-512 in hex has
/// 128 characters and signed tokens have dots, so neither is touched.
const BASE64_RUN: usize = 512;

/// Headings of the blocks that OpenClaw puts before a message, each followed by `(untrusted …):`
/// and a fenced JSON object.
const ENVELOPES: &[&str] = &["Conversation info", "Sender", "Thread starter", "Replied message", "Forwarded message context", "Chat history since last reply"];

/// Longest mark such as `[media attached: …]`, in bytes.
const LONGEST_MARK: usize = 4096;

/// Longest JSON block of an envelope, in bytes.
const LONGEST_ENVELOPE: usize = 64 << 10;

/// Taking a mark off may bring another to a line's start; after so many rounds what is left stays.
const MAX_ROUNDS: usize = 8;

/// Returns the text as it was said. Pure; cleaning twice is cleaning once.
pub fn clean(text: &str) -> String {
    let mut cleaned = once(text);
    for _ in 1..MAX_ROUNDS {
        let again = once(&cleaned);
        if again == cleaned {
            break;
        }
        cleaned = again;
    }
    cleaned
}

fn once(text: &str) -> String {
    let mut text = injected::strip(text);
    text = without_envelopes(&text);
    text = without_legacy_header(&text);
    text = without_marks(&text, "[[reply_to", "]]");
    text = without_marks(&text, "¥¥[", "]¥¥");
    text = without_line_stamps(&text);
    text = without_marks(&text, "[media attached:", "]");
    text = without_marks(&text, "To send an image back,", "Keep caption in the text body.");
    text = without_system_lines(&text);
    text = without_base64(&text);
    text.retain(|c| c != '\0');
    collapse_blank_lines(&text).trim().to_owned()
}

/// Removes `Sender (untrusted metadata):` and its JSON block.
fn without_envelopes(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let at_line_start = kept.is_empty() || kept.ends_with('\n');
        if at_line_start && let Some(after) = envelope(rest) {
            rest = after.trim_start_matches(['\n', '\r']);
            continue;
        }
        match rest.find('\n') {
            Some(end) => {
                kept.push_str(&rest[..=end]);
                rest = &rest[end + 1..];
            }
            None => {
                kept.push_str(rest);
                return kept;
            }
        }
    }
}

/// Returns what follows an envelope that `text` begins with.
fn envelope(text: &str) -> Option<&str> {
    let heading = ENVELOPES.iter().find(|heading| text.starts_with(**heading))?;
    let line_end = text.find('\n')?;
    let line = text[heading.len()..line_end].trim();
    if !(line.starts_with("(untrusted") && line.ends_with("):")) {
        return None;
    }
    fenced_json(&text[line_end + 1..])
}

/// Returns what follows a fenced JSON block that `text` begins with.
fn fenced_json(text: &str) -> Option<&str> {
    let body = text.strip_prefix("```json")?;
    let end = head(body, LONGEST_ENVELOPE).find("\n```")?;
    let after = &body[end + 4..];
    // The fence must be alone on its line, else the block goes on.
    let line = after.lines().next().unwrap_or_default();
    line.trim().is_empty().then(|| &after[line.len()..])
}

/// Removes the JSON header of old hosts: a fenced object that tells of the session, before the text.
fn without_legacy_header(text: &str) -> String {
    if let Some(after) = fenced_json(text) {
        let header = &text[..text.len() - after.len()];
        let first_key = header.trim_start_matches("```json").trim_start().trim_start_matches('{').trim_start();
        // A message that is nothing but such a block is somebody's JSON, not a header.
        if first_key.starts_with("\"session") && !after.trim().is_empty() {
            return after.trim_start().to_owned();
        }
    }
    text.to_owned()
}

/// Returns the first `bytes` of a text, to a whole character.
fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Removes every `open … close` that is on one line.
fn without_marks(text: &str, open: &str, close: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(open) {
        let body = &rest[start + open.len()..];
        kept.push_str(&rest[..start]);
        let line = head(body, LONGEST_MARK).split('\n').next().unwrap_or_default();
        match line.find(close) {
            Some(end) => rest = &body[end + close.len()..],
            None => {
                kept.push_str(open);
                rest = body;
            }
        }
    }
    kept.push_str(rest);
    kept
}

/// Removes `[Tue 2026-03-24 03:48 UTC]` from the start of lines.
fn without_line_stamps(text: &str) -> String {
    by_line(text, |line| {
        let stamp_end = line.strip_prefix('[').and_then(|inside| inside.find(']'));
        match stamp_end {
            Some(end) if is_stamp(&line[1..=end]) => Some(line[end + 2..].trim_start_matches(' ').to_owned()),
            _ => None,
        }
    })
}

/// Returns whether `text` is `Tue 2026-03-24 03:48 UTC`, or the same without the zone.
fn is_stamp(text: &str) -> bool {
    let mut parts = text.split(' ');
    let day = parts.next().is_some_and(|day| ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].contains(&day));
    day && parts.next().is_some_and(|date| is_digits_at(date, &[4, 2, 2], '-')) && parts.next().is_some_and(is_clock) && parts.count() <= 1
}

fn is_clock(text: &str) -> bool {
    is_digits_at(text, &[2, 2], ':') || is_digits_at(text, &[2, 2, 2], ':')
}

fn is_digits_at(text: &str, widths: &[usize], separator: char) -> bool {
    let parts: Vec<&str> = text.split(separator).collect();
    parts.len() == widths.len() && parts.iter().zip(widths).all(|(part, width)| part.len() == *width && part.bytes().all(|b| b.is_ascii_digit()))
}

/// Removes lines like `System: [2026-03-24 03:48:00 UTC] Node connected`.
fn without_system_lines(text: &str) -> String {
    by_line(text, |line| {
        let inside = line.strip_prefix("System: [")?;
        let stamp = &inside[..inside.find(']')?];
        let dated = is_stamp(stamp) || stamp.split(' ').next().is_some_and(|date| is_digits_at(date.get(..10).unwrap_or(date), &[4, 2, 2], '-'));
        dated.then(String::new)
    })
}

/// Replaces lines by what `change` returns for them.
fn by_line(text: &str, change: impl Fn(&str) -> Option<String>) -> String {
    let mut kept = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let body = line.trim_end_matches(['\n', '\r']);
        match change(body) {
            Some(changed) => {
                kept.push_str(&changed);
                kept.push_str(&line[body.len()..]);
            }
            None => kept.push_str(line),
        }
    }
    kept
}

/// Replaces encoded data by `[image]` or `[base64]`.
fn without_base64(text: &str) -> String {
    const MARK: &str = ";base64,";
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(mark) = rest.find(MARK) {
        let data = &rest[mark + MARK.len()..];
        let length = base64_length(data);
        match data_address(&rest[..mark]) {
            Some(start) if length > 0 => {
                kept.push_str(&runs_out(&rest[..start]));
                kept.push_str(if rest[start..mark].starts_with("data:image") { "[image]" } else { "[base64]" });
            }
            _ => kept.push_str(&runs_out(&rest[..mark + MARK.len() + length])),
        }
        rest = &data[length..];
    }
    kept.push_str(&runs_out(rest));
    kept
}

/// Returns where `data:type/subtype` starts, if `text` ends with it.
fn data_address(text: &str) -> Option<usize> {
    let start = text.rfind("data:")?;
    text[start..].bytes().all(|b| b.is_ascii_alphanumeric() || b"/:+-.;=".contains(&b)).then_some(start)
}

fn base64_length(text: &str) -> usize {
    text.bytes().take_while(|b| b.is_ascii_alphanumeric() || b"+/=-_".contains(b)).count()
}

/// Replaces long unbroken runs of base64.
fn runs_out(text: &str) -> String {
    if text.len() < BASE64_RUN {
        return text.to_owned();
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let plain = rest.bytes().take_while(|b| !b.is_ascii_alphanumeric()).count();
        let run = rest[plain..].bytes().take_while(|b| b.is_ascii_alphanumeric() || b"+/=".contains(b)).count();
        kept.push_str(&rest[..plain]);
        let body = &rest[plain..plain + run];
        let encoded = run >= BASE64_RUN
            && body.bytes().any(|b| b.is_ascii_uppercase())
            && body.bytes().any(|b| b.is_ascii_lowercase())
            && body.bytes().any(|b| b.is_ascii_digit());
        kept.push_str(if encoded { "[base64]" } else { body });
        rest = &rest[plain + run..];
    }
    kept
}

/// Leaves at most one blank line in a row.
fn collapse_blank_lines(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut breaks = 0;
    for c in text.chars() {
        breaks = if c == '\n' { breaks + 1 } else { 0 };
        if breaks <= 2 {
            kept.push(c);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_must_go() {
        let data = "iVBORw0KGgo".repeat(60);
        for (dirty, said) in [
            (
                "Conversation info (untrusted metadata):\n```json\n{\"id\": 1}\n```\n\nSender (untrusted metadata):\n```json\n{\"name\": \"x\"}\n```\n\nHello",
                "Hello",
            ),
            ("```json\n{\"session_id\": \"x\"}\n```\nHello", "Hello"),
            ("[[reply_to_current]] Sure.", "Sure."),
            ("¥¥[meta]¥¥Hi", "Hi"),
            ("[Tue 2026-03-24 03:48 UTC] Good morning", "Good morning"),
            ("[Tue 2026-03-24 03:48] a\n[Wed 2026-03-25 03:48 GMT+8] b", "a\nb"),
            ("[media attached: /tmp/a.png (image/png)] Look", "Look"),
            ("Look. To send an image back, use MEDIA:… Keep caption in the text body.", "Look."),
            ("System: [2026-03-24 03:48:00 UTC] Node connected\n\nHi", "Hi"),
            ("a\0b", "ab"),
            ("a\n\n\n\nb", "a\n\nb"),
            ("see data:image/png;base64,iVBORw0KGgoAAA== there", "see [image] there"),
        ] {
            assert_eq!(clean(dirty), said, "{dirty}");
        }
        assert_eq!(clean(&format!("key: {data} end")), "key: [base64] end");
    }

    #[test]
    fn what_must_stay() {
        let hex = "0123456789abcdef".repeat(40);
        for text in [
            "Sender (untrusted metadata) is a heading that OpenClaw writes",
            "Sender (untrusted metadata):\nno fence here, so all of it stays",
            "Sender (untrusted metadata):\n```json\n{\"never\": \"closed\"}",
            "Conversation information is missing",
            "```json\n{\"session\": 1}\n```",
            "Please fix:\n```json\n{\"session\": 1}\n```\nIt fails.",
            "[Tuesday] we meet at 9",
            "see [Tue 2026-03-24 03:48 UTC] in the log",
            "The mark [[reply_to is never closed",
            "System: [error] this is my own log format",
            "if [[ -f x ]]; then",
            "the ;base64, part of a data address",
            "data: image; base64 is an encoding",
            hex.as_str(),
        ] {
            assert_eq!(clean(text), text);
        }
    }

    proptest! {
        #[test]
        fn cleaning_twice_is_cleaning_once(parts in proptest::collection::vec(0usize..18, 0..30)) {
            let pieces = [
                "<relevant-memories>\n", "</relevant-memories>", "Sender (untrusted metadata):\n", "```json\n{\"session\": 1}\n```\n", "[[reply_to", "]]", "¥¥[", "]¥¥",
                "[Tue 2026-03-24 03:48 UTC] ", "[media attached: x]", "System: [2026-03-24] x\n", "data:image/png;base64,AAAA", "\0", "\n", " ", "words ", "]", "[",
            ];
            let text: String = parts.iter().map(|part| pieces[*part]).collect();
            let once = clean(&text);
            prop_assert_eq!(clean(&once), once);
        }

        #[test]
        fn plain_words_stay(text in "[a-zA-Z0-9,.!? ]{0,200}") {
            prop_assert_eq!(clean(&text), text.trim());
        }
    }
}
