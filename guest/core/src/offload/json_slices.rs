//! Cuts a JSON array into the texts of its elements without parsing them.
//!
//! A list of 1.6 MB is cut in a millisecond, so that messages which were measured before are found
//! by their bytes. What is cut is not yet known to be JSON; whoever parses an element finds out.

/// Returns the texts of the elements of the array `json`, or `None` if it is no array.
pub fn elements(json: &str) -> Option<Vec<&str>> {
    let bytes = json.as_bytes();
    let mut at = skip_blank(bytes, 0);
    if bytes.get(at) != Some(&b'[') {
        return None;
    }
    at = skip_blank(bytes, at + 1);
    let mut found = Vec::new();
    if bytes.get(at) == Some(&b']') {
        return (skip_blank(bytes, at + 1) == bytes.len()).then_some(found);
    }
    loop {
        let start = at;
        at = element_end(bytes, at)?;
        let text = json[start..at].trim_end();
        if text.is_empty() {
            return None;
        }
        found.push(text);
        match bytes.get(at)? {
            b',' => at = skip_blank(bytes, at + 1),
            b']' => return (skip_blank(bytes, at + 1) == bytes.len()).then_some(found),
            _ => return None,
        }
    }
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
        let cut: Vec<serde_json::Value> = elements(json).expect("an array").iter().map(|text| serde_json::from_str(text).expect("an element")).collect();
        assert_eq!(cut, parsed);
        assert_eq!(elements("[]"), Some(vec![]));
    }

    #[test]
    fn what_is_no_array_is_refused() {
        for json in ["", "{}", "[", "[1", "[1,", "[1,]", "[\"x]", "[{]", "[1] 2", "[}", "[\\"] {
            assert_eq!(elements(json), None, "{json}");
        }
    }
}
