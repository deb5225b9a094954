//! A space: a handle to the thread on which one data directory is open.

mod driver;

pub(crate) use driver::AnswerSender;

use crate::contract::{Failure, Instant, LogLevel, Opened};
use crate::instance::{Asked, Instance, Limits, LogSink, Trap};
use crate::models::{Models, NoModels};
use crate::runtime::{ComponentSource, Runtime};
use driver::{Driver, Ending, Job};
use serde_json::{Map, Value};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Stack of a space's thread, in bytes: the guest's and the host's calls below it.
const THREAD_STACK: usize = 8 << 20;

/// Who tells the time to the engine's work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// The system's clock: the space ticks by itself, performs requests and delivers answers.
    #[default]
    System,
    /// The caller, who takes requests by `take_requests` and calls `tick` and `complete`.
    Manual {
        /// When the space is opened.
        opened_at: Instant,
    },
}

/// How to open a space.
#[derive(Clone)]
pub struct Options {
    /// The engine's settings, as its `config-schema` says.
    pub settings: Map<String, Value>,
    /// The host's models.
    pub models: Arc<dyn Models>,
    /// Takes the engine's log lines.
    pub log: LogSink,
    /// Who tells the time.
    pub clock: Clock,
    /// Bounds of the instance.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self { settings: Map::new(), models: Arc::new(NoModels), log: Arc::new(|_: LogLevel, _: &str| {}), clock: Clock::System, limits: Limits::default() }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("settings", &self.settings).field("clock", &self.clock).field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Why a call on a space did nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpaceError {
    /// The engine refused.
    Refused(Failure),
    /// The instance died in this call and was replaced; all that was acknowledged is still there.
    /// Whether this call was done is not known; repeating it is harmless for every hook.
    Trapped {
        /// The export.
        call: String,
        /// Why, for people.
        reason: String,
    },
    /// The host itself failed: no runtime, no thread, no data directory.
    Host(String),
}

impl fmt::Display for SpaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(failure) => write!(f, "{failure}"),
            Self::Trapped { call, reason } => write!(f, "{call} was stopped: {reason}; nothing acknowledged is lost, and the call may be repeated"),
            Self::Host(words) => f.write_str(words),
        }
    }
}

impl std::error::Error for SpaceError {}

impl From<Failure> for SpaceError {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure)
    }
}

/// What a space is doing after `settle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Nothing is due and nothing is in flight; otherwise the time was up.
    pub quiet: bool,
    /// Requests in flight.
    pub in_flight: usize,
    /// When work is due next, if it waits for time.
    pub next: Option<Instant>,
}

/// Whether a call can make work due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Event,
    Read,
}

/// An open space. All methods may be called from any thread; the calls run one after another.
/// Dropping it closes it.
pub struct Space {
    jobs: Sender<Job>,
    thread: Option<JoinHandle<()>>,
    opened: Opened,
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Space").field("opened", &self.opened).finish_non_exhaustive()
    }
}

impl Space {
    /// Opens the space in `directory` with the component of this library; makes the directory if
    /// there is none. A process with many spaces makes one `Runtime` and uses `open_with`.
    pub fn open(directory: impl AsRef<Path>, options: Options) -> Result<Self, SpaceError> {
        let runtime = Runtime::new(&ComponentSource::Embedded).map_err(|error| SpaceError::Host(format!("{error:#}")))?;
        Self::open_with(&runtime, directory, options)
    }

