//! `lifecycle.config-schema`: what `open` takes, as JSON Schema 2020-12.
//!
//! Names, types and defaults come from the settings' own defaults, and the bounds of numbers from asking
//! the parser, so that the schema cannot say anything else than `open` does.

use super::{STRATEGIES, Settings};
use serde_json::{Map, Value, json};

/// Returns the schema; at the top, `default` holds all defaults.
pub fn schema() -> Value {
    let defaults = serde_json::to_value(Settings::default()).expect("settings serialize");
    let mut schema = object(&defaults, &mut Vec::new());
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema
}

fn object(defaults: &Value, path: &mut Vec<String>) -> Value {
    let mut properties = Map::new();
    for (name, default) in defaults.as_object().into_iter().flatten() {
        path.push(name.clone());
        properties.insert(name.clone(), property(default, path));
        path.pop();
    }
    json!({"type": "object", "additionalProperties": false, "properties": properties, "default": defaults})
}

fn property(default: &Value, path: &mut Vec<String>) -> Value {
    let name = path.join(".");
    let kind = match (name.as_str(), default) {
        ("holder", _) => json!({"type": ["object", "null"], "properties": {"id": {"type": "string"}}}),
        ("restoreIfDamaged", _) => json!({"type": ["string", "null"]}),
        ("recall.strategy", _) => json!({"enum": STRATEGIES}),
        (_, Value::Object(_)) => return object(default, path),
        (_, Value::Bool(_)) => json!({"type": "boolean"}),
        (_, Value::Array(_)) => json!({"type": "array", "items": {"type": "string"}}),
        (_, Value::Number(number)) if number.is_f64() => json!({"type": "number"}),
        (_, Value::Number(_)) => whole_number(path),
        (_, Value::String(_) | Value::Null) => json!({"type": "string"}),
    };
    let mut kind = kind;
    kind["default"] = default.clone();
    kind
}

fn whole_number(path: &[String]) -> Value {
    let beyond = u64::from(u32::MAX) + 1;
    let set = path.iter().rev().fold(json!(beyond), |inner, name| json!({ name: inner }));
    let mut kind = json!({"type": "integer", "minimum": 0});
    if Settings::parse(&set.to_string()).is_err() {
        kind["maximum"] = (beyond - 1).into();
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns every setting's path with its schema.
    fn leaves(schema: &Value, path: &str, into: &mut Vec<(String, Value)>) {
        for (name, property) in schema["properties"].as_object().expect("an object has properties") {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            if property["additionalProperties"] == false {
                leaves(property, &path, into);
            } else {
                into.push((path, property.clone()));
            }
        }
    }

    fn opens(path: &str, value: &Value) -> bool {
        let set = path.rsplit('.').fold(value.clone(), |inner, name| json!({ name: inner }));
        Settings::parse(&set.to_string()).is_ok()
    }

    fn allows(property: &Value, value: &Value) -> bool {
        if let Some(allowed) = property["enum"].as_array() {
            return allowed.contains(value);
        }
        let types: Vec<&str> = match &property["type"] {
            Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
            one => one.as_str().into_iter().collect(),
        };
        let is = |kind: &&str| match *kind {
            "boolean" => value.is_boolean(),
            "string" => value.is_string(),
            "null" => value.is_null(),
            "number" => value.is_number(),
            "integer" => value.as_u64().is_some_and(|number| number <= property["maximum"].as_u64().unwrap_or(u64::MAX)),
            "object" => value.is_object(),
            "array" => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
            _ => false,
        };
        types.iter().any(is)
    }

    #[test]
    fn the_schema_allows_what_open_takes_and_nothing_else() {
        let mut found = Vec::new();
        leaves(&schema(), "", &mut found);
        assert!(found.len() > 30, "{found:?}");
        let values = [
            Value::Null,
            json!(true),
            json!("hybrid"),
            json!("sideways"),
            json!(0),
            json!(-1),
            json!(0.5),
            json!(u32::MAX),
            json!(u64::from(u32::MAX) + 1),
            json!(u64::MAX),
            json!(["a"]),
            json!([1]),
            json!({"id": "a"}),
        ];
        for (path, property) in found {
            assert!(allows(&property, &property["default"]) && opens(&path, &property["default"]), "{path}: {property}");
            // Names the opener, which nobody else reads: `open` is content with anything.
            for value in values.iter().filter(|_| path != "holder") {
                assert_eq!(allows(&property, value), opens(&path, value), "{path} = {value}: {property}");
            }
        }
        assert_eq!(schema()["properties"]["recall"]["additionalProperties"], false);
        assert_eq!(schema()["default"]["recall"]["maxResults"], 5);
        assert!(!opens("recall.maxResult", &json!(5)));
    }
}
