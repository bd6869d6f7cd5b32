//! One child: its number, its end, and how to kill it.

use std::fs::File;
use std::time::{Duration, Instant};

use crate::event::Exit;
use crate::sys::reap::Process;
use crate::sys::spawn::Spawned;
use crate::sys::tree::{Blow, Tree};
use crate::{Error, Result};

/// A child process that was started by [`Command::spawn`](crate::Command::spawn).
///
/// Dropping it neither kills the child nor forgets to reap it: a child that ended is reaped then; one that still runs is
/// handed to nobody, and stays a zombie after its end until this process ends. Keep it, or use a
/// [`ChildSet`](crate::ChildSet).
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
    tree: Tree,
    stdin: Option<File>,
    stdout: Option<File>,
    stderr: Option<File>,
}

/// How to end a child and everything that it started.
///
/// A tree is the child's own process group (or job object) and those descendants outside it that can be found. On Unix a
/// child that was started with [`Group::Inherit`](crate::Group::Inherit) has no group of its own:
/// it is killed with those of its descendants that can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Kill {
    pub(crate) grace: Option<Duration>,
}

/// The number of `SIGTERM`, on every system.
pub(crate) const TERM: i32 = 15;

impl Kill {
    /// At once: `SIGSTOP`, then `SIGKILL`; on Windows the end of the job object, with code 1.
    pub const NOW: Self = Self { grace: None };

    /// Asks first (`SIGTERM`, then `SIGCONT` for those that are stopped) and insists after `grace`.
    ///
    /// With a [`ChildSet`](crate::ChildSet) the set insists by itself, also when the child has ended and others of its
    /// group have not. A lone [`Child`] has nobody to do so: it is only asked, and the caller insists.
    ///
    /// - Windows: there is nothing to ask a process with; it is killed at once.
    pub const fn after(grace: Duration) -> Self {
        Self { grace: Some(grace) }
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

    /// Takes our end of the standard input, if that is a pipe. Writes to it block; closing it ends the child's input.
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
    pub fn try_wait(&mut self) -> Result<Option<Exit>> {
        let exit =
            self.process.peek().map_err(|error| Error::new("wait for", error).on(self.id().to_string()))?;
        if exit.is_some() {
            self.process.reap();
        }
        Ok(exit)
    }

    /// Waits for the end of the child, however long that takes. Our end of its input is closed first, since a child that
    /// reads to the end of it would wait for us.
    ///
    /// # Errors
    /// Only those of a system call that should not fail. A child that somebody else reaped has
    /// [`Status::Unknown`](crate::Status::Unknown), where the system did not keep its status.
    pub fn wait(&mut self) -> Result<Exit> {
        drop(self.stdin.take());
        match self.wait_until(None)? {
            Some(exit) => Ok(exit),
            None => Err(Error::own(crate::ErrorKind::Other, "wait for", "the wait ended without a deadline")),
        }
    }

    /// Waits for the end of the child for at most `timeout`; never ends early without it.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<Option<Exit>> {
        self.wait_until(Instant::now().checked_add(timeout))
    }

    /// Waits for the end of the child until `deadline`; never ends early without it.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_deadline(&mut self, deadline: Instant) -> Result<Option<Exit>> {
        self.wait_until(Some(deadline))
    }

    fn wait_until(&mut self, deadline: Option<Instant>) -> Result<Option<Exit>> {
        let exit = self
            .process
            .wait(deadline)
            .map_err(|error| Error::new("wait for", error).on(self.id().to_string()))?;
        if exit.is_some() {
            self.process.reap();
        }
        Ok(exit)
    }

    /// Kills the child and what it started, or asks it to end: see [`Kill`]. Without effect once it was reaped.
    ///
    /// # Errors
    /// `PermissionDenied` for a child that became another user's.
    pub fn kill(&mut self, how: Kill) -> Result<()> {
        self.process.check();
        if self.process.reaped() {
            return Ok(());
        }
        let blow = if how.grace.is_some() { Blow::Signal(TERM) } else { Blow::Insist };
        let id = self.id();
        self.tree.strike(&self.process, blow).map_err(|error| Error::new("kill", error).on(id.to_string()))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if matches!(self.process.peek(), Ok(Some(_))) {
            self.process.reap();
        }
    }
}
