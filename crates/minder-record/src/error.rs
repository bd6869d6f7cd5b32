//! The error of this crate.

use std::fmt;
use std::io;

/// An operation on records that failed.
///
/// `Display` is one line: what was attempted, a colon, and the cause. [`source`] returns the cause
/// of that cause, so that a caller that prints the chain does not print the same text twice.
///
/// [`source`]: std::error::Error::source
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    /// The operations that were attempted, outermost first, joined by colons. Empty if only the
    /// cause is known.
    context: String,
    cause: Option<Cause>,
}

/// The result of an operation on records.
pub type Result<T> = std::result::Result<T, Error>;

/// The kinds of [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system reported an error: see [`Error::io_error`].
    Io,
    /// The environment names no directory for state files.
    NoStateDir,
    /// The text is not an id of a run, or the directory does not have such a name.
    InvalidId,
    /// No run has this id.
    UnknownRun,
    /// Several runs have an id that begins like this.
    AmbiguousId,
    /// Another process works on the run.
    Locked,
    /// A directory is a link, belongs to another user, or can be changed by other users.
    Insecure,
    /// A file has the wrong size or content, or the directory contains an unknown file.
    Corrupt,
    /// An input file was changed since the run began.
    InputChanged,
    /// The record does not contain the arguments.
    NoArguments,
    /// The run contains output that was not shown yet.
    Unshown,
    /// The run has the maximum number of attempts.
    TooManyAttempts,
}

#[derive(Debug)]
enum Cause {
    Io(io::Error),
    Json(serde_json::Error),
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self { kind, context: text.into(), cause: None }
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the error of the operating system, if there is one.
    pub fn io_error(&self) -> Option<&io::Error> {
        match &self.cause {
            Some(Cause::Io(error)) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.context)?;
        let Some(cause) = &self.cause else { return Ok(()) };
        if !self.context.is_empty() {
            f.write_str(": ")?;
        }
        match cause {
            Cause::Io(error) => f.write_str(&minder_os::error_text(error)),
            Cause::Json(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.cause.as_ref()? {
            Cause::Io(error) => std::error::Error::source(error),
            Cause::Json(error) => std::error::Error::source(error),
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self { kind: ErrorKind::Io, context: String::new(), cause: Some(Cause::Io(error)) }
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self { kind: ErrorKind::Corrupt, context: String::new(), cause: Some(Cause::Json(error)) }
    }
}

/// Adds what was attempted to an error.
pub(crate) trait Context<T> {
    /// Puts the text before the text of the error.
    fn context(self, text: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<Error>> Context<T> for std::result::Result<T, E> {
    fn context(self, text: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| {
            let mut error = error.into();
            let inner = std::mem::take(&mut error.context);
            error.context = if inner.is_empty() { text() } else { format!("{}: {inner}", text()) };
            error
        })
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn display_is_one_line_with_context_and_cause() {
        let failed: io::Result<()> = Err(io::Error::from(io::ErrorKind::PermissionDenied));
        let error = failed.context(|| "cannot read `x`".to_owned()).context(|| "cannot log".to_owned());
        let error = error.expect_err("keep the error");
        assert_eq!(error.to_string(), "cannot log: cannot read `x`: permission denied");
        assert_eq!(error.kind(), ErrorKind::Io);
        assert_eq!(error.io_error().map(io::Error::kind), Some(io::ErrorKind::PermissionDenied));
        assert!(error.source().is_none());
        let error: Error = io::Error::other("I/O error.").into();
        assert_eq!(error.to_string(), "I/O error");
    }

    #[test]
    fn error_is_send_and_sync() {
        fn assert_send_sync<T: Send + Sync + 'static>() {}
        assert_send_sync::<Error>();
    }
}
