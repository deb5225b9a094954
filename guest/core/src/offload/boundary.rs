//! Task boundaries by rule: does a user's message go on with the task, start one, or return to one?

use super::summary::names::{NameClass, names};
use std::collections::BTreeSet;

/// What a user's message does to the running task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// It belongs to the running task.
    Same,
    /// It starts another task.
    New,
    /// It goes back to the task with this number.
    Return(u32),
}

/// A task as far as boundaries need it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskTraits {
    /// Its number.
    pub number: u32,
    /// Tool calls so far.
    pub calls: usize,
    /// Paths and names that the user or the calls touched.
    pub touched: BTreeSet<String>,
}

/// Messages shorter than this many characters answer or steer; they start nothing.
pub const STEERING_MAX_CHARS: usize = 40;
/// A task with fewer calls has hardly begun: what follows explains it.
const SETTLED_CALLS: usize = 6;
/// Only a message of this many characters starts a task without saying so.
const UNANNOUNCED_MIN_CHARS: usize = 160;
/// After such a pause, in milliseconds, a message about other things starts a task.
const PAUSE_MS: i64 = 2 * 60 * 60 * 1_000;

const GO_ON: [&str; 22] = [
    "yes", "no,", "ok", "okay", "continue", "go on", "go ahead", "sure", "do it", "please do", "proceed", "thanks", "great", "good", "perfect", "and ",
    "also ", "继续", "好的", "好，", "是的", "可以",
];
const NEW: [&str; 19] = [
    "new task", "next task", "another task", "different task", "now let's", "let's move on", "moving on", "next up", "switch to", "unrelated",
    "separate issue", "next issue", "next thing", "implement the following plan", "新任务", "接下来", "另外一个", "换个", "下一个",
];
const RETURN: [&str; 10] = ["back to", "return to", "resume ", "as we did", "revisit", "pick up where", "回到", "回头", "接着之前", "继续之前"];

/// Returns what `text` does to the task `current`, given `past` tasks and the pause before it.
pub fn judge(text: &str, pause_ms: i64, current: &TaskTraits, past: &[TaskTraits]) -> Boundary {
    let said = text.trim();
    let lower = said.to_lowercase();
    let mentioned = mentions(said);
    let shared = |task: &TaskTraits| mentioned.iter().filter(|name| touches(task, name)).count();
    let here = shared(current);
    let best = past.iter().map(|task| (shared(task), task.number)).max_by_key(|(count, number)| (*count, *number));
    let begins = |words: &[&str]| words.iter().any(|word| lower.starts_with(word));
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if let Some((count, number)) = best
        && ((says(&RETURN) && count > 0 && count >= here) || (count >= 2 && here == 0))
    {
        return Boundary::Return(number);
    }
    if said.chars().count() < STEERING_MAX_CHARS || begins(&GO_ON) {
        return Boundary::Same;
    }
    if current.calls >= SETTLED_CALLS && is_numbered(&lower) {
        return Boundary::New;
    }
    if current.calls < SETTLED_CALLS || here > 0 {
        return Boundary::Same;
    }
    if says(&NEW) || pause_ms >= PAUSE_MS {
        return Boundary::New;
    }
    let long = said.chars().count() >= UNANNOUNCED_MIN_CHARS;
    if long && !mentioned.is_empty() { Boundary::New } else { Boundary::Same }
}

/// Words in the names of tags that harnesses put around notes of their own.
const NOTE_TAGS: [&str; 11] =
    ["context", "environment", "reminder", "aborted", "system", "notification", "caveat", "stdout", "stderr", "permission", "instruction"];

/// Returns the words of a person in a user message: what stands outside of leading blocks in tags, which harnesses
/// write (`<environment_context>…`); the inside of a block that is all there is, unless it is such a note.
pub fn words(text: &str) -> &str {
    let mut rest = text.trim();
    let mut inside = "";
    while let Some((name, block, after)) = leading_block(rest) {
        if !NOTE_TAGS.iter().any(|word| name.contains(word)) {
            inside = block;
        }
        rest = after.trim_start();
    }
    if rest.is_empty() { inside.trim() } else { rest }
}

