//! The options with which the program of a guardian is started, and those for the end of the host.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The environment variable that guarded children get if they are tagged.
#[cfg(unix)]
pub(crate) const TAG: &str = "MINDER_GUARDIAN_ID";

#[derive(Clone, Debug)]
pub(crate) struct GuardianSettings {
    /// The program's path, if the caller names it.
    pub(crate) program: Option<PathBuf>,
    pub(crate) args: Vec<OsString>,
    /// The time between SIGTERM and SIGKILL; zero sends SIGKILL at once.
    pub(crate) grace: Duration,
    /// `true` if children are tagged by an environment variable.
    pub(crate) tag: bool,
    /// `true` if the program inherits the standard error of the host.
    pub(crate) inherit_stderr: bool,
    /// `true` if a program that has exited is started again.
    pub(crate) restart: bool,
    /// The longest time that a start may take.
    pub(crate) start_timeout: Duration,
}

impl Default for GuardianSettings {
    fn default() -> Self {
        Self {
            program: None,
            args: Vec::new(),
            grace: Duration::ZERO,
            tag: false,
            inherit_stderr: false,
            restart: false,
            start_timeout: Duration::from_secs(10),
        }
    }
}
