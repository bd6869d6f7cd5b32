//! Why the program of a guardian does not run.

use std::io;
use std::path::PathBuf;

/// The name of the program.
pub(in crate::sys) const PROGRAM: &str = "minder-guardian";
/// The environment variable with its path.
pub(in crate::sys) const PROGRAM_VARIABLE: &str = "MINDER_GUARDIAN";

/// Why the program of a guardian does not run.
#[derive(Debug)]
#[cfg_attr(windows, expect(dead_code, reason = "there is no program that could fail"))]
pub(crate) enum GuardianError {
    /// It is in none of the places that were searched.
    NotFound,
    /// The program or its socket cannot be opened.
    Start(PathBuf, io::Error),
    /// It exited, or replied something else than a guardian does.
    NoGuardian(PathBuf),
    /// It is of another version.
    Version(PathBuf),
    /// It was not ready in time.
    TimedOut(PathBuf),
}

impl std::fmt::Display for GuardianError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (path, why) = match self {
            Self::NotFound => {
                return write!(
                    f,
                    "its guardian has exited and `{PROGRAM}` is not found: name it in `{PROGRAM_VARIABLE}`"
                );
            }
            Self::Start(path, error) => (path, error.to_string()),
            Self::NoGuardian(path) => (path, "it is not the guardian's program".to_owned()),
            Self::Version(path) => (path, "it is of another version".to_owned()),
            Self::TimedOut(path) => (path, "it was not ready in time".to_owned()),
        };
        write!(f, "its guardian has exited and `{}` cannot be started again: {why}", path.display())
    }
}

impl std::error::Error for GuardianError {}

impl From<io::Error> for GuardianError {
    /// The list could not be sent to a program that was ready.
    fn from(error: io::Error) -> Self {
        let path = PathBuf::from(PROGRAM);
        match error.kind() {
            io::ErrorKind::TimedOut => Self::TimedOut(path),
            _ => Self::Start(path, error),
        }
    }
}
