//! One child: its number, its end, and how to kill it.

use std::fmt;
use std::fs::File;
use std::time::{Duration, Instant};

use crate::event::ExitInfo;
use crate::poller::Source;
use crate::sys::process_tree::{ProcessTree, SIGNAL_MAX, TreeSignal};
use crate::sys::reap::Process;
use crate::sys::spawn::Spawned;
use crate::{Error, ErrorKind, Result};

/// A child process that was started by [`Command::spawn`](crate::Command::spawn).
///
/// Dropping it neither kills the child nor forgets to reap it: a child that ended is reaped then;
/// one that still runs is handed to nobody, and stays a zombie after its end until this process
/// ends. Keep it, or use a [`ChildSet`](crate::ChildSet).
///
/// ```
/// # #[cfg(unix)] {
/// use std::time::Duration;
/// let mut child = minder::Command::new("sleep").arg("60").spawn()?;
/// assert!(child.wait_timeout(Duration::from_millis(10))?.is_none(), "it sleeps");
/// child.kill(minder::Kill::NOW)?;
/// assert!(!child.wait()?.status.success());
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Debug)]
pub struct Child {
    process: Process,
    tree: ProcessTree,
    stdin: Option<File>,
    stdout: Option<File>,
    stderr: Option<File>,
}

/// How to end a child and everything that it started.
///
/// A tree is the child's own process group (or job object) and those descendants outside it that
/// can be found. On Unix a child that was started with [`Group::Inherit`](crate::Group::Inherit)
/// has no group of its own: it is killed with those of its descendants that can be found. On
/// Windows that makes no difference.
///
/// ```
/// use minder::Kill;
/// use std::time::Duration;
/// // SIGINT, then SIGTERM after a second, and after one more the end.
/// let second = Duration::from_secs(1);
/// let how = Kill::sequence(&[(2, second), (15, second)])?;
/// # let _ = how;
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Termination {
    /// The first `len` of them are to be taken; the others are alike.
    steps: [Step; Termination::STEPS_MAX],
    len: usize,
}

/// A signal, and how long to wait behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) signal: i32,
    pub(crate) pause: Duration,
}

/// The number of `SIGTERM`, on every system.
const TERM: i32 = 15;
/// No step.
const NONE: Step = Step { signal: 0, pause: Duration::ZERO };

impl Termination {
    /// At once: `SIGSTOP`, then `SIGKILL`; on Windows the end of the job object, with code 1.
    pub const IMMEDIATE: Self = Self { steps: [NONE; Self::STEPS_MAX], len: 0 };

    /// The most signals of a [`sequence`](Self::signals).
    pub const STEPS_MAX: usize = 8;

    /// Asks first (`SIGTERM`, then `SIGCONT` for those that are stopped) and insists after `grace`.
    ///
    /// With a [`ChildSet`](crate::ChildSet) the set insists by itself, also when the child has
    /// ended and others of its group have not. A lone [`Child`] has nobody to do so: it is only
    /// asked, and the caller insists.
    ///
    /// - Windows: there is nothing to ask a process with; it is killed at once.
    pub const fn graceful(grace: Duration) -> Self {
        let mut how = Self::IMMEDIATE;
        how.steps[0] = Step { signal: TERM, pause: grace };
        how.len = 1;
        how
    }

    /// Sends each of these signals, by its number, and waits so long for the tree to end; then
    /// insists as [`NOW`](Self::IMMEDIATE) does, whatever the last signal was. Without signals it
    /// is `NOW`.
    ///
    /// `SIGCONT` follows each signal, so that those that are stopped take it, but for a signal that
    /// stops. A pause may last some milliseconds longer, and is never shorter. A lone [`Child`]
    /// is sent the first signal only.
    ///
    /// - Windows: as [`after`](Self::graceful), killed at once.
    ///
    /// # Errors
    /// `InvalidInput` for more than [`STEPS_MAX`](Self::STEPS_MAX) signals, and for a number that
    /// is no signal here.
    pub fn signals(signals: &[(i32, Duration)]) -> Result<Self> {
        let invalid = |why| Err(Error::of_kind(ErrorKind::InvalidInput, "make a sequence of signals", why));
        if signals.len() > Self::STEPS_MAX {
            return invalid("it has more than 8");
        }
        if signals.iter().any(|(signal, _)| !(1..=SIGNAL_MAX).contains(signal)) {
            return invalid("one of the numbers is no signal of this system");
        }
        let mut how = Self::IMMEDIATE;
        for (step, &(signal, pause)) in how.steps.iter_mut().zip(signals) {
            *step = Step { signal, pause };
        }
        how.len = signals.len();
        Ok(how)
    }

