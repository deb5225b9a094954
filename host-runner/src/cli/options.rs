//! What every command takes, from flags, then the environment, then the configuration file.

use super::exit::Usage;
use anyhow::{Context, Result};
use clap::Args;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use strata_host::config::{Config, EmbeddingEndpoint, Endpoint};
use strata_host::contract::Scope;
use strata_host::models::Secret;

/// Flags of every command.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct Options {
    /// The data directory: one directory is one memory [env: STRATA_DATA] [default: ~/.strata]
    #[arg(long, global = true, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// Print no progress and no remarks
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Whose memory: the person [env: STRATA_USER]
    #[arg(long, global = true, value_name = "NAME")]
    pub user: Option<String>,
    /// Whose memory: the agent
    #[arg(long, global = true, value_name = "NAME", env = "STRATA_AGENT")]
    pub agent: Option<String>,
    /// Whose memory: the team
    #[arg(long, global = true, value_name = "NAME", env = "STRATA_TEAM")]
    pub team: Option<String>,
    /// The conversation
    #[arg(long, global = true, value_name = "NAME")]
    pub session: Option<String>,
    /// The zone of times that name none, for input and output [default: UTC]
    #[arg(long, global = true, value_name = "ZONE", env = "STRATA_TIMEZONE")]
    pub timezone: Option<String>,
    /// The configuration file [default: ~/.config/strata/config.toml]
    #[arg(long, global = true, value_name = "FILE", env = "STRATA_CONFIG")]
    pub config: Option<PathBuf>,
    /// An OpenAI-compatible endpoint for distilling, such as http://localhost:11434/v1
    #[arg(long, global = true, value_name = "URL", env = "STRATA_LLM_URL", help_heading = "Models")]
    pub llm_url: Option<String>,
    /// The model to ask there; servers of one model take any name
    #[arg(long, global = true, value_name = "NAME", env = "STRATA_LLM_MODEL", help_heading = "Models")]
    pub llm_model: Option<String>,
    /// Its key; better in the environment than on a command line that others can see
    #[arg(long, global = true, value_name = "KEY", env = "STRATA_LLM_KEY", hide_env_values = true, help_heading = "Models")]
    pub llm_key: Option<String>,
    /// An OpenAI-compatible endpoint for embeddings; the built-in embedder if there is none
    #[arg(long, global = true, value_name = "URL", env = "STRATA_EMBEDDING_URL", help_heading = "Models")]
    pub embedding_url: Option<String>,
    /// The embedding model to ask there
    #[arg(long, global = true, value_name = "NAME", env = "STRATA_EMBEDDING_MODEL", help_heading = "Models")]
    pub embedding_model: Option<String>,
    /// Its key
    #[arg(long, global = true, value_name = "KEY", env = "STRATA_EMBEDDING_KEY", hide_env_values = true, help_heading = "Models")]
    pub embedding_key: Option<String>,
    /// The length of its vectors
    #[arg(long, global = true, value_name = "N", env = "STRATA_EMBEDDING_DIMENSIONS", help_heading = "Models")]
    pub embedding_dimensions: Option<u32>,
}

/// The configuration file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    data: Option<PathBuf>,
    user: Option<String>,
    agent: Option<String>,
    team: Option<String>,
    llm: Option<Endpoint>,
    embedding: Option<EmbeddingEndpoint>,
    /// The engine's settings; `strata config-schema` lists them.
    settings: Map<String, Value>,
}

/// What a command works with.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The data directory.
    pub data: PathBuf,
    /// The command line named it, so that even the demonstration may write there.
    pub data_named: bool,
    /// Whose memory.
    pub scope: Scope,
    /// The command line named the person, so that even forgetting all of theirs is meant.
    pub user_named: bool,
    /// The zone of times that name none.
    pub zone: TimeZone,
    /// The engine's settings, and the models.
    pub config: Config,
}

impl Settings {
    /// Returns whether the data directory holds a memory.
    pub(crate) fn has_space(&self) -> bool {
        is_space(&self.data)
    }
}

impl Options {
    /// Reads the configuration file and returns what holds.
    pub(crate) fn resolve(&self) -> Result<Settings> {
        let file = self.read_file()?;
        let mut engine = file.settings;
        let named = self.timezone.clone().or_else(|| engine.get("timezone").and_then(Value::as_str).map(str::to_owned));
        let zone = named.as_deref().map_or(Ok(TimeZone::UTC), zone)?;
        if let Some(named) = named {
            engine.insert("timezone".into(), named.into());
        }
        let from_environment = std::env::var_os("STRATA_DATA").filter(|path| !path.is_empty()).map(PathBuf::from);
        let data = self.data.clone().or(from_environment).or(file.data);
        let user = self.user.clone().or_else(|| std::env::var("STRATA_USER").ok().filter(|user| !user.is_empty()));
        let config = self.models(Config { settings: engine, llm: file.llm, embedding: file.embedding })?;
        let part = |flag: &Option<String>, file: Option<String>| flag.clone().or(file).unwrap_or_default();
        Ok(Settings {
            data_named: self.data.is_some(),
            user_named: self.user.is_some(),
            data: expanded(data.unwrap_or_else(|| "~/.strata".into()))?,
            scope: Scope {
                team: part(&self.team, file.team),
                user: part(&user, file.user),
                agent: part(&self.agent, file.agent),
                session: self.session.clone().unwrap_or_default(),
            },
            zone,
            config,
        })
    }

