//! One child process: its pid, its exit, and how to kill it.

use std::fmt;
use std::fs::File;
use std::time::{Duration, Instant};

use crate::child_pipes::{ChildStderr, ChildStdin, ChildStdout};
use crate::exit_status::ExitInfo;
use crate::poller::Source;
use crate::sys::process_tree::{ProcessTree, SIGNAL_MAX, TreeSignal};
use crate::sys::reap::Process;
use crate::sys::spawn::Spawned;
use crate::{Error, ErrorKind, Operation, Result};

/// A child process that was started by [`Command::spawn`](crate::Command::spawn).
///
/// Dropping it does not kill the child. A child that has exited is reaped. A child that is still
/// running becomes a zombie when it exits, until this process ends. To avoid that, wait for it, or
/// use a [`ChildSet`](crate::ChildSet).
///
/// ```
/// # #[cfg(unix)] {
/// use std::time::Duration;
/// let mut child = minder::Command::new("sleep").arg("60").spawn()?;
/// assert!(child.wait_timeout(Duration::from_millis(10))?.is_none(), "it sleeps");
/// child.kill(minder::Termination::IMMEDIATE)?;
/// assert!(!child.wait()?.status.success());
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Debug)]
pub struct Child {
    process: Process,
    tree: ProcessTree,
    /// Our end of the pipe to its standard input, if there is one.
    pub stdin: Option<ChildStdin>,
    /// Our end of the pipe from its standard output, if there is one.
    pub stdout: Option<ChildStdout>,
    /// Our end of the pipe from its standard error, if there is one.
    pub stderr: Option<ChildStderr>,
    /// Whether dropping this leaves the child for the caller to reap.
    left_unreaped: bool,
}

/// How to kill a child with everything that it started.
///
/// The process tree of a child is its process group (on Windows its job object), and those of its
/// descendants outside the group that can be found. On Unix, a child with
/// [`Group::Inherit`](crate::Group::Inherit) shares the group of this process. The group is not
/// signalled then; the child and the descendants that can be found are. On Windows the group makes
/// no difference.
///
/// ```
/// use minder::Termination;
/// use std::time::Duration;
/// // SIGINT; SIGTERM after a second; SIGKILL after another second.
/// let second = Duration::from_secs(1);
/// let how = Termination::signals(&[(2, second), (15, second)])?;
/// # let _ = how;
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Termination {
    /// The first `len` are valid. The others are equal, so that `PartialEq` can be derived.
    steps: [Step; Termination::STEPS_MAX],
    len: usize,
}

/// A signal, and the pause after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) signal: i32,
    pub(crate) pause: Duration,
}

/// The number of `SIGTERM` on every system.
const TERM: i32 = 15;
/// The value of an unused step.
const NONE: Step = Step { signal: 0, pause: Duration::ZERO };

impl Termination {
    /// Kills at once: by `SIGSTOP` and then `SIGKILL`; on Windows by terminating the job object
    /// with exit code 1.
    pub const IMMEDIATE: Self = Self { steps: [NONE; Self::STEPS_MAX], len: 0 };

    /// The most signals that [`signals`](Self::signals) accepts.
    pub const STEPS_MAX: usize = 8;

    /// Asks with `SIGTERM`, followed by `SIGCONT` for stopped processes, and kills after `grace`.
    ///
    /// A [`ChildSet`](crate::ChildSet) kills by itself, even if the child has exited and other
    /// processes of its group have not. A lone [`Child`] is only asked; its owner kills it later.
    ///
    /// - Windows: there is no signal to ask with; the child is killed at once.
    pub const fn graceful(grace: Duration) -> Self {
        let mut how = Self::IMMEDIATE;
        how.steps[0] = Step { signal: TERM, pause: grace };
        how.len = 1;
        how
    }

    /// Sends these signals, with a pause after each for the tree to exit, and then kills as
    /// [`IMMEDIATE`](Self::IMMEDIATE) does. Without signals it is `IMMEDIATE`.
    ///
    /// `SIGCONT` follows each signal that does not stop processes, so that stopped processes handle
    /// it. A pause may last some milliseconds longer, but is never shorter. A lone [`Child`]
    /// receives only the first signal.
    ///
    /// - Windows: the child is killed at once.
    ///
    /// # Errors
    /// - `InvalidInput`: there are more than [`STEPS_MAX`](Self::STEPS_MAX) signals, or a number is
    ///   not a signal of this operating system.
    pub fn signals(signals: &[(i32, Duration)]) -> Result<Self> {
        let invalid = |reason| {
            let error = Error::of_kind(ErrorKind::InvalidInput, "make a sequence of signals", reason);
            Err(error.during(Operation::Kill))
        };
        if signals.len() > Self::STEPS_MAX {
            return invalid("it has more than 8 signals");
        }
        if signals.iter().any(|(signal, _)| !(1..=SIGNAL_MAX).contains(signal)) {
            return invalid("one of the numbers is not a signal of this operating system");
        }
        let mut termination = Self::IMMEDIATE;
        for (step, &(signal, pause)) in termination.steps.iter_mut().zip(signals) {
            *step = Step { signal, pause };
        }
        termination.len = signals.len();
        Ok(termination)
    }

