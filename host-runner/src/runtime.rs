//! What all spaces of a process may share: the compiled component and the engine that runs it.

mod module_cache;

use crate::instance::{self, HostState};
use anyhow::{Context, Result};
use std::fmt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;
use wasmtime::component::{InstancePre, Linker};
use wasmtime::{Config, Engine};

/// The component that was built with this library.
const EMBEDDED: &[u8] = include_bytes!(env!("STRATA_COMPONENT_PATH"));

/// How often running calls look whether their deadline has passed.
pub(crate) const EPOCH: Duration = Duration::from_millis(50);

/// Stack of the guest, in bytes. SQLite's parser and a deep JSON value need more than the default
/// half of it.
const GUEST_STACK: usize = 2 << 20;

/// Where the component comes from.
#[derive(Clone, Debug, Default)]
pub enum ComponentSource {
    /// The one that was built with this library.
    #[default]
    Embedded,
    /// A file.
    File(PathBuf),
}

/// A compiled component, ready to be instantiated for any number of spaces.
#[derive(Clone)]
pub struct Runtime {
    engine: Engine,
    pre: InstancePre<HostState>,
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Runtime")
    }
}

impl Runtime {
    /// Compiles the component, or loads the compiled form that an earlier start has left in the
    /// user's cache directory.
    pub fn new(source: &ComponentSource) -> Result<Self> {
        let engine = Engine::new(&config())?;
        let component = match source {
            ComponentSource::Embedded => module_cache::load(&engine, EMBEDDED)?,
            ComponentSource::File(path) => {
                let bytes = std::fs::read(path).with_context(|| format!("cannot read the component {}", path.display()))?;
                module_cache::load(&engine, &bytes)?
            }
        };
        let mut linker = Linker::new(&engine);
        instance::link(&mut linker)?;
        let pre = linker.instantiate_pre(&component).map_err(anyhow::Error::from).context("the component wants an import that this host does not offer")?;
        count_epochs(&engine)?;
        Ok(Self { engine, pre })
    }

    /// Returns the names of the component's imports and exports.
    pub fn interfaces(&self) -> (Vec<String>, Vec<String>) {
        let kind = self.pre.component().component_type();
        (kind.imports(&self.engine).map(|(name, _)| name.to_owned()).collect(), kind.exports(&self.engine).map(|(name, _)| name.to_owned()).collect())
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn pre(&self) -> &InstancePre<HostState> {
        &self.pre
    }
}

fn config() -> Config {
    let mut config = Config::new();
    config.wasm_component_model(true);
    config.epoch_interruption(true);
    config.max_wasm_stack(GUEST_STACK);
    config
}

/// Starts the thread that advances the epoch, for as long as the engine lives.
fn count_epochs(engine: &Engine) -> Result<()> {
    let engine = engine.weak();
    thread::Builder::new().name("strata-epoch".into()).spawn(move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            drop(engine);
            thread::sleep(EPOCH);
        }
    })?;
    Ok(())
}
