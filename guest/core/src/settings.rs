//! What a host may set at `open`, with the reference system's names and defaults.

mod schema;

pub use schema::schema;

use crate::contract::{Failure, Result};
use serde::{Deserialize, Serialize};

/// The names of `recall.strategy`; `embedding` is the reference's for `vector`.
pub const STRATEGIES: [&str; 4] = ["keyword", "vector", "embedding", "hybrid"];

/// All settings; each group defaults on its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Settings {
    /// The time zone of prompts and of mirrors by day: `UTC`, an IANA name or an offset (`+08:00`).
    pub timezone: TimeZone,
    /// Who opens the space.
    pub holder: Option<serde_json::Value>,
    /// Ids of holders that the host knows to be dead.
    pub evict: Vec<String>,
    /// The backup to go back to if the database is lost or too damaged to be opened. What is there is
    /// kept under `set-aside/`. Without it such a directory is refused.
    pub restore_if_damaged: Option<String>,
    /// Capture.
    pub capture: Capture,
    /// L1.
    pub extraction: Extraction,
    /// The schedule of all layers.
    pub pipeline: Pipeline,
    /// L2 and L3.
    pub persona: Persona,
    /// Recall and injection.
    pub recall: Recall,
    /// Short-term memory.
    pub offload: Offload,
}

impl Settings {
    /// Parses settings; empty text means all defaults. An unknown key or strategy is `invalid-argument`.
    pub fn parse(json: &str) -> Result<Self> {
        if json.trim().is_empty() {
            return Ok(Self::default());
        }
        let refused = |why: String| Failure::invalid(format!("settings: {why}; see `config-schema` for what is allowed"));
        let settings: Self = serde_json::from_str(json).map_err(|error| refused(error.to_string()))?;
        let strategy = settings.recall.strategy.as_str();
        if !STRATEGIES.contains(&strategy) {
            return Err(refused(format!("recall.strategy: `{strategy}` is not one of {}", STRATEGIES.join(", "))));
        }
        Ok(settings)
    }
}

/// A time zone's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeZone(pub String);

impl Default for TimeZone {
    fn default() -> Self {
        Self("UTC".into())
    }
}

/// Settings of capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Capture {
    /// Messages are stored.
    pub enabled: bool,
    /// Agents whose sessions are not stored, as globs over the agent's name.
    pub exclude_agents: Vec<String>,
    /// Days that L0 and L1 are kept; 0 keeps them forever.
    pub l0l1_retention_days: u32,
    /// Allows a retention of 1 or 2 days.
    pub allow_aggressive_cleanup: bool,
    /// Local time of day of the cleanup.
    pub clean_time: String,
}

impl Default for Capture {
    fn default() -> Self {
        Self { enabled: true, exclude_agents: Vec::new(), l0l1_retention_days: 0, allow_aggressive_cleanup: false, clean_time: "03:00".into() }
    }
}

/// Settings of L1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Extraction {
    /// Atoms are made.
    pub enabled: bool,
    /// New atoms are settled against what is believed.
    pub enable_dedup: bool,
    /// Bound on the atoms of one batch.
    pub max_memories_per_session: u32,
    /// Batches of the rules that a model looks at again in 24 hours, with up to two calls each; 0 for
    /// none. After a large import without a model the rest waits, and `status` says how long.
    pub reexaminations_per_day: u32,
}

impl Default for Extraction {
    fn default() -> Self {
        Self { enabled: true, enable_dedup: true, max_memories_per_session: 20, reexaminations_per_day: 100 }
    }
}

/// Settings of the schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Pipeline {
    /// User turns that make an L1 batch due.
    pub every_n_conversations: u32,
    /// A new session starts with batches of 1, 2, 4, ... turns.
    pub enable_warmup: bool,
    /// L1 runs when a session has been quiet for so long, in seconds.
    pub l1_idle_timeout_seconds: u64,
    /// L2 runs so long after L1, in seconds,
    pub l2_delay_after_l1_seconds: u64,
    /// but never sooner than so long after the last L2, in seconds,
    pub l2_min_interval_seconds: u64,
    /// and at least so often while a session is active, in seconds.
    pub l2_max_interval_seconds: u64,
    /// A session is active for so long after its last event, in hours.
    pub session_active_window_hours: u64,
}

