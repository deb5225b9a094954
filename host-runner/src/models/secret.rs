//! A key, which never reaches a log, an error or a screen.

use serde::Deserialize;
use std::fmt;

/// A key of an endpoint. It can be read from settings and sent, and nothing else: neither `Debug`
/// nor an error shows it, and it does not serialize.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Returns a secret.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// Returns whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the value of an `Authorization` header.
    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Returns `text` without the key: endpoints repeat it in their refusals.
    pub(crate) fn struck_from(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(&self.0, "[key]") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "no key" } else { "[key]" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_in_no_debug_output_and_in_no_refusal() {
        let key = Secret::new("sk-123456");
        assert_eq!(format!("{key:?}"), "[key]");
        assert_eq!(key.struck_from("bad key sk-123456, sorry"), "bad key [key], sorry");
    }

    #[test]
    fn text_without_the_key_stays_as_it_is() {
        assert_eq!(Secret::new("sk-123456").struck_from("rate limit sk-1234"), "rate limit sk-1234");
        assert_eq!(Secret::default().struck_from("any text"), "any text");
    }
}
