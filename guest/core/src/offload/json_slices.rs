//! Cuts a JSON array into the texts of its elements without parsing them.
//!
//! A list of 1.6 MB is cut in a millisecond, so that messages which were measured before are found
//! by their bytes, and a list that goes on where the last one ended is cut from there. What is cut is not yet known to be JSON; whoever parses an element finds out.

use std::ops::Range;

/// Returns where the elements of the array `json` stand, or `None` if it is no array. `resume` is 0, or the end of an
/// element before which everything is known: then only the elements behind it are returned.
pub fn elements(json: &str, resume: usize) -> Option<Vec<Range<usize>>> {
    let bytes = json.as_bytes();
    let mut found = Vec::new();
    let ends_at = |at: usize| skip_blank(bytes, at + 1) == bytes.len();
    let mut at = skip_blank(bytes, resume);
    match (resume, bytes.get(at)?) {
        (0, b'[') => {
            at = skip_blank(bytes, at + 1);
            if bytes.get(at) == Some(&b']') {
                return ends_at(at).then_some(found);
            }
        }
        (1.., b',') => at = skip_blank(bytes, at + 1),
        (1.., b']') => return ends_at(at).then_some(found),
        _ => return None,
    }
    loop {
        let start = at;
        at = element_end(bytes, at)?;
        let length = json[start..at].trim_end().len();
        if length == 0 {
            return None;
        }
        found.push(start..start + length);
        match bytes.get(at)? {
            b',' => at = skip_blank(bytes, at + 1),
            b']' => return ends_at(at).then_some(found),
            _ => return None,
        }
    }
}

/// Returns how many bytes two texts have in common at their beginning.
pub fn common_bytes(one: &[u8], other: &[u8]) -> usize {
    const STRIDE: usize = 16;
    let strides = one.as_chunks::<STRIDE>().0.iter().zip(other.as_chunks::<STRIDE>().0);
    let whole = strides.take_while(|(a, b)| u128::from_le_bytes(**a) == u128::from_le_bytes(**b)).count() * STRIDE;
    whole + one[whole..].iter().zip(&other[whole..]).take_while(|(a, b)| a == b).count()
}

fn skip_blank(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// Returns where the element at `at` ends: at the comma or bracket behind it.
fn element_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_u32;
    loop {
        match bytes.get(at)? {
            b'"' => at = string_end(bytes, at + 1)?,
            b'{' | b'[' => depth += 1,
            b',' if depth == 0 => return Some(at),
            b']' if depth == 0 => return Some(at),
            b'}' | b']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += 1;
    }
}

/// Returns where the string that began before `at` has its closing quote.
fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        // Eight bytes at a time while none of them is a quote or a backslash.
        while let Some(chunk) = bytes.get(at..at + 8) {
            let word = u64::from_le_bytes(chunk.try_into().expect("the slice has eight bytes"));
            if has_byte(word, b'"') || has_byte(word, b'\\') {
                break;
            }
            at += 8;
        }
        match bytes.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Returns whether one of the eight bytes of `word` is `byte`.
fn has_byte(word: u64, byte: u8) -> bool {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let zeroed = word ^ (LOW * u64::from(byte));
    zeroed.wrapping_sub(LOW) & !zeroed & HIGH != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_cut_where_a_parser_cuts_them() {
        let json = r#" [ {"a":"x,]}\" \\","b":[1,{"c":"[\\\""}]} , "plain, \"text\" that is long enough for chunks" ,[], 12.5 ,null ] "#;
        let parsed: Vec<serde_json::Value> = serde_json::from_str(json).expect("the test's JSON");
        let ranges = elements(json, 0).expect("an array");
        let cut: Vec<serde_json::Value> = ranges.iter().map(|range| serde_json::from_str(&json[range.clone()]).expect("an element")).collect();
        assert_eq!(cut, parsed);
        for (at, range) in ranges.iter().enumerate() {
            assert_eq!(elements(json, range.end).as_deref(), Some(&ranges[at + 1..]), "resumed behind element {at}");
        }
        assert_eq!(elements("[]", 0), Some(vec![]));
    }

    #[test]
    fn what_is_no_array_is_refused() {
        for json in ["", "{}", "[", "[1", "[1,", "[1,]", "[\"x]", "[{]", "[1] 2", "[}", "[\\"] {
            assert_eq!(elements(json, 0), None, "{json}");
        }
    }

    #[test]
    fn common_bytes_are_counted_to_the_byte() {
        let text = "0123456789abcdef0123456789abcdef!";
        for at in 0..text.len() {
            let mut other = text.as_bytes().to_vec();
            other[at] = b'-';
            assert_eq!(common_bytes(text.as_bytes(), &other), at);
            assert_eq!(common_bytes(text.as_bytes(), &text.as_bytes()[..at]), at);
        }
    }
}
