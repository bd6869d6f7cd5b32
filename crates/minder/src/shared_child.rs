//! One child that several threads use at the same time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use minder_os::sync::Mutex;

use crate::child::{Child, Kill, KillStep, sleep_until};
use crate::child_pipes::{ChildStderr, ChildStdin, ChildStdout};
use crate::exit_status::ExitInfo;
use crate::sys::reap::ExitWatch;
use crate::sys::signal::Signal;
use crate::termination::Termination;
use crate::{Error, Operation, Result};

/// A [`Child`] that several threads wait for and kill at the same time.
///
/// A clone names the same child. A kill cannot hit another process: no thread reaps the child while
/// another sends it a signal. Every thread that waits returns the same exit.
///
/// Dropping the last clone is as dropping the [`Child`]: it does not kill.
///
/// - Without pidfds (Unix other than Linux, and Linux before 5.4) a wait polls every 10 ms.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{Command, SharedChild, Termination};
///
/// let child: SharedChild = Command::new("sleep").arg("60").spawn()?.into_shared()?;
/// let waiter = child.clone();
/// let thread = std::thread::spawn(move || waiter.wait());
/// child.kill(Termination::IMMEDIATE)?;
/// let exit = thread.join().expect("the thread does not panic")?;
/// assert!(!exit.status.success());
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SharedChild {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// No thread holds this lock while it waits.
    state: Mutex<State>,
    pid: u32,
    exit_watch: ExitWatch,
}

#[derive(Debug)]
struct State {
    child: Child,
    /// The number of calls of [`SharedChild::kill_and_wait`] that run. The child is not reaped
    /// meanwhile: it keeps the id of its process group in use.
    kills: usize,
}

impl Child {
    /// Returns a handle that several threads can use at the same time.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// let child = minder::Command::new("true").spawn()?.into_shared()?;
    /// assert!(child.wait()?.status.success());
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `Exhausted`: no descriptor is free. The child is dropped then, and continues to run.
    pub fn into_shared(self) -> Result<SharedChild> {
        let exit_watch =
            self.exit_watch().map_err(|error| Error::new("watch a child", error).during(Operation::Watch))?;
        let pid = self.id();
        let shared = Shared { state: Mutex::new(State { child: self, kills: 0 }), pid, exit_watch };
        Ok(SharedChild { shared: Arc::new(shared) })
    }
}

impl SharedChild {
    /// Returns the pid. No other process gets it before the child is reaped.
    pub fn id(&self) -> u32 {
        self.shared.pid
    }

    /// Takes our end of the pipe to the standard input, if there is one and no thread has taken it.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Command, Stdio};
    /// use std::io::{Write, read_to_string};
    ///
    /// let mut command = Command::new("sh");
    /// command.args(["-c", "cat; echo message >&2"]);
    /// command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    /// let child = command.spawn()?.into_shared()?;
    /// child.take_stdin().expect("it is piped").write_all(b"text")?; // and closes it
    /// assert_eq!(read_to_string(child.take_stdout().expect("it is piped"))?, "text");
    /// assert_eq!(read_to_string(child.take_stderr().expect("it is piped"))?, "message\n");
    /// assert!(child.wait()?.status.success() && child.take_stdout().is_none());
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take_stdin(&self) -> Option<ChildStdin> {
        self.shared.state.lock().child.stdin.take()
    }

    /// Takes our end of the pipe from the standard output, if there is one and no thread has taken it.
    pub fn take_stdout(&self) -> Option<ChildStdout> {
        self.shared.state.lock().child.stdout.take()
    }

    /// Takes our end of the pipe from the standard error, if there is one and no thread has taken it.
    pub fn take_stderr(&self) -> Option<ChildStderr> {
        self.shared.state.lock().child.stderr.take()
    }

