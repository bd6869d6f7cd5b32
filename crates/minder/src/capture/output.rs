//! `Output`: what one child wrote until its end.

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

/// Runs a command to its end: see [`Command::output_with`].
pub(crate) fn output(command: &Command, options: CaptureOptions) -> Result<Output> {
    let Captured { stages, stdout, stdout_dropped, order } = capture(vec![command.clone()], options)?;
    let Some(stage) = stages.into_iter().next() else {
        let reason = "it has no outcome";
        return Err(Error::of_kind(ErrorKind::Other, "wait for", reason).with_subject(&command.program));
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