    /// Puts flags and environment over the models of the file.
    fn models(&self, mut config: Config) -> Result<Config> {
        // A key belongs to the endpoint that it was written for: a URL from elsewhere does not get the file's key.
        if let (Some(_), None, Some(llm)) = (&self.llm_url, &self.llm_key, &mut config.llm) {
            llm.key = Secret::default();
        }
        if let (Some(_), None, Some(embedding)) = (&self.embedding_url, &self.embedding_key, &mut config.embedding) {
            embedding.endpoint.key = Secret::default();
        }
        let variable = |name: &str| match name {
            "STRATA_LLM_URL" => self.llm_url.clone(),
            "STRATA_LLM_MODEL" => self.llm_model.clone(),
            "STRATA_LLM_KEY" => self.llm_key.clone(),
            "STRATA_EMBEDDING_URL" => self.embedding_url.clone(),
            "STRATA_EMBEDDING_MODEL" => self.embedding_model.clone(),
            "STRATA_EMBEDDING_KEY" => self.embedding_key.clone(),
            "STRATA_EMBEDDING_DIMENSIONS" => self.embedding_dimensions.map(|length| length.to_string()),
            name => std::env::var(name).ok(),
        };
        config.with_variables(variable).and_then(Config::checked).map_err(|error| Usage(format!("{error:#}")).into())
    }

    fn read_file(&self) -> Result<File> {
        let path = match &self.config {
            Some(path) => path.clone(),
            None => match default_file() {
                Some(path) if path.exists() => path,
                _ => return Ok(File::default()),
            },
        };
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read the configuration {}", path.display()))?;
        toml::from_str(&text).map_err(|error| Usage(format!("{}: {error}", path.display())).into())
    }
}

fn default_file() -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    Some(base.or_else(|| Some(home()?.join(".config")))?.join("strata/config.toml"))
}

fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| !home.as_os_str().is_empty())
}

/// Returns the path with a leading `~/` replaced by the home directory.
fn expanded(path: PathBuf) -> Result<PathBuf> {
    match path.strip_prefix("~") {
        Ok(rest) => Ok(home().context("there is no home directory; name a data directory with --data DIR")?.join(rest)),
        Err(_) => Ok(path),
    }
}

fn zone(name: &str) -> Result<TimeZone> {
    let offset = || {
        let sign = if name.starts_with('-') { -1 } else { 1 };
        let (hours, minutes) = name.strip_prefix(['+', '-'])?.split_once(':')?;
        let seconds = sign * (hours.parse::<i32>().ok()? * 3600 + minutes.parse::<i32>().ok()? * 60);
        Some(TimeZone::fixed(jiff::tz::Offset::from_seconds(seconds).ok()?))
    };
    if name == "UTC" {
        return Ok(TimeZone::UTC);
    }
    offset().or_else(|| TimeZone::get(name).ok()).ok_or_else(|| Usage(format!("{name} is not a time zone; write UTC, Europe/Lisbon or +08:00")).into())
}

/// Returns whether a memory is or was in the directory. One that has lost its database is opened too: the engine says so.
fn is_space(dir: &Path) -> bool {
    ["strata.db", "backups", "conversations"].iter().any(|name| dir.join(name).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_win_over_the_file_and_a_key_stays_with_its_endpoint() {
        let text = "data = '/d'\nuser = 'kim'\n[llm]\nurl = 'http://a/v1'\nmodel = 'm'\nkey = 'secret'\n[settings]\ntimezone = 'Europe/Lisbon'\n";
        let file = || toml::from_str::<File>(text).expect("valid");
        let config = |options: Options| options.models(Config { llm: file().llm, ..Config::default() }).expect("whole").llm.expect("there");
        assert_eq!(file().user.as_deref(), Some("kim"));
        let from_file = config(Options::default());
        assert_eq!((from_file.url.as_str(), from_file.key.is_empty()), ("http://a/v1", false));
        let elsewhere = config(Options { llm_url: Some("http://b/v1".into()), ..Options::default() });
        assert_eq!((elsewhere.url.as_str(), elsewhere.model.as_str(), elsewhere.key.is_empty()), ("http://b/v1", "m", true));
    }

    #[test]
    fn half_an_embedding_model_says_what_is_missing() {
        let options = Options { embedding_url: Some("http://b/v1".into()), ..Options::default() };
        let error = options.models(Config::default()).expect_err("no length").to_string();
        assert!(error.contains("STRATA_EMBEDDING_DIMENSIONS"), "{error}");
    }

    #[test]
    fn zones_and_unknown_keys() {
        assert!(zone("+08:00").is_ok() && zone("Europe/Lisbon").is_ok());
        assert!(zone("Mars/Olympus").expect_err("no such zone").to_string().contains("Europe/Lisbon"));
        assert!(toml::from_str::<File>("dta = 'x'").is_err());
    }
}
