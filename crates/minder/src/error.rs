//! The library's one error: what was tried, on what, and why it failed.

use std::ffi::OsStr;
use std::fmt;
use std::io;

/// A result of this library.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, with the operation and the thing it was tried on.
///
/// A child that fails is no error: its [`Status`](crate::ExitStatus) says so. Printed, an error is
/// one line in lower case that names the thing, followed by the cure where one is known.
///
/// ```
/// let error = minder::Command::new("no-such-program-anywhere").spawn().unwrap_err();
/// assert_eq!(error.kind(), minder::ErrorKind::NotFound);
/// assert_eq!(error.to_string(), "failed to start `no-such-program-anywhere`: not found in PATH");
/// ```
pub struct Error {
    inner: Box<Inner>,
}

struct Inner {
    kind: ErrorKind,
    operation: &'static str,
    subject: Option<String>,
    cause: Option<&'static str>,
    source: io::Error,
}

/// The classes of errors that a caller may want to tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The program does not exist, or is not in `PATH`.
    NotFound,
    /// The program, a folder or a process is there, but we may not use it.
    PermissionDenied,
    /// No descriptor, process, or memory is free **now**: end a child of yours and try again.
    Exhausted,
    /// The arguments and the environment together, or one argument alone, are longer than the
    /// system takes.
    TooLong,
    /// The caller's request makes no sense: a NUL in an argument, a source that is registered
    /// twice.
    InvalidInput,
    /// The token, descriptor or process is not, or no longer, known.
    Unknown,
    /// This system, or this machine's policy, has no such mechanism.
    Unsupported,
    /// A limit that the caller set is reached, such as
    /// [`ChildSetConfig::max_children`](crate::ChildSetConfig::max_children).
    Limit,
    /// Anything else: see [`Error::io_error`].
    Other,
}

impl Error {
    /// Wraps what the system said with what was being done.
    pub(crate) fn new(operation: &'static str, source: io::Error) -> Self {
        let kind = classify(&source);
        Self { inner: Box::new(Inner { kind, operation, subject: None, cause: None, source }) }
    }

    /// Makes an error of our own, without the system's word.
    pub(crate) fn of_kind(kind: ErrorKind, operation: &'static str, cause: &'static str) -> Self {
        let source = io::Error::from(io_kind(kind));
        Self { inner: Box::new(Inner { kind, operation, subject: None, cause: Some(cause), source }) }
    }

    /// Names the thing that the operation was tried on.
    pub(crate) fn with_subject(mut self, subject: impl AsRef<OsStr>) -> Self {
        self.inner.subject = Some(shown(&subject.as_ref().to_string_lossy()));
        self
    }

    /// Replaces the system's words by better ones, and the class with them.
    pub(crate) fn with_kind(mut self, kind: ErrorKind, cause: &'static str) -> Self {
        self.inner.kind = kind;
        self.inner.cause = Some(cause);
        self
    }

    /// The class of this error.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// What the system said.
    pub fn io_error(&self) -> &io::Error {
        &self.inner.source
    }

    /// The part after the subject: why it failed, without what was tried.
    pub fn reason(&self) -> String {
        match self.inner.cause {
            Some(cause) => cause.to_owned(),
            None => plain(&self.inner.source),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed to {}", self.inner.operation)?;
        if let Some(subject) = &self.inner.subject {
            write!(f, " `{subject}`")?;
        }
        write!(f, ": {}", self.reason())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.inner.kind)
            .field("operation", &self.inner.operation)
            .field("subject", &self.inner.subject)
            .field("source", &self.inner.source)
            .finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // The text says what the system said; whoever prints the chain reads on behind that.
        std::error::Error::source(&self.inner.source)
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        io::Error::new(error.inner.source.kind(), error)
    }
}

/// A name as a line of text can hold it. Backslashes stay as they are: paths have them.
fn shown(name: &str) -> String {
    let plain = |c| matches!(c, '\\' | '\'' | '"');
    name.chars().fold(String::new(), |mut all, c| {
        if plain(c) {
            all.push(c)
        } else {
            all.extend(c.escape_debug())
        }
        all
    })
}

/// The system's text as a fragment: `Too many open files (os error 24)` → `too many open files`.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text).trim_end_matches('.');
    let mut chars = text.chars();
    match chars.next() {
        Some(first) if chars.clone().next().is_some_and(char::is_lowercase) => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}

fn classify(error: &io::Error) -> ErrorKind {
    if crate::sys::is_exhausted(error) {
        return ErrorKind::Exhausted;
    }
    if crate::sys::is_no_such_process(error) {
        return ErrorKind::Unknown;
    }
    match error.kind() {
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        io::ErrorKind::PermissionDenied => ErrorKind::PermissionDenied,
        io::ErrorKind::ArgumentListTooLong => ErrorKind::TooLong,
        io::ErrorKind::InvalidInput | io::ErrorKind::AlreadyExists => ErrorKind::InvalidInput,
        io::ErrorKind::Unsupported => ErrorKind::Unsupported,
        _ => ErrorKind::Other,
    }
}

fn io_kind(kind: ErrorKind) -> io::ErrorKind {
    match kind {
        ErrorKind::NotFound | ErrorKind::Unknown => io::ErrorKind::NotFound,
        ErrorKind::PermissionDenied => io::ErrorKind::PermissionDenied,
        ErrorKind::TooLong => io::ErrorKind::ArgumentListTooLong,
        ErrorKind::InvalidInput => io::ErrorKind::InvalidInput,
        ErrorKind::Unsupported => io::ErrorKind::Unsupported,
        ErrorKind::Exhausted | ErrorKind::Limit => io::ErrorKind::QuotaExceeded,
        ErrorKind::Other => io::ErrorKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_one_lower_case_line_that_names_the_thing() {
        let error =
            Error::new("start", io::Error::from(io::ErrorKind::PermissionDenied)).with_subject("a\nb");
        assert_eq!(error.to_string(), "failed to start `a\\nb`: permission denied");
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    }
}
