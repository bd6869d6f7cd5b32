//! What jobs inherit beside their streams.

use std::ffi::OsString;

use minder::Descriptors;

/// What jobs inherit beside their streams.
#[derive(Debug, Default)]
pub(crate) struct JobEnvironment {
    /// Variables whose value for the jobs differs from ours.
    pub(crate) variables: Vec<(&'static str, OsString)>,
    /// Descriptors that were open when this process started.
    pub(crate) descriptors: Descriptors,
}
