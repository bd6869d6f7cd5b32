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
    /// The time of its start, in ticks of the kernel's clock. With the pid it names one process for ever.
    /// 0 if this user may not see the process.
    pub started: u64,
    /// The time since then.
    pub age: Duration,
    /// `true` if its parent holds a pidfd of it: the parent has started it, and has not reaped it.
    pub is_held: bool,
    /// Its program and arguments. Empty if this user may not see the process.
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
