//! One child process: its pid, its exit, and how to kill it.

use std::fs::File;
use std::time::{Duration, Instant};

use crate::child_pipes::{ChildStderr, ChildStdin, ChildStdout};
use crate::exit_status::ExitInfo;
use crate::group::Size;
use crate::sys::process_tree::{ProcessSnapshot, ProcessTree};
use crate::sys::reap::{ExitWatch, Process, reap_orphans};
use crate::sys::signal::Signal;
use crate::sys::spawn::Spawned;
use crate::termination::{Termination, TerminationState};
use crate::{Error, ErrorKind, Operation, Result};

/// A child process that was started by [`Command::spawn`](crate::Command::spawn).
///
/// Dropping it does not kill the child. A child that has exited is reaped. A child that is still
/// running becomes a zombie when it exits, until a later start or wait of this library reaps it.
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
    /// `true` if dropping this leaves the child for the caller to reap.
    left_unreaped: bool,
}

/// A kill that is under way: see [`Child::start_kill`].
#[derive(Debug)]
pub struct Kill(TerminationState);

/// The result of a step of a kill: see [`Child::advance_kill`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub enum KillStep {
    /// The child is reaped, and its tree is gone or not waited for any longer.
    Finished(ExitInfo),
    /// The child runs. The next step is due when it exits, and at this time.
    Running(Instant),
    /// The child has exited, and others of its tree have not. The next step is due at this time.
    Exited(Instant),
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

    /// Makes a child of a process whose pipes others have.
    pub(crate) fn without_pipes(process: Process, tree: ProcessTree) -> Self {
        Self { process, tree, stdin: None, stdout: None, stderr: None, left_unreaped: false }
    }

    /// Returns the pid. No other process gets it before the child is reaped.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use std::time::{Duration, Instant};
    ///
    /// let mut child = minder::Command::new("sleep").arg("60").spawn()?;
    /// println!("started process {}", child.id());
    /// assert!(child.try_wait()?.is_none(), "it runs");
    /// assert!(child.wait_deadline(Instant::now() + Duration::from_millis(10))?.is_none());
    /// child.kill_and_wait(minder::Termination::IMMEDIATE)?;
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn id(&self) -> u32 {
        self.process.pid()
    }

    /// Gives the child up: closes everything that this process holds of it, and returns its pid. The
    /// caller reaps the child by waitpid(2), even if it has already exited. For hosts whose own code
    /// reaps all children, such as some interpreters and toolkits. A [`Guardian`](crate::guard::Guardian)
    /// forgets the child.
    ///
    /// - Windows: nothing needs to be reaped. The pid may name another process as soon as the child has
    ///   exited.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// let child = minder::Command::new("true").spawn()?;
    /// let pid = child.into_pid();
    /// // Here the interpreter's own code reaps it.
    /// use rustix::process::{Pid, WaitOptions, waitpid};
    /// let reaped = waitpid(Pid::from_raw(pid as i32), WaitOptions::empty())?;
    /// assert!(reaped.is_some_and(|(_, status)| status.exit_status() == Some(0)));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_pid(mut self) -> u32 {
        self.left_unreaped = true;
        self.process.unregister();
        self.id()
    }

    /// Returns how the child exited, if it has. Never waits.
    ///
    /// # Errors
    /// A system call fails that should not.
    pub fn try_wait(&mut self) -> Result<Option<ExitInfo>> {
        reap_orphans();
        self.process.try_reap().map_err(|error| self.wait_error(error))
    }

    /// Waits until the child exits, without a time limit. Closes our end of its input first;
    /// otherwise a child that reads to the end of its input would wait for us.
    ///
    /// # Errors
    /// A system call fails that should not. If other code of this process reaped the child, and the
    /// kernel did not keep its status, that is not an error: the status is
    /// [`ExitStatus::Unknown`](crate::ExitStatus::Unknown).
    pub fn wait(&mut self) -> Result<ExitInfo> {
        reap_orphans();
        drop(self.stdin.take());
        self.process.wait_and_reap().map_err(|error| self.wait_error(error))
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
        reap_orphans();
        let exit = self.process.wait(deadline).map_err(|error| self.wait_error(error))?;
        if exit.is_some() {
            self.process.reap();
        }
        Ok(exit)
    }

    /// Sets the size of the child's terminal: see [`Group::Terminal`](crate::Group::Terminal). Its
    /// foreground processes get `SIGWINCH`.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// use minder::{Command, ErrorKind, Group, Size, Termination};
    ///
    /// let mut command = Command::new("cat");
    /// command.group(Group::Terminal(Size::default()));
    /// let mut child = command.spawn()?;
    /// child.resize_terminal(Size::new(50, 132))?;
    /// child.kill_and_wait(Termination::IMMEDIATE)?;
    ///
    /// let mut child = Command::new("true").spawn()?;
    /// assert_eq!(child.resize_terminal(Size::default()).unwrap_err().kind(), ErrorKind::InvalidInput);
    /// child.wait()?;
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `InvalidInput`: the child has no terminal, or both [`stdin`](Self::stdin) and
    ///   [`stdout`](Self::stdout) were taken: these have the same method.
    /// - `Unsupported`: on Windows.
    pub fn resize_terminal(&self, size: Size) -> Result<()> {
        match (&self.stdout, &self.stdin) {
            (Some(stdout), _) => stdout.resize_terminal(size),
            (None, Some(stdin)) => stdin.resize_terminal(size),
            (None, None) => {
                let reason = "it has no terminal, or its streams were taken";
                let error = Error::of_kind(ErrorKind::InvalidInput, "resize the terminal of a child", reason);
                Err(error.during(Operation::Resize))
            }
        }
    }

    /// Kills the child and what it started, or asks it to exit: see [`Termination`]. Returns at once, and
    /// sends the first signal only: [`kill_and_wait`](Self::kill_and_wait) sends all of them. Without
    /// effect after the child was reaped.
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

    /// Sends one signal to the process group of the child, as kill(2) does: no `SIGCONT` follows, and
    /// processes that left the group are not reached. With [`Group::Inherit`](crate::Group::Inherit) the
    /// child alone gets it. For programs that pass on the signals that they get. Without effect after the
    /// child was reaped.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Command, Signal};
    ///
    /// let mut child = Command::new("sleep").arg("60").spawn()?;
    /// child.signal(Signal::TERM)?;
    /// assert_eq!(child.wait()?.status.signal(), Some(15));
    /// child.signal(Signal::TERM)?; // without effect
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `PermissionDenied`: the child runs as another user.
    /// - `InvalidInput`: the number is not a signal of this operating system.
    /// - `Unsupported`: on Windows.
    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        self.process.check();
        if self.process.reaped() {
            return Ok(());
        }
        let id = self.id();
        self.tree
            .signal_group(&self.process, signal.as_raw())
            .map_err(|error| Error::new("signal", error).during(Operation::Kill).with_subject(id.to_string()))
    }

    /// Kills the child and what it started, with all signals and pauses of `how`, and waits until all
    /// of them have exited. Returns how the child exited.
    ///
    /// Closes our end of its input first, as [`wait`](Self::wait) does. Our ends of its outputs stay
    /// open: a child that writes while they are full cannot handle a signal that asks it to exit.
    ///
    /// # Errors
    /// - `Other`: the child has not exited 5 s after it was killed. It may be in an uninterruptible
    ///   system call. Processes that it left behind do not cause this error.
    /// - `PermissionDenied`: the child runs as another user.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Command, Termination};
    /// use std::time::Duration;
    /// // SIGTERM, and SIGKILL for what is left after a second.
    /// let mut child = Command::new("sleep").arg("60").spawn()?;
    /// let exit = child.kill_and_wait(Termination::graceful(Duration::from_secs(1)))?;
    /// assert_eq!(exit.status.signal(), Some(15));
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn kill_and_wait(&mut self, how: Termination) -> Result<ExitInfo> {
        drop(self.stdin.take());
        let mut kill = self.start_kill(how)?;
        loop {
            match self.advance_kill(&mut kill)? {
                KillStep::Finished(exit) => return Ok(exit),
                KillStep::Running(check_at) => {
                    self.process.wait(Some(check_at)).map_err(|error| self.wait_error(error))?;
                }
                KillStep::Exited(check_at) => sleep_until(check_at),
            }
        }
    }

    /// Sends the first signal of a kill that [`advance_kill`](Self::advance_kill) continues, for a program
    /// with an event loop: [`kill_and_wait`](Self::kill_and_wait) in steps. Each waits a moment, and 0.5 s at
    /// most, until processes that left the group of the child have stopped.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Command, Kill, KillStep, Termination};
    /// use std::time::{Duration, Instant};
    ///
    /// let mut child = Command::new("sleep").arg("60").spawn()?;
    /// let mut kill: Kill = child.start_kill(Termination::graceful(Duration::from_secs(5)))?;
    /// let exit = loop {
    ///     match child.advance_kill(&mut kill)? {
    ///         KillStep::Finished(exit) => break exit,
    ///         // An event loop would watch `child.pidfd()` until then.
    ///         KillStep::Running(at) => drop(child.wait_deadline(at)?),
    ///         KillStep::Exited(at) => std::thread::sleep(at - Instant::now()),
    ///         _ => (),
    ///     }
    /// };
    /// assert_eq!(exit.status.signal(), Some(15));
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`kill`](Self::kill).
    pub fn start_kill(&mut self, how: Termination) -> Result<Kill> {
        let now = Instant::now();
        self.kill(how)?;
        Ok(Kill(TerminationState::new(how, now)))
    }

    /// Continues a kill: sends the signal that is due, and reaps the child when its tree is gone. Never
    /// waits. To call it earlier than the last step said does no harm.
    ///
    /// # Errors
    /// As [`kill_and_wait`](Self::kill_and_wait).
    pub fn advance_kill(&mut self, kill: &mut Kill) -> Result<KillStep> {
        let kill = &mut kill.0;
        let now = Instant::now();
        let exit = self.peek()?;
        if let Some(exit) = exit {
            let is_gone = self.process.reaped()
                || kill.is_hopeless(now)
                || kill.may_search(now) && !self.tree.is_alive(&ProcessSnapshot::now());
            if is_gone {
                self.process.reap();
                return Ok(KillStep::Finished(exit));
            }
        } else if kill.is_hopeless(now) {
            let reason = "it has not exited 5 s after it was killed";
            let error = Error::of_kind(ErrorKind::Other, "wait for", reason).during(Operation::Wait);
            return Err(error.with_subject(self.id().to_string()));
        }
        if let Some(signal) = kill.next_signal(now) {
            self.process.check();
            // A process that may no longer be signalled is waited for.
            let _ = self.tree.signal_all(&self.process, signal);
        }
        let check_at = kill.check_at(now);
        Ok(if exit.is_some() { KillStep::Exited(check_at) } else { KillStep::Running(check_at) })
    }

    /// Returns how the child exited, if it has, without reaping it.
    pub(crate) fn peek(&mut self) -> Result<Option<ExitInfo>> {
        self.process.peek().map_err(|error| self.wait_error(error))
    }

    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    /// Returns what waits for the exit without a reference to the child.
    pub(crate) fn exit_watch(&self) -> std::io::Result<ExitWatch> {
        self.process.exit_watch()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.left_unreaped {
            self.process.leave();
        }
    }
}

/// Sleeps until a check of processes whose exit nothing reports: they are not our children.
pub(crate) fn sleep_until(until: Instant) {
    minder_os::time::pause(Duration::MAX, Some(until));
}
