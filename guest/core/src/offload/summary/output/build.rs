//! Compilers, package managers and test runners.

use super::{Finding, Text, counted, finding, number_before, pick_lines, some_of};

/// `cargo build|check|clippy|test`.
pub(super) fn cargo(text: &Text<'_, '_>) -> Option<Finding<'static>> {
    let tested = text.has("test result: ");
    let compiled = text.has("could not compile") || text.has("error[E") || text.has("Finished `") || text.has("   Compiling ");
    if !tested && !compiled && !text.ran(&["cargo"]) {
        return None;
    }
    if !tested && !compiled {
        return None;
    }
    let (mut passed, mut failed) = (0, 0);
    let mut failing = Vec::new();
    let mut errors = Vec::new();
    let mut warnings = 0;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let line = line.trim();
        if line.starts_with("test result: ") {
            passed += number_before(line, " passed").unwrap_or(0);
            failed += number_before(line, " failed").unwrap_or(0);
        } else if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix("... FAILED")) {
            failing.push(name.trim().to_owned());
        } else if line.starts_with("error[") || (line.starts_with("error: ") && !line.contains("could not compile") && !line.contains("test failed")) {
            let place = lines.peek().map(|next| next.trim()).filter(|next| next.starts_with("--> "));
            errors.push(match place {
                Some(place) => format!("{} {line}", place.trim_start_matches("--> ")),
                None => line.to_owned(),
            });
        } else if line.starts_with("warning: ") && !line.contains("generated") {
            warnings += 1;
        }
    }
    let mut key_lines = errors.clone();
    key_lines.extend(pick_lines(text.body, |line| {
        line.contains("panicked at") || line.starts_with("assertion") || line.starts_with("left: ") || line.starts_with("right: ")
    }));
    let headline = if !errors.is_empty() {
        format!("cargo: {}: {}", counted(errors.len(), "error"), some_of(&errors, 2))
    } else if failed > 0 || !failing.is_empty() {
        format!("cargo test: {failed} failed, {passed} passed: {}", some_of(&failing, 5))
    } else if tested {
        format!("cargo test: all {passed} passed")
    } else {
        format!("cargo: built, {}", counted(warnings, "warning"))
    };
    let bad = failed > 0 || !failing.is_empty() || !errors.is_empty() || text.has("could not compile");
    Some(finding("cargo", headline, key_lines, bad))
}

/// `pytest` and `unittest`.
pub(super) fn pytest(text: &Text<'_, '_>) -> Option<Finding<'static>> {
    let summary = text.lines().rev().map(str::trim).find(|line| {
        (line.contains(" passed") || line.contains(" failed") || line.contains(" error")) && line.contains(" in ") && line.ends_with(['s', '=', ')'])
    });
    let unittest = text.lines().rev().take(6).any(|line| line.starts_with("FAILED (") || line == "OK") && text.has("Ran ");
    if !(summary.is_some() && (text.ran(&["pytest", "python"]) || text.has("==="))) && !unittest {
        return None;
    }
    let failing =
        pick_lines(text.body, |line| line.starts_with("FAILED ") || line.starts_with("ERROR ") || line.starts_with("FAIL: ") || line.starts_with("ERROR: "));
    let mut key_lines = failing.clone();
    key_lines.extend(pick_lines(text.body, |line| line.starts_with("E  ") || line.contains("Error:")));
    let total = match summary {
        Some(line) => line.trim_matches(['=', ' ']).to_owned(),
        None => pick_lines(text.body, |line| line.starts_with("Ran ") || line.starts_with("FAILED (") || line == "OK").join(", "),
    };
    let names: Vec<String> = failing.iter().map(|line| line.trim_start_matches("FAILED ").trim_start_matches("ERROR ").to_owned()).collect();
    let bad = !failing.is_empty() || total.contains("failed") || total.contains("error");
    let headline = if names.is_empty() { format!("tests: {total}") } else { format!("tests: {total}: {}", some_of(&names, 4)) };
    Some(finding("pytest", headline, key_lines, bad))
}

/// `go test`, `go build`, `go vet`.
pub(super) fn go_test(text: &Text<'_, '_>) -> Option<Finding<'static>> {
    let ok = text.lines().filter(|line| line.starts_with("ok  \t") || line.starts_with("ok \t") || line.starts_with("ok   ")).count();
    let failing: Vec<String> =
        text.lines().filter_map(|line| line.trim_start().strip_prefix("--- FAIL: ")).map(|rest| rest.split(' ').next().unwrap_or(rest).to_owned()).collect();
    let bad_packages = text.lines().filter(|line| line.starts_with("FAIL\t")).count();
    let passing = text.lines().filter(|line| line.trim_start().starts_with("--- PASS: ")).count();
    if ok == 0 && failing.is_empty() && bad_packages == 0 && passing == 0 {
        return None;
    }
    let errors = pick_lines(text.body, |line| has_place(line, ".go:") && !line.starts_with("at "));
    let mut key_lines: Vec<String> = Vec::new();
    if bad_packages > 0 || !failing.is_empty() {
        key_lines.extend(errors.iter().cloned());
        key_lines.extend(pick_lines(text.body, |line| line.starts_with("FAIL\t") || line.starts_with("panic:")));
    }
    let headline = if !failing.is_empty() {
        format!("go test: {} failed: {}; {}", failing.len(), some_of(&failing, 5), counted(ok, "package") + " ok")
    } else if bad_packages > 0 {
        format!("go test: {} failed to build or run: {}", counted(bad_packages, "package"), some_of(&errors, 2))
    } else if passing > 0 {
        format!("go test: all passed ({} tests, {})", passing, counted(ok, "package"))
    } else {
        format!("go test: all passed ({})", counted(ok, "package"))
    };
    Some(finding("go test", headline, key_lines, bad_packages > 0 || !failing.is_empty()))
}