/// Returns the name, the inside and what follows of the block in tags that `text` begins with.
fn leading_block(text: &str) -> Option<(&str, &str, &str)> {
    let inner = text.strip_prefix('<')?;
    let end = inner.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'))?;
    let name = &inner[..end];
    let opened = inner.find('>')?;
    let close = format!("</{name}>");
    let closed = inner.find(&close)?;
    (!name.is_empty() && opened < closed).then(|| (name, &inner[opened + 1..closed], &inner[closed + close.len()..]))
}

/// Returns whether a message is headed as one of several tasks: `task b — …`, `# Issue 12: …`. `lower` is in lower case.
fn is_numbered(lower: &str) -> bool {
    let mut words = lower.trim_start_matches(['#', '*', ' ']).splitn(3, ' ');
    let (Some(noun), Some(which), Some(rest)) = (words.next(), words.next(), words.next()) else { return false };
    let name = which.trim_end_matches([':', '.', ')']);
    let is_name = name.len() == 1 || (!name.is_empty() && name.len() <= 4 && name.bytes().all(|byte| byte.is_ascii_digit()));
    matches!(noun, "task" | "issue" | "ticket" | "story") && is_name && (name.len() < which.len() || rest.starts_with(['—', '–', '-', ':']))
}

/// Returns the paths and names in `text` that tell tasks apart.
pub fn mentions(text: &str) -> BTreeSet<String> {
    names(text)
        .into_iter()
        .filter(|name| name.class != NameClass::Number)
        .map(|name| name.text.rsplit('/').next().unwrap_or(name.text).to_owned())
        .filter(|name| name.len() >= 4)
        .collect()
}

fn touches(task: &TaskTraits, name: &str) -> bool {
    task.touched.contains(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(number: u32, calls: usize, touched: &[&str]) -> TaskTraits {
        TaskTraits { number, calls, touched: touched.iter().map(|name| (*name).to_owned()).collect() }
    }

    #[test]
    fn steering_and_shared_files_stay_in_the_task() {
        let current = task(2, 20, &["parser.rs", "lexer.rs"]);
        for text in ["yes", "go ahead and commit that", "now let's also cover the empty case in parser.rs please", "继续"] {
            assert_eq!(judge(text, 0, &current, &[]), Boundary::Same, "{text}");
        }
    }

    #[test]
    fn a_new_task_and_a_return_are_told_apart() {
        let current = task(2, 20, &["parser.rs"]);
        let past = [task(1, 9, &["server.rs", "routes.rs"])];
        assert_eq!(judge("Now let's move on to the documentation of the installer, it is out of date.", 0, &current, &past), Boundary::New);
        assert_eq!(judge("Task B — emit the path of parser.rs for every route, and test it.", 0, &current, &past), Boundary::New);
        assert_eq!(judge("Task B is what I mean: parser.rs has to be tested for every route.", 0, &current, &past), Boundary::Same);
        assert_eq!(judge("Back to the routing bug in routes.rs: it still fails.", 0, &current, &past), Boundary::Return(1));
        assert_eq!(judge("Write the release notes for the next version, with thanks to everyone.", PAUSE_MS, &current, &past), Boundary::New);
    }

    #[test]
    fn notes_of_a_harness_are_no_words_and_a_person_may_use_tags() {
        assert_eq!(words("<environment_context><cwd>/tmp</cwd></environment_context>"), "");
        assert_eq!(words("<system-reminder>x</system-reminder>\n<context a=\"1\">y</context> Fix the parser."), "Fix the parser.");
        assert_eq!(words("<task>Fix the parser.</task>"), "Fix the parser.");
        assert_eq!(words("Why does <div> not close?"), "Why does <div> not close?");
        assert_eq!(words("<div> does not close"), "<div> does not close");
    }

    #[test]
    fn a_task_that_has_hardly_begun_is_not_left() {
        assert_eq!(judge("Now let's move on to the documentation of the installer, it is out of date.", 0, &task(1, 2, &[]), &[]), Boundary::Same);
    }
}
