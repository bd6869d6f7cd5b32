//! The variables and descriptors that jobs inherit in addition to their streams.

use std::ffi::OsString;

use minder::{Descriptors, Environment};

/// The variables and descriptors that jobs inherit in addition to their streams.
#[derive(Debug, Default)]
pub(crate) struct JobEnvironment {
    /// The variables that all jobs have in common.
    pub(crate) variables: Environment,
    /// Descriptors that were open when this process started.
    pub(crate) descriptors: Descriptors,
}

impl JobEnvironment {
    /// Copies the variables of this process, and changes some of them. A later change of a variable
    /// replaces an earlier one.
    pub(crate) fn set_variables(&mut self, changes: impl IntoIterator<Item = (OsString, OsString)>) {
        self.variables = Environment::inherited().with_all(changes);
    }
}
