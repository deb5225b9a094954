//! Blocks of a page: Markdown in, blocks with their ids out, and back.

/// Length of an atom's public id: `a_` and 16 hex digits.
const ATOM_ID: usize = 18;

/// A heading, paragraph, list item or fenced block, and the atoms it rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The Markdown without the comment of ids.
    pub text: String,
    /// Public ids of atoms, in order.
    pub atoms: Vec<String>,
}

impl Block {
    /// Returns a block.
    pub fn new(text: impl Into<String>, atoms: Vec<String>) -> Self {
        Self { text: text.into(), atoms }
    }

    /// Returns whether the block is a heading.
    pub fn is_heading(&self) -> bool {
        let marks = self.text.chars().take_while(|&c| c == '#').count();
        (1..=6).contains(&marks) && self.text[marks..].starts_with([' ', '\t'])
    }

    fn is_item(&self) -> bool {
        is_item(&self.text)
    }

    /// Returns the block as Markdown, ids included.
    pub fn markdown(&self) -> String {
        if self.atoms.is_empty() { self.text.clone() } else { format!("{} <!-- {} -->", self.text, self.atoms.join(" ")) }
    }
}

fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    if line.starts_with("- ") || line.starts_with("* ") || line.starts_with("+ ") {
        return true;
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    (1..=9).contains(&digits) && (line[digits..].starts_with(". ") || line[digits..].starts_with(") "))
}

/// Returns whether `id` looks like an atom's public id.
pub fn is_atom_id(id: &str) -> bool {
    id.len() == ATOM_ID && id.starts_with("a_") && id[2..].bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Splits the ids off the end of a block's Markdown. A comment with anything else in it is text.
fn split_ids(text: &str) -> Block {
    let trimmed = text.trim_end();
    if let Some(rest) = trimmed.strip_suffix("-->")
        && let Some(start) = rest.rfind("<!--")
    {
        let ids: Vec<&str> = rest[start + 4..].split([' ', ',', '\n', '\t']).filter(|id| !id.is_empty()).collect();
        if !ids.is_empty() && ids.iter().all(|id| is_atom_id(id)) {
            return Block::new(rest[..start].trim_end(), ids.into_iter().map(str::to_owned).collect());
        }
    }
    Block::new(trimmed, Vec::new())
}

/// Returns the blocks of a Markdown body. Every line that is not blank is in exactly one block.
pub fn parse(body: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines: Vec<&str> = Vec::new();
    let mut fence: Option<&str> = None;
    let flush = |lines: &mut Vec<&str>, blocks: &mut Vec<Block>| {
        if !lines.is_empty() {
            blocks.push(split_ids(&lines.join("\n")));
            lines.clear();
        }
    };
    for line in body.lines() {
        let start = line.trim_start();
        if let Some(mark) = fence {
            lines.push(line);
            if start.starts_with(mark) {
                fence = None;
                flush(&mut lines, &mut blocks);
            }
            continue;
        }
        if start.starts_with("```") || start.starts_with("~~~") {
            flush(&mut lines, &mut blocks);
            fence = Some(if start.starts_with("```") { "```" } else { "~~~" });
            lines.push(line);
        } else if start.is_empty() {
            flush(&mut lines, &mut blocks);
        } else if Block::new(line, Vec::new()).is_heading() {
            flush(&mut lines, &mut blocks);
            lines.push(line);
            flush(&mut lines, &mut blocks);
        } else {
            if is_item(line) {
                flush(&mut lines, &mut blocks);
            }
            lines.push(line);
        }
    }
    flush(&mut lines, &mut blocks);
    blocks
}

/// Returns the Markdown of blocks: list items in a row stand together, all else is set apart.
pub fn render(blocks: &[Block]) -> String {
    let mut body = String::new();
    for (index, block) in blocks.iter().enumerate() {
        if index > 0 {
            body.push_str(if block.is_item() && blocks[index - 1].is_item() { "\n" } else { "\n\n" });
        }
        body.push_str(&block.markdown());
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u64) -> String {
        format!("a_{n:016x}")
    }

    #[test]
    fn ids_are_read_from_the_end_of_a_block_only() {
        let body = format!(
            "# Trip\n\nWe fly in May. <!-- {} {} -->\n- first <!-- {} -->\n- second\n  goes on\n\n<!-- a note -->\n\n```\n# no heading\n\n- no item\n```",
            id(1),
            id(2),
            id(3)
        );
        let blocks = parse(&body);
        let texts: Vec<&str> = blocks.iter().map(|block| block.text.as_str()).collect();
        assert_eq!(texts, ["# Trip", "We fly in May.", "- first", "- second\n  goes on", "<!-- a note -->", "```\n# no heading\n\n- no item\n```"]);
        assert_eq!(blocks[1].atoms, [id(1), id(2)]);
        assert_eq!(blocks[2].atoms, [id(3)]);
        assert!(blocks[3].atoms.is_empty());
    }

    proptest::proptest! {
        #[test]
        fn parsing_keeps_every_line_and_rendering_is_stable(body in "([ -~\u{4e00}-\u{4e10}]{0,12}\n){0,12}") {
            let blocks = parse(&body);
            let again = parse(&render(&blocks));
            proptest::prop_assert_eq!(render(&again), render(&blocks));
            for line in body.lines().filter(|line| !line.trim().is_empty() && !line.contains("-->")) {
                let kept = blocks.iter().any(|block| block.text.contains(line.trim()));
                proptest::prop_assert!(kept, "{:?} is gone", line);
            }
        }
    }
}
