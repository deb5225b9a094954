//! git, and diffs from anywhere.

use super::{Finding, Text, counted, finding, pick_lines, some_of};

/// `git status|log|commit|push|pull|checkout|...`. Diffs have their own reader.
pub(super) fn git(text: &Text<'_, '_>) -> Option<Finding<'static>> {
    let line = text.command.shell.as_deref().unwrap_or("");
    if !line.contains("git ") && text.command.program != "git" {
        return None;
    }
    let errors = pick_lines(text.body, |line| {
        line.starts_with("fatal:") || line.starts_with("error:") || line.starts_with("CONFLICT") || line.starts_with("! [") || line.contains("rejected]")
    });
    if !errors.is_empty() {
        return Some(finding("git", format!("git failed: {}", some_of(&errors, 2)), errors, true));
    }
    if text.has("\ndiff --git ") || text.body.starts_with("diff --git ") {
        return diff(text);
    }
    if let Some(commit) = text.lines().find(|line| line.starts_with('[') && line.contains("] ") && line.contains(' ')) {
        let changed = pick_lines(text.body, |line| line.contains(" changed, ") || line.contains(" changed,"));
        let pushed = pick_lines(text.body, |line| line.contains(" -> "));
        if !changed.is_empty() {
            let headline = format!("committed {}: {}; {}", commit.trim(), some_of(&changed, 1), some_of(&pushed, 2));
            return Some(finding("git commit", headline, Vec::new(), false));
        }
    }
    if text.has("On branch ") || text.has("HEAD detached") || line.contains("git status") {
        return Some(status(text));
    }
    if line.contains("git log") || text.body.starts_with("commit ") {
        return Some(log(text));
    }
    let pushed = pick_lines(text.body, |line| {
        line.contains(" -> ") || line.starts_with("To ") || line.contains("Fast-forward") || line.contains("up to date") || line.contains("up-to-date")
    });
    if !pushed.is_empty() && text.body.len() < 6_000 {
        return Some(finding("git", format!("git: {}", some_of(&pushed, 3)), Vec::new(), false));
    }
    let stat = pick_lines(text.body, |line| line.contains(" changed") && (line.contains("insertion") || line.contains("deletion")));
    if !stat.is_empty() {
        let files = pick_lines(text.body, |line| line.contains(" | "));
        return Some(finding("git", stat.join("; "), files, false));
    }
    None
}

/// A unified diff or a patch.
pub(super) fn diff(text: &Text<'_, '_>) -> Option<Finding<'static>> {
    let marks = text.has("\n@@ ") || text.body.starts_with("@@ ");
    if !marks || !(text.has("+++ ") || text.has("diff --git")) {
        return None;
    }
    let mut files: Vec<(String, usize, usize)> = Vec::new();
    for line in text.lines() {
        if let Some(path) = line.strip_prefix("+++ ") {
            let path = path.trim_start_matches("b/").split('\t').next().unwrap_or(path);
            files.push((path.to_owned(), 0, 0));
        } else if let Some(last) = files.last_mut() {
            if line.starts_with('+') {
                last.1 += 1;
            } else if line.starts_with('-') && !line.starts_with("--- ") {
                last.2 += 1;
            }
        }
    }
    let plus: usize = files.iter().map(|file| file.1).sum();
    let minus: usize = files.iter().map(|file| file.2).sum();
    let each: Vec<String> = files.iter().map(|(path, plus, minus)| format!("{path} +{plus} -{minus}")).collect();
    let headline = format!("diff of {}, +{plus} -{minus}: {}", counted(files.len(), "file"), some_of(&each, 4));
    let hunks = pick_lines(text.body, |line| line.starts_with("@@ ") && line.len() > 30);
    let mut key_lines = each;
    key_lines.extend(hunks);
    Some(finding("diff", headline, key_lines, false))
}

fn status(text: &Text<'_, '_>) -> Finding<'static> {
    let branch = text.lines().find_map(|line| line.strip_prefix("On branch ")).unwrap_or("").trim();
    if text.has("nothing to commit") {
        return finding("git status", format!("clean tree on {branch}"), Vec::new(), false);
    }
    let mut changed = Vec::new();
    let mut untracked = Vec::new();
    let mut in_untracked = false;
    for line in text.lines() {
        in_untracked |= line.starts_with("Untracked files");
        let trimmed = line.trim();
        if let Some(rest) = ["modified:", "new file:", "deleted:", "renamed:", "both modified:"].iter().find_map(|mark| trimmed.strip_prefix(mark)) {
            changed.push(rest.trim().to_owned());
        } else if line.starts_with("?? ") || (in_untracked && line.starts_with('\t')) {
            untracked.push(trimmed.trim_start_matches("?? ").to_owned());
        } else if line.len() > 3 && line.as_bytes()[2] == b' ' && line.as_bytes()[..2].iter().all(|byte| b" MADRCU".contains(byte)) && line.is_char_boundary(3)
        {
            changed.push(line[3..].to_owned());
        }
    }
    let headline = format!("{branch}: {} changed: {}; {} untracked: {}", changed.len(), some_of(&changed, 5), untracked.len(), some_of(&untracked, 3));
    finding("git status", headline, Vec::new(), false)
}

fn log(text: &Text<'_, '_>) -> Finding<'static> {
    let mut commits: Vec<String> = Vec::new();
    let mut hash: Option<&str> = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("commit ") {
            hash = Some(rest.split(' ').next().unwrap_or(rest));
        } else if let Some(full) = hash {
            let subject = line.trim();
            if line.starts_with("    ") && !subject.is_empty() {
                commits.push(format!("{} {subject}", super::super::names::clip(full, 10)));
                hash = None;
            }
        } else if line.split(' ').next().is_some_and(|word| word.len() >= 7 && word.bytes().all(|byte| byte.is_ascii_hexdigit())) {
            commits.push(line.trim().to_owned());
        }
    }
    finding("git log", format!("{}: {}", counted(commits.len(), "commit"), some_of(&commits, 3)), commits, false)
}
