//! Models of the host: who performs what the engine asks for.

mod chat;
mod http;
mod secret;
mod vectors;

pub use http::HttpModels;
pub use secret::Secret;

use crate::contract::{Abilities, EmbeddingModel, LlmRequest, Outcome};
use crate::space::AnswerSender;
use std::fmt;

/// What the engine asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// A question to the language model.
    Ask {
        /// The engine's id of the request.
        id: String,
        /// The question.
        request: LlmRequest,
    },
    /// Texts to embed.
    Embed {
        /// The engine's id of the request.
        id: String,
        /// The texts.
        texts: Vec<String>,
    },
}

impl Request {
    /// Returns the engine's id of the request.
    pub fn id(&self) -> &str {
        match self {
            Self::Ask { id, .. } | Self::Embed { id, .. } => id,
        }
    }
}

/// The way back for one answer. Dropping it unsent is a failure like any other.
pub struct Reply {
    id: String,
    sender: Option<AnswerSender>,
}

impl Reply {
    pub(crate) fn new(id: String, sender: AnswerSender) -> Self {
        Self { id, sender: Some(sender) }
    }

    /// Delivers the answer. A space that is closed by now ignores it.
    pub fn send(mut self, outcome: Outcome) {
        self.deliver(outcome);
    }

    fn deliver(&mut self, outcome: Outcome) {
        if let Some(sender) = self.sender.take() {
            sender.send(std::mem::take(&mut self.id), outcome);
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.deliver(Outcome::Failed("the host gave no answer".into()));
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reply").field(&self.id).finish()
    }
}

/// A host's models. All methods return at once; work is done elsewhere and comes back by `Reply`.
pub trait Models: Send + Sync {
    /// Returns what the language model can do; asked at `open` and at each slice of work.
    fn abilities(&self) -> Abilities;

    /// Returns the embedding model, if there is one.
    fn embedding(&self) -> Option<EmbeddingModel>;

    /// Starts on a request.
    fn perform(&self, request: Request, reply: Reply);

    /// Aborts a request, if it is still under way.
    fn cancel(&self, id: &str);
}

/// No models: the engine works by rules.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoModels;

impl Models for NoModels {
    fn abilities(&self) -> Abilities {
        Abilities::default()
    }

    fn embedding(&self) -> Option<EmbeddingModel> {
        None
    }

    fn perform(&self, _request: Request, reply: Reply) {
        reply.send(Outcome::Failed("this host has no model".into()));
    }

    fn cancel(&self, _id: &str) {}
}
