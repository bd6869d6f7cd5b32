//! The result of a spawn: the child and its streams, or the step that failed.

use crate::process_attributes::AttributeStep;
use crate::sys::pipe::{Reader, Writer};
use crate::sys::process_tree::ProcessTree;
use crate::sys::reap::Process;

/// A child that runs, and our ends of its streams.
#[derive(Debug)]
pub(crate) struct Spawned {
    pub(crate) process: Process,
    pub(crate) tree: ProcessTree,
    pub(crate) stdin: Option<Writer>,
    pub(crate) stdout: Option<Reader>,
    pub(crate) stderr: Option<Reader>,
}

/// Why no child runs: at which step, and what the operating system said.
#[derive(Debug)]
pub(crate) struct SpawnError {
    pub(crate) step: SpawnStep,
    pub(crate) error: std::io::Error,
}

/// The steps that can fail, as far as the caller can do something about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpawnStep {
    /// Arguments, environment: a NUL byte.
    Arguments,
    /// The raw end of a command line, on a system where programs get separate arguments.
    #[cfg_attr(windows, expect(dead_code, reason = "every program has a line there"))]
    Tail,
    /// The name of a variable.
    Variable,
    /// Pipes, terminal.
    Streams,
    /// Opening `/dev/null`.
    #[cfg_attr(windows, expect(dead_code, reason = "the null device is always there"))]
    NullDevice,
    /// Looking for the program in `PATH`.
    Lookup,
    /// Making the process.
    Process,
    /// The registration with a guardian.
    #[cfg_attr(windows, expect(dead_code, reason = "job objects need no registration"))]
    Guardian,
    /// Session, terminal, limits, in the child.
    Setup,
    /// The niceness, in the child.
    #[cfg_attr(windows, expect(dead_code, reason = "a priority class is never refused"))]
    Niceness,
    /// The timer slack, in the child.
    TimerSlack,
    /// A limit, the groups or the user, in the child.
    Attribute(AttributeStep),
    /// The working directory, in the child.
    Directory,
    /// Loading the program.
    Exec,
}

impl SpawnError {
    /// Returns whether the reader of what was sent is gone.
    #[cfg(unix)]
    pub(super) fn is_broken_pipe(&self) -> bool {
        self.error.kind() == std::io::ErrorKind::BrokenPipe
    }
}

impl SpawnStep {
    /// Makes the failure of this step.
    pub(crate) fn failed(self, error: impl Into<std::io::Error>) -> SpawnError {
        SpawnError { step: self, error: error.into() }
    }
}
