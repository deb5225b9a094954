//! Searches, directory listings, tables.

use std::collections::BTreeMap;

use super::{Finding, Text, counted, finding, pick_lines, some_of};

/// grep, ripgrep, and search tools: matches by file.
pub(super) fn search(text: &Text<'_, '_>) -> Option<Finding<'static>> {
    let lower = text.command.tool.to_ascii_lowercase();
    let searches = text.ran(&["grep", "rg", "rg -n", "ag ", "git grep"]) || lower.contains("grep") || lower.contains("search") || lower == "glob";
    if !searches {
        return None;
    }
    let first = text.lines().next().unwrap_or("");
    if first.starts_with("No matches") || first.starts_with("No files") {
        return Some(finding("search", "no matches".to_owned(), Vec::new(), false));
    }
    let mut by_file: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    let mut matches = 0;
    for line in text.lines() {
        let mut parts = line.splitn(3, [':']);
        let (Some(path), second) = (parts.next(), parts.next()) else { continue };
        let is_path = (path.contains('/') || path.contains('.')) && !path.contains(' ') && path.len() < 240;
        let number = second.filter(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
        if !is_path {
            if second.is_some() && path.bytes().all(|byte| byte.is_ascii_digit()) && !path.is_empty() {
                matches += 1;
            }
            continue;
        }
        matches += 1;
        let places = by_file.entry(path).or_insert_with(|| {
            order.push(path);
            Vec::new()
        });
        if let Some(number) = number {
            places.push(number);
        }
    }
    if matches == 0 {
        return None;
    }
    let files: Vec<String> = order
        .iter()
        .map(|path| {
            let places = &by_file[path];
            if places.is_empty() { (*path).to_owned() } else { format!("{path}:{}", some_of(places, 6).replace(", ", ",")) }
        })
        .collect();
    let headline = format!("{} in {}: {}", counted(matches, "match"), counted(files.len().max(1), "file"), some_of(&files, 4));
    Some(finding("search", headline, files, false))
}

/// psql, mysql and sqlite.
pub(super) fn sql(text: &Text<'_, '_>) -> Option<Finding<'static>> {
    let errors =
        pick_lines(text.body, |line| line.starts_with("ERROR:") || line.starts_with("ERROR ") && line.contains("at line") || line.starts_with("Parse error"));
    let queried = text.ran(&["psql", "mysql", "sqlite3", "sqlite", "duckdb", "clickhouse-client"]) || text.command.tool.to_ascii_lowercase().contains("sql");
    if queried && !errors.is_empty() {
        return Some(finding("sql", format!("sql failed: {}", errors[0]), errors, true));
    }
    let rows = text.lines().rev().take(4).map(str::trim).find(|line| {
        (line.starts_with('(') && (line.ends_with(" rows)") || line.ends_with(" row)"))) || line.contains(" rows in set") || line.contains(" row in set")
    });
    let boxed = text.lines().filter(|line| line.trim_start().starts_with('|')).count();
    if rows.is_none() && !(queried && boxed > 1) {
        return None;
    }
    let header = text.lines().map(str::trim).find(|line| line.contains('|')).unwrap_or("");
    let columns: Vec<&str> = header.split('|').map(str::trim).filter(|column| !column.is_empty()).collect();
    let count = rows.map_or_else(|| counted(boxed.saturating_sub(1), "row"), |line| line.trim_matches(['(', ')']).to_owned());
    let body: Vec<String> = text.lines().filter(|line| line.contains('|')).skip(1).map(|line| line.trim().to_owned()).take(4).collect();
    let headline = format!("{count}; {}: {}", counted(columns.len(), "column"), some_of(&columns, 12));
    Some(finding("sql", headline, body, false))
}

/// Columns under a heading (kubectl, docker, ps), `ls`, `find` and lists of paths.
pub(super) fn table_or_listing(text: &Text<'_, '_>) -> Option<Finding<'static>> {
    table(text).or_else(|| listing(text))
}

fn table(text: &Text<'_, '_>) -> Option<Finding<'static>> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let header = lines.first()?;
    let columns: Vec<&str> = header.split("  ").map(str::trim).filter(|column| !column.is_empty()).collect();
    let shouted = columns.len() >= 2
        && columns.iter().all(|column| column.bytes().any(|byte| byte.is_ascii_uppercase()) && !column.bytes().any(|byte| byte.is_ascii_lowercase()));
    if !shouted || lines.len() < 2 {
        return None;
    }
    const UNWELL: [&str; 16] = [
        "Error", "CrashLoop", "ImagePull", "Pending", "Failed", "OOMKilled", "Evicted", "Unhealthy", "BackOff", "NotReady", "Exited", "Terminating", "Unknown",
        "Warning", "0/1", "0/2",
    ];
    let unwell: Vec<String> =
        lines[1..].iter().filter(|line| UNWELL.iter().any(|word| line.contains(word))).map(|line| super::super::command::one_line(line)).collect();
    let names: Vec<&str> = lines[1..].iter().filter_map(|line| line.split_whitespace().next()).collect();
    let headline = if unwell.is_empty() {
        format!("{} of {}: {}", counted(lines.len() - 1, "row"), columns.join("/"), some_of(&names, 8))
    } else {
        format!("{} of {} unwell: {}", unwell.len(), counted(lines.len() - 1, "row"), some_of(&unwell, 2))
    };
    Some(finding("table", headline, unwell, false))
}

fn listing(text: &Text<'_, '_>) -> Option<Finding<'static>> {
    let lists = text.ran(&["ls", "find", "fd", "tree", "git ls-files", "du"]);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let paths = lines.iter().filter(|line| line.contains('/') && !line.trim().contains(' ')).count();
    let long = lines
        .iter()
        .filter(|line| line.len() > 10 && line.as_bytes()[0].is_ascii() && (line.starts_with("-r") || line.starts_with("dr") || line.starts_with("lr")))
        .count();
    let shell = text.command.shell.as_deref().unwrap_or("").trim_start();
    let is_listing = long * 2 > lines.len()
        || (paths * 10 > lines.len() * 8 && lines.len() > 2)
        || (lists && (shell.starts_with("ls") || shell.starts_with("find") || shell.starts_with("tree")));
    if !is_listing {
        return None;
    }
    let entries: Vec<&str> = lines
        .iter()
        .filter(|line| !line.starts_with("total "))
        .filter_map(|line| if long > 0 { line.split_whitespace().last() } else { Some(line.trim()) })
        .filter(|entry| *entry != "." && *entry != "..")
        .collect();
    let keep: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
    Some(finding("listing", format!("{}: {}", counted(entries.len(), "entry"), some_of(&entries, 12)), keep, false))
}
