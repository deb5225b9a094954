//! What a tool call set out to do: the program it ran, what it was aimed at, and its intent.

use serde_json::Value;

use super::names::clip;

/// The kind of step a call is in a task. Nodes of a canvas are runs of one intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Intent {
    /// Reads, lists, searches.
    Explore,
    /// Changes files.
    Change,
    /// Builds, tests, lints.
    Verify,
    /// Version control.
    Record,
    /// Anything run against a system: services, clusters, browsers, APIs.
    Operate,
    /// Plans, to-do lists, thoughts, other agents.
    Plan,
}

impl Intent {
    /// Returns the word that canvases and summaries use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Explore => "explore",
            Self::Change => "change",
            Self::Verify => "verify",
            Self::Record => "record",
            Self::Operate => "operate",
            Self::Plan => "plan",
        }
    }

    /// Returns the intent that a word means; [`Intent::Operate`] for others.
    pub fn of_word(word: &str) -> Self {
        [Self::Explore, Self::Change, Self::Verify, Self::Record, Self::Plan].into_iter().find(|intent| intent.word() == word).unwrap_or(Self::Operate)
    }
}

/// A tool call as the summaries see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The tool's name as called.
    pub tool: String,
    /// The shell line, when the tool runs one.
    pub shell: Option<String>,
    /// First word or two of the program (`cargo test`, `git diff`), or the tool's name in lower case.
    pub program: String,
    /// The file, URL or pattern that the call names first, if any.
    pub target: Option<String>,
    /// What kind of step it is.
    pub intent: Intent,
}

/// A line for people about a call is at most this long (the reference's limit).
pub const CALL_LINE_MAX_CHARS: usize = 150;

/// Returns what the call `tool(arguments)` set out to do. `arguments` is JSON text or any text.
pub fn command(tool: &str, arguments: &str) -> Command {
    let parsed: Value = serde_json::from_str(arguments).unwrap_or(Value::Null);
    let shell = shell_line(&parsed);
    let lower = tool.to_ascii_lowercase();
    let program = match &shell {
        Some(line) => program_of(line),
        None => lower.clone(),
    };
    let target = shell.as_deref().map_or_else(|| target_of(&parsed), shell_target);
    let intent = match &shell {
        Some(line) => shell_intent(line, &program),
        None => tool_intent(&lower),
    };
    Command { tool: tool.to_owned(), shell, program, target, intent }
}

impl Command {
    /// Returns the call on one line of at most [`CALL_LINE_MAX_CHARS`] characters.
    pub fn line(&self) -> String {
        let whole = match (&self.shell, &self.target) {
            (Some(shell), _) => one_line(shell),
            (None, Some(target)) => format!("{} {}", self.tool, one_line(target)),
            (None, None) => self.tool.clone(),
        };
        shorten(&whole, CALL_LINE_MAX_CHARS)
    }
}

/// Returns `text` with every run of white space as one blank.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(512));
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > 4_096 {
            break;
        }
    }
    line
}

