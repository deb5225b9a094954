//! File names of scenes, normalized as the reference system does it.

/// Longest stem, in characters; with three bytes a character it stays under the 255 bytes of common file systems.
const MAX_STEM: usize = 64;

/// Characters that a stem never holds.
const STRIPPED: &str = "()[]{}<>'\"`,;:!?*|/\\=&%$#@^~+";

/// Highest number that tells equal names apart.
const MAX_COLLISION: u32 = 999;

/// Returns the stem of a scene's file for the name that a model, a rule or a human gave: blanks
/// become `-`, punctuation of shells and paths goes, runs of `-`, `_`, `.` collapse. Never empty.
pub fn stem(name: &str) -> String {
    let name = name.trim();
    let name = name.strip_suffix(".md").unwrap_or(name);
    let mut stem = String::new();
    for c in name.chars() {
        let c = if c.is_whitespace() { '-' } else { c };
        if STRIPPED.contains(c) || c.is_control() {
            continue;
        }
        let repeats = matches!(c, '-' | '_' | '.') && stem.ends_with(['-', '_', '.']);
        if !repeats {
            stem.push(c);
        }
    }
    let stem: String = stem.trim_matches(['-', '_', '.']).chars().take(MAX_STEM).collect();
    let stem = stem.trim_end_matches(['-', '_', '.']);
    if stem.is_empty() { "scene".into() } else { stem.to_owned() }
}

/// Returns `stem`, or `stem-2` to `stem-999`, whichever is the first that is not taken; nothing if all are.
pub fn free(stem: &str, mut taken: impl FnMut(&str) -> bool) -> Option<String> {
    if !taken(stem) {
        return Some(stem.to_owned());
    }
    (2..=MAX_COLLISION).map(|number| format!("{stem}-{number}")).find(|name| !taken(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_safe_stems() {
        for (name, expect) in [
            ("Rust memory engine", "Rust-memory-engine"),
            ("work/../etc/passwd", "work.etcpasswd"),
            ("  --a__b..c--.md ", "a_b.c"),
            ("搬家 到 里斯本", "搬家-到-里斯本"),
            ("?*|", "scene"),
            ("", "scene"),
            (".md", "scene"),
            ("C++ (2026): \"plans\"", "C-2026-plans"),
        ] {
            assert_eq!(stem(name), expect, "{name:?}");
        }
        assert_eq!(stem(&"x".repeat(500)).len(), MAX_STEM);
    }

    #[test]
    fn collisions_are_numbered_from_two() {
        assert_eq!(free("a", |_| false).as_deref(), Some("a"));
        assert_eq!(free("a", |name| name == "a" || name == "a-2").as_deref(), Some("a-3"));
        assert_eq!(free("a", |_| true), None);
    }
}
