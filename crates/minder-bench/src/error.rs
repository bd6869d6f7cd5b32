//! The error of this crate: an error of `minder`, or a failed step of a benchmark.

use std::ffi::OsStr;
use std::fmt;
use std::io;

use minder::ErrorKind;

use crate::sys;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failed step of a benchmark.
///
/// Its text is one line: the operation, its subject and the reason. An error of `minder` keeps its
/// text and its class.
///
/// ```
/// use minder::ErrorKind;
/// use minder_bench::{WaitBench, WaitObjects};
///
/// let error = WaitBench::open("magic", WaitObjects::open(1)?).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Unsupported);
/// assert!(error.to_string().contains("`magic`"));
/// # Ok::<(), minder_bench::Error>(())
/// ```
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    text: String,
    source: Option<minder::Error>,
}

impl Error {
    /// Describes a system call that failed.
    pub(crate) fn from_io(operation: &str, subject: Option<&OsStr>, error: &io::Error) -> Self {
        Self::new(classify(error), operation, subject, &minder_os::error_text(error))
    }

    /// Describes a step that failed for a reason of this crate.
    pub(crate) fn new(kind: ErrorKind, operation: &str, subject: Option<&OsStr>, reason: &str) -> Self {
        let subject = subject.map(|subject| format!(" `{}`", escape(subject))).unwrap_or_default();
        Self { kind, text: format!("failed to {operation}{subject}: {reason}"), source: None }
    }

    /// Makes an error of one complete line.
    pub(crate) fn with_text(kind: ErrorKind, text: String) -> Self {
        Self { kind, text, source: None }
    }

    /// Returns the class of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns whether measuring other cases is pointless: the child that was asked for is unfit.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        self.kind == ErrorKind::InvalidInput
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // The text is that of `minder::Error` itself, so the chain continues below it.
        std::error::Error::source(self.source.as_ref()?)
    }
}

impl From<minder::Error> for Error {
    fn from(error: minder::Error) -> Self {
        Self { kind: error.kind(), text: error.to_string(), source: Some(error) }
    }
}

fn classify(error: &io::Error) -> ErrorKind {
    if sys::is_exhausted(error) {
        return ErrorKind::Exhausted;
    }
    match error.kind() {
        io::ErrorKind::OutOfMemory => ErrorKind::Exhausted,
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        io::ErrorKind::PermissionDenied => ErrorKind::PermissionDenied,
        io::ErrorKind::InvalidInput => ErrorKind::InvalidInput,
        io::ErrorKind::Unsupported => ErrorKind::Unsupported,
        _ => ErrorKind::Other,
    }
}

/// Escapes control characters, so that the text stays on one line. Backslashes and quotes stay,
/// since paths contain them.
fn escape(name: &OsStr) -> String {
    let mut escaped = String::new();
    for c in name.to_string_lossy().chars() {
        if matches!(c, '\\' | '\'' | '"') {
            escaped.push(c);
        } else {
            escaped.extend(c.escape_debug());
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_one_line_with_operation_subject_and_reason() {
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let error = Error::from_io("watch", Some(OsStr::new("a\nb")), &denied);
        assert_eq!(error.to_string(), "failed to watch `a\\nb`: permission denied");
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert!(!error.is_fatal());
    }

    #[test]
    fn minder_error_keeps_kind_and_text() {
        let inner = "magic".parse::<minder::Backend>().expect_err("parse unknown backend");
        let text = inner.to_string();
        let error = Error::from(inner);
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::InvalidInput, text));
    }
}
