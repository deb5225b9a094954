//! The driver of a space: one loop that runs calls, ticks when work is due, hands requests to the
//! models and delivers their answers.

use super::{Clock, Kind, Options, Settled, SpaceError};
use crate::contract::{Failure, FailureCode, Instant, Opened, Outcome};
use crate::holder::Holder;
use crate::instance::{Asked, Instance, Trap};
use crate::models::Reply;
use crate::runtime::Runtime;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TryRecvError};
use std::time::Duration;

/// Dead holders that one opening evicts at most; each was a killed process.
const MAX_EVICTIONS: usize = 16;

/// After a slice of work was refused (a full disk, say), the next one comes this much later.
const RETRY_MS: u64 = 5_000;

/// Calls that go before due work at most; then work has its turn.
const MAX_CALLS_BEFORE_WORK: u32 = 64;

/// What the space's thread is asked to do. The inbox has no bound of its own: each caller waits for
/// its answer, and answers of models are as many as requests in flight.
pub(super) enum Job {
    Call(Box<dyn FnOnce(&mut Driver) + Send>),
    Answer { id: String, outcome: Outcome },
    Settle(SyncSender<Result<Settled, SpaceError>>),
    End { how: Ending, reply: SyncSender<Result<(), SpaceError>> },
}

/// How a space ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    /// Closed, at the clock's time if none is given.
    Close { at: Option<Instant> },
    /// Dropped as a crash would.
    Abandon,
}

/// Where models send their answers.
#[derive(Clone)]
pub(crate) struct AnswerSender(Sender<Job>);

impl AnswerSender {
    pub(super) fn new(jobs: Sender<Job>) -> Self {
        Self(jobs)
    }

    pub(crate) fn send(&self, id: String, outcome: Outcome) {
        // A closed space wants no answers.
        let _closed = self.0.send(Job::Answer { id, outcome });
    }
}

/// What the loop does next.
enum Turn {
    Job(Job),
    Work,
    Over,
}

pub(super) struct Driver {
    runtime: Runtime,
    directory: PathBuf,
    options: Options,
    holder: Holder,
    answers: AnswerSender,
    /// None after a trap until the directory is open again.
    instance: Option<Instance>,
    in_flight: BTreeSet<String>,
    /// When to tick; none if only an event can make work due.
    next: Option<Instant>,
    waiting: Vec<SyncSender<Result<Settled, SpaceError>>>,
    /// What was asked for under a manual clock and not taken yet.
    recorded: Vec<Asked>,
}

impl Driver {
    pub(super) fn open(runtime: Runtime, directory: PathBuf, options: Options, answers: AnswerSender) -> Result<(Self, Opened), SpaceError> {
        let holder = Holder::of_this_process();
        let mut driver = Self {
            runtime,
            directory,
            options,
            holder,
            answers,
            instance: None,
            in_flight: BTreeSet::new(),
            next: None,
            waiting: Vec::new(),
            recorded: Vec::new(),
        };
        let opened = driver.open_instance()?;
        Ok((driver, opened))
    }

    /// Runs until the space is closed or nobody holds it any more.
    pub(super) fn run(mut self, inbox: &Receiver<Job>) {
        let mut calls = 0;
        loop {
            match self.turn(inbox, calls) {
                Turn::Job(Job::Call(call)) => {
                    calls += 1;
                    call(&mut self);
                }
                Turn::Job(Job::Answer { id, outcome }) => self.deliver(&id, outcome),
                Turn::Job(Job::Settle(reply)) => self.waiting.push(reply),
                Turn::Job(Job::End { how, reply }) => {
                    let result = match how {
                        Ending::Close { at } => self.close(at),
                        Ending::Abandon => Ok(()),
                    };
                    self.forget_requests();
                    // Before the answer: the caller may open the directory again at once.
                    self.instance = None;
                    let _nobody_waits = reply.send(result);
                    return;
                }
                Turn::Work => {
                    calls = 0;
                    self.work();
                }
                Turn::Over => {
                    self.forget_requests();
                    return;
                }
            }
            self.tell_settled();
        }
    }

    fn turn(&self, inbox: &Receiver<Job>, calls: u32) -> Turn {
        let Some(next) = self.next.filter(|_| self.options.clock == Clock::System) else {
            return inbox.recv().map_or(Turn::Over, Turn::Job);
        };
        let now = crate::now();
        if next > now {
            return match inbox.recv_timeout(Duration::from_millis(next - now)) {
                Ok(job) => Turn::Job(job),
                Err(RecvTimeoutError::Timeout) => Turn::Work,
                Err(RecvTimeoutError::Disconnected) => Turn::Over,
            };
        }
        // Work is due, but callers wait for an answer: they go first, within bounds.
        if calls >= MAX_CALLS_BEFORE_WORK {
            return Turn::Work;
        }
        match inbox.try_recv() {
            Ok(job) => Turn::Job(job),
            Err(TryRecvError::Empty) => Turn::Work,
            Err(TryRecvError::Disconnected) => Turn::Over,
        }
    }

    /// Calls the instance; after a trap it is replaced and the call is not repeated.
    pub(super) fn call<R>(&mut self, kind: Kind, call: impl FnOnce(&mut Instance) -> Result<R, Trap>) -> Result<R, SpaceError> {
        if self.instance.is_none() {
            self.open_instance()?;
        }
        let instance = self.instance.as_mut().expect("open_instance leaves an instance or fails");
        let result = call(instance);
        if kind == Kind::Event {
            self.next = Some(0);
        }
        match result {
            Ok(answer) => {
                self.send_requests();
                Ok(answer)
            }
            Err(Trap { call, reason }) => {
                self.replace_instance();
                Err(SpaceError::Trapped { call: call.to_owned(), reason })
            }
        }
    }