    /// Returns the signals before the kill.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps[..self.len]
    }

    /// Returns the sum of the pauses.
    pub(crate) fn total_pause(&self) -> Duration {
        self.steps().iter().fold(Duration::ZERO, |sum, step| sum.saturating_add(step.pause))
    }

    /// Returns what is sent first.
    pub(crate) fn first(&self) -> TreeSignal {
        self.steps().first().map_or(TreeSignal::Kill, |step| TreeSignal::Signal(step.signal))
    }
}

impl fmt::Debug for Termination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Termination").field("steps", &self.steps()).finish()
    }
}

impl<'a> From<&'a Child> for Source<'a> {
    fn from(child: &'a Child) -> Self {
        Self(child.process.source())
    }
}

impl Child {
    pub(crate) fn new(spawned: Spawned) -> Result<Self> {
        let Spawned { process, tree, stdin, stdout, stderr } = spawned;
        let file = |result: std::io::Result<_>| {
            result
                .map(File::from)
                .map_err(|error| Error::new("open the pipe of", error).during(Operation::Spawn))
        };
        Ok(Self {
            process,
            tree,
            stdin: stdin.map(|end| file(end.into_fd())).transpose()?.map(ChildStdin),
            stdout: stdout.map(|end| file(end.into_fd())).transpose()?.map(ChildStdout),
            stderr: stderr.map(|end| file(end.into_fd())).transpose()?.map(ChildStderr),
            left_unreaped: false,
        })
    }

    /// Returns the pid. No other process gets it before the child is reaped.
    pub fn id(&self) -> u32 {
        self.process.pid()
    }

    /// Closes everything that this process holds of the child, and returns its pid. The caller
    /// reaps the child by waitpid(2), so that this works for a child that has already exited.
    /// For benchmarks of other mechanisms.
    #[doc(hidden)]
    pub fn into_unreaped_pid(mut self) -> u32 {
        self.left_unreaped = true;
        self.id()
    }

    /// Returns how the child exited, if it has. Never waits.
    ///
    /// # Errors
    /// A system call fails that should not.
    pub fn try_wait(&mut self) -> Result<Option<ExitInfo>> {
        let exit = self.process.peek().map_err(|error| self.wait_error(error))?;
        if exit.is_some() {
            self.process.reap();
        }
        Ok(exit)
    }

    /// Waits until the child exits, without a time limit. Closes our end of its input first;
    /// otherwise a child that reads to the end of its input would wait for us.
    ///
    /// # Errors
    /// A system call fails that should not. If other code of this process reaped the child, and the
    /// kernel did not keep its status, that is not an error: the status is
    /// [`ExitStatus::Unknown`](crate::ExitStatus::Unknown).
    pub fn wait(&mut self) -> Result<ExitInfo> {
        drop(self.stdin.take());
        match self.wait_until(None)? {
            Some(exit) => Ok(exit),
            None => {
                let reason = "the wait ended without a deadline";
                Err(Error::of_kind(ErrorKind::Other, "wait for", reason).during(Operation::Wait))
            }
        }
    }

    /// Waits until the child exits, for at most `timeout`. Returns `None` only after that time.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<Option<ExitInfo>> {
        self.wait_until(Instant::now().checked_add(timeout))
    }

    /// Waits until the child exits, until `deadline` at the latest. Returns `None` only after that
    /// time.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_deadline(&mut self, deadline: Instant) -> Result<Option<ExitInfo>> {
        self.wait_until(Some(deadline))
    }

    fn wait_error(&self, error: std::io::Error) -> Error {
        Error::new("wait for", error).during(Operation::Wait).with_subject(self.id().to_string())
    }

    fn wait_until(&mut self, deadline: Option<Instant>) -> Result<Option<ExitInfo>> {
        let exit = self.process.wait(deadline).map_err(|error| self.wait_error(error))?;
        if exit.is_some() {
            self.process.reap();
        }
        Ok(exit)
    }

    /// Kills the child and what it started, or asks it to exit: see [`Termination`]. Without effect
    /// after it was reaped.
    ///
    /// # Errors
    /// - `PermissionDenied`: the child runs as another user.
    pub fn kill(&mut self, how: Termination) -> Result<()> {
        self.process.check();
        if self.process.reaped() {
            return Ok(());
        }
        let id = self.id();
        self.tree
            .signal_all(&self.process, how.first())
            .map_err(|error| Error::new("kill", error).during(Operation::Kill).with_subject(id.to_string()))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.left_unreaped && matches!(self.process.peek(), Ok(Some(_))) {
            self.process.reap();
        }
    }
}
