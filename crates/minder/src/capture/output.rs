//! `Command::status` and `Command::output`: run one child to its end.

use std::time::Duration;

use super::captured::Captured;
use super::options::CaptureOptions;
use super::read_order::ReadOrder;
use super::run::capture;
use crate::command::Command;
use crate::event::Stream;
use crate::exit_status::{ExitStatus, ResourceUsage};
use crate::{Error, ErrorKind, Result};

/// The end of a child, with what it wrote. [`Command::output`] returns it.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{Command, Output};
///
/// let Output { status, stdout, stderr, usage, .. } = Command::new("sh").args(["-c", "exit 3"]).output()?;
/// assert_eq!(status.code(), Some(3));
/// assert!(stdout.is_empty() && stderr.is_empty());
/// println!("processor time: {:?}", usage.map(|usage| usage.user + usage.system));
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Output {
    /// The exit status of the child.
    pub status: ExitStatus,
    /// The bytes of its standard output; with [`CaptureOptions::merge_stderr`] those of both
    /// outputs.
    pub stdout: Vec<u8>,
    /// The bytes of its standard error.
    pub stderr: Vec<u8>,
    /// The number of bytes of its standard output that are missing: see
    /// [`CaptureOptions::truncate`].
    pub stdout_dropped: u64,
    /// The number of bytes of its standard error that are missing.
    pub stderr_dropped: u64,
    /// The resources that it used. `None` if other code reaped it.
    pub usage: Option<ResourceUsage>,
    /// `true` if it was still running at the end of [`CaptureOptions::timeout`], or another process
    /// kept an output open until then.
    pub timed_out: bool,
    /// `true` if an output was closed while a process that it left behind kept it open, after
    /// [`CaptureOptions::leak_timeout`] or after a kill that the process escaped.
    pub leaked: bool,
    pub(super) order: ReadOrder,
}

impl Output {
    /// Returns the pieces of both outputs in the order in which they were read, if
    /// [`CaptureOptions::record_order`] is set, and no piece otherwise.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{CaptureOptions, Command, Stream};
    ///
    /// let mut command = Command::new("sh");
    /// command.args(["-c", "echo text; echo message >&2"]);
    /// let output = command.output_with(CaptureOptions::new().record_order(true))?;
    /// let expected: [(Stream, &[u8]); 2] = [(Stream::Stdout, b"text\n"), (Stream::Stderr, b"message\n")];
    /// assert!(output.pieces().eq(expected));
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn pieces(&self) -> impl Iterator<Item = (Stream, &[u8])> {
        self.order.pieces([&self.stdout, &self.stderr])
    }
}

impl Command {
    /// Starts the command, waits until it exits, and returns how it exited. Its streams are those of
    /// this process unless they are set.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// assert!(minder::Command::new("true").status()?.success());
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn) and [`Child::wait`](crate::Child::wait).
    pub fn status(&self) -> Result<ExitStatus> {
        Ok(self.spawn()?.wait()?.status)
    }

    /// Starts the command, waits until it exits and its outputs end, and returns what it wrote. Its input
    /// is the null device, and its outputs are captured, unless they are set. On a
    /// [terminal](crate::Group::Terminal), the input is the terminal, and gets its end-of-file character. A
    /// process that the child leaves behind and that keeps an output open is waited for, without a limit:
    /// see [`CaptureOptions::leak_timeout`].
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// let output = minder::Command::new("echo").arg("text").output()?;
    /// assert!(output.status.success());
    /// assert_eq!(output.stdout, b"text\n");
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`output_with`](Self::output_with).
    pub fn output(&self) -> Result<Output> {
        self.output_with(CaptureOptions::new())
    }

    /// Does the same as [`output`](Self::output), with a time limit: see [`CaptureOptions::timeout`].
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::Command;
    /// use std::time::Duration;
    ///
    /// let output = Command::new("sleep").arg("60").output_timeout(Duration::from_millis(20))?;
    /// assert!(output.timed_out);
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`output_with`](Self::output_with).
    pub fn output_timeout(&self, timeout: Duration) -> Result<Output> {
        self.output_with(CaptureOptions::new().timeout(timeout))
    }

    /// Does the same as [`output`](Self::output), with these options.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{CaptureOptions, Command};
    ///
    /// let input = CaptureOptions::new().input("text");
    /// let output = Command::new("tr").args(["a-z", "A-Z"]).output_with(input)?;
    /// assert_eq!(output.stdout, b"TEXT");
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - As [`spawn`](Self::spawn).
    /// - [`Limit`](ErrorKind::Limit): the child wrote more than [`CaptureOptions::max_bytes`], and
    ///   [`CaptureOptions::truncate`] is not set.
    /// - The error of the reader of [`CaptureOptions::input_reader`]; its
    ///   [`operation`](crate::Error::operation) is `Read`.
    ///
    /// A call that fails leaves no child behind, except one that no signal ends within 5 s.
    pub fn output_with(&self, options: CaptureOptions) -> Result<Output> {
        let Captured { stages, stdout, stdout_dropped, order } = capture(vec![self.clone()], options)?;
        let Some(stage) = stages.into_iter().next() else {
            let reason = "it has no outcome";
            return Err(Error::of_kind(ErrorKind::Other, "wait for", reason).with_subject(&self.program));
        };
        Ok(Output {
            status: stage.exit.status,
            stdout,
            stderr: stage.stderr,
            stdout_dropped,
            order,
            stderr_dropped: stage.stderr_dropped,
            usage: stage.exit.usage,
            timed_out: stage.timed_out,
            leaked: stage.leaked,
        })
    }
}
