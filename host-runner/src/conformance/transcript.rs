//! A scenario's run: every step's whole result, what it asked for, and the files at the end.

use super::matching::mismatch;
use super::{Answer, Asked, Scenario, ScriptedModels, Step, Target};
use crate::contract::Instant;
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What was not as the scenario says; empty if all was.
    pub differences: Vec<String>,
    /// The transcript, as `tests/README.md` describes it.
    pub transcript: String,
}

/// Runs a scenario to its end. A step that is not as expected does not end the run.
pub fn run(scenario: &Scenario, target: &mut dyn Target) -> Result<Verdict> {
    let mut settings = scenario.config.clone();
    settings.insert("holder".into(), json!({"id": "conformance"}));
    let mut run = Run { target, settings, time: scenario.at, verdict: Verdict { differences: Vec::new(), transcript: String::new() } };
    run.target.set_models(ScriptedModels { llm: scenario.llm.clone(), embedding: scenario.embedding.clone() });
    let opened = run.target.open(&run.settings, scenario.at)?;
    let open = Step { call: "open".into(), with: Map::new(), expect: None, requests: scenario.requests.clone(), cancelled: None, note: None };
    run.record(0, &open, opened)?;
    for (index, step) in scenario.steps.iter().enumerate() {
        let answer = run.perform(step).with_context(|| format!("step {} ({})", index + 1, step.call))?;
        run.record(index + 1, step, answer)?;
    }
    // A scenario may end closed; what closing asks for is not recorded.
    let _closed_already = run.target.close(run.time)?;
    run.files()?;
    Ok(run.verdict)
}

struct Run<'a> {
    target: &'a mut dyn Target,
    settings: Map<String, Value>,
    /// The last time that a step named.
    time: Instant,
    verdict: Verdict,
}

impl Run<'_> {
    fn perform(&mut self, step: &Step) -> Result<Answer> {
        if let Some(time) = step.with.get("at").or_else(|| step.with.get("now")).and_then(Value::as_u64) {
            self.time = time;
        }
        let argument = |name: &str| step.with.get(name).and_then(Value::as_str).with_context(|| format!("`{name}` is missing"));
        Ok(match step.call.as_str() {
            "close" => self.target.close(self.time)?,
            "reopen" => match self.target.close(self.time)? {
                Ok(_closed) => self.target.open(&self.settings, self.time)?,
                refused => refused,
            },
            "crash" => {
                self.target.crash()?;
                self.target.open(&self.settings, self.time)?
            }
            "models" => {
                let llm = step.with.get("llm").cloned().map_or_else(|| Ok(Default::default()), serde_json::from_value)?;
                let embedding = step.with.get("embedding").cloned().map_or_else(|| Ok(None), serde_json::from_value)?;
                self.target.set_models(ScriptedModels { llm, embedding });
                Ok(Value::Null)
            }
            "file" => Ok(match fs::read(inside(self.target.directory(), argument("path")?)?) {
                Ok(bytes) => Value::String(String::from_utf8(bytes).context("the file is no text")?),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Value::Null,
                Err(error) => return Err(error.into()),
            }),
            "write-file" => {
                let path = inside(self.target.directory(), argument("path")?)?;
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent)?;
                }
                fs::write(path, argument("text")?)?;
                Ok(Value::Null)
            }
            "files" => Ok(json!(files(self.target.directory())?)),
            export => self.target.call(export, step.with.clone())?,
        })
    }

    /// Writes the step's line and compares it with what the step expects.
    fn record(&mut self, number: usize, step: &Step, answer: Answer) -> Result<()> {
        let Asked { requests, cancelled } = self.target.asked()?;
        let mut differences = Vec::new();
        let refusal = step.expect.as_ref().and_then(|expect| expect.get("$failure"));
        match (&answer, refusal, &step.expect) {
            (Err(failure), Some(code), _) => differences.extend(mismatch(code, &failure["code"])),
            (Ok(result), Some(code), _) => differences.push(format!("expected the refusal {code}, found {result}")),
            (Err(failure), None, _) => differences.push(format!("refused: {failure}")),
            (Ok(result), None, Some(expect)) => differences.extend(mismatch(expect, result)),
            (Ok(_), None, None) => {}
        }
        differences.extend(mismatch(&Value::Array(step.requests.clone()), &json!(requests)).map(|difference| format!("requests: {difference}")));
        if let Some(expected) = &step.cancelled {
            differences.extend(mismatch(&json!(expected), &json!(cancelled)).map(|difference| format!("cancelled: {difference}")));
        }
        self.verdict.differences.extend(differences.into_iter().map(|difference| format!("step {number} ({}): {difference}", step.call)));
        let mut line = json!({"step": number, "call": step.call, "requests": requests, "cancelled": cancelled});
        match answer {
            Ok(result) => line["result"] = result,
            Err(failure) => line["failure"] = failure,
        }
        self.write(line);
        Ok(())
    }

    fn files(&mut self) -> Result<()> {
        let directory = self.target.directory().to_path_buf();
        for path in files(&directory)? {
            let hash = Sha256::digest(fs::read(directory.join(&path))?);
            let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            self.write(json!({"file": path, "sha256": hex}));
        }
        Ok(())
    }

    fn write(&mut self, mut line: Value) {
        line.sort_all_objects();
        self.verdict.transcript.push_str(&line.to_string());
        self.verdict.transcript.push('\n');
    }
}

/// Returns a path of a scenario inside the data directory.
fn inside(directory: &Path, path: &str) -> Result<PathBuf> {
    let relative = Path::new(path);
    if !relative.components().all(|part| matches!(part, Component::Normal(_))) {
        bail!("{path:?} is not inside the data directory");
    }
    Ok(directory.join(relative))
}

/// Returns the files of the data directory that are the same on every host: the database's bytes are
/// not promised, and the lock names its holder.
fn files(directory: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    collect(directory, "", &mut found)?;
    found.sort();
    Ok(found)
}

fn collect(directory: &Path, prefix: &str, found: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if path == "lock" || path.starts_with("strata.db") {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{path}/"), found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}