    /// Returns how the child exited, if it has. Never waits.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Command, Termination};
    /// use std::time::{Duration, Instant};
    ///
    /// let child = Command::new("sleep").arg("60").spawn()?.into_shared()?;
    /// let soon = Duration::from_millis(5);
    /// assert!(child.id() > 0 && child.try_wait()?.is_none());
    /// assert!(child.wait_timeout(soon)?.is_none() && child.wait_deadline(Instant::now() + soon)?.is_none());
    /// let exit = child.kill_and_wait(Termination::graceful(Duration::from_secs(5)))?;
    /// assert_eq!(child.try_wait()?, Some(exit), "every call returns the same exit");
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Child::try_wait`].
    pub fn try_wait(&self) -> Result<Option<ExitInfo>> {
        let mut state = self.shared.state.lock();
        if state.kills > 0 { state.child.peek() } else { state.child.try_wait() }
    }

    /// Waits until the child exits, without a time limit. Closes our end of its input first, unless
    /// [`take_stdin`](Self::take_stdin) took it.
    ///
    /// # Errors
    /// As [`Child::wait`].
    pub fn wait(&self) -> Result<ExitInfo> {
        drop(self.take_stdin());
        loop {
            if let Some(exit) = self.wait_until(None)? {
                return Ok(exit);
            }
        }
    }

    /// Waits until the child exits, for at most `timeout`. Returns `None` only after that time.
    ///
    /// # Errors
    /// As [`Child::wait`].
    pub fn wait_timeout(&self, timeout: Duration) -> Result<Option<ExitInfo>> {
        self.wait_until(Instant::now().checked_add(timeout))
    }

    /// Waits until the child exits, until `deadline` at the latest. Returns `None` only after that
    /// time.
    ///
    /// # Errors
    /// As [`Child::wait`].
    pub fn wait_deadline(&self, deadline: Instant) -> Result<Option<ExitInfo>> {
        self.wait_until(Some(deadline))
    }

    /// Kills the child and what it started, or asks it to exit: see [`Child::kill`].
    ///
    /// # Errors
    /// As [`Child::kill`].
    pub fn kill(&self, how: Termination) -> Result<()> {
        self.shared.state.lock().child.kill(how)
    }

    /// Sends one signal to the process group of the child: see [`Child::signal`].
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Command, Signal};
    ///
    /// let child = Command::new("sleep").arg("60").spawn()?.into_shared()?;
    /// child.signal(Signal::HUP)?;
    /// assert_eq!(child.wait()?.status.signal(), Some(1));
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Child::signal`].
    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.shared.state.lock().child.signal(signal)
    }

    /// Kills the child and what it started, and waits until all of them have exited: see
    /// [`Child::kill_and_wait`]. Other threads can use the child meanwhile.
    ///
    /// # Errors
    /// As [`Child::kill_and_wait`].
    pub fn kill_and_wait(&self, how: Termination) -> Result<ExitInfo> {
        drop(self.take_stdin());
        let mut state = self.shared.state.lock();
        let mut kill = state.child.start_kill(how)?;
        state.kills += 1;
        drop(state);
        let result = self.finish_kill(&mut kill);
        self.shared.state.lock().kills -= 1;
        result
    }

    fn finish_kill(&self, kill: &mut Kill) -> Result<ExitInfo> {
        loop {
            let step = self.shared.state.lock().child.advance_kill(kill)?;
            match step {
                KillStep::Finished(exit) => return Ok(exit),
                KillStep::Running(check_at) => self.sleep(Some(check_at))?,
                KillStep::Exited(check_at) => sleep_until(check_at),
            }
        }
    }

    pub(crate) fn exit_watch(&self) -> &ExitWatch {
        &self.shared.exit_watch
    }

    fn wait_until(&self, deadline: Option<Instant>) -> Result<Option<ExitInfo>> {
        loop {
            // The clock is read before the child is looked at: a child that exits in between is not
            // called late.
            let is_last = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            let exit = self.try_wait()?;
            if exit.is_some() || is_last {
                return Ok(exit);
            }
            self.sleep(deadline)?;
        }
    }

    /// Sleeps until the child may have exited, until `until` at the latest.
    fn sleep(&self, until: Option<Instant>) -> Result<()> {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        self.shared.exit_watch.sleep(left).map_err(|error| {
            Error::new("wait for", error).during(Operation::Wait).with_subject(self.id().to_string())
        })
    }
}
