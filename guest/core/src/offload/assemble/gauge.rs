//! Messages that were measured before: a list that goes on where the last one ended costs what is new of it.

use super::brief::Measured;
use crate::offload::json_slices::{common_bytes, elements};
use crate::offload::ledger::fingerprint;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Messages of earlier lists that are remembered beside twice the current list.
const SLACK_MESSAGES: usize = 256;

/// Messages that were measured before, by fingerprint of their bytes, and the last list.
#[derive(Debug, Default)]
pub struct Gauge {
    seen: BTreeMap<u64, Rc<Measured>>,
    last: Vec<u8>,
    /// Where the last list's messages end in it.
    ends: Vec<usize>,
    messages: Vec<Rc<Measured>>,
}

/// Why a list cannot be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoList {
    /// The text is no JSON array.
    NoArray,
    /// An element is not JSON.
    NoJson,
}

impl Gauge {
    /// Returns the messages of the JSON array `json`, and how many of them the last list began with too.
    pub fn measure_list(&mut self, json: &str) -> Result<(Vec<Rc<Measured>>, usize), NoList> {
        let bytes = json.as_bytes();
        let common = common_bytes(&self.last, bytes);
        let is_whole = |end: &&usize| **end <= common && bytes.get(**end).is_some_and(|byte| matches!(byte, b',' | b']') || byte.is_ascii_whitespace());
        let same = self.ends.iter().take_while(is_whole).count();
        let resume = same.checked_sub(1).map_or(0, |at| self.ends[at]);
        let found = elements(json, resume).ok_or(NoList::NoArray)?;
        // What is kept of the last list stays true if a message below is refused.
        self.ends.truncate(same);
        self.messages.truncate(same);
        self.last.truncate(resume);
        for range in found {
            let message = self.measure(&json[range.clone()]).ok_or(NoList::NoJson)?;
            self.messages.push(message);
            self.ends.push(range.end);
        }
        self.last.extend_from_slice(&bytes[resume..]);
        self.forget();
        Ok((self.messages.clone(), same))
    }

    /// Returns the measured form of a message given as JSON text, or `None` if it is not JSON.
    pub fn measure(&mut self, json: &str) -> Option<Rc<Measured>> {
        let print = fingerprint(json);
        if let Some(known) = self.seen.get(&print)
            && known.json == json
        {
            return Some(Rc::clone(known));
        }
        let measured = Rc::new(Measured::new(json.to_owned())?);
        self.seen.insert(print, Rc::clone(&measured));
        Some(measured)
    }

    /// Forgets messages that are not in the last list once there are many of them.
    fn forget(&mut self) {
        if self.seen.len() <= self.messages.len() * 2 + SLACK_MESSAGES {
            return;
        }
        self.seen = self.messages.iter().map(|message| (fingerprint(&message.json), Rc::clone(message))).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(gauge: &mut Gauge, json: &str) -> Result<(Vec<String>, usize), NoList> {
        gauge.measure_list(json).map(|(messages, same)| (messages.iter().map(|message| message.json.clone()).collect(), same))
    }

    #[test]
    fn a_list_is_read_alike_whatever_came_before() {
        let lists = [
            "[]",
            r#"[{"role":"user","content":"a"}]"#,
            r#"[{"role":"user","content":"a"},{"role":"user","content":"b"}]"#,
            r#"[{"role":"user","content":"a"} , {"role":"user","content":"b"},1]"#,
            r#"[{"role":"user","content":"a"},{"role":"user","content":"b"},12, 1]"#,
            r#"[{"role":"user","content":"a"},{"role":"user","content":"b"},12]"#,
            r#"[{"role":"user","content":"b"}]"#,
            "[1]",
            "[12]",
            "[1,2]",
        ];
        let mut gauge = Gauge::default();
        for first in lists {
            for second in lists {
                for list in [first, second] {
                    let alone = texts(&mut Gauge::default(), list).expect("a list").0;
                    assert_eq!(texts(&mut gauge, list).expect("a list").0, alone, "{list}");
                }
            }
        }
        assert_eq!(texts(&mut gauge, "[1,2,3]").expect("a list").1, 2);
    }

    #[test]
    fn a_refused_list_leaves_the_gauge_whole() {
        let mut gauge = Gauge::default();
        assert_eq!(texts(&mut gauge, r#"[1,2,3]"#).expect("a list").1, 0);
        assert_eq!(texts(&mut gauge, r#"[1,2,oops,4]"#), Err(NoList::NoJson));
        assert_eq!(texts(&mut gauge, r#"[1,2"#), Err(NoList::NoArray));
        assert_eq!(texts(&mut gauge, r#"[1,2,3]"#).expect("a list").0, ["1", "2", "3"]);
    }
}
