//! Why a template or the values of a job are refused.

use std::borrow::Cow;
use std::fmt;

/// Why a template or a job's values were not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    text: Cow<'static, str>,
}

/// The kinds of [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The template cannot be followed: an open quote, a missing `fi`, no command.
    Syntax,
    /// A placeholder stands where its value could become code.
    Refused,
    /// The shell is not known to quote as POSIX shells do.
    Shell,
    /// The input has fewer columns than the template asks for.
    Column,
    /// A value holds a NUL byte, which no argument can.
    Nul,
    /// The shell cannot be handed this value, or so many.
    Value,
    /// A text cannot be a placeholder.
    Placeholder,
    /// A placeholder asks for the number of jobs, which is not known.
    Total,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, text: impl Into<Cow<'static, str>>) -> Error {
        Error { kind, text: text.into() }
    }

    pub(crate) fn refused(text: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Refused, text)
    }

    pub(crate) fn syntax(text: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Syntax, text)
    }

    /// The line has a here-document that the scanner cannot follow.
    pub(crate) fn here_document(why: &str) -> Error {
        Error::refused(format!("a here-document cannot be followed: {why}"))
    }

    /// The line does not end in a simple command, so no value can be appended to it.
    pub(crate) fn no_last_command() -> Error {
        Error::refused(
            "the line does not end in a simple command, so it is not clear where the value belongs: write `{}` \
             there",
        )
    }

    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

impl From<Error> for std::io::Error {
    fn from(error: Error) -> std::io::Error {
        std::io::Error::new(std::io::ErrorKind::InvalidInput, error)
    }
}