/// jest, vitest, mocha, node:test and playwright.
pub(super) fn javascript_tests(text: &Text<'_, '_>) -> Option<Finding<'static>> {
    let totals = pick_lines(text.body, |line| {
        let counts = line.contains(" passed") || line.contains(" failed") || line.contains(" passing") || line.contains(" failing");
        (line.starts_with("Tests:") || line.starts_with("Tests  ") || line.starts_with("Test Files") || line.starts_with("Test Suites:")) && counts
            || line.split(' ').nth(1).is_some_and(|word| word == "passing" || word == "failing")
            || line.starts_with("# pass ")
            || line.starts_with("# fail ")
    });
    if totals.is_empty() {
        return None;
    }
    let failing = pick_lines(text.body, |line| {
        line.starts_with("✕") || line.starts_with("× ") || line.starts_with("FAIL ") || line.starts_with("● ") || line.starts_with("not ok ")
    });
    let mut key_lines = failing.clone();
    key_lines.extend(pick_lines(text.body, |line| {
        line.starts_with("AssertionError") || line.starts_with("Error: ") || line.contains("Expected:") || line.contains("Received:")
    }));
    let bad = !failing.is_empty() || totals.iter().any(|line| line.contains("failed") || line.contains("failing"));
    Some(finding("npm test", format!("tests: {}; {}", totals.join("; "), some_of(&failing, 4)), key_lines, bad))
}

/// `tsc` and linters that print `file(line,column): error` or `file:line:column - error`.
pub(super) fn typescript(text: &Text<'_, '_>) -> Option<Finding<'static>> {
    let errors: Vec<&str> = text.lines().map(str::trim).filter(|line| line.contains("error TS")).collect();
    if errors.is_empty() {
        return None;
    }
    let headline = format!("tsc: {}: {}", counted(errors.len(), "error"), errors[0]);
    let key_lines = pick_lines(text.body, |line| line.contains("error TS"));
    Some(finding("tsc", headline, key_lines, true))
}

/// npm, pnpm, yarn and pip installs.
pub(super) fn npm(text: &Text<'_, '_>) -> Option<Finding<'static>> {
    let errors = pick_lines(text.body, |line| line.starts_with("npm ERR!") || line.starts_with("npm error") || line.starts_with("ERR_PNPM"));
    if !errors.is_empty() {
        let first: Vec<&String> = errors.iter().take(3).collect();
        let headline = format!("npm failed: {}", some_of(&first, 3));
        return Some(finding("npm", headline, errors, true));
    }
    let done = pick_lines(text.body, |line| {
        (line.starts_with("added ") || line.starts_with("removed ") || line.starts_with("changed ")) && line.contains(" package")
            || line.starts_with("Successfully installed ")
            || line.starts_with("found ") && line.contains("vulnerabilit")
            || line.starts_with("up to date")
    });
    if done.is_empty() {
        return None;
    }
    Some(finding("install", done.join("; "), Vec::new(), false))
}

/// gcc, clang, go build, javac, make: lines of `file:line: error`.
pub(super) fn compiler(text: &Text<'_, '_>) -> Option<Finding<'static>> {
    let is_error = |line: &str| {
        line.contains(": error:")
            || line.contains(": fatal error:")
            || line.contains("undefined reference to")
            || (line.starts_with("make") && line.contains("***"))
            || (has_place(line, ".go:") && text.ran(&["go build", "go vet", "golangci-lint", "go run"]))
    };
    let errors = text.lines().filter(|line| is_error(line.trim())).count();
    let warnings = text.lines().filter(|line| line.contains(": warning:")).count();
    if errors == 0 && warnings == 0 {
        return None;
    }
    // A search that prints code with the word in it is not a compiler.
    if text.ran(&["grep", "rg", "sed -n", "cat"]) && !text.ran(&["gcc", "make", "clang", "go build", "go vet"]) {
        return None;
    }
    let key_lines = if errors > 0 { pick_lines(text.body, is_error) } else { pick_lines(text.body, |line| line.contains(": warning:")) };
    let headline = format!("{}, {}: {}", counted(errors, "error"), counted(warnings, "warning"), some_of(&key_lines, 1));
    Some(finding("compiler", headline, key_lines, errors > 0))
}

/// Returns whether `line` starts with `path<mark>digits`.
fn has_place(line: &str, mark: &str) -> bool {
    line.find(mark).is_some_and(|at| at < 160 && !line[..at].contains(' ') && line[at + mark.len()..].starts_with(|c: char| c.is_ascii_digit()))
}
