//! The error of this crate.

use std::borrow::Cow;
use std::fmt;

/// A template, or a value of a job, that was refused. `Display` is one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    text: Cow<'static, str>,
    number: Option<NumberCheck>,
}

/// A placeholder whose values must be numbers, so that a refused line is safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NumberCheck {
    /// Its spelling in the template.
    pub(crate) text: &'static [u8],
    /// Its position in the line, for messages.
    pub(crate) position: &'static str,
}

/// The kinds of [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The template cannot be parsed: an unclosed quote, a missing `fi`, no command.
    Syntax,
    /// A placeholder stands where its value could become code.
    Refused,
    /// The shell is unknown, so minder does not know how it quotes.
    Shell,
    /// The job has fewer columns than the template reads.
    Column,
    /// A value contains a NUL byte, which no argument can contain.
    Nul,
    /// The shell cannot receive this value, or this many values; or the value breaks a rule.
    Value,
    /// A text cannot be a placeholder.
    Placeholder,
    /// A placeholder reads the number of all jobs, which is unknown.
    Total,
    /// A placeholder reads the slot of the job, which is unknown.
    Slot,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, text: impl Into<Cow<'static, str>>) -> Error {
        Error { kind, text: text.into(), number: None }
    }

    /// Returns the same error for a line that may be safe if these values are numbers.
    pub(crate) fn unless_number(self, check: NumberCheck) -> Error {
        Error { number: Some(check), ..self }
    }

    /// Returns which values must be numbers, so that the line may be safe.
    pub(crate) fn number_check(&self) -> Option<NumberCheck> {
        self.number
    }

    pub(crate) fn refused(text: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Refused, text)
    }

    pub(crate) fn syntax(text: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Syntax, text)
    }

    /// Returns the error for a here-document that the scanner cannot follow.
    pub(crate) fn here_document(why: &str) -> Error {
        Error::refused(format!("a here-document cannot be followed: {why}"))
    }

    /// Returns the error for a line without a placeholder that does not end in a simple command, so
    /// that no value can be appended.
    pub(crate) fn no_last_command() -> Error {
        Error::refused(
            "the line does not end in a simple command, so it is not clear where the value belongs: write \
             `{}` there",
        )
    }

    /// Returns the kind of the error.
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
