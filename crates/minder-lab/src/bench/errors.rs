//! Errors of `minder-bench` as messages.

use anyhow::{Error, anyhow};
use minder::ErrorKind;

/// Returns the text of an error, with a hint if something is exhausted.
pub(super) fn describe(error: &minder_bench::Error) -> String {
    match error.kind() {
        ErrorKind::Exhausted => format!("{error} (`minder doctor` shows the limits)"),
        _ => error.to_string(),
    }
}

/// Converts an error, with the same hint.
pub(super) fn to_anyhow(error: minder_bench::Error) -> Error {
    anyhow!(describe(&error))
}
