//! What is known of every tool call of a session: the offload entries.

use super::summary::command::{Command, Intent, command};
use super::summary::names::{NameClass, names};
use super::summary::{digest, summarize};
use serde_json::Value;
use std::collections::BTreeMap;

/// One tool call with its result, as the offload log keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Position in the session, from 0, in the order of delivery.
    pub ordinal: u32,
    /// The host's id of the call.
    pub call_id: String,
    /// Fingerprint of the result, which tells apart results of a reused call id.
    pub result_print: u64,
    /// Bytes of the result.
    pub result_bytes: u64,
    /// The node it is on. A corrected boundary moves it.
    pub node_id: String,
    /// The node that it was put on first, which placeholders name for good.
    pub placed_node: String,
    /// Public id, `o_<16 hex>`.
    pub uid: String,
    /// The tool's name.
    pub tool: String,
    /// When the result arrived, in milliseconds since 1970.
    pub at_ms: i64,
    /// The call on one line.
    pub call_line: String,
    /// What kind of step it was.
    pub intent: Intent,
    /// What the call was aimed at, if anything.
    pub target: Option<String>,
    /// Path of the stored result, relative to the data directory.
    pub result_ref: String,
    /// Path of the stored arguments, when they are large enough to be offloaded.
    pub arguments_ref: Option<String>,
    /// One line, conclusion first.
    pub summary: String,
    /// The summary that a context showed first; placeholders keep it whatever a model says later.
    pub shown: Option<String>,
    /// Telling lines and names of the result, for its placeholder.
    pub digest: String,
    /// The result reports a failure.
    pub failed: bool,
    /// Replaceability, 0 to 10.
    pub score: u8,
    /// Names that the call itself used, which later calls are likely to use again.
    pub names_used: Vec<String>,
}

impl Entry {
    /// Returns the number of the task that the call is on.
    pub fn task(&self) -> Option<u32> {
        self.node_id.split('-').next()?.parse().ok()
    }
}

/// The entries of one session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    entries: Vec<Entry>,
    by_call: BTreeMap<String, Vec<u32>>,
}

/// Results below this many characters get no digest: their summary is enough or they stay whole.
const DIGEST_FROM_CHARS: usize = 600;
/// A digest takes at most this share of the result's characters ...
const DIGEST_SHARE: usize = 10;
/// ... and at most this many characters.
pub const DIGEST_MAX_CHARS: usize = 700;
/// Names kept of one call's arguments.
const NAMES_USED_MAX: usize = 12;

/// What the rules find out about one call and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The call.
    pub command: Command,
    /// One line, conclusion first.
    pub summary: String,
    /// Telling lines and names.
    pub digest: String,
    /// The result reports a failure.
    pub failed: bool,
    /// Replaceability, 0 to 10.
    pub score: u8,
    /// Names that the call used.
    pub names_used: Vec<String>,
}

/// Returns what the rules find in a call and its result.
pub fn read(tool: &str, arguments: &str, result: &str, is_error: bool) -> Reading {
    let command = command(tool, arguments);
    let summary = summarize(&command, result, is_error);
    let room = if result.len() < DIGEST_FROM_CHARS { 0 } else { (result.len() / DIGEST_SHARE).min(DIGEST_MAX_CHARS) };
    let digest = if room == 0 { String::new() } else { digest(&command, result, is_error, room) };
    let spoken = spoken(arguments);
    let mut used: Vec<(u8, usize, String)> = names(&spoken)
        .into_iter()
        .filter(|name| matches!(name.class, NameClass::Path | NameClass::Id | NameClass::Identifier | NameClass::Url))
        .map(|name| {
            let worth = match name.class {
                NameClass::Path => 0,
                NameClass::Id => 1,
                NameClass::Url => 2,
                _ => 3,
            };
            (worth, name.first_at, name.text.to_owned())
        })
        .collect();
    used.sort();
    used.truncate(NAMES_USED_MAX);
    let names_used = used.into_iter().map(|(_, _, name)| name).collect();
    Reading { command, summary: summary.text, digest, failed: summary.failed, score: summary.replaceability, names_used }
}

fn bare_id(call_id: &str) -> String {
    call_id.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Returns the values of `arguments` without their keys, on lines. Text that is not JSON is returned
/// as it is.
fn spoken(arguments: &str) -> String {
    fn walk(value: &Value, out: &mut String) {
        match value {
            Value::String(text) => {
                out.push_str(text);
                out.push('\n');
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, out)),
            Value::Object(fields) => fields.values().for_each(|item| walk(item, out)),
            Value::Number(number) => {
                out.push_str(&number.to_string());
                out.push('\n');
            }
            Value::Bool(_) | Value::Null => {}
        }
    }
    let Ok(value) = serde_json::from_str::<Value>(arguments) else { return arguments.to_owned() };
    let mut out = String::new();
    // serde_json bounds the depth of what it parses.
    walk(&value, &mut out);
    out
}

impl Ledger {
    /// Adds an entry; its ordinal must be the next one.
    pub fn push(&mut self, entry: Entry) {
        self.by_call.entry(bare_id(&entry.call_id)).or_default().push(entry.ordinal);
        self.entries.push(entry);
    }

    /// Returns the entries in the order of delivery.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the entry of `call_id` whose result is the one with this length and fingerprint. Ids
    /// are compared without punctuation, which some hosts drop between turns (`call_x`, `callx`).
    pub fn find(&self, call_id: &str, result_bytes: u64, result_print: u64) -> Option<&Entry> {
        let ordinals = self.by_call.get(&bare_id(call_id))?;
        ordinals.iter().map(|ordinal| &self.entries[*ordinal as usize]).find(|entry| entry.result_bytes == result_bytes && entry.result_print == result_print)
    }
}

impl Ledger {
    /// Returns the entry of `call_id` that a placeholder naming `result_ref` stands for.
    pub fn find_ref(&self, call_id: &str, result_ref: &str) -> Option<&Entry> {
        let ordinals = self.by_call.get(&bare_id(call_id))?;
        ordinals.iter().map(|ordinal| &self.entries[*ordinal as usize]).find(|entry| entry.result_ref == result_ref)
    }

    /// Returns the entries for changing what a correction may change: nodes and summaries.
    pub fn entries_mut(&mut self) -> &mut [Entry] {
        &mut self.entries
    }
}

/// Returns a 64-bit fingerprint of `text`: not cryptographic, the same on every host.
pub fn fingerprint(text: &str) -> u64 {
    const K: u64 = 0x9E37_79B9_7F4A_7C15;
    let bytes = text.as_bytes();
    let mut hash = (bytes.len() as u64).wrapping_mul(K) ^ 0x51_7C_C1_B7_27_22_0A_95;
    let (words, rest) = bytes.as_chunks();
    for word in words {
        let word = u64::from_le_bytes(*word);
        let product = u128::from(hash ^ word) * u128::from(K);
        hash = (product as u64) ^ ((product >> 64) as u64);
    }
    let mut last = [0_u8; 8];
    last[..rest.len()].copy_from_slice(rest);
    let product = u128::from(hash ^ u64::from_le_bytes(last)) * u128::from(K);
    let folded = (product as u64) ^ ((product >> 64) as u64);
    folded ^ (folded >> 32)
}
