//! The way out: what the engine asks for becomes calls of the imports, in order.

use crate::bindings::strata::memory::{embedding, llm, log};
use strata_core::contract::{Abilities, EmbeddingModel, LogLevel, Outgoing};
use strata_core::engine::Models;

/// Returns what the host's models can do now.
pub(crate) fn models() -> Models {
    let abilities = llm::capabilities();
    Models {
        llm: Abilities { available: abilities.available, model: abilities.model, json_schema: abilities.json_schema },
        embedding: embedding::describe().map(|model| EmbeddingModel { name: model.name, dimensions: model.dimensions, batch: model.batch }),
    }
}

/// Sends everything. The imports only queue, so this returns at once.
pub(crate) fn send(all: Vec<Outgoing>) {
    for one in all {
        match one {
            Outgoing::AskModel { id, request } => llm::submit(
                &id,
                &llm::Request {
                    purpose: request.purpose,
                    system: request.system,
                    prompt: request.prompt,
                    schema_json: request.schema_json,
                    max_tokens: request.max_tokens,
                    timeout_ms: request.timeout_ms,
                },
            ),
            Outgoing::CancelModel { id } => llm::cancel(&id),
            Outgoing::Embed { id, texts } => embedding::submit(&id, &texts),
            Outgoing::CancelEmbed { id } => embedding::cancel(&id),
            Outgoing::Log { level, text } => log::line(
                match level {
                    LogLevel::Debug => log::Level::Debug,
                    LogLevel::Info => log::Level::Info,
                    LogLevel::Warn => log::Level::Warn,
                    LogLevel::Error => log::Level::Error,
                },
                &text,
            ),
        }
    }
}
