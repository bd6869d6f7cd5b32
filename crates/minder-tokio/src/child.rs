//! A child that a task waits for.

use minder::{
    Capture, CaptureOptions, Command, Error, ExitInfo, Operation, Output, Result, Signal, Stream, Termination,
};

use crate::exit::ExitWatch;
use crate::kill::{finish_kill, kill_dropped};
use crate::pipes::{ChildStderr, ChildStdin, ChildStdout};
use crate::running::Running;
use crate::sys::Reader;

/// Starts a command, on the calling thread. Its streams are those of this process unless they are set.
///
/// ```
/// # #[cfg(unix)] {
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), minder::Error> {
/// use minder::Command;
///
/// let mut child = minder_tokio::spawn(Command::new("sh").args(["-c", "exit 3"]))?;
/// assert_eq!(child.wait().await?.status.code(), Some(3));
/// # Ok(()) }
/// # main().unwrap() }
/// ```
///
/// # Errors
/// As [`Command::spawn`]. It does not wait for free descriptors: see
/// [`Exhausted`](minder::ErrorKind::Exhausted).
///
/// # Panics
/// Outside of a runtime, or if its I/O driver is not enabled.
pub fn spawn(command: &Command) -> Result<Child> {
    let mut inner = command.spawn()?;
    let stdin = inner.stdin.take();
    let stdout = inner.stdout.take();
    let stderr = inner.stderr.take();
    // From here on an error kills the child.
    let mut child = Child {
        inner: Some(inner),
        exit: None,
        watch: None,
        kill_on_drop: true,
        stdin: None,
        stdout: None,
        stderr: None,
    };
    let unwatched = |error| Error::from_io(Operation::Watch, command.get_program(), error);
    child.stdin = stdin.map(ChildStdin::new).transpose().map_err(unwatched)?;
    child.stdout = stdout.map(Reader::new).transpose().map_err(unwatched)?.map(ChildStdout);
    child.stderr = stderr.map(Reader::new).transpose().map_err(unwatched)?.map(ChildStderr);
    Ok(child)
}

/// A child process: see [`spawn`].
///
/// Dropping it kills the child **with everything that it started**, and reaps it, unless it was waited for:
/// a task that is cancelled leaves no process behind. [`kill_on_drop`](Self::kill_on_drop) turns that off.
/// In `tokio::process` it is the other way round: there a child is killed on request only, and what it
/// started is not killed.
///
/// ```
/// # #[cfg(unix)] {
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), minder::Error> {
/// use minder::{Command, Signal, Termination};
/// use std::time::Duration;
///
/// let mut child = minder_tokio::spawn(Command::new("sh").args(["-c", "sleep 60; true"]))?;
/// println!("started process {}", child.id());
/// assert!(child.try_wait()?.is_none());
/// // SIGTERM, and SIGKILL for what is left after five seconds. Returns when the tree is gone.
/// let exit = child.kill(Termination::graceful(Duration::from_secs(5))).await?;
/// assert_eq!(exit.status.signal(), Some(Signal::TERM.as_raw()));
/// # Ok(()) }
/// # main().unwrap() }
/// ```
#[derive(Debug)]
pub struct Child {
    /// `None` while this is dropped.
    inner: Option<minder::Child>,
    exit: Option<ExitInfo>,
    watch: Option<ExitWatch>,
    kill_on_drop: bool,
    /// The pipe to its standard input, if there is one.
    pub stdin: Option<ChildStdin>,
    /// The pipe from its standard output, if there is one.
    pub stdout: Option<ChildStdout>,
    /// The pipe from its standard error, if there is one.
    pub stderr: Option<ChildStderr>,
}

impl Child {
    fn inner(&mut self) -> &mut minder::Child {
        self.inner.as_mut().expect("only the drop takes it")
    }

    /// Returns the pid. No other process gets it before the child is reaped.
    pub fn id(&self) -> u32 {
        self.inner.as_ref().map_or(0, minder::Child::id)
    }

    /// Sets whether dropping this kills the child with everything that it started. Default: yes. Without
    /// it, a child that is dropped continues to run, and a later start or wait of the library reaps it.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), minder::Error> {
    /// let mut daemon = minder_tokio::spawn(minder::Command::new("sleep").arg("0.01"))?;
    /// daemon.kill_on_drop(false);
    /// drop(daemon); // it continues
    /// # Ok(()) }
    /// # main().unwrap() }
    /// ```
    pub fn kill_on_drop(&mut self, yes: bool) {
        self.kill_on_drop = yes;
    }

    /// Returns how the child exited, if it has. Never waits.
    ///
    /// # Errors
    /// As [`minder::Child::try_wait`].
    pub fn try_wait(&mut self) -> Result<Option<ExitInfo>> {
        if self.exit.is_none() {
            self.exit = self.inner().try_wait()?;
        }
        Ok(self.exit)
    }

    /// Waits until the child exits. Closes [`stdin`](Self::stdin) first: a child that reads to the end of
    /// its input would wait for us. Nothing is lost if the future is dropped: call it again.
    ///
    /// The pipes from its outputs stay open. A child that fills one waits for a reader: see
    /// [`wait_with_output`](Self::wait_with_output).
    ///
    /// # Errors
    /// As [`minder::Child::wait`].
    pub async fn wait(&mut self) -> Result<ExitInfo> {
        drop(self.stdin.take());
        loop {
            if let Some(exit) = self.try_wait()? {
                return Ok(exit);
            }
            let Self { inner: Some(inner), watch, .. } = self else { continue };
            watch.get_or_insert_with(|| ExitWatch::new(inner)).changed().await;
        }
    }

    /// Kills the child with everything that it started, as `how` says, and waits until all of it has
    /// exited. Closes [`stdin`](Self::stdin) first. If the future is dropped, no more signals are sent.
    ///
    /// # Errors
    /// As [`minder::Child::kill_and_wait`].
    pub async fn kill(&mut self, how: Termination) -> Result<ExitInfo> {
        drop(self.stdin.take());
        let exit = match self {
            Self { exit: Some(exit), .. } => *exit,
            Self { inner: Some(inner), watch, .. } => {
                let kill = inner.start_kill(how)?;
                finish_kill(kill, inner, watch.get_or_insert_with(|| ExitWatch::new(inner))).await?
            }
            Self { inner: None, .. } => return self.wait().await,
        };
        self.exit = Some(exit);
        Ok(exit)
    }

    /// Sends one signal to the process group of the child: see [`minder::Child::signal`].
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), minder::Error> {
    /// let mut child = minder_tokio::spawn(minder::Command::new("sleep").arg("60"))?;
    /// child.signal(minder::Signal::TERM)?;
    /// assert_eq!(child.wait().await?.status.signal(), Some(15));
    /// # Ok(()) }
    /// # main().unwrap() }
    /// ```
    ///
    /// # Errors
    /// As [`minder::Child::signal`].
    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        self.inner().signal(signal)
    }

    /// Waits until the child exits and the outputs end that were not taken, and returns what they wrote.
    /// Closes [`stdin`](Self::stdin) first. Dropping the future kills the child with everything that it
    /// started. An error about the child names its pid.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), minder::Error> {
    /// use minder::{CaptureOptions, Command, Stdio};
    ///
    /// let mut command = Command::new("echo");
    /// command.arg("text").stdout(Stdio::piped());
    /// let child = minder_tokio::spawn(&command)?;
    /// let output = child.wait_with_output(CaptureOptions::new()).await?;
    /// assert_eq!(output.stdout, b"text\n");
    /// # Ok(()) }
    /// # main().unwrap() }
    /// ```
    ///
    /// # Errors
    /// As [`output`](crate::output()). An [input](CaptureOptions::input) of the options is ignored.
    pub async fn wait_with_output(mut self, mut options: CaptureOptions) -> Result<Output> {
        drop(self.stdin.take());
        let Some(inner) = self.inner.take() else { std::future::pending().await };
        let mut capture = Capture::of_child(inner, &mut options);
        let outputs = [self.stdout.take().map(|pipe| pipe.0), self.stderr.take().map(|pipe| pipe.0)];
        for (output, stream) in outputs.iter().zip([Stream::Stdout, Stream::Stderr]) {
            if output.is_none() {
                capture.end(stream);
            }
        }
        Running::of_outputs(capture, outputs).await
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let (Some(child), None, true) = (self.inner.take(), self.exit, self.kill_on_drop) {
            kill_dropped(child);
        }
    }
}
