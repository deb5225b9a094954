//! The records of `wit/`, as plain Rust values.
//!
//! Names, units and meanings are those of the contract; `guest/component` converts between the two,
//! and scenarios write these records as JSON with the contract's own names.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Milliseconds since 1970-01-01T00:00:00Z.
pub type Instant = u64;

/// The last instant that is taken: the end of the year 9999 in UTC. A row holds every instant up to it, and a later one is
/// no time that anybody meant.
pub const MAX_INSTANT: Instant = 253_402_300_799_999;

/// Refuses a time of an event that is beyond [`MAX_INSTANT`].
pub fn check_time(at: Instant) -> Result<()> {
    if at > MAX_INSTANT {
        return Err(Failure::invalid(format!("{at} is no time: give milliseconds since 1970, up to the end of the year 9999")));
    }
    Ok(())
}

/// Whose memory a row is. Empty parts mean `default`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Scope {
    /// The team.
    pub team: String,
    /// The person.
    pub user: String,
    /// The agent.
    pub agent: String,
    /// The conversation.
    pub session: String,
}

/// Why a call did nothing; see `wit/types.wit` for each case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum FailureCode {
    Busy,
    NotOpen,
    InvalidArgument,
    Unsupported,
    NotFound,
    TooLarge,
    Conflict,
    StorageFull,
    ReadOnly,
    Corrupt,
    NewerVersion,
    Io,
}

/// A refusal: a code to branch on, and a sentence for people that says what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What programs branch on.
    pub code: FailureCode,
    /// What people read.
    pub message: String,
}

impl Failure {
    /// Returns a failure with `code` and `message`.
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Returns an `invalid-argument` failure.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(FailureCode::InvalidArgument, message)
    }

    /// Returns a `not-found` failure.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(FailureCode::NotFound, message)
    }

    /// Returns an `unsupported` failure for the export `name`.
    pub fn unsupported(name: &str) -> Self {
        Self::new(FailureCode::Unsupported, format!("{name} is not performed by this build"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.code, self.message)
    }
}

impl std::error::Error for Failure {}

/// The result of every fallible export.
pub type Result<T> = std::result::Result<T, Failure>;

/// One message of a conversation, as the host has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Message {
    /// The host's stable id within the session.
    pub id: Option<String>,
    /// `user`, `assistant`, `tool`, `system`, or another.
    pub role: String,
    /// Who speaks.
    pub speaker: Option<String>,
    /// Plain text, or the JSON of content parts where `structured` is set.
    pub content: String,
    /// `content` is a JSON array of parts.
    pub structured: bool,
    /// When it was said.
    pub said_at: Option<Instant>,
}

/// What `open` found and did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Opened {
    /// The engine's version.
    pub engine_version: String,
    /// The schema version after migration.
    pub schema_version: u32,
    /// Requests of a previous run that are asked again.
    pub resumed_requests: u32,
}

/// A prompt is about to be built.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct PromptEvent {
    /// Whose prompt.
    pub scope: Scope,
    /// What the user wrote.
    pub prompt: String,
    /// Names the turn for the tool allowance.
    pub turn_id: Option<String>,
    /// The embedding of `query_text(prompt)` by the host's model.
    pub query_vector: Option<Vec<f32>>,
    /// Now.
    pub at: Instant,
}

/// What enters the prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Injection {
    /// For the end of the system prompt.
    pub stable: String,
    /// For the user's turn.
    pub dynamic: String,
    /// Ids of the memories in `dynamic`, best first.
    pub recalled: Vec<String>,
    /// Memories shortened.
    pub cut: u32,
    /// Memories left out.
    pub dropped: u32,
    /// Some source failed or was cut short.
    pub partial: bool,
}

/// Text about to be written to the host's history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct WriteEvent {
    /// Whose history.
    pub scope: Scope,
    /// The message's role.
    pub role: String,
    /// Its text.
    pub content: String,
}

/// A tool has answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct ToolEvent {
    /// Whose tool.
    pub scope: Scope,
    /// The host's id of the call.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
    /// Its arguments as JSON text; empty if there were none.
    pub arguments_json: String,
    /// The whole result as text.
    pub output: String,
    /// The tool failed.
    pub is_error: bool,
    /// How long it ran, in milliseconds.
    pub duration_ms: Option<u32>,
    /// Now.
    pub at: Instant,
}

/// What became of a tool result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ToolReceipt {
    /// The offload entry's id.
    pub entry: String,
    /// Path of the stored result relative to the data directory.
    pub result_ref: String,
    /// The call was already known.
    pub duplicate: bool,
    /// Why nothing was stored.
    pub filtered: String,
}

/// A run of the agent has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct EndEvent {
    /// Whose run.
    pub scope: Scope,
    /// Messages of the session or of its last part, oldest first.
    pub messages: Vec<Message>,
    /// The run succeeded.
    pub success: bool,
    /// Now.
    pub at: Instant,
}