impl Default for Pipeline {
    fn default() -> Self {
        Self {
            every_n_conversations: 5,
            enable_warmup: true,
            l1_idle_timeout_seconds: 600,
            l2_delay_after_l1_seconds: 10,
            l2_min_interval_seconds: 900,
            l2_max_interval_seconds: 3600,
            session_active_window_hours: 24,
        }
    }
}

/// Settings of L2 and L3.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Persona {
    /// New atoms that make the persona due.
    pub trigger_every_n: u32,
    /// Bound on the scenes of a scope.
    pub max_scenes: u32,
    /// Persona revisions kept in full; older ones are still listed.
    pub backup_count: u32,
    /// Scene revisions kept in full.
    pub scene_backup_count: u32,
}

impl Default for Persona {
    fn default() -> Self {
        Self { trigger_every_n: 50, max_scenes: 15, backup_count: 3, scene_backup_count: 10 }
    }
}

/// Settings of recall and injection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Recall {
    /// Memories enter prompts.
    pub enabled: bool,
    /// Memories a prompt.
    pub max_results: u32,
    /// Bound on one memory, in characters; 0 for none.
    pub max_chars_per_memory: u32,
    /// Bound on all memories of a prompt, in characters; 0 for none.
    pub max_total_recall_chars: u32,
    /// Messages of other sessions that a prompt gets as they were said, below the memories; 0 turns them off.
    pub max_messages: u32,
    /// Bound on one such message, in characters; 0 for none. Of a longer one the fitting passage is shown.
    pub max_chars_per_message: u32,
    /// Bound on all such messages of a prompt, in characters; 0 for none.
    pub max_total_message_chars: u32,
    /// How sure it must be that a memory belongs to a prompt, 0 to 1; beside one that is, others may be a little less so.
    pub score_threshold: f32,
    /// One of [`STRATEGIES`].
    pub strategy: String,
    /// Deadline of a recall, in milliseconds; for hosts, which own the clock.
    pub timeout_ms: u32,
}

impl Default for Recall {
    fn default() -> Self {
        Self {
            enabled: true,
            max_results: 5,
            max_chars_per_memory: 0,
            max_total_recall_chars: 0,
            max_messages: 5,
            max_chars_per_message: 300,
            max_total_message_chars: 1200,
            score_threshold: 0.3,
            strategy: "hybrid".into(),
            timeout_ms: 5000,
        }
    }
}

/// Settings of short-term memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Offload {
    /// Tool results are stored and lists are reduced.
    pub enabled: bool,
    /// The window of a model that a host does not tell, in tokens.
    pub default_context_window: u32,
    /// Entries that make a batch of summaries by a model due.
    pub force_trigger_threshold: u32,
    /// Entries of one batch; at most 5.
    pub max_pairs_per_batch: u32,
    /// Shares of the window at which reducing becomes mild, aggressive, an emergency,
    pub mild_offload_ratio: f64,
    /// ...
    pub aggressive_compress_ratio: f64,
    /// ...
    pub emergency_compress_ratio: f64,
    /// and the share that an emergency goes down to.
    pub emergency_target_ratio: f64,
    /// Share of the window that canvases may take.
    pub mmd_max_token_ratio: f64,
    /// Days that the texts of sessions which are over are kept; 0 keeps them forever.
    pub retention_days: u32,
    /// Bound on all stored texts, in MiB of disk; 0 for none. Sessions that are over go first.
    pub max_size_mb: u32,
}

impl Default for Offload {
    fn default() -> Self {
        Self {
            enabled: true,
            default_context_window: 200_000,
            force_trigger_threshold: 4,
            max_pairs_per_batch: 5,
            mild_offload_ratio: 0.5,
            aggressive_compress_ratio: 0.85,
            emergency_compress_ratio: 0.95,
            emergency_target_ratio: 0.6,
            mmd_max_token_ratio: 0.2,
            retention_days: 0,
            max_size_mb: 0,
        }
    }
}
