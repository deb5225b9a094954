//! One instance of the component: its world, its limits, and the one way into it.

use crate::contract::{Abilities, EmbeddingModel, LlmRequest, LogLevel};
use crate::exports::Exports;
use crate::models::{Models, Request};
use crate::runtime::{EPOCH, Runtime};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use wasmtime::component::{Linker, ResourceTable};
use wasmtime::{ResourceLimiter, Store, StoreContextMut};
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

/// What the guest may write to its standard error: a panic's place is looked for there.
const STDERR_BYTES: usize = 16 << 10;

/// Bounds of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a hook, a tool or a slice of work may run before it is stopped.
    pub call_deadline: Duration,
    /// How long opening, and what people start (rebuild, export, forget, ...), may run.
    pub maintenance_deadline: Duration,
    /// Memory of the guest, in bytes.
    pub memory_bytes: usize,
}

impl Limits {
    /// Twelve times the slowest hook measured (a 64 MiB tool result); a call that takes longer hangs.
    pub const CALL_DEADLINE: Duration = Duration::from_secs(60);
    /// A rebuild of a million messages takes minutes.
    pub const MAINTENANCE_DEADLINE: Duration = Duration::from_secs(3600);
    /// A space of a million rows needs 88 MB, a tool result of 64 MiB some copies of itself.
    pub const MEMORY_BYTES: usize = 1 << 30;
}

impl Default for Limits {
    fn default() -> Self {
        Self { call_deadline: Self::CALL_DEADLINE, maintenance_deadline: Self::MAINTENANCE_DEADLINE, memory_bytes: Self::MEMORY_BYTES }
    }
}

/// The instance died in a call. Everything that was acknowledged before is on the disk.
#[derive(Clone, Debug)]
pub(crate) struct Trap {
    pub(crate) call: &'static str,
    pub(crate) reason: String,
}

/// What a host does with a line of the engine's log.
pub(crate) type LogSink = Arc<dyn Fn(LogLevel, &str) + Send + Sync>;

/// What the engine asked for in a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// A request to a model.
    Submit(Request),
    /// The request with this id is not wanted any more.
    Cancel(String),
}

/// The world of one instance.
pub(crate) struct HostState {
    wasi: WasiCtx,
    table: ResourceTable,
    memory: MemoryGuard,
    models: Arc<dyn Models>,
    log: LogSink,
    asked: Vec<Asked>,
}

impl WasiView for HostState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// Refuses memory beyond the limit and remembers the most that was held.
struct MemoryGuard {
    limit: usize,
    peak: usize,
}

impl ResourceLimiter for MemoryGuard {
    fn memory_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        if desired > self.limit {
            return Ok(false);
        }
        self.peak = self.peak.max(desired);
        Ok(true)
    }

    fn table_growing(&mut self, _current: usize, _desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        // Rust components grow no tables; a table that states no maximum stays as it is.
        Ok(maximum.is_some())
    }
}

/// Offers the contract's imports, and WASI without network.
pub(crate) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_sync(linker)?;
    let mut llm = linker.instance("strata:memory/llm@0.1.0")?;
    llm.func_wrap("capabilities", |store: StoreContextMut<'_, HostState>, (): ()| -> wasmtime::Result<(Abilities,)> {
        Ok((store.data().models.abilities(),))
    })?;
    llm.func_wrap("submit", |mut store: StoreContextMut<'_, HostState>, (id, request): (String, LlmRequest)| {
        store.data_mut().asked.push(Asked::Submit(Request::Ask { id, request }));
        Ok(())
    })?;
    llm.func_wrap("cancel", cancel)?;
    let mut embedding = linker.instance("strata:memory/embedding@0.1.0")?;
    embedding.func_wrap("describe", |store: StoreContextMut<'_, HostState>, (): ()| -> wasmtime::Result<(Option<EmbeddingModel>,)> {
        Ok((store.data().models.embedding(),))
    })?;
    embedding.func_wrap("submit", |mut store: StoreContextMut<'_, HostState>, (id, texts): (String, Vec<String>)| {
        store.data_mut().asked.push(Asked::Submit(Request::Embed { id, texts }));
        Ok(())
    })?;
    embedding.func_wrap("cancel", cancel)?;
    linker.instance("strata:memory/log@0.1.0")?.func_wrap("line", |store: StoreContextMut<'_, HostState>, (level, text): (LogLevel, String)| {
        (store.data().log)(level, &text);
        Ok(())
    })?;
    Ok(())
}