/// Exactly what `agent_end` did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CaptureReport {
    /// Ids of the rows written now.
    pub stored: Vec<String>,
    /// Messages that were there already.
    pub known: u32,
    /// Messages not kept, by reason.
    pub dropped: Vec<(String, u32)>,
}

/// A session is over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct SessionEvent {
    /// Whose session.
    pub scope: Scope,
    /// The host's word for why.
    pub reason: String,
    /// Now.
    pub at: Instant,
}

/// A message list that must fit a model's window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct AssembleRequest {
    /// Whose list.
    pub scope: Scope,
    /// A JSON array of messages.
    pub messages_json: String,
    /// The model's context window, in tokens.
    pub window_tokens: u32,
    /// Tokens of what is not in the list.
    pub overhead_tokens: u32,
    /// Names the model for calibration.
    pub model: String,
    /// Now.
    pub at: Instant,
}

/// The reduced list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Assembled {
    /// The list, a JSON array.
    pub messages_json: String,
    /// Estimated tokens before.
    pub tokens_before: u32,
    /// Estimated tokens after.
    pub tokens_after: u32,
    /// `none`, `mild`, `aggressive` or `emergency`.
    pub mode: String,
    /// Why the list is still over its budget.
    pub reason: String,
}

/// A tool call by the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Invocation {
    /// Whose call.
    pub scope: Scope,
    /// The turn whose allowance is spent.
    pub turn_id: Option<String>,
    /// The tool.
    pub name: String,
    /// Its arguments, a JSON object.
    pub arguments_json: String,
    /// The embedding of the query by the host's model.
    pub query_vector: Option<Vec<f32>>,
    /// Now.
    pub at: Instant,
}

/// What the model gets from a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Answer {
    /// For the model.
    pub text: String,
    /// The same as JSON.
    pub structured_json: String,
    /// The tool ran and refused.
    pub is_error: bool,
}

/// A model's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct LlmAnswer {
    /// The text.
    pub text: String,
    /// The model that answered.
    pub model: String,
    /// Tokens read, if reported.
    pub input_tokens: Option<u32>,
    /// Tokens written, if reported.
    pub output_tokens: Option<u32>,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// An answer of the language model.
    Text(LlmAnswer),
    /// One vector for each text, in order.
    Vectors(Vec<Vec<f32>>),
    /// Why it failed.
    Failed(String),
}

/// Which rows; members that are absent do not limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Selector {
    /// Ids of things.
    pub ids: Vec<String>,
    /// Rows that a search for this text finds.
    pub query: Option<String>,
    /// A session.
    pub session: Option<String>,
    /// A user.
    pub user: Option<String>,
    /// Not before.
    pub since: Option<Instant>,
    /// Not after.
    pub until: Option<Instant>,
}

/// A search by people.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct SearchRequest {
    /// Whose memory.
    pub scope: Scope,
    /// What to look for.
    pub query: String,
    /// `atoms` or `messages`.
    pub layer: String,
    /// `keyword`, `vector`, `hybrid` or empty for the setting.
    pub strategy: String,
    /// 1 to 100.
    pub limit: u32,
    /// The embedding of the query by the host's model.
    pub query_vector: Option<Vec<f32>>,
    /// As believed at this time.
    pub believed_at: Option<Instant>,
    /// As true at this time.
    pub true_at: Option<Instant>,
    /// Now.
    pub at: Instant,
}

/// What the host's language model can do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Abilities {
    /// There is a model.
    pub available: bool,
    /// Its name.
    pub model: String,
    /// It obeys a JSON Schema.
    pub json_schema: bool,
}

/// A request to the language model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LlmRequest {
    /// What it is for, as `wit/llm.wit` lists.
    pub purpose: String,
    /// The system prompt.
    pub system: String,
    /// The user prompt.
    pub prompt: String,
    /// A JSON Schema for the answer; empty for free text.
    pub schema_json: String,
    /// Bound on the answer, in tokens.
    pub max_tokens: u32,
    /// After this long the host should report failure.
    pub timeout_ms: u32,
}

/// An embedding model of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EmbeddingModel {
    /// Its name.
    pub name: String,
    /// Length of its vectors.
    pub dimensions: u32,
    /// Texts that one request may carry.
    pub batch: u32,
}

/// How important a log line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum LogLevel {
    Debug,
    Info,
    Warn,
    Error,
}

/// What the engine asks of its host; drained by the adapter after each call, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outgoing {
    /// `llm.submit`.
    AskModel {
        /// The request's id.
        id: String,
        /// The request.
        request: LlmRequest,
    },
    /// `llm.cancel`.
    CancelModel {
        /// The request's id.
        id: String,
    },
    /// `embedding.submit`.
    Embed {
        /// The request's id.
        id: String,
        /// The texts.
        texts: Vec<String>,
    },
    /// `embedding.cancel`.
    CancelEmbed {
        /// The request's id.
        id: String,
    },
    /// `log.line`.
    Log {
        /// How important.
        level: LogLevel,
        /// The line.
        text: String,
    },
}