    /// Opens the space in `directory`; makes the directory if there is none.
    ///
    /// A space whose holder was a process of this machine that is dead is taken over.
    pub fn open_with(runtime: &Runtime, directory: impl AsRef<Path>, options: Options) -> Result<Self, SpaceError> {
        let directory = directory.as_ref().to_path_buf();
        make_directory(&directory).map_err(|error| SpaceError::Host(format!("cannot make the data directory {}: {error}", directory.display())))?;
        let runtime = runtime.clone();
        let (jobs, inbox) = mpsc::channel();
        let (ready, opened) = mpsc::sync_channel(1);
        let sender = jobs.clone();
        let thread = thread::Builder::new()
            .name("strata-space".into())
            .stack_size(THREAD_STACK)
            .spawn(move || match Driver::open(runtime, directory, options, AnswerSender::new(sender)) {
                Ok((driver, opened)) => {
                    // Nobody waits any more if the opener is gone; then the inbox is closed too.
                    if ready.send(Ok(opened)).is_ok() {
                        driver.run(&inbox);
                    }
                }
                Err(error) => {
                    let _nobody_waits = ready.send(Err(error));
                }
            })
            .map_err(|error| SpaceError::Host(format!("cannot start the thread of the space: {error}")))?;
        match opened.recv() {
            Ok(Ok(opened)) => Ok(Self { jobs, thread: Some(thread), opened }),
            Ok(Err(error)) => Err(error),
            Err(mpsc::RecvError) => Err(thread_gone()),
        }
    }

    /// Returns what `open` found and did.
    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    /// Closes the space and gives the directory up.
    pub fn close(mut self) -> Result<(), SpaceError> {
        self.end(Ending::Close { at: None })
    }

    /// Closes the space at a time of the caller's; for a manual clock.
    pub fn close_at(mut self, at: Instant) -> Result<(), SpaceError> {
        self.end(Ending::Close { at: Some(at) })
    }

    /// Drops the instance without closing it, as a crash would. The directory stays claimed until
    /// it is opened again by this process.
    pub fn abandon(mut self) -> Result<(), SpaceError> {
        self.end(Ending::Abandon)
    }

    /// Waits until no work is due and nothing is in flight, but no longer than `limit`.
    pub fn settle(&self, limit: Duration) -> Result<Settled, SpaceError> {
        let (reply, settled) = mpsc::sync_channel(1);
        self.send(Job::Settle(reply))?;
        match settled.recv_timeout(limit) {
            Ok(state) => state,
            Err(RecvTimeoutError::Timeout) => self.ask(|driver| driver.state())?,
            Err(RecvTimeoutError::Disconnected) => Err(thread_gone()),
        }
    }

    /// Returns what was asked for under a manual clock since the last time, in order.
    pub fn take_requests(&self) -> Result<Vec<Asked>, SpaceError> {
        self.ask(Driver::take_recorded)
    }

    /// Returns the most memory that the guest has held since it was last opened, in bytes.
    pub fn peak_memory(&self) -> Result<usize, SpaceError> {
        self.ask(Driver::peak_memory)
    }

    /// Runs a call of the instance on the space's thread.
    pub(crate) fn run<R: Send + 'static>(&self, kind: Kind, call: impl FnOnce(&mut Instance) -> Result<R, Trap> + Send + 'static) -> Result<R, SpaceError> {
        self.ask(move |driver| driver.call(kind, call))?
    }

    fn ask<T: Send + 'static>(&self, question: impl FnOnce(&mut Driver) -> T + Send + 'static) -> Result<T, SpaceError> {
        let (reply, answer) = mpsc::sync_channel(1);
        self.send(Job::Call(Box::new(move |driver| {
            // The caller cannot have gone: it waits below.
            let _nobody_waits = reply.send(question(driver));
        })))?;
        answer.recv().map_err(|_| thread_gone())
    }

    fn send(&self, job: Job) -> Result<(), SpaceError> {
        self.jobs.send(job).map_err(|_| thread_gone())
    }

    fn end(&mut self, how: Ending) -> Result<(), SpaceError> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let (reply, ended) = mpsc::sync_channel(1);
        self.send(Job::End { how, reply })?;
        let result = ended.recv().map_err(|_| thread_gone())?;
        thread.join().map_err(|_| thread_gone())?;
        result
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // Who wants to know whether closing worked calls `close`; nothing acknowledged depends on it.
        let _closed = self.end(Ending::Close { at: None });
    }
}

fn thread_gone() -> SpaceError {
    SpaceError::Host("the thread of the space has ended".into())
}

/// Makes the data directory; conversations are private, so only the user may look into a new one.
fn make_directory(directory: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}
