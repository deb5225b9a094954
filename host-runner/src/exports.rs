//! The exports of the world, in one table: from it come the typed functions, the calls on an
//! instance, the methods of `Space`, and calls by name with JSON (for scenarios).

use crate::contract::{
    Answer, AssembleRequest, Assembled, CaptureReport, EndEvent, Failure, Injection, Instant, Invocation, Opened, Outcome, PromptEvent, Scope, SearchRequest,
    Selector, SessionEvent, ToolEvent, ToolReceipt, WriteEvent,
};
use crate::instance::{HostState, Instance, Trap};
use crate::space::{Kind, Space, SpaceError};
use anyhow::{Context, bail};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use wasmtime::Store;
use wasmtime::component::{ComponentNamedList, Lift, Lower, TypedFunc};

/// `hook` and `people` say which deadline a call has, `event` and `read` whether it can make work
/// due, `refuses` and `always` whether it answers a `result`.
macro_rules! exports {
    ($( $(#[$doc:meta])* $interface:ident $name:literal $who:ident $kind:ident fn $method:ident($($arg:ident: $kind_of:ty),*) -> $answer:ty, $refuses:ident; )*) => {
        /// The component's exports, with their types checked.
        pub(crate) struct Exports {
            lifecycle: Lifecycle,
            $( $method: TypedFunc<($($kind_of,)*), (exports!(@raw $refuses $answer),)>, )*
        }

        impl Exports {
            /// Finds all exports. Fails if one is missing or has another type than the contract's.
            pub(crate) fn load(store: &mut Store<HostState>, instance: &wasmtime::component::Instance) -> wasmtime::Result<Self> {
                Ok(Self { lifecycle: Lifecycle::load(store, instance)?, $( $method: find(store, instance, stringify!($interface), $name)?, )* })
            }
        }

        impl Instance {
            $( pub(crate) fn $method(&mut self, $($arg: $kind_of),*) -> Result<exports!(@raw $refuses $answer), Trap> {
                self.enter($name, exports!(@slow $who), |exports, store| Ok(exports.$method.call(store, ($($arg,)*))?.0))
            } )*
        }

        impl Space {
            $( $(#[$doc])* pub fn $method(&self, $($arg: $kind_of),*) -> Result<$answer, SpaceError> {
                exports!(@flat $refuses self.run(exports!(@kind $kind), move |instance| instance.$method($($arg),*)))
            } )*

            /// Calls the export with the contract's name `call`. `with` holds its arguments by name,
            /// or is its record where it has just one. The outer error says that the call or its
            /// arguments are not as in the contract.
            pub fn call_by_name(&self, call: &str, with: Map<String, Value>) -> anyhow::Result<Result<Value, SpaceError>> {
                let mut with = with;
                match call {
                    $( $name => {
                        let arguments: &[&str] = &[$(stringify!($arg)),*];
                        if let [record @ ("event" | "request" | "invocation")] = arguments {
                            with = Map::from_iter([((*record).to_owned(), Value::Object(with))]);
                        }
                        $( let $arg: $kind_of = argument(&mut with, stringify!($arg)).with_context(|| call.to_owned())?; )*
                        if let Some(name) = with.keys().next() {
                            bail!("{call} has no argument `{name}`");
                        }
                        Ok(self.$method($($arg),*).and_then(|value| serde_json::to_value(value).map_err(|error| SpaceError::Host(error.to_string()))))
                    } )*
                    _ => bail!("the contract has no export `{call}`"),
                }
            }
        }
    };
    (@raw refuses $answer:ty) => { Result<$answer, Failure> };
    (@raw always $answer:ty) => { $answer };
    (@flat refuses $run:expr) => { Ok($run??) };
    (@flat always $run:expr) => { $run };
    (@slow hook) => { false };
    (@slow people) => { true };
    (@kind event) => { Kind::Event };
    (@kind read) => { Kind::Read };
}

exports! {
    /// `lifecycle.config-schema`: the JSON Schema of the settings.
    lifecycle "config-schema" hook read fn config_schema() -> String, always;
    /// `lifecycle.flush`: makes waiting work due.
    lifecycle "flush" hook event fn flush(at: Instant) -> (), refuses;
    /// `lifecycle.status`: a JSON object for operators.
    lifecycle "status" people read fn status() -> String, refuses;

    /// `hooks.query-text`: the text of a prompt to embed.
    hooks "query-text" hook read fn query_text(prompt: String) -> String, always;
    /// `hooks.before-prompt-build`: what enters the prompt.
    hooks "before-prompt-build" hook read fn before_prompt_build(event: PromptEvent) -> Injection, refuses;
    /// `hooks.before-message-write`: the content without what memory had injected.
    hooks "before-message-write" hook read fn before_message_write(event: WriteEvent) -> String, always;
    /// `hooks.after-tool-call`: stores a tool result; durable on return.
    hooks "after-tool-call" hook event fn after_tool_call(event: ToolEvent) -> ToolReceipt, refuses;
    /// `hooks.agent-end`: stores the messages that are not stored yet; durable on return.
    hooks "agent-end" hook event fn agent_end(event: EndEvent) -> CaptureReport, refuses;
    /// `hooks.session-end`: makes the session's waiting work due.
    hooks "session-end" hook event fn session_end(event: SessionEvent) -> (), refuses;
    /// `hooks.assemble`: a message list reduced under a window.
    hooks "assemble" hook event fn assemble(request: AssembleRequest) -> Assembled, refuses;
    /// `hooks.report-usage`: calibrates the token estimate of a model.
    hooks "report-usage" hook event fn report_usage(model: String, estimated_tokens: u32, reported_tokens: u32) -> (), refuses;

    /// `tools.list`: a JSON array of the tools.
    tools "list" hook read fn list_tools() -> String, always;
    /// `tools.call`: runs one tool.
    tools "call" hook event fn call_tool(invocation: Invocation) -> Answer, refuses;

    /// `work.tick`: does what is due; returns when to call next. A driven space ticks by itself.
    work "tick" hook read fn tick(now: Instant) -> Option<Instant>, refuses;
    /// `work.complete`: delivers an answer. A driven space does it by itself.
    work "complete" hook event fn complete(request_id: String, outcome: Outcome, at: Instant) -> bool, refuses;

    /// `memory.browse`: rows of a layer, a page at a time.
    memory "browse" people read fn browse(layer: String, filter: Selector, after: Option<String>, limit: u32) -> String, refuses;
    /// `memory.search`: a search by people.
    memory "search" people read fn search(request: SearchRequest) -> String, refuses;
    /// `memory.trace`: from an id down to the exact messages, and up.
    memory "trace" people read fn trace(id: String) -> String, refuses;
    /// `memory.why`: the model call or rule that made a thing.
    memory "why" people read fn why(id: String) -> String, refuses;
    /// `memory.history`: all revisions of a thing.
    memory "history" people read fn history(id: String) -> String, refuses;
    /// `memory.diff`: the difference between two revisions.
    memory "diff" people read fn diff(id: String, before: u32, after: u32) -> String, refuses;
    /// `memory.rollback`: makes an earlier revision current.
    memory "rollback" people event fn rollback(id: String, revision: u32, at: Instant) -> String, refuses;
    /// `memory.edit`: replaces a text, as a revision by a human.
    memory "edit" people event fn edit(id: String, text: String, at: Instant) -> String, refuses;
    /// `memory.pin`: pins an atom, or releases it.
    memory "pin" people event fn pin(id: String, pinned: bool, at: Instant) -> String, refuses;
    /// `memory.forget`: removes what the selector names from everywhere.
    memory "forget" people event fn forget(which: Selector, confirmed: bool, at: Instant) -> String, refuses;
    /// `memory.retry`: puts failed work back to due.
    memory "retry" people event fn retry(layer: String, at: Instant) -> String, refuses;
    /// `memory.backup`: writes a verified copy of the space.
    memory "backup" people event fn backup(name: String, at: Instant) -> String, refuses;
    /// `memory.restore`: replaces the space by a backup.
    memory "restore" people event fn restore(name: String, at: Instant) -> String, refuses;
    /// `memory.export`: writes the space as JSON Lines.
    memory "export" people event fn export(name: String, at: Instant) -> String, refuses;
    /// `memory.import`: takes JSON Lines records.
    memory "import" people event fn import(scope: Scope, records: String, dry_run: bool, at: Instant) -> String, refuses;
    /// `memory.rebuild`: derives every layer again, and compares.
    memory "rebuild" people event fn rebuild(at: Instant) -> String, refuses;
}

fn find<P, R>(store: &mut Store<HostState>, instance: &wasmtime::component::Instance, interface: &str, name: &str) -> wasmtime::Result<TypedFunc<P, R>>
where
    P: ComponentNamedList + Lower,
    R: ComponentNamedList + Lift,
{
    let missing = || wasmtime::Error::msg(format!("the component does not export strata:memory/{interface}@0.1.0 {name}"));
    let found = instance.get_export_index(&mut *store, None, &format!("strata:memory/{interface}@0.1.0")).ok_or_else(missing)?;
    let found = instance.get_export_index(&mut *store, Some(&found), name).ok_or_else(missing)?;
    instance.get_typed_func(&mut *store, found)
}

/// Takes the argument with the contract's name for `name`; an absent one is as the record's default.
fn argument<T: DeserializeOwned>(with: &mut Map<String, Value>, name: &str) -> anyhow::Result<T> {
    let name = name.replace('_', "-");
    match with.remove(&name) {
        Some(value) => serde_json::from_value(value),
        // An absent option is none, an absent record is all defaults; anything else must be there.
        None => serde_json::from_value(Value::Null).or_else(|_| serde_json::from_value(Value::Object(Map::new()))),
    }
    .with_context(|| format!("argument `{name}`"))
}

/// `lifecycle.open` and `close`: only the driver calls them, since they begin and end its instance.
struct Lifecycle {
    open: TypedFunc<(String, Instant), (Result<Opened, Failure>,)>,
    close: TypedFunc<(Instant,), (Result<(), Failure>,)>,
}

impl Lifecycle {
    fn load(store: &mut Store<HostState>, instance: &wasmtime::component::Instance) -> wasmtime::Result<Self> {
        Ok(Self { open: find(store, instance, "lifecycle", "open")?, close: find(store, instance, "lifecycle", "close")? })
    }
}

impl Instance {
    pub(crate) fn open(&mut self, settings: String, at: Instant) -> Result<Result<Opened, Failure>, Trap> {
        self.enter("open", true, |exports, store| Ok(exports.lifecycle.open.call(store, (settings, at))?.0))
    }

    pub(crate) fn close(&mut self, at: Instant) -> Result<Result<(), Failure>, Trap> {
        self.enter("close", true, |exports, store| Ok(exports.lifecycle.close.call(store, (at,))?.0))
    }
}
