//! The names in a text that a later tool call may need: paths, ids, addresses, identifiers.

use std::collections::BTreeMap;

/// What a name looks like. The order is the order of worth at equal use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameClass {
    /// A name of code.
    Identifier,
    /// A number of four digits or more.
    Number,
    /// An address with a scheme.
    Url,
    /// A hash, a ticket, a pod: letters and digits that no one would guess.
    Id,
    /// A file or directory.
    Path,
    /// A name that the text defines (`fn name`, `class Name`).
    Definition,
}

/// A name with how often it occurs and where first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// The name as written.
    pub text: &'a str,
    /// What it looks like.
    pub class: NameClass,
    /// How often it occurs.
    pub count: u32,
    /// Byte offset of its first occurrence.
    pub first_at: usize,
}

/// Shorter words are told from prose too rarely to be worth their tokens.
const NAME_MIN_CHARS: usize = 4;
const NAME_MAX_CHARS: usize = 120;
/// Of longer texts the head and the tail are looked at, which bounds the work per result.
const SCANNED_HEAD_BYTES: usize = 24 * 1024;
const SCANNED_TAIL_BYTES: usize = 8 * 1024;

/// Returns the distinct names of `text` in order of first occurrence.
pub fn names(text: &str) -> Vec<Name<'_>> {
    let mut found: BTreeMap<&str, Name<'_>> = BTreeMap::new();
    let head = clip(text, SCANNED_HEAD_BYTES);
    scan(head, 0, &mut found);
    if text.len() > SCANNED_HEAD_BYTES {
        let mut start = (text.len() - SCANNED_TAIL_BYTES.min(text.len() - head.len())).max(head.len());
        while !text.is_char_boundary(start) {
            start += 1;
        }
        scan(&text[start..], start, &mut found);
    }
    let mut all: Vec<Name<'_>> = found.into_values().collect();
    all.sort_by_key(|name| name.first_at);
    all
}

/// Returns the longest prefix of `text` that is at most `bytes` long and ends between characters.
pub fn clip(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn scan<'a>(text: &'a str, offset: usize, found: &mut BTreeMap<&'a str, Name<'a>>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut defines = false;
    while at < bytes.len() {
        if !is_name_byte(bytes[at]) {
            if bytes[at] == b'\n' || bytes[at] == b'=' || bytes[at] == b'{' {
                defines = false;
            }
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && is_name_byte(bytes[at]) {
            at += 1;
        }
        let word = trim(&text[start..at]);
        if word.len() < NAME_MIN_CHARS || word.len() > NAME_MAX_CHARS {
            defines = is_definer(word);
            continue;
        }
        let class = if defines && !word.contains('/') { Some(NameClass::Definition) } else { classify(word) };
        defines = is_definer(word);
        let Some(class) = class else { continue };
        found
            .entry(word)
            .and_modify(|name| {
                name.count += 1;
                name.class = name.class.max(class);
            })
            .or_insert(Name { text: word, class, count: 1, first_at: offset + start });
    }
}

fn is_definer(word: &str) -> bool {
    matches!(
        word,
        "fn" | "def"
            | "class"
            | "struct"
            | "enum"
            | "trait"
            | "func"
            | "function"
            | "interface"
            | "type"
            | "impl"
            | "module"
            | "package"
            | "const"
            | "CREATE"
            | "TABLE"
    )
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/' | b':' | b'@' | b'-' | b'#' | b'~' | b'+' | b'%' | b'?' | b'&' | b'=') && byte != b'='
}

fn trim(word: &str) -> &str {
    let word = word.trim_end_matches(['.', ':', '-', '/', '#', '@', '?', '&', '+', '%']);
    word.trim_start_matches([':', '-', '.', '#', '@', '+', '?', '&', '%'])
}

/// Returns the class of `word`, or `None` for plain words and small numbers.
pub fn classify(word: &str) -> Option<NameClass> {
    let bytes = word.as_bytes();
    let mut digits = 0;
    let mut letters = 0;
    let mut hex = true;
    let (mut slash, mut dot, mut underscore, mut dash, mut hump, mut colon) = (false, false, false, false, false, false);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' => digits += 1,
            b'a'..=b'z' | b'A'..=b'Z' => {
                letters += 1;
                hex &= byte.is_ascii_hexdigit();
                hump |= at > 0 && byte.is_ascii_uppercase() && bytes[at - 1].is_ascii_lowercase();
            }
            b'/' => slash = true,
            b'.' => dot = true,
            b'_' => underscore = true,
            b'-' => dash = true,
            b':' => colon = true,
            _ => {}
        }
    }
    if word.contains("://") {
        return Some(NameClass::Url);
    }
    if letters == 0 {
        return (digits >= 4).then_some(NameClass::Number);
    }
    if slash {
        return (letters > 2).then_some(NameClass::Path);
    }
    let plain = !dot && !underscore && !colon;
    if hex && plain && digits > 0 && bytes.len() >= 7 {
        return Some(NameClass::Id);
    }
    if digits > 0 && (dash || underscore) && plain | underscore {
        return Some(NameClass::Id);
    }
    if dot && has_file_extension(word) {
        return Some(NameClass::Path);
    }
    if underscore || hump || (dot && letters > 3) || (colon && word.contains("::")) {
        return Some(NameClass::Identifier);
    }
    if digits > 0 && letters > 1 && bytes.len() >= 5 {
        return Some(NameClass::Id);
    }
    if dash && letters > 5 {
        return Some(NameClass::Identifier);
    }
    None
}

/// Returns whether `word` ends like a file, with a line number allowed behind it.
pub fn has_file_extension(word: &str) -> bool {
    let stem = word.split(':').next().unwrap_or(word);
    let Some((before, extension)) = stem.rsplit_once('.') else { return false };
    !before.is_empty()
        && matches!(
            extension,
            "rs" | "go"
                | "py"
                | "js"
                | "ts"
                | "tsx"
                | "jsx"
                | "mjs"
                | "cjs"
                | "c"
                | "h"
                | "cc"
                | "cpp"
                | "hpp"
                | "java"
                | "kt"
                | "cs"
                | "rb"
                | "php"
                | "swift"
                | "sh"
                | "bash"
                | "sql"
                | "md"
                | "txt"
                | "json"
                | "jsonl"
                | "yaml"
                | "yml"
                | "toml"
                | "lock"
                | "xml"
                | "html"
                | "css"
                | "csv"
                | "log"
                | "proto"
                | "wit"
                | "wasm"
                | "mod"
                | "sum"
                | "cfg"
                | "ini"
                | "env"
                | "vue"
                | "svelte"
                | "ex"
                | "exs"
                | "scala"
                | "lua"
                | "zig"
                | "pony"
                | "tf"
                | "db"
                | "png"
                | "jpg"
                | "svg"
                | "pdf"
                | "diff"
                | "patch"
        )
}
