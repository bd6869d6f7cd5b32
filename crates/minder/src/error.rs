//! The error type of the library: what failed, on which subject, and why.

use std::ffi::OsStr;
use std::fmt;
use std::io;

use minder_os::error_text;

/// A result of this library.
pub type Result<T> = std::result::Result<T, Error>;

/// An error: the operation that failed, its subject and the reason.
///
/// A child that exits with a failure is not an error: its [`ExitStatus`](crate::ExitStatus) reports
/// that. [`Display`](fmt::Display) writes one line in lower case that names the subject, and a hint
/// where one is known. Programs read [`kind`](Self::kind) and [`operation`](Self::operation)
/// instead of the text.
///
/// ```
/// let error = minder::Command::new("no-such-program-anywhere").spawn().unwrap_err();
/// assert_eq!(error.operation(), minder::Operation::Spawn);
/// assert_eq!(error.kind(), minder::ErrorKind::NotFound);
/// assert_eq!(error.subject(), Some("no-such-program-anywhere"));
/// assert_eq!(error.to_string(), "failed to start `no-such-program-anywhere`: not found in PATH");
/// ```
pub struct Error {
    inner: Box<Inner>,
}

struct Inner {
    kind: ErrorKind,
    operation: Operation,
    /// The operation as `Display` writes it, after "failed to".
    phrase: &'static str,
    subject: Option<String>,
    /// The reason where we know a better one than the operating system.
    reason: Option<&'static str>,
    source: io::Error,
}

/// The operation that the library tried when an [`Error`] occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Starting a child, or preparing for that.
    Spawn,
    /// Changing to the working directory of a child that is being started.
    EnterDirectory,
    /// Opening or changing what a wait needs: a backend, a registration, a waker.
    Watch,
    /// Waiting for events or for the exit of a child.
    Wait,
    /// Reading the output of a child, from a spill file too, and pausing or resuming that.
    Read,
    /// Writing to the standard input of a child, or closing it.
    Write,
    /// Making or writing a spill file.
    Spill,
    /// Forwarding the output of a child to a file.
    Forward,
    /// Killing a child, or describing how to.
    Kill,
    /// Suspending a child.
    Suspend,
    /// Resuming a suspended child.
    Resume,
    /// Changing the size of a child's terminal.
    Resize,
    /// Looking up a child by its id, or a backend by its name.
    Lookup,
    /// Stopping a [`BackgroundSet`](crate::BackgroundSet).
    Stop,
    /// Anything else.
    Other,
}

/// The class of an [`Error`], for callers that treat some classes differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The program does not exist, or is not in `PATH`.
    NotFound,
    /// The program, directory or process exists, but this process may not use it.
    PermissionDenied,
    /// No descriptor, process or memory is free **now**. It may succeed after a child has exited.
    Exhausted,
    /// The arguments and the environment together, or one argument alone, are longer than the
    /// operating system allows.
    TooLong,
    /// The request is invalid: a NUL byte in an argument, a source that is registered twice.
    InvalidInput,
    /// The child, timer or process is not known, or no longer.
    Unknown,
    /// The operating system lacks the mechanism, or a policy of this machine forbids it.
    Unsupported,
    /// A limit that the caller set is reached, such as
    /// [`ChildSetOptions::max_children`](crate::ChildSetOptions::max_children).
    Limit,
    /// Anything else: see [`Error::io_error`].
    Other,
}

impl Error {
    /// Wraps an error of the operating system. `phrase` names the operation, as in "failed to
    /// *phrase*".
    pub(crate) fn new(phrase: &'static str, source: io::Error) -> Self {
        Self::from_parts(classify(&source), phrase, None, source)
    }

    /// Makes an error that the operating system did not report.
    pub(crate) fn of_kind(kind: ErrorKind, phrase: &'static str, reason: &'static str) -> Self {
        Self::from_parts(kind, phrase, Some(reason), io::Error::from(io_kind(kind)))
    }

    fn from_parts(
        kind: ErrorKind,
        phrase: &'static str,
        reason: Option<&'static str>,
        source: io::Error,
    ) -> Self {
        let operation = Operation::Other;
        Self { inner: Box::new(Inner { kind, operation, phrase, subject: None, reason, source }) }
    }

