//! Form is tested too: sizes, `@since`, forgotten tests, and that README's commands exist.

use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a file past which it needs a reason in `tests/long_files.txt`.
const MAX_LINES: usize = 500;

/// Folders that are not ours or not written by hand.
const NOT_OURS: &[&str] = &["target", "node_modules", ".git", "dist", "deps"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the repository's files with one of these endings, as paths from its root with `/`.
fn files(endings: &[&str]) -> Vec<String> {
    fn collect(directory: &Path, prefix: &str, endings: &[&str], found: &mut Vec<String>) {
        for entry in fs::read_dir(directory).expect("a folder of the repository") {
            let entry = entry.expect("a folder of the repository");
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type().expect("it exists").is_dir() {
                if !NOT_OURS.contains(&name.as_str()) {
                    collect(&entry.path(), &format!("{prefix}{name}/"), endings, found);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(format!("{prefix}{name}"));
            }
        }
    }
    let mut found = Vec::new();
    collect(&root(), "", endings, &mut found);
    found.sort();
    found
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn a_long_file_has_a_reason_and_a_reason_has_a_long_file() {
    let reasons = read("tests/long_files.txt");
    let known: Vec<&str> = reasons.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(": ").map(|(path, _)| path)).collect();
    let long: Vec<String> = files(&[".rs", ".js", ".mjs", ".ts", ".py"]).into_iter().filter(|path| read(path).lines().count() > MAX_LINES).collect();
    for path in &long {
        assert!(known.contains(&path.as_str()), "{path} has more than {MAX_LINES} lines; divide it, or give the reason in tests/long_files.txt");
    }
    for path in known {
        assert!(long.iter().any(|long| long == path), "{path} is not long any more; take it out of tests/long_files.txt");
    }
}

#[test]
fn every_item_of_the_contract_says_since_when() {
    for path in files(&[".wit"]).into_iter().filter(|path| path.starts_with("wit/")) {
        let text = read(&path);
        let mut gated = false;
        let mut world = false;
        for (number, line) in text.lines().map(str::trim).enumerate() {
            world |= line.starts_with("world ");
            let first = line.split([' ', '(', ':', '{']).next().unwrap_or_default();
            let item = matches!(first, "interface" | "record" | "enum" | "variant" | "type" | "flags" | "resource") || line.contains(": func(");
            // A world's own items are as old as the world.
            if item && !world {
                assert!(gated, "{path}:{}: `{line}` has no @since", number + 1);
            }
            gated = line.starts_with("@since(") || (gated && line.starts_with("///"));
        }
    }
}

#[test]
fn an_ignored_test_says_why() {
    // Written apart, so that this file does not find itself.
    let bare = format!("#[{}]", "ignore");
    for path in files(&[".rs"]) {
        assert!(!read(&path).contains(&bare), "{path} ignores a test without a reason");
    }
}

#[test]
fn nothing_is_left_to_do_in_the_code() {
    let marks = [format!("TO{}", "DO"), format!("FIX{}", "ME"), format!("XX{}", "X:")];
    for path in files(&[".rs", ".js", ".mjs", ".wit", ".sql"]) {
        let text = read(&path);
        // A test may say the word to a cleaner that must keep it.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for mark in &marks {
            assert!(!code.lines().any(|line| line.trim_start().starts_with("//") && line.contains(mark.as_str())), "{path} has a {mark}");
        }
    }
}

#[test]
fn every_target_that_readme_names_is_in_the_makefile() {
    let (readme, makefile) = (read("README.md"), read("Makefile"));
    let mut named = 0;
    for words in readme.split(['\n', '`', '#']) {
        if let Some(rest) = words.trim().strip_prefix("make ") {
            let target = rest.split_whitespace().next().unwrap_or_default();
            assert!(makefile.lines().any(|line| line.starts_with(&format!("{target}:"))), "`make {target}` is in README and not in the Makefile");
            named += 1;
        }
    }
    assert!(named >= 2, "README shows `make demo` and `make test`");
}

#[test]
fn every_command_that_readme_names_exists() {
    let (readme, commands) = (read("README.md"), read("host-runner/src/cli.rs"));
    let mut named = 0;
    for words in readme.split(['\n', '`', '#']) {
        if let Some(rest) = words.trim().strip_prefix("strata ") {
            let Some(name) = rest
                .split_whitespace()
                .next()
                .filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(|c| c.is_ascii_lowercase() || c == '-'))
            else {
                continue;
            };
            let variant: String = name.split('-').map(|part| part[..1].to_uppercase() + &part[1..]).collect();
            assert!(commands.contains(&format!("    {variant}(")), "`strata {name}` is in README and not a command");
            named += 1;
        }
    }
    assert!(named >= 5, "README shows the commands");
}

#[test]
fn every_scenario_that_the_proofs_name_exists() {
    let areas: Vec<String> =
        files(&[".json"]).into_iter().filter_map(|path| path.strip_prefix("tests/scenarios/")?.strip_suffix(".json").map(str::to_owned)).collect();
    let proofs = read("docs/proofs.md");
    let folders: Vec<&str> = areas.iter().filter_map(|name| name.split_once('/').map(|(folder, _)| folder)).collect();
    let mut named = 0;
    for words in proofs.split('`').skip(1).step_by(2) {
        let Some((folder, name)) = words.split_once('/') else { continue };
        if folders.contains(&folder) && !name.contains(['.', '/', ' ']) {
            assert!(areas.iter().any(|area| area == words), "docs/proofs.md names the scenario `{words}`, which does not exist");
            named += 1;
        }
    }
    assert!(named >= 40, "docs/proofs.md says which scenario shows what");
}

#[test]
fn make_test_runs_the_tests_that_need_hosts() {
    assert!(read("Makefile").contains("--features strata-tests/hosts"), "conformance would be left out");
}
