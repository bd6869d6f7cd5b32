//! Why a job is not started: because of its values, or because of something that affects every job.

use std::io;

use crate::text::os_error_text;

/// Why a job is not started.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Because of a name that its values produce. Other jobs may start.
    Own(String),
    /// Because of something that other jobs would meet as well. The run ends.
    All(String),
    /// Because the input lacks a value that every job needs. The run ends.
    Input(String),
}

impl Refusal {
    /// Returns the refusal for a file or directory that cannot be created. `varies` is `true` if
    /// its name depends on the values of the job.
    pub(crate) fn of(what: &str, error: &io::Error, varies: bool) -> Self {
        use io::ErrorKind::{
            AlreadyExists, InvalidFilename, InvalidInput, IsADirectory, NotADirectory, NotFound,
            PermissionDenied,
        };
        let of_a_name = matches!(
            error.kind(),
            AlreadyExists
                | InvalidFilename
                | InvalidInput
                | IsADirectory
                | NotADirectory
                | NotFound
                | PermissionDenied
        );
        let text = format!("{what}: {}", os_error_text(error));
        if varies && of_a_name { Self::Own(text) } else { Self::All(text) }
    }
}

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Self::All(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_refuses_all_jobs_and_bad_name_only_its_own() {
        let of = |kind: io::ErrorKind, varies| Refusal::of("cannot make `x`", &kind.into(), varies);
        assert!(matches!(of(io::ErrorKind::NotADirectory, true), Refusal::Own(_)));
        assert!(matches!(of(io::ErrorKind::NotADirectory, false), Refusal::All(_)));
        assert!(matches!(of(io::ErrorKind::StorageFull, true), Refusal::All(_)));
    }
}