    /// What comes before the end.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps[..self.len]
    }

    /// What comes first.
    pub(crate) fn first(&self) -> TreeSignal {
        self.steps().first().map_or(TreeSignal::Kill, |step| TreeSignal::Signal(step.signal))
    }
}

impl fmt::Debug for Termination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kill").field("steps", &self.steps()).finish()
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
            result.map(File::from).map_err(|error| Error::new("open the pipe of", error))
        };
        Ok(Self {
            process,
            tree,
            stdin: stdin.map(|end| file(end.into_fd())).transpose()?,
            stdout: stdout.map(|end| file(end.into_fd())).transpose()?,
            stderr: stderr.map(|end| file(end.into_fd())).transpose()?,
        })
    }

    /// The process number. It stays the child's own until the child is reaped.
    pub fn id(&self) -> u32 {
        self.process.pid()
    }

    /// Takes our end of the standard input, if that is a pipe. Writes to it block; closing it ends
    /// the child's input.
    pub fn take_stdin(&mut self) -> Option<File> {
        self.stdin.take()
    }

    /// Takes our end of the standard output, if that is a pipe. Reads from it block.
    pub fn take_stdout(&mut self) -> Option<File> {
        self.stdout.take()
    }

    /// Takes our end of the standard error, if that is a pipe. Reads from it block.
    pub fn take_stderr(&mut self) -> Option<File> {
        self.stderr.take()
    }

    /// The end of the child, if it has come. Never waits.
    ///
    /// # Errors
    /// Only those of a system call that should not fail.
    pub fn try_wait(&mut self) -> Result<Option<ExitInfo>> {
        let exit = self
            .process
            .peek()
            .map_err(|error| Error::new("wait for", error).with_subject(self.id().to_string()))?;
        if exit.is_some() {
            self.process.reap();
        }
        Ok(exit)
    }

    /// Waits for the end of the child, however long that takes. Our end of its input is closed
    /// first, since a child that reads to the end of it would wait for us.
    ///
    /// # Errors
    /// Only those of a system call that should not fail. A child that somebody else reaped has
    /// [`Status::Unknown`](crate::ExitStatus::Unknown), where the system did not keep its status.
    pub fn wait(&mut self) -> Result<ExitInfo> {
        drop(self.stdin.take());
        match self.wait_until(None)? {
            Some(exit) => Ok(exit),
            None => Err(Error::of_kind(ErrorKind::Other, "wait for", "the wait ended without a deadline")),
        }
    }

    /// Waits for the end of the child for at most `timeout`; never ends early without it.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<Option<ExitInfo>> {
        self.wait_until(Instant::now().checked_add(timeout))
    }

    /// Waits for the end of the child until `deadline`; never ends early without it.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_deadline(&mut self, deadline: Instant) -> Result<Option<ExitInfo>> {
        self.wait_until(Some(deadline))
    }

    fn wait_until(&mut self, deadline: Option<Instant>) -> Result<Option<ExitInfo>> {
        let exit = self
            .process
            .wait(deadline)
            .map_err(|error| Error::new("wait for", error).with_subject(self.id().to_string()))?;
        if exit.is_some() {
            self.process.reap();
        }
        Ok(exit)
    }

    /// Kills the child and what it started, or asks it to end: see [`Termination`]. Without effect
    /// once it was reaped.
    ///
    /// # Errors
    /// `PermissionDenied` for a child that became another user's.
    pub fn kill(&mut self, how: Termination) -> Result<()> {
        self.process.check();
        if self.process.reaped() {
            return Ok(());
        }
        let id = self.id();
        self.tree
            .signal_all(&self.process, how.first())
            .map_err(|error| Error::new("kill", error).with_subject(id.to_string()))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if matches!(self.process.peek(), Ok(Some(_))) {
            self.process.reap();
        }
    }
}
