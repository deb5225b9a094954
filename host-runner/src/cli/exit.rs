//! What a command's end tells the shell.

use super::open::Missing;
use std::fmt;
use std::process::ExitCode;
use strata_host::SpaceError;
use strata_host::contract::FailureCode;

/// How a command ended. The numbers are documented in `strata --help` and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It was done.
    Done,
    /// It failed.
    Failed,
    /// The command line or the configuration is wrong.
    Usage,
    /// Another opener holds the space.
    Busy,
    /// No such id, name or revision, or nothing matched where something was asked for.
    NotFound,
    /// The stored data is damaged or of a newer version.
    Unreadable,
    /// It was done, but some of the input could not be read.
    Partly,
}

impl Exit {
    /// Returns how a command that ended in `error` ended.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        if error.downcast_ref::<Usage>().is_some() {
            return Self::Usage;
        }
        if error.downcast_ref::<Missing>().is_some() {
            return Self::NotFound;
        }
        match error.downcast_ref::<SpaceError>() {
            Some(SpaceError::Refused(failure)) => match failure.code {
                FailureCode::Busy => Self::Busy,
                FailureCode::InvalidArgument => Self::Usage,
                FailureCode::NotFound => Self::NotFound,
                FailureCode::Corrupt | FailureCode::NewerVersion => Self::Unreadable,
                _ => Self::Failed,
            },
            _ => Self::Failed,
        }
    }

    /// Returns the number that the shell sees.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Busy => 3,
            Self::NotFound => 4,
            Self::Unreadable => 5,
            Self::Partly => 6,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.number())
    }
}

/// A command line or configuration that cannot be meant; the text says what to write instead.
#[derive(Debug)]
pub(crate) struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}
