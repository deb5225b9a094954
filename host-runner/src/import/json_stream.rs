//! The elements of a large JSON array one at a time, so that an export of gigabytes needs the memory of one conversation.

use super::{Outcome, Problem, Sink, Source};
use anyhow::Result;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// Gives `each` the elements of the file's array: the file itself, or the members `members` of its object. A file that
/// is one object without these members is itself the one element. What `each` cannot read is reported with the line on
/// which it ends, and skipped. JSON that breaks off is reported too; the elements before it are kept. `each` also gets the
/// members that stand before the array in its object.
pub(crate) fn elements(source: &mut Source, sink: &mut dyn Sink, members: &[&str], each: &mut Each<'_>) -> Result<()> {
    let name = source.name.clone();
    let position = source.position.clone();
    let mut take = |before: &Members, value| match each(sink, before, value) {
        Ok(taken) => taken,
        Err(reason) => {
            sink.problem(Problem { file: name.clone(), line: position.newlines.get() + 1, reason });
            Ok(())
        }
    };
    let mut refused = None;
    let mut reader = serde_json::Deserializer::from_reader(&mut *source);
    let read = Walk { members, before: &Members::new(), take: &mut take, refused: &mut refused }.deserialize(&mut reader).and_then(|()| reader.end());
    if let Some(error) = refused {
        return Err(error);
    }
    if let Err(error) = read {
        sink.problem(source.problem(error.line() as u64, format!("{error}; what stands before this place was read")));
    }
    Ok(())
}

/// Members of an object.
pub(crate) type Members = serde_json::Map<String, Value>;

/// What is done with an element.
pub(crate) type Each<'a> = dyn FnMut(&mut dyn Sink, &Members, Value) -> Outcome + 'a;

/// The file's top level.
struct Walk<'a> {
    members: &'a [&'a str],
    before: &'a Members,
    take: &'a mut dyn FnMut(&Members, Value) -> Result<()>,
    /// Why the sink stopped the walk; JSON errors are the other way to end.
    refused: &'a mut Option<anyhow::Error>,
}

impl Walk<'_> {
    fn take<E: Error>(&mut self, value: Value) -> std::result::Result<(), E> {
        (self.take)(self.before, value).map_err(|error| {
            *self.refused = Some(error);
            E::custom("stopped")
        })
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON array or object")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut array: A) -> std::result::Result<(), A::Error> {
        while let Some(value) = array.next_element()? {
            self.take(value)?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut object: A) -> std::result::Result<(), A::Error> {
        let mut whole = Members::new();
        let mut found = false;
        while let Some(key) = object.next_key::<String>()? {
            if self.members.contains(&key.as_str()) {
                found = true;
                object.next_value_seed(Walk { members: &[], before: &whole, take: &mut *self.take, refused: &mut *self.refused })?;
            } else if found {
                object.next_value::<IgnoredAny>()?;
            } else {
                whole.insert(key, object.next_value()?);
            }
        }
        if found { Ok(()) } else { self.take(Value::Object(whole)) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::recorder::Recorder;
    use super::*;

    fn walk(text: &str, members: &[&str]) -> (Vec<String>, Vec<Problem>) {
        let mut seen = Vec::new();
        let mut sink = Recorder::default();
        elements(&mut Source::of_text("a.json", text), &mut sink, members, &mut |_, before, value| {
            if let Some(x) = before.get("x").filter(|_| !members.is_empty()) {
                seen.push(format!("x={x}"));
            }
            if value == "bad" {
                return Err("bad one".into());
            }
            seen.push(value.to_string());
            Ok(Ok(()))
        })
        .expect("the sink takes everything");
        (seen, sink.problems)
    }

    #[test]
    fn arrays_members_and_single_objects() {
        assert_eq!(walk("[1, 2]", &[]).0, ["1", "2"]);
        assert_eq!(walk(r#"{"y": {"y": [9]}, "list": [1, 2], "z": 3}"#, &["list"]).0, ["1", "2"]);
        assert_eq!(walk(r#"{"x": 7, "list": [1], "z": 3}"#, &["list"]).0, ["x=7", "1"]);
        assert_eq!(walk(r#"{"x": 1, "z": [2]}"#, &["list"]).0, [r#"{"x":1,"z":[2]}"#]);
    }

    #[test]
    fn a_bad_element_is_skipped_and_named_by_line() {
        let (seen, problems) = walk("[\n1,\n\"bad\",\n2]", &[]);
        assert_eq!(seen, ["1", "2"]);
        assert_eq!(problems, [Problem { file: "a.json".into(), line: 3, reason: "bad one".into() }]);
    }

    #[test]
    fn json_that_breaks_off_keeps_what_was_whole() {
        let (seen, problems) = walk("[\n1,\n2,\n{\"a\":", &[]);
        assert_eq!(seen, ["1", "2"]);
        assert_eq!((problems.len(), problems[0].line), (1, 4));
        assert!(problems[0].reason.contains("EOF"), "{}", problems[0].reason);
    }
}
