//! `strata conformance`: the scenarios on this host, so that another one can be compared with it.

use crate::cli::exit::{Exit, Usage};
use crate::cli::options::Settings;
use crate::cli::terminal::{Terminal, counted};
use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use strata_host::conformance::{self, Scenario, WasmtimeTarget};
use strata_host::{ComponentSource, Runtime};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  strata conformance                                    the scenarios of the repository
  strata conformance tests/scenarios/l1
  strata conformance --transcripts out && diff -r out ../other-host/out

Each scenario must hold, and its transcript must be the same on every host, byte for byte. Your own settings and data
play no part.")]
pub(crate) struct Conformance {
    /// The scenarios
    #[arg(value_name = "DIR", default_value = "tests/scenarios")]
    directory: PathBuf,
    /// Write the transcripts to OUT/<area>/<name>.jsonl
    #[arg(long, value_name = "OUT")]
    transcripts: Option<PathBuf>,
    /// Check this component instead of the one that is built in
    #[arg(long, value_name = "FILE")]
    component: Option<PathBuf>,
}

impl Conformance {
    pub(crate) fn run(&self, _settings: &Settings, terminal: &Terminal) -> Result<Exit> {
        if !self.directory.is_dir() {
            return Err(Usage(format!("there is no folder {}; name the one with the scenarios", self.directory.display())).into());
        }
        let scenarios = conformance::find(&self.directory)?;
        let source = self.component.clone().map_or(ComponentSource::Embedded, ComponentSource::File);
        let runtime = Runtime::new(&source)?;
        let bar = terminal.bar(scenarios.len() as u64, "  {msg} {bar:30} {pos}/{len}");
        let mut differences = Vec::new();
        let mut left_out = 0;
        for (name, path) in &scenarios {
            bar.set_message(name.clone());
            let scenario = Scenario::read(path)?;
            if let Some(reason) = scenario.skip.get("wasmtime") {
                left_out += 1;
                terminal.note(format!("{name}: left out: {reason}"));
            } else {
                let folder = tempfile::tempdir()?;
                let mut target = WasmtimeTarget::new(runtime.clone(), folder.path());
                let verdict = conformance::run(&scenario, &mut target).with_context(|| name.clone())?;
                differences.extend(verdict.differences.into_iter().map(|difference| format!("{name}: {difference}")));
                self.keep(name, &verdict.transcript)?;
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        if terminal.json {
            terminal.document(&json!({"scenarios": scenarios.len(), "left-out": left_out, "differences": differences}));
        } else {
            differences.iter().for_each(|difference| terminal.line(difference));
            terminal.line(format!("{}, {}", counted(scenarios.len() as u64, "scenario"), counted(differences.len() as u64, "difference")));
        }
        // No scenarios is no success: a wrong folder must not look like a host that conforms.
        Ok(if differences.is_empty() && !scenarios.is_empty() { Exit::Done } else { Exit::Failed })
    }

    fn keep(&self, name: &str, transcript: &str) -> Result<()> {
        let Some(out) = &self.transcripts else { return Ok(()) };
        let path = out.join(format!("{name}.jsonl"));
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        std::fs::write(&path, transcript).with_context(|| format!("cannot write {}", path.display()))
    }
}
