//! From a `Command` to a process and its endpoints, without copying our address space.
//!
//! | mechanism | where | what it cannot do |
//! | --- | --- | --- |
//! | `clone3` | Linux 5.5 on x86-64 and aarch64 | – |
//! | `posix_spawn` | every Unix, and Linux where a sandbox refuses `clone3` | soft descriptor limit, parent-death signal, niceness |
//! | `CreateProcessW` | Windows | process groups in the sense of Unix |

#[cfg(unix)]
mod exec_args;
#[cfg(all(
    any(target_os = "linux", target_os = "android"),
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod clone3;
#[cfg(unix)]
mod posix;
#[cfg(unix)]
mod kept;
#[cfg(unix)]
mod unix;
#[cfg(any(windows, test))]
mod quote;
#[cfg(any(windows, test))]
mod cmd_quote;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::kept::{close_on_exec, inherited};
#[cfg(unix)]
pub(crate) use self::unix::{NO_FILE, NO_PROGRAM, Spawner, is_exhausted, is_no_program};
#[cfg(windows)]
pub(crate) use self::windows::{CommandLineLimit, NO_FILE, NO_PROGRAM, Spawner, is_exhausted, is_no_program};

use super::pipe::{Reader, Writer};
use super::process_tree::Tree;
use super::reap::Process;

/// A child that runs, and our ends of its streams.
#[derive(Debug)]
pub(crate) struct Spawned {
    pub(crate) process: Process,
    pub(crate) tree: Tree,
    pub(crate) stdin: Option<Writer>,
    pub(crate) stdout: Option<Reader>,
    pub(crate) stderr: Option<Reader>,
}

/// Why no child runs: at which step, and what the system said.
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
    /// The end of a command line as it is, where there are only words.
    #[cfg_attr(windows, expect(dead_code, reason = "every program has a line there"))]
    Tail,
    /// The name of a variable.
    Variable,
    /// Pipes, terminal, `/dev/null`.
    Streams,
    /// Looking for the program in `PATH`.
    Lookup,
    /// Making the process.
    Process,
    /// Session, terminal, limits, in the child.
    Setup,
    /// The niceness, in the child.
    #[cfg_attr(windows, expect(dead_code, reason = "a priority class is never refused"))]
    Niceness,
    /// The working directory, in the child.
    Directory,
    /// Loading the program.
    Exec,
}

impl SpawnStep {
    /// Makes the failure of this step.
    pub(crate) fn failed(self, error: impl Into<std::io::Error>) -> SpawnError {
        SpawnError { step: self, error: error.into() }
    }
}