    /// Makes an error of what the operating system reported, for code that does a part of the work of this
    /// library, such as reading the output of a child.
    ///
    /// ```
    /// use minder::{Error, Operation};
    ///
    /// let broken = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
    /// let error = Error::from_io(Operation::Read, "sort", broken);
    /// assert_eq!(error.to_string(), "failed to read the output of `sort`: broken pipe");
    /// ```
    pub fn from_io(operation: Operation, subject: impl AsRef<OsStr>, source: io::Error) -> Self {
        let phrase = match operation {
            Operation::Spawn => "start",
            Operation::Watch => "watch",
            Operation::Wait => "wait for",
            Operation::Read => "read the output of",
            Operation::Write => "write to the input of",
            Operation::Kill => "kill",
            _ => "use",
        };
        Self::new(phrase, source).during(operation).with_subject(subject)
    }

    /// Sets the operation that failed; it is [`Operation::Other`] otherwise.
    pub(crate) fn during(mut self, operation: Operation) -> Self {
        self.inner.operation = operation;
        self
    }

    /// Names the subject of the operation.
    pub(crate) fn with_subject(mut self, subject: impl AsRef<OsStr>) -> Self {
        self.inner.subject = Some(escape(&subject.as_ref().to_string_lossy()));
        self
    }

    /// Replaces the class, and the reason that the operating system gave.
    pub(crate) fn with_kind(mut self, kind: ErrorKind, reason: &'static str) -> Self {
        self.inner.kind = kind;
        self.inner.reason = Some(reason);
        self
    }

    /// Returns the class of this error.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// Returns the operation that failed.
    pub fn operation(&self) -> Operation {
        self.inner.operation
    }

    /// Returns the program, directory or pid on which the operation failed, on one line: control
    /// characters are escaped.
    pub fn subject(&self) -> Option<&str> {
        self.inner.subject.as_deref()
    }

    /// Returns the error of the operating system.
    ///
    /// ```
    /// use minder::{Command, ErrorKind};
    ///
    /// let error = Command::new("no-such-program").spawn().unwrap_err();
    /// match error.kind() {
    ///     ErrorKind::NotFound => assert_eq!(error.reason(), "not found in PATH"),
    ///     ErrorKind::Exhausted => println!("try again when a child is done"),
    ///     _ => println!("{error} ({:?})", error.io_error().raw_os_error()),
    /// }
    /// assert_eq!(error.io_error().kind(), std::io::ErrorKind::NotFound);
    /// ```
    pub fn io_error(&self) -> &io::Error {
        &self.inner.source
    }

    /// Returns why the operation failed, without operation and subject.
    pub fn reason(&self) -> String {
        match self.inner.reason {
            Some(reason) => reason.to_owned(),
            None => error_text(&self.inner.source),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed to {}", self.inner.phrase)?;
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
            .field("phrase", &self.inner.phrase)
            .field("subject", &self.inner.subject)
            .field("source", &self.inner.source)
            .finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // `Display` already includes the text of the operating system. Its source comes next, so
        // that a printed chain does not repeat the text.
        std::error::Error::source(&self.inner.source)
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        io::Error::new(error.inner.source.kind(), error)
    }
}

/// Escapes control characters, so that a name fits on one line. Backslashes and quotes stay as they
/// are: paths contain them.
pub(crate) fn escape(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for c in name.chars() {
        if matches!(c, '\\' | '\'' | '"') {
            escaped.push(c);
        } else {
            escaped.extend(c.escape_debug());
        }
    }
    escaped
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
    fn display_is_one_lower_case_line_that_names_the_subject() {
        let error =
            Error::new("start", io::Error::from(io::ErrorKind::PermissionDenied)).with_subject("a\nb");
        assert_eq!(error.to_string(), "failed to start `a\\nb`: permission denied");
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert_eq!((error.operation(), error.subject()), (Operation::Other, Some("a\\nb")));
        assert_eq!(error.during(Operation::Spawn).operation(), Operation::Spawn);
    }
}
