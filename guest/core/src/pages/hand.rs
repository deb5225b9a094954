//! What a human wrote on a page stays on it, whoever rewrites the rest.

use super::Block;
use super::block;

/// Puts the blocks that a human wrote on `old` pages back into `new` ones: after the heading that
/// they stood under where it still exists, else at the end with that heading. Blocks that `new`
/// repeats word for word are not doubled.
pub fn keep(new: Vec<Block>, old: &str, hand: &[String]) -> Vec<Block> {
    let mut blocks = new;
    let mut heading: Option<Block> = None;
    for block in block::parse(old) {
        let by_hand = hand.contains(&block.text);
        if block.is_heading() {
            heading = Some(block);
            continue;
        }
        if !by_hand || blocks.iter().any(|new| new.text == block.text) {
            continue;
        }
        let place = heading.as_ref().and_then(|heading| section_end(&blocks, &heading.text));
        match place {
            Some(place) => blocks.insert(place, block),
            None => {
                if let Some(heading) = &heading
                    && heading_level(&heading.text) > 1
                {
                    blocks.push(heading.clone());
                }
                blocks.push(block);
            }
        }
    }
    blocks
}

fn heading_level(text: &str) -> usize {
    text.bytes().take_while(|&byte| byte == b'#').count()
}

/// Returns where the section under a heading ends.
fn section_end(blocks: &[Block], heading: &str) -> Option<usize> {
    let start = blocks.iter().position(|block| block.is_heading() && block.text == heading)?;
    let end = blocks[start + 1..].iter().position(Block::is_heading).map_or(blocks.len(), |next| start + 1 + next);
    Some(end)
}

/// Returns which blocks of a text that a human saved are theirs: those that the revision before did
/// not have, and those that were theirs already. Headings count only if they are new.
pub fn written(before: &str, before_hand: &[String], after: &str) -> Vec<String> {
    let old: Vec<String> = block::parse(before).into_iter().map(|block| block.text).collect();
    let mut hand: Vec<String> = Vec::new();
    for block in block::parse(after) {
        let theirs = before_hand.contains(&block.text) || !old.contains(&block.text);
        if theirs && !hand.contains(&block.text) {
            hand.push(block.text);
        }
    }
    hand
}

/// Returns the atoms that a human struck: they stood behind blocks of `before` and stand behind none
/// of `after`, nor do the words of their blocks.
pub fn struck(before: &str, after: &str) -> Vec<String> {
    let after = block::parse(after);
    let mut struck = Vec::new();
    for block in block::parse(before) {
        if after.iter().any(|kept| kept.text == block.text) {
            continue;
        }
        for atom in block.atoms {
            let elsewhere = after.iter().any(|kept| kept.atoms.contains(&atom));
            if !elsewhere && !struck.contains(&atom) {
                struck.push(atom);
            }
        }
    }
    struck
}

/// Returns the characters of the blocks that a human wrote.
pub fn chars(hand: &[String]) -> usize {
    hand.iter().map(|text| super::chars(text)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hand_written_line_keeps_its_place() {
        let old = "# Trip\n\n## Likes\n\nTea. <!-- a_0000000000000001 -->\n\nNo fish, ever.\n\n## Open\n\nMy note.";
        let hand = vec!["No fish, ever.".to_owned(), "My note.".to_owned()];
        let new = block::parse("# Trip\n\n## Likes\n\nGreen tea. <!-- a_0000000000000001 -->\n\n## Story\n\nWe flew.");
        let kept = block::render(&keep(new, old, &hand));
        assert_eq!(kept, "# Trip\n\n## Likes\n\nGreen tea. <!-- a_0000000000000001 -->\n\nNo fish, ever.\n\n## Story\n\nWe flew.\n\n## Open\n\nMy note.");
        let again = keep(block::parse(&kept), &kept, &hand);
        assert_eq!(block::render(&again), kept, "keeping twice changes nothing");
    }

    #[test]
    fn what_a_human_changed_is_theirs_and_what_they_removed_is_struck() {
        let before = "# A\n\none <!-- a_0000000000000001 -->\n\ntwo <!-- a_0000000000000002 -->";
        let after = "# A\n\none\n\nthree";
        assert_eq!(written(before, &[], after), ["three"]);
        assert_eq!(struck(before, after), ["a_0000000000000002"]);
        assert!(struck(before, "two, but better <!-- a_0000000000000002 -->\n\none").is_empty(), "a reworded line keeps its ids");
    }
}