fn cancel(mut store: StoreContextMut<'_, HostState>, (id,): (String,)) -> wasmtime::Result<()> {
    store.data_mut().asked.push(Asked::Cancel(id));
    Ok(())
}

/// A live instance. Lives on the thread that made it.
pub(crate) struct Instance {
    store: Store<HostState>,
    exports: Exports,
    stderr: MemoryOutputPipe,
    limits: Limits,
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Instance")
    }
}

impl Instance {
    /// Makes an instance that sees `directory` and nothing else.
    pub(crate) fn new(runtime: &Runtime, directory: &Path, limits: Limits, models: Arc<dyn Models>, log: LogSink) -> wasmtime::Result<Self> {
        let stderr = MemoryOutputPipe::new(STDERR_BYTES);
        let mut wasi = WasiCtxBuilder::new();
        // Before the directory is opened: 1.8 to 2.7 times the inserts, at the price of a thread of
        // its own for each space.
        wasi.allow_blocking_current_thread(true);
        wasi.stderr(stderr.clone());
        wasi.preopened_dir(directory, ".", FsPerms::ReadWrite)?;
        let state = HostState {
            wasi: wasi.build(),
            table: ResourceTable::new(),
            memory: MemoryGuard { limit: limits.memory_bytes, peak: 0 },
            models,
            log,
            asked: Vec::new(),
        };
        let mut store = Store::new(runtime.engine(), state);
        store.limiter(|state| &mut state.memory);
        store.epoch_deadline_trap();
        store.set_epoch_deadline(epochs(limits.call_deadline));
        let instance = runtime.pre().instantiate(&mut store)?;
        let exports = Exports::load(&mut store, &instance)?;
        Ok(Self { store, exports, stderr, limits })
    }

    /// Calls an export under a deadline. After a trap the instance must be dropped.
    pub(crate) fn enter<R>(
        &mut self,
        call: &'static str,
        maintenance: bool,
        export: impl FnOnce(&Exports, &mut Store<HostState>) -> wasmtime::Result<R>,
    ) -> Result<R, Trap> {
        let deadline = if maintenance { self.limits.maintenance_deadline } else { self.limits.call_deadline };
        self.store.set_epoch_deadline(epochs(deadline));
        export(&self.exports, &mut self.store).map_err(|error| Trap { call, reason: self.reason(&error, deadline) })
    }

    /// Returns what was asked for since the last time, in order.
    pub(crate) fn asked(&mut self) -> Vec<Asked> {
        std::mem::take(&mut self.store.data_mut().asked)
    }

    /// Returns the most memory that the guest has held, in bytes.
    pub(crate) fn peak_memory(&self) -> usize {
        self.store.data().memory.peak
    }

    /// Says why a call died. Of a panic only the place is told: its words may quote a conversation.
    fn reason(&self, error: &wasmtime::Error, deadline: Duration) -> String {
        let trap = error.downcast_ref::<wasmtime::Trap>();
        if trap == Some(&wasmtime::Trap::Interrupt) {
            return format!("it ran longer than its deadline of {} ms", deadline.as_millis());
        }
        let stderr = String::from_utf8_lossy(&self.stderr.contents()).into_owned();
        let place = stderr.lines().find_map(|line| line.split_once("panicked at ").map(|(_, place)| place.trim_end_matches(':').to_owned()));
        let exhausted = stderr.contains("memory allocation of");
        match (place, exhausted, trap) {
            (Some(place), ..) => format!("panicked at {place}"),
            (None, true, _) => format!("it needed more memory than its limit of {} bytes", self.limits.memory_bytes),
            (None, false, Some(trap)) => trap.to_string(),
            (None, false, None) => error.root_cause().to_string(),
        }
    }
}

fn epochs(deadline: Duration) -> u64 {
    u64::try_from(deadline.as_millis() / EPOCH.as_millis()).unwrap_or(u64::MAX / 2).saturating_add(1)
}
