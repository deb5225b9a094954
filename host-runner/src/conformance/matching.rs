//! Whether a value is as a scenario expects it.

use serde_json::Value;

/// Returns nothing if `actual` matches, else where and how it differs.
pub(super) fn mismatch(expected: &Value, actual: &Value) -> Option<String> {
    differ(expected, actual, "$")
}

fn differ(expected: &Value, actual: &Value, place: &str) -> Option<String> {
    match expected {
        Value::Object(members) => {
            if let Some(difference) = by_rule(expected, actual, place) {
                return difference;
            }
            let Value::Object(found) = actual else { return Some(format!("{place}: expected an object, found {}", short(actual))) };
            members.iter().find_map(|(name, expected)| match found.get(name) {
                Some(actual) => differ(expected, actual, &format!("{place}.{name}")),
                None => Some(format!("{place}: there is no `{name}`")),
            })
        }
        Value::Array(items) => {
            let Value::Array(found) = actual else { return Some(format!("{place}: expected a list, found {}", short(actual))) };
            if items.len() != found.len() {
                return Some(format!("{place}: expected {} items, found {}: {}", items.len(), found.len(), short(actual)));
            }
            items.iter().zip(found).enumerate().find_map(|(index, (expected, actual))| differ(expected, actual, &format!("{place}[{index}]")))
        }
        _ => (expected != actual).then(|| format!("{place}: expected {}, found {}", short(expected), short(actual))),
    }
}

/// Returns the verdict of a rule (`{"$contains": …}`), or nothing if `expected` is none.
fn by_rule(expected: &Value, actual: &Value, place: &str) -> Option<Option<String>> {
    let rule = expected.as_object()?;
    let (name, argument) = rule.iter().next().filter(|(name, _)| rule.len() == 1 && name.starts_with('$'))?;
    let bad = || Some(format!("{place}: `{name}` does not take {}", short(argument)));
    Some(match (name.as_str(), argument) {
        ("$any", Value::Bool(true)) => None,
        ("$contains", Value::String(part)) => match actual.as_str() {
            Some(text) => (!text.contains(part.as_str())).then(|| format!("{place}: {} does not contain {part:?}", short(actual))),
            None => Some(format!("{place}: expected a text, found {}", short(actual))),
        },
        ("$not-contains", Value::String(part)) => match actual.as_str() {
            Some(text) => text.contains(part.as_str()).then(|| format!("{place}: {} contains {part:?}", short(actual))),
            None => Some(format!("{place}: expected a text, found {}", short(actual))),
        },
        ("$count", Value::Number(count)) => match actual.as_array() {
            Some(items) => (Some(items.len() as u64) != count.as_u64()).then(|| format!("{place}: expected {count} items, found {}", items.len())),
            None => Some(format!("{place}: expected a list, found {}", short(actual))),
        },
        ("$json", inner) => match actual.as_str().map(serde_json::from_str::<Value>) {
            Some(Ok(parsed)) => differ(inner, &parsed, &format!("{place} as JSON")),
            _ => Some(format!("{place}: expected a text that is JSON, found {}", short(actual))),
        },
        ("$all", Value::Array(all)) => all.iter().find_map(|each| differ(each, actual, place)),
        _ => bad(),
    })
}

fn short(value: &Value) -> String {
    /// Characters of a value that are shown in a difference.
    const SHOWN: usize = 400;
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_match_by_named_members_and_all_else_exactly() {
        assert_eq!(mismatch(&json!({"a": 1}), &json!({"a": 1, "b": 2})), None);
        assert!(mismatch(&json!({"a": 1}), &json!({"b": 2})).is_some());
        assert!(mismatch(&json!([1]), &json!([1, 2])).is_some());
        assert_eq!(mismatch(&json!([{"a": 1}]), &json!([{"a": 1, "b": 2}])), None);
        assert!(mismatch(&json!("a"), &json!("ab")).is_some());
    }

    #[test]
    fn rules_hold_and_fail() {
        for (rule, good, bad) in [
            (json!({"$contains": "b"}), json!("abc"), json!("ac")),
            (json!({"$not-contains": "b"}), json!("ac"), json!("abc")),
            (json!({"$count": 2}), json!([1, 2]), json!([1])),
            (json!({"$json": {"a": 1}}), json!("{\"a\":1,\"b\":2}"), json!("{\"a\":2}")),
            (json!({"$all": [{"$contains": "a"}, {"$not-contains": "b"}]}), json!("a"), json!("ab")),
        ] {
            assert_eq!(mismatch(&rule, &good), None, "{rule}");
            assert!(mismatch(&rule, &bad).is_some(), "{rule}");
        }
        assert_eq!(mismatch(&json!({"$any": true}), &Value::Null), None);
    }

    #[test]
    fn an_unknown_rule_and_a_text_rule_on_no_text_fail() {
        assert!(mismatch(&json!({"$like": "a"}), &json!("a")).is_some());
        assert!(mismatch(&json!({"$not-contains": "a"}), &Value::Null).is_some());
    }
}
