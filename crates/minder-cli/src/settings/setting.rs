//! A setting: the value of one flag, and where it comes from.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use anyhow::{Error, anyhow};

/// The origin of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A line of a file.
    File { path: PathBuf, line: usize },
    /// A variable of the environment.
    Variable(String),
}

impl Source {
    /// Returns an error about this place.
    pub(crate) fn error(&self, why: &str) -> Error {
        match self {
            Self::File { path, line } => anyhow!("cannot use `{}`: line {line}: {why}", path.display()),
            Self::Variable(name) => anyhow!("cannot use `{name}`: {why}"),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => f.write_str(name),
        }
    }
}

/// The value of one flag of `minder run`.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// The long name of the flag.
    pub(crate) name: String,
    /// The value, as it is shown.
    pub(crate) value: String,
    /// The words of the command line that set it. None: it turns off what a weaker source sets, or
    /// clap reads it.
    pub(crate) words: Vec<OsString>,
    pub(crate) source: Source,
}

/// A value before it is known which flag it is for.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Bool(bool),
    Text(OsString),
    List(Vec<OsString>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Text(text) => write!(f, "{}", text.display()),
            Self::List(texts) => {
                let texts: Vec<String> = texts.iter().map(|text| text.display().to_string()).collect();
                f.write_str(&texts.join(", "))
            }
        }
    }
}