    pub(super) fn state(&mut self) -> Result<Settled, SpaceError> {
        let now = crate::now();
        let due = self.options.clock == Clock::System && self.next.is_some_and(|next| next <= now);
        Ok(Settled { quiet: !due && self.in_flight.is_empty(), in_flight: self.in_flight.len(), next: self.next })
    }

    pub(super) fn peak_memory(&mut self) -> usize {
        self.instance.as_ref().map_or(0, Instance::peak_memory)
    }

    pub(super) fn take_recorded(&mut self) -> Vec<Asked> {
        std::mem::take(&mut self.recorded)
    }

    fn now(&self) -> Instant {
        match self.options.clock {
            Clock::System => crate::now(),
            Clock::Manual { opened_at } => opened_at,
        }
    }

    fn open_instance(&mut self) -> Result<Opened, SpaceError> {
        let mut evict = Vec::new();
        loop {
            let mut instance = Instance::new(&self.runtime, &self.directory, self.options.limits, self.options.models.clone(), self.options.log.clone())
                .map_err(|error| SpaceError::Host(format!("cannot start the component on {}: {error:#}", self.directory.display())))?;
            let settings = Value::Object(self.settings(&evict)).to_string();
            let opened = instance.open(settings, self.now()).map_err(|Trap { call, reason }| SpaceError::Trapped { call: call.to_owned(), reason })?;
            match opened {
                Ok(opened) => {
                    self.instance = Some(instance);
                    self.next = Some(0);
                    self.send_requests();
                    return Ok(opened);
                }
                Err(failure) => match dead_holder(&failure).filter(|dead| evict.len() < MAX_EVICTIONS && !evict.contains(dead)) {
                    Some(dead) => evict.push(dead),
                    None => return Err(failure.into()),
                },
            }
        }
    }

    /// Returns the settings with this process as the holder, unless the caller names another.
    fn settings(&self, evict: &[String]) -> Map<String, Value> {
        let mut settings = self.options.settings.clone();
        settings.entry("holder").or_insert_with(|| json!(self.holder));
        if !evict.is_empty() {
            settings.insert("evict".into(), json!(evict));
        }
        settings
    }

    /// Drops a dead instance and opens the directory again. Where that fails the next call tries again.
    fn replace_instance(&mut self) {
        self.forget_requests();
        self.instance = None;
        if let Err(error) = self.open_instance() {
            (self.options.log)(crate::contract::LogLevel::Error, &format!("the space could not be opened again: {error}"));
        }
    }

    fn close(&mut self, at: Option<Instant>) -> Result<(), SpaceError> {
        let now = at.unwrap_or_else(|| self.now());
        let Some(instance) = &mut self.instance else { return Ok(()) };
        match instance.close(now) {
            Ok(closed) => Ok(closed?),
            Err(Trap { call, reason }) => Err(SpaceError::Trapped { call: call.to_owned(), reason }),
        }
    }

    /// Does a slice of due work.
    fn work(&mut self) {
        let now = crate::now();
        match self.call(Kind::Read, |instance| instance.tick(now)) {
            Ok(Ok(next)) => self.next = next,
            Ok(Err(failure)) => self.put_off(now, &failure.to_string()),
            Err(error) => self.put_off(now, &error.to_string()),
        }
    }

    fn put_off(&mut self, now: Instant, why: &str) {
        (self.options.log)(crate::contract::LogLevel::Warn, &format!("work was refused and is tried again in {RETRY_MS} ms: {why}"));
        self.next = Some(now + RETRY_MS);
    }

    fn deliver(&mut self, id: &str, outcome: Outcome) {
        // Cancelled, or asked by an instance that is gone.
        if !self.in_flight.remove(id) {
            return;
        }
        let (id, now) = (id.to_owned(), crate::now());
        match self.call(Kind::Event, move |instance| instance.complete(id, outcome, now)) {
            Ok(Ok(_known)) => {}
            Ok(Err(failure)) => (self.options.log)(crate::contract::LogLevel::Warn, &format!("an answer was refused: {failure}")),
            Err(error) => (self.options.log)(crate::contract::LogLevel::Warn, &format!("an answer was lost: {error}")),
        }
    }

    fn send_requests(&mut self) {
        let Some(instance) = &mut self.instance else { return };
        let asked = instance.asked();
        if self.options.clock != Clock::System {
            self.recorded.extend(asked);
            return;
        }
        for asked in asked {
            match asked {
                Asked::Submit(request) => {
                    let id = request.id().to_owned();
                    self.in_flight.insert(id.clone());
                    self.options.models.perform(request, Reply::new(id, self.answers.clone()));
                }
                Asked::Cancel(id) => {
                    self.in_flight.remove(&id);
                    self.options.models.cancel(&id);
                }
            }
        }
    }

    /// Aborts what is in flight; the engine asks again after its next opening.
    fn forget_requests(&mut self) {
        for id in std::mem::take(&mut self.in_flight) {
            self.options.models.cancel(&id);
        }
    }

    fn tell_settled(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let state = self.state();
        if state.as_ref().is_ok_and(|state| state.quiet) {
            for waiting in self.waiting.drain(..) {
                let _gave_up = waiting.send(state.clone());
            }
        }
    }
}

/// Returns the id of the holder that keeps an opener out, if its process is known to be dead.
fn dead_holder(failure: &Failure) -> Option<String> {
    (failure.code == FailureCode::Busy).then(|| Holder::in_refusal(&failure.message)).flatten().filter(Holder::is_dead).map(|holder| holder.id)
}
