//! One file a command. Each has its arguments, its help with examples, and what it prints.

pub(crate) mod demo;
pub(crate) mod import;

pub(crate) mod browse;
pub(crate) mod persona;
pub(crate) mod recall;
pub(crate) mod scenes;
pub(crate) mod search;

pub(crate) mod diff;
pub(crate) mod history;
pub(crate) mod trace;
pub(crate) mod why;

pub(crate) mod edit;
pub(crate) mod forget;
pub(crate) mod pin;
pub(crate) mod rollback;

pub(crate) mod backup;
pub(crate) mod config_schema;
pub(crate) mod conformance;
pub(crate) mod eval;
pub(crate) mod export;
pub(crate) mod flush;
pub(crate) mod rebuild;
pub(crate) mod replay;
pub(crate) mod restore;
pub(crate) mod retry;
pub(crate) mod status;
