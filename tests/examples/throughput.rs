//! `throughput core|wasmtime CALLS.jsonl`: makes the calls that `npm run proof:throughput -- CALLS.jsonl` wrote, so
//! that hosts are measured by the same work. Prints one JSON line.
//!
//! Background work is done as the hosts do it: a slice after each call, the rest at the end.

#![allow(clippy::disallowed_methods)] // It measures time.

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use strata_host::conformance::Target;
use strata_host::{ComponentSource, Options, Runtime, Space};
use strata_tests::core_target::CoreTarget;

/// Longest time that background work may take after the last call.
const SETTLE: Duration = Duration::from_secs(600);

/// Ticks after one call; the engine works in slices.
const MAX_TICKS: u32 = 10_000;

/// A host under measurement.
trait Measured {
    fn call(&mut self, call: &str, with: Map<String, Value>) -> Result<Value>;
    /// What the host does by itself once it has answered a call: a slice of due work, if nobody calls meanwhile.
    fn after_a_call(&mut self) -> Result<()>;
    fn settle(&mut self) -> Result<()>;
    fn reopen(&mut self) -> Result<()>;
}

struct Core {
    target: CoreTarget,
}

impl Core {
    /// Does a slice of work; returns whether more is due.
    fn slice(&mut self) -> Result<bool> {
        let now = strata_host::now();
        Ok(self.call("tick", Map::from_iter([("now".to_owned(), json!(now))]))?.as_u64().is_some_and(|next| next <= now))
    }
}

impl Measured for Core {
    fn call(&mut self, call: &str, with: Map<String, Value>) -> Result<Value> {
        let result = self.target.call(call, with)?;
        result.map_err(|failure| anyhow::anyhow!("{call}: {failure}"))
    }

    fn after_a_call(&mut self) -> Result<()> {
        self.slice().map(drop)
    }

    fn settle(&mut self) -> Result<()> {
        for _ in 0..MAX_TICKS {
            if !self.slice()? {
                return Ok(());
            }
        }
        bail!("work does not come to rest")
    }

    fn reopen(&mut self) -> Result<()> {
        self.target.close(strata_host::now())?.map_err(|failure| anyhow::anyhow!("close: {failure}"))?;
        self.target.open(&Map::new(), strata_host::now())?.map_err(|failure| anyhow::anyhow!("open: {failure}"))?;
        Ok(())
    }
}

struct Wasmtime<'a> {
    runtime: Runtime,
    directory: &'a Path,
    space: Option<Space>,
}

impl Wasmtime<'_> {
    fn space(&self) -> Result<&Space> {
        self.space.as_ref().context("the space is open")
    }
}

impl Measured for Wasmtime<'_> {
    fn call(&mut self, call: &str, with: Map<String, Value>) -> Result<Value> {
        Ok(self.space()?.call_by_name(call, with)??)
    }

    fn after_a_call(&mut self) -> Result<()> {
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        self.space()?.settle(SETTLE)?;
        Ok(())
    }

    fn reopen(&mut self) -> Result<()> {
        if let Some(space) = self.space.take() {
            space.close()?;
        }
        self.space = Some(Space::open_with(&self.runtime, self.directory, Options::default())?);
        Ok(())
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [host, calls] = arguments.as_slice() else { bail!("throughput core|wasmtime CALLS.jsonl") };
    let calls: Vec<Value> = std::fs::read_to_string(calls)?.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let directory = tempfile::tempdir()?;
    let mut measured: Box<dyn Measured> = match host.as_str() {
        "core" => {
            let mut target = CoreTarget::new(directory.path());
            target.open(&Map::new(), strata_host::now())?.map_err(|failure| anyhow::anyhow!("open: {failure}"))?;
            Box::new(Core { target })
        }
        "wasmtime" => {
            let mut host = Wasmtime { runtime: Runtime::new(&ComponentSource::Embedded)?, directory: directory.path(), space: None };
            host.reopen()?;
            Box::new(host)
        }
        other => bail!("there is no host {other}"),
    };

    let (imports, questions): (Vec<&Value>, Vec<&Value>) = calls.iter().partition(|call| call["call"] == "agent-end");
    let started = Instant::now();
    let mut messages = 0;
    for call in imports {
        let report = measured.call("agent-end", arguments_of(call)?)?;
        messages += report["stored"].as_array().map_or(0, Vec::len);
        measured.after_a_call()?;
    }
    measured.settle()?;
    let imported = started.elapsed();

    let started = Instant::now();
    measured.reopen()?;
    let opened = started.elapsed();
    let mut times = Vec::new();
    for question in questions {
        let with = arguments_of(question)?;
        let asked = Instant::now();
        measured.call("before-prompt-build", with)?;
        times.push(asked.elapsed());
    }
    times.sort();
    let status: Value = serde_json::from_str(measured.call("status", Map::new())?.as_str().context("status is text")?)?;
    let milliseconds = |time: Duration| (time.as_secs_f64() * 1e5).round() / 100.0;
    println!(
        "{}",
        json!({
            "host": host,
            "messages": messages,
            "atoms": status["atoms"],
            "messages-per-second": (messages as f64 / imported.as_secs_f64()).round(),
            "reopen-ms": milliseconds(opened),
            "recall-p50-ms": milliseconds(times[times.len() / 2]),
            "recall-p95-ms": milliseconds(times[times.len() * 95 / 100]),
        })
    );
    Ok(())
}

fn arguments_of(call: &Value) -> Result<Map<String, Value>> {
    call["with"].as_object().cloned().context("a call has arguments")
}
