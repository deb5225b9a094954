//! What a host is told about its models and its engine: a file, then the environment, then flags,
//! each over the one before.

use crate::models::Secret;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::Path;

/// Texts that one embedding request carries unless told otherwise; small enough for every endpoint.
const BATCH: u32 = 32;

/// The variables that are read, with what each is for.
pub const VARIABLES: &[(&str, &str)] = &[
    ("STRATA_LLM_URL", "base URL of an OpenAI-compatible endpoint, with its version (http://localhost:8080/v1)"),
    ("STRATA_LLM_MODEL", "name of the language model"),
    ("STRATA_LLM_KEY", "key of that endpoint"),
    ("STRATA_LLM_JSON_SCHEMA", "false if the model does not obey a JSON Schema"),
    ("STRATA_EMBEDDING_URL", "base URL of an endpoint with /embeddings"),
    ("STRATA_EMBEDDING_MODEL", "name of the embedding model"),
    ("STRATA_EMBEDDING_KEY", "key of that endpoint"),
    ("STRATA_EMBEDDING_DIMENSIONS", "length of its vectors"),
    ("STRATA_EMBEDDING_BATCH", "texts that one request may carry"),
];

/// A host's configuration.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Config {
    /// The engine's settings.
    pub settings: Map<String, Value>,
    /// The language model.
    pub llm: Option<Endpoint>,
    /// The embedding model.
    pub embedding: Option<EmbeddingEndpoint>,
}

/// One model of an OpenAI-compatible endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Endpoint {
    /// Base URL with its version; `chat/completions` or `embeddings` is put behind it.
    pub url: String,
    /// The model's name. Servers of one model take any.
    pub model: String,
    /// The key; empty for none.
    pub key: Secret,
    /// The model obeys a JSON Schema.
    pub json_schema: bool,
}

impl Default for Endpoint {
    fn default() -> Self {
        Self { url: String::new(), model: "default".into(), key: Secret::default(), json_schema: true }
    }
}

/// An embedding model.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EmbeddingEndpoint {
    /// Where it is.
    #[serde(flatten)]
    pub endpoint: Endpoint,
    /// Length of its vectors. Together with the name it names an index generation.
    pub dimensions: u32,
    /// Texts that one request may carry.
    pub batch: u32,
}

impl Default for EmbeddingEndpoint {
    fn default() -> Self {
        Self { endpoint: Endpoint::default(), dimensions: 0, batch: BATCH }
    }
}

impl Config {
    /// Reads a configuration file, JSON.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read the configuration {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("the configuration {} is malformed", path.display()))
    }

    /// Puts what `variable` knows over this configuration; `std::env::var` is the usual source.
    pub fn with_variables(mut self, variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let over = |endpoint: &mut Endpoint, prefix: &str| {
            if let Some(url) = variable(&format!("{prefix}_URL")) {
                endpoint.url = url;
            }
            if let Some(model) = variable(&format!("{prefix}_MODEL")) {
                endpoint.model = model;
            }
            if let Some(key) = variable(&format!("{prefix}_KEY")) {
                endpoint.key = Secret::new(key);
            }
        };
        if self.llm.is_some() || variable("STRATA_LLM_URL").is_some() {
            let llm = self.llm.get_or_insert_default();
            over(llm, "STRATA_LLM");
            if let Some(obeys) = variable("STRATA_LLM_JSON_SCHEMA") {
                llm.json_schema = obeys.parse().context("STRATA_LLM_JSON_SCHEMA must be true or false")?;
            }
        }
        if self.embedding.is_some() || variable("STRATA_EMBEDDING_URL").is_some() {
            let embedding = self.embedding.get_or_insert_default();
            over(&mut embedding.endpoint, "STRATA_EMBEDDING");
            if let Some(dimensions) = variable("STRATA_EMBEDDING_DIMENSIONS") {
                embedding.dimensions = dimensions.parse().context("STRATA_EMBEDDING_DIMENSIONS must be a number")?;
            }
            if let Some(batch) = variable("STRATA_EMBEDDING_BATCH") {
                embedding.batch = batch.parse().context("STRATA_EMBEDDING_BATCH must be a number")?;
            }
        }
        Ok(self)
    }

    /// Returns the configuration if it can work; else says what is missing.
    pub fn checked(self) -> Result<Self> {
        let urls = [("llm", self.llm.as_ref()), ("embedding", self.embedding.as_ref().map(|embedding| &embedding.endpoint))];
        for (name, endpoint) in urls {
            if let Some(endpoint) = endpoint
                && !(endpoint.url.starts_with("http://") || endpoint.url.starts_with("https://"))
            {
                bail!("the url of `{name}` must begin with http:// or https://");
            }
        }
        if let Some(embedding) = &self.embedding
            && (embedding.dimensions == 0 || embedding.batch == 0)
        {
            bail!("`embedding` needs its dimensions (STRATA_EMBEDDING_DIMENSIONS) and a batch of at least 1");
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &'static [(&str, &str)]) -> Result<Config> {
        Config::default().with_variables(|name| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn one_variable_makes_a_model() {
        let config = with(&[("STRATA_LLM_URL", "http://localhost:8080/v1")]).and_then(Config::checked).expect("enough");
        assert_eq!(config.llm, Some(Endpoint { url: "http://localhost:8080/v1".into(), ..Endpoint::default() }));
    }

    #[test]
    fn a_key_alone_makes_no_model() {
        assert_eq!(with(&[("STRATA_LLM_KEY", "sk")]).expect("read"), Config::default());
    }

    #[test]
    fn an_embedding_model_needs_dimensions_and_a_url_needs_a_scheme() {
        assert!(with(&[("STRATA_EMBEDDING_URL", "http://e/v1")]).and_then(Config::checked).is_err());
        assert!(with(&[("STRATA_LLM_URL", "localhost:8080")]).and_then(Config::checked).is_err());
        assert!(with(&[("STRATA_LLM_URL", "http://l"), ("STRATA_LLM_JSON_SCHEMA", "maybe")]).is_err());
    }

    #[test]
    fn a_file_has_all_and_debug_shows_no_key() {
        let config: Config = serde_json::from_str(
            r#"{"settings":{"timezone":"UTC"},"llm":{"url":"http://l","key":"sk-12"},"embedding":{"url":"http://e","key":"sk-34","dimensions":8}}"#,
        )
        .expect("parses");
        assert_eq!(config.embedding.as_ref().map(|embedding| embedding.dimensions), Some(8));
        let shown = format!("{config:?}");
        assert!(!shown.contains("sk-12") && !shown.contains("sk-34") && shown.contains("http://e"), "{shown}");
    }
}
