//! What memory itself had put into a prompt, and its removal.
//!
//! A block is an opening tag at the start of a line, followed by the end of that line or by a
//! framing sentence, up to the first closing tag. Injected text is escaped, so the first closing tag
//! is the block's own. A tag inside a sentence is what somebody wrote about tags, and stays.

/// Tags of blocks that are injected by this engine or by the reference system.
const TAGS: &[&str] =
    &["relevant-memories", "user-persona", "relevant-scenes", "scene-navigation", "memory-tools-guide", "current_task_context", "history_task_context"];

/// Beginnings of the first line of a block where a host has joined the lines of a block.
const FRAMES: &[&str] = &["Recalled from earlier sessions", "以下是当前对话召回的相关记忆"];

/// Returns `text` without injected blocks. Pure; gives the same text when applied to its result.
pub fn strip(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    // Tags that are never closed in what is left; searching for them again would make a text of
    // opening tags cost its length squared.
    let mut unclosed: Vec<&str> = Vec::new();
    'blocks: while let Some(open) = rest.find('<') {
        let line_start = rest[..open].chars().next_back().map_or_else(|| kept.is_empty() || kept.ends_with('\n'), |c| c == '\n');
        if line_start && let Some((tag, inside)) = opening(&rest[open + 1..]).filter(|(tag, _)| !unclosed.contains(tag)) {
            let closing = format!("</{tag}>");
            match inside.find(&closing) {
                Some(close) => {
                    kept.push_str(&rest[..open]);
                    rest = inside[close + closing.len()..].trim_start_matches(['\n', '\r', ' ']);
                    continue 'blocks;
                }
                None => unclosed.push(tag),
            }
        }
        kept.push_str(&rest[..=open]);
        rest = &rest[open + 1..];
    }
    kept.push_str(rest);
    kept
}

/// Returns the tag and what follows it, if `text` (after `<`) opens a block.
fn opening(text: &str) -> Option<(&'static str, &str)> {
    let tag = TAGS.iter().copied().find(|tag| text.starts_with(tag))?;
    let after = &text[tag.len()..];
    let inside = match after.chars().next()? {
        '>' => &after[1..],
        // The reference system names the file of a past task in the tag.
        ' ' => {
            let end = after.find(['>', '<', '\n']).filter(|end| after[*end..].starts_with('>'))?;
            &after[end + 1..]
        }
        _ => return None,
    };
    let line = inside.trim_start_matches([' ', '\t', '\r']);
    (line.starts_with('\n') || FRAMES.iter().any(|frame| line.starts_with(frame))).then_some((tag, inside))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BLOCK: &str = "<relevant-memories>\nRecalled from earlier sessions.\n- [a_1] likes &lt;tea&gt;\n</relevant-memories>\n\n";

    #[test]
    fn what_must_go() {
        assert_eq!(strip(&format!("{BLOCK}What now?")), "What now?");
        assert_eq!(strip(&format!("Before\n{BLOCK}after")), "Before\nafter");
        assert_eq!(strip("<relevant-memories> Recalled from earlier sessions: x </relevant-memories> hi"), "hi");
        assert_eq!(strip("<history_task_context file=\"a.mmd\">\nflowchart TD\n</history_task_context>\ngo on"), "go on");
        assert_eq!(strip(&format!("{BLOCK}{BLOCK}hi")), "hi");
    }

    #[test]
    fn what_must_stay() {
        for text in [
            "Why does </relevant-memories> show up in my log?",
            "The tag <relevant-memories> opens a block and </relevant-memories> ends it.",
            "<relevant-memories>\nnever closed",
            "if a < b { vec![] }",
            "<user-persona> is a tag</user-persona>",
            "<relevant-memories-x>\n</relevant-memories-x>",
        ] {
            assert_eq!(strip(text), text);
        }
        assert_eq!(strip(&format!("{BLOCK}I saw </relevant-memories> in a log")), "I saw </relevant-memories> in a log");
    }

    proptest! {
        #[test]
        fn stripping_twice_is_stripping_once(parts in proptest::collection::vec(0usize..9, 0..40)) {
            let pieces = ["<relevant-memories>", "</relevant-memories>", "\n", " ", "x", "<", "Recalled from earlier sessions", "<user-persona>\n", "</user-persona>"];
            let text: String = parts.iter().map(|part| pieces[*part]).collect();
            let once = strip(&text);
            prop_assert_eq!(strip(&once), once);
        }
    }
}
