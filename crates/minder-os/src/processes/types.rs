//! What is known of a process.

use std::ffi::OsString;
use std::time::Duration;

/// A running process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildProcess {
    /// Its process id.
    pub pid: u32,
    /// `true` if it leads its process group.
    pub leads_group: bool,
    /// The time since it was started.
    pub age: Duration,
    /// Its program and arguments.
    pub argv: Vec<OsString>,
    /// The variables that its program was started with, as `NAME=VALUE`. Empty if this user may not read
    /// them.
    pub environment: Vec<OsString>,
}

impl ChildProcess {
    /// Returns the value of a variable, if it is UTF-8.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        let lines = self.environment.iter().filter_map(|line| line.to_str()?.split_once('='));
        lines.into_iter().find_map(|(key, value)| (key == name).then_some(value))
    }
}
