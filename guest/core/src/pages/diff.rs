//! The difference between two texts as unified text.

/// Lines of context around a change, as `diff -u` has them.
const CONTEXT: usize = 3;

/// Lines of either text beyond which the middle is shown as wholly replaced: the table of common
/// lines grows with the product.
const MAX_LINES: usize = 2_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    Same(usize, usize),
    Gone(usize),
    New(usize),
}

/// Returns what `diff -u` would print for two texts, with `before` and `after` as the names; empty
/// if they are equal.
pub fn unified(before_name: &str, before: &str, after_name: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let lines = align(&old, &new);
    if lines.iter().all(|line| matches!(line, Line::Same(..))) {
        return String::new();
    }
    let mut text = format!("--- {before_name}\n+++ {after_name}\n");
    let mut at = 0;
    while let Some(first) = (at..lines.len()).find(|&index| !matches!(lines[index], Line::Same(..))) {
        let start = first.saturating_sub(CONTEXT).max(at);
        let mut last = first;
        // A hunk goes on while the next change is within twice the context.
        for (index, line) in lines.iter().enumerate().skip(first) {
            if !matches!(line, Line::Same(..)) {
                if index - last > 2 * CONTEXT {
                    break;
                }
                last = index;
            }
        }
        let end = (last + CONTEXT + 1).min(lines.len());
        hunk(&mut text, &lines, start, end, &old, &new);
        at = end;
    }
    text
}

fn hunk(text: &mut String, lines: &[Line], start: usize, end: usize, old: &[&str], new: &[&str]) {
    let hunk = &lines[start..end];
    let olds = hunk.iter().filter(|line| !matches!(line, Line::New(_))).count();
    let news = hunk.iter().filter(|line| !matches!(line, Line::Gone(_))).count();
    let old_before = lines[..start].iter().filter(|line| !matches!(line, Line::New(_))).count();
    let new_before = lines[..start].iter().filter(|line| !matches!(line, Line::Gone(_))).count();
    let first = |before: usize, count: usize| if count == 0 { before } else { before + 1 };
    text.push_str(&format!("@@ -{},{olds} +{},{news} @@\n", first(old_before, olds), first(new_before, news)));
    for line in hunk {
        let (mark, words) = match *line {
            Line::Same(index, _) => (' ', old[index]),
            Line::Gone(index) => ('-', old[index]),
            Line::New(index) => ('+', new[index]),
        };
        text.push(mark);
        text.push_str(words);
        text.push('\n');
    }
}

/// Aligns two lists of lines by their longest common subsequence.
fn align(old: &[&str], new: &[&str]) -> Vec<Line> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_middle, new_middle) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut lines: Vec<Line> = (0..head).map(|index| Line::Same(index, index)).collect();
    if old_middle.len() > MAX_LINES || new_middle.len() > MAX_LINES {
        lines.extend((head..old.len() - tail).map(Line::Gone));
        lines.extend((head..new.len() - tail).map(Line::New));
    } else {
        middle(old_middle, new_middle, head, &mut lines);
    }
    lines.extend((0..tail).map(|index| Line::Same(old.len() - tail + index, new.len() - tail + index)));
    lines
}

fn middle(old: &[&str], new: &[&str], shift: usize, lines: &mut Vec<Line>) {
    let width = new.len() + 1;
    // common[i * width + j]: length of the longest common subsequence of old[i..] and new[j..].
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * width + j] =
                if old[i] == new[j] { common[(i + 1) * width + j + 1] + 1 } else { common[(i + 1) * width + j].max(common[i * width + j + 1]) };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push(Line::Same(shift + i, shift + j));
            (i, j) = (i + 1, j + 1);
        } else if i < old.len() && (j == new.len() || common[(i + 1) * width + j] >= common[i * width + j + 1]) {
            lines.push(Line::Gone(shift + i));
            i += 1;
        } else {
            lines.push(Line::New(shift + j));
            j += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_stands_in_its_context() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh\ni\n";
        let after = "a\nb\nc\nd\nE\nf\ng\nh\ni\nj\n";
        let expect = "--- 1\n+++ 2\n@@ -2,8 +2,9 @@\n b\n c\n d\n-e\n+E\n f\n g\n h\n i\n+j\n";
        assert_eq!(unified("1", before, "2", after), expect);
        assert_eq!(unified("1", before, "2", before), "");
        assert_eq!(unified("1", "", "2", "x"), "--- 1\n+++ 2\n@@ -0,0 +1,1 @@\n+x\n");
    }

    proptest::proptest! {
        #[test]
        fn applying_the_alignment_gives_the_new_text(old in "[ab\n]{0,30}", new in "[ab\n]{0,30}") {
            let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
            let lines = align(&old, &new);
            let kept: Vec<&str> = lines.iter().filter_map(|line| match *line {
                Line::Same(i, _) => Some(old[i]),
                Line::New(j) => Some(new[j]),
                Line::Gone(_) => None,
            }).collect();
            proptest::prop_assert_eq!(kept, new);
        }
    }
}
