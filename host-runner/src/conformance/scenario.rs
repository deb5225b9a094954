//! A scenario as a file.

use crate::contract::{Abilities, EmbeddingModel, Instant};
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What a step expects of the host's result.
pub type Expected = Value;

/// A scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Scenario {
    /// What must hold, one sentence.
    pub about: String,
    /// Settings of the engine.
    #[serde(default)]
    pub config: Map<String, Value>,
    /// The language model; none if absent.
    #[serde(default)]
    pub llm: Abilities,
    /// The embedding model; none if absent.
    #[serde(default)]
    pub embedding: Option<EmbeddingModel>,
    /// When the space is opened.
    #[serde(default)]
    pub at: Instant,
    /// Requests that opening submits.
    #[serde(default)]
    pub requests: Vec<Expected>,
    /// Hosts that leave this scenario out, with the reason.
    #[serde(default)]
    pub skip: BTreeMap<String, String>,
    /// What happens.
    pub steps: Vec<Step>,
}

/// A step.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Step {
    /// The export or other call.
    pub call: String,
    /// Its arguments.
    #[serde(default)]
    pub with: Map<String, Value>,
    /// What its result must match.
    #[serde(default)]
    pub expect: Option<Expected>,
    /// The requests that it must submit.
    #[serde(default)]
    pub requests: Vec<Expected>,
    /// The requests that it must cancel, if named.
    #[serde(default)]
    pub cancelled: Option<Vec<String>>,
    /// For readers.
    #[serde(default)]
    pub note: Option<String>,
}

impl Scenario {
    /// Reads a scenario.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is no scenario", path.display()))
    }
}

/// Returns the scenario files under `directory`, sorted, each with its name (`area/name`).
pub fn find(directory: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    collect(directory, "", &mut found)?;
    found.sort();
    Ok(found)
}

fn collect(directory: &Path, prefix: &str, found: &mut Vec<(String, PathBuf)>) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{prefix}{name}/"), found)?;
        } else if let Some(stem) = name.strip_suffix(".json") {
            found.push((format!("{prefix}{stem}"), entry.path()));
        }
    }
    Ok(())
}