/// Returns `text` cut to `chars` characters, with `…` as the last one when something was cut.
pub fn shorten(text: &str, chars: usize) -> String {
    if text.len() <= chars || text.chars().count() <= chars {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(chars.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

fn shell_line(arguments: &Value) -> Option<String> {
    for key in ["command", "cmd", "script", "bash", "shell_command"] {
        match arguments.get(key) {
            Some(Value::String(line)) if !is_editor_verb(line) => return Some(line.clone()),
            Some(Value::Array(words)) => {
                let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                // ["bash", "-lc", "line"] and the like.
                return match words.as_slice() {
                    [_, flag, line] if flag.starts_with('-') && flag.ends_with('c') => Some((*line).to_owned()),
                    _ => Some(words.join(" ")),
                };
            }
            _ => {}
        }
    }
    None
}

/// Editor tools (`str_replace_editor`) call their verb a command.
fn is_editor_verb(line: &str) -> bool {
    matches!(line, "view" | "create" | "str_replace" | "insert" | "undo_edit")
}

fn target_of(arguments: &Value) -> Option<String> {
    const KEYS: [&str; 16] = [
        "file_path", "path", "filepath", "filename", "notebook_path", "url", "pattern", "query", "action", "name", "title", "id", "subject", "description",
        "prompt", "message",
    ];
    for key in KEYS {
        if let Some(text) = arguments.get(key).and_then(Value::as_str)
            && !text.is_empty()
        {
            return Some(clip(text, 400).to_owned());
        }
    }
    if let Some(patch) = arguments.get("input").and_then(Value::as_str) {
        for line in patch.lines().take(8) {
            for mark in ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "+++ b/"] {
                if let Some(path) = line.strip_prefix(mark) {
                    return Some(path.to_owned());
                }
            }
        }
    }
    arguments.as_object().and_then(|fields| {
        fields.iter().find_map(|(key, value)| {
            let text = value.as_str()?;
            (text.len() < 200).then(|| format!("{key}={text}"))
        })
    })
}

/// Words that stand before a program and are not it.
fn is_prefix_word(word: &str) -> bool {
    matches!(word, "sudo" | "env" | "time" | "nohup" | "exec" | "command" | "timeout" | "then" | "do" | "!" | "(")
        || (word.contains('=') && !word.starts_with('-') && !word.starts_with('='))
}

/// Returns the simple commands of a shell line, in order, split at `&&`, `||`, `;` and newlines.
fn steps(line: &str) -> impl Iterator<Item = &str> {
    line.split(['\n', ';'])
        .flat_map(|part| part.split("&&"))
        .flat_map(|part| part.split("||"))
        .map(str::trim)
        .filter(|step| !step.is_empty() && !step.starts_with('#'))
}

fn words_of(step: &str) -> impl Iterator<Item = &str> {
    step.split_whitespace().skip_while(|word| is_prefix_word(word) || word.bytes().all(|byte| byte.is_ascii_digit()))
}

fn program_of(line: &str) -> String {
    let mut best: Option<(u8, String)> = None;
    for step in steps(line).take(24) {
        let mut words = words_of(step);
        let Some(first) = words.next() else { continue };
        let first = first.rsplit('/').next().unwrap_or(first).trim_matches(['"', '\'', '(']);
        let second = words.find(|word| !word.starts_with('-')).unwrap_or("");
        let two = matches!(
            first,
            "cargo"
                | "git"
                | "go"
                | "npm"
                | "npx"
                | "pnpm"
                | "yarn"
                | "bun"
                | "kubectl"
                | "docker"
                | "gh"
                | "make"
                | "pip"
                | "python"
                | "python3"
                | "uv"
                | "helm"
                | "terraform"
                | "mise"
                | "node"
                | "mvn"
                | "gradle"
                | "dotnet"
        );
        let weight = match first {
            "cd" | "export" | "set" | "source" | "sleep" | "pwd" | "true" | "fi" | "done" | "pushd" => 0,
            "echo" | "printf" | "wait" | "mkdir" | "chmod" => 1,
            _ => 2,
        };
        if best.as_ref().is_none_or(|(seen, _)| weight > *seen) {
            let name = if two && !second.is_empty() { format!("{first} {}", second.trim_matches(['"', '\''])) } else { first.to_owned() };
            best = Some((weight, name));
        }
    }
    best.map_or_else(|| "shell".to_owned(), |(_, name)| clip(&name, 40).to_owned())
}

fn shell_target(line: &str) -> Option<String> {
    line.split_whitespace()
        .map(|word| word.trim_matches(['"', '\'', '(', ')', ';', ',', '`']))
        .find(|word| {
            !word.starts_with('-')
                && word.len() > 3
                && (word.contains("://") || super::names::has_file_extension(word) || (word.contains('/') && !word.starts_with("/dev")))
        })
        .map(|word| clip(word, 160).to_owned())
}

fn shell_intent(line: &str, program: &str) -> Intent {
    let first = program.split(' ').next().unwrap_or("");
    let second = program.split(' ').nth(1).unwrap_or("");
    let verifies = |line: &str| {
        ["test", "build", "lint", "check", "tsc", "pytest", "vitest", "jest", "clippy", "vet", "mypy", "ruff", "fmt"]
            .iter()
            .any(|word| line.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| part == *word))
    };
    match first {
        "cargo" | "go" | "npm" | "npx" | "pnpm" | "yarn" | "bun" | "make" | "mise" | "mvn" | "gradle" | "dotnet" | "uv" | "tox" | "cmake" | "ninja" => {
            if verifies(line) || matches!(second, "run" | "exec") {
                Intent::Verify
            } else {
                Intent::Operate
            }
        }
        "pytest" | "tsc" | "gcc" | "g++" | "clang" | "rustc" | "javac" | "golangci-lint" | "eslint" | "gofmt" | "vitest" | "jest" | "ruff" | "mypy" => {
            Intent::Verify
        }
        "git" | "gh" | "hg" | "jj" => match second {
            "diff" | "show" | "log" | "status" | "blame" | "grep" | "branch" | "ls-files" => Intent::Explore,
            _ => Intent::Record,
        },
        "ls" | "cat" | "head" | "tail" | "find" | "grep" | "rg" | "sed" | "awk" | "wc" | "tree" | "nl" | "less" | "stat" | "file" | "du" | "jq" | "diff"
        | "fd" | "pwd" | "which" | "sort" | "xxd" | "strings" | "env" => {
            let edits = first == "sed" && line.contains(" -i");
            let writes = first == "cat" && line.contains("<<") && line.contains('>');
            if edits || writes { Intent::Change } else { Intent::Explore }
        }
        "rm" | "mv" | "cp" | "mkdir" | "touch" | "tee" | "patch" | "apply_patch" | "chmod" | "perl" | "ln" => Intent::Change,
        "python" | "python3" | "node" if verifies(line) => Intent::Verify,
        _ => Intent::Operate,
    }
}

fn tool_intent(tool: &str) -> Intent {
    let has = |words: &[&str]| words.iter().any(|word| tool.contains(word));
    if has(&["todo", "task", "plan", "think", "agent", "topic", "skill", "thought"]) {
        Intent::Plan
    } else if has(&["edit", "write_file", "patch", "replace", "create_file"]) || tool == "write" || tool == "create" {
        Intent::Change
    } else if has(&["read", "grep", "glob", "search", "list", "view", "find", "fetch", "get", "query", "lookup"]) {
        Intent::Explore
    } else if has(&["test", "lint", "diagnostic", "build"]) {
        Intent::Verify
    } else {
        Intent::Operate
    }
}
