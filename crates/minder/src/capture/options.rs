//! The options of a captured child or pipeline.

use std::fmt;
use std::io::Read;
use std::time::Duration;

use crate::Termination;

/// The most bytes of output that a call captures by default.
const CAPTURED_MAX: usize = 1 << 30;

/// The options of [`Command::output_with`](crate::Command::output_with).
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{CaptureOptions, Command};
/// use std::time::Duration;
///
/// let options = CaptureOptions::new().input("b\na\n").timeout(Duration::from_secs(60));
/// let output = Command::new("sort").output_with(options)?;
/// assert_eq!(output.stdout, b"a\nb\n");
///
/// let options = CaptureOptions::new().timeout(Duration::from_millis(20));
/// let output = Command::new("sleep").arg("60").output_with(options)?;
/// assert!(output.timed_out && !output.status.success());
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[must_use]
pub struct CaptureOptions {
    pub(super) timeout: Option<Duration>,
    pub(super) kill: Termination,
    pub(super) max_bytes: usize,
    pub(super) truncate: Option<Truncate>,
    pub(super) leak_timeout: Option<Duration>,
    pub(super) merge_stderr: bool,
    pub(super) record_order: bool,
    pub(super) input: Option<CaptureInput>,
}

/// The bytes that are kept of an output that is too long: see [`CaptureOptions::truncate`].
///
/// ```
/// use minder::{CaptureOptions, Truncate};
///
/// // A log, whose end says why it failed; a list, whose first items are shown.
/// let log = CaptureOptions::new().max_bytes(64 << 10).truncate(Truncate::KeepTail);
/// let list = CaptureOptions::new().max_bytes(1000).truncate(Truncate::KeepHead);
/// # let _ = (log, list);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Truncate {
    /// The first bytes.
    KeepHead,
    /// The last bytes.
    KeepTail,
}

/// The standard input of a captured child: see [`Capture::input`](crate::Capture::input).
#[non_exhaustive]
pub enum CaptureInput {
    /// The bytes of [`CaptureOptions::input`].
    Bytes(Vec<u8>),
    /// The reader of [`CaptureOptions::input_reader`].
    Reader(Box<dyn Read + Send>),
}

impl fmt::Debug for CaptureInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => f.debug_tuple("Bytes").field(bytes).finish(),
            Self::Reader(_) => f.debug_tuple("Reader").finish_non_exhaustive(),
        }
    }
}

impl Default for CaptureOptions {
    fn default() -> Self {
        Self {
            timeout: None,
            kill: Termination::IMMEDIATE,
            max_bytes: CAPTURED_MAX,
            truncate: None,
            leak_timeout: None,
            merge_stderr: false,
            record_order: false,
            input: None,
        }
    }
}

impl fmt::Debug for CaptureOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureOptions")
            .field("timeout", &self.timeout)
            .field("kill", &self.kill)
            .field("max_bytes", &self.max_bytes)
            .field("truncate", &self.truncate)
            .field("leak_timeout", &self.leak_timeout)
            .field("merge_stderr", &self.merge_stderr)
            .field("record_order", &self.record_order)
            .finish_non_exhaustive()
    }
}

impl CaptureOptions {
    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Kills the child and what it started after this time: see [`kill`](Self::kill) and
    /// [`Output::timed_out`]. That includes a process that keeps an output open after the child's exit. One
    /// that escapes the kill delays the return by at most 5 s. Default: never.
    ///
    /// [`Output::timed_out`]: crate::Output::timed_out
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets how the child is killed after the timeout. Default: at once.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{CaptureOptions, Command, Termination};
    /// use std::time::Duration;
    ///
    /// let options = CaptureOptions::new()
    ///     .timeout(Duration::from_millis(20))
    ///     .kill(Termination::graceful(Duration::from_secs(5)));
    /// let output = Command::new("sleep").arg("60").output_with(options)?;
    /// assert!(output.timed_out && output.status.signal() == Some(15));
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn kill(mut self, how: Termination) -> Self {
        self.kill = how;
        self
    }

    /// Sets the most bytes of both outputs together. A child that writes more is killed, and the call
    /// fails, unless [`truncate`](Self::truncate) is set. Default: 1 GiB.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{CaptureOptions, Command, ErrorKind};
    ///
    /// let result = Command::new("yes").output_with(CaptureOptions::new().max_bytes(1000));
    /// assert_eq!(result.unwrap_err().kind(), ErrorKind::Limit);
    /// # }
    /// ```
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets which bytes are kept of a child that writes more than [`max_bytes`](Self::max_bytes). The others
    /// are read and dropped, so the child runs on; [`Output::stdout_dropped`] and
    /// [`Output::stderr_dropped`] count them. Default: none, the call fails.
    ///
    /// The longest output is shortened, so that a message on standard error survives a long standard output.
    /// The call uses a small multiple of `max_bytes` of memory.
    ///
    /// [`Output::stdout_dropped`]: crate::Output::stdout_dropped
    /// [`Output::stderr_dropped`]: crate::Output::stderr_dropped
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{CaptureOptions, Command, Truncate};
    ///
    /// let mut command = Command::new("sh");
    /// command.args(["-c", "echo message >&2; seq 100000"]);
    /// let output = command.output_with(CaptureOptions::new().max_bytes(30).truncate(Truncate::KeepTail))?;
    /// assert!(output.status.success() && output.stderr == b"message\n");
    /// assert!(output.stdout.ends_with(b"\n99999\n100000\n"));
    /// assert_eq!(output.stdout_dropped, 588_895 - output.stdout.len() as u64);
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn truncate(mut self, truncate: Truncate) -> Self {
        self.truncate = Some(truncate);
        self
    }

    /// Sets how long after the child's exit the outputs are read at most, for a process that the child
    /// left behind may keep them open for ever. They are closed then, even while it writes: see
    /// [`Output::leaked`]. In a pipeline, the time begins with the last exit. Default: `None`, which waits
    /// for the end of the outputs, as the standard library does.
    ///
    /// [`Output::leaked`]: crate::Output::leaked
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{CaptureOptions, Command};
    /// use std::time::Duration;
    ///
    /// // The shell exits at once, and leaves a process behind that keeps its output open.
    /// let mut command = Command::new("sh");
    /// command.args(["-c", "echo text; sleep 0.5 &"]);
    /// let options = CaptureOptions::new().leak_timeout(Some(Duration::from_millis(20)));
    /// let output = command.output_with(options)?;
    /// assert!(output.leaked && output.status.success() && output.stdout == b"text\n");
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn leak_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.leak_timeout = timeout;
        self
    }

    /// Sends both outputs through one pipe, so that [`Output::stdout`] has them in the order of their
    /// writes. Default: no.
    ///
    /// [`Output::stdout`]: crate::Output::stdout
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{CaptureOptions, Command};
    ///
    /// let mut command = Command::new("sh");
    /// command.args(["-c", "echo one; echo two >&2; echo three"]);
    /// let output = command.output_with(CaptureOptions::new().merge_stderr(true))?;
    /// assert!(output.stdout == b"one\ntwo\nthree\n" && output.stderr.is_empty());
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn merge_stderr(mut self, yes: bool) -> Self {
        self.merge_stderr = yes;
        self
    }

    /// Records in which order the pieces of both outputs are read: see [`Output::pieces`]. Default: no.
    ///
    /// That is not the order of the writes. No system tells the order of two pipes: of what a child writes to
    /// both between two reads, the standard output comes first. Lines that a person reads as they arrive are
    /// in order. [`merge_stderr`](Self::merge_stderr) keeps the exact order, without the streams. A
    /// [`Pipeline`](crate::Pipeline) records no order.
    ///
    /// [`Output::pieces`]: crate::Output::pieces
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{CaptureOptions, Command, Stream};
    ///
    /// let mut command = Command::new("sh");
    /// command.args(["-c", "echo text; echo message >&2"]);
    /// for (stream, piece) in command.output_with(CaptureOptions::new().record_order(true))?.pieces() {
    ///     let colour = if stream == Stream::Stderr { "31" } else { "0" };
    ///     println!("\x1b[{colour}m{}\x1b[0m", String::from_utf8_lossy(piece));
    /// }
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn record_order(mut self, yes: bool) -> Self {
        self.record_order = yes;
        self
    }

    /// Sets the standard input. It is written while the outputs are read, so that neither side waits
    /// for the other for ever. A child may leave input unread: that does not fail the call. On a terminal,
    /// the end-of-file character follows it: see [`ChildSet::close_stdin`](crate::ChildSet::close_stdin).
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Some(CaptureInput::Bytes(bytes.into()));
        self
    }

    /// Sets a reader for the standard input. A separate thread reads it, at most 192 KiB ahead
    /// of the child. If the child ends while a read blocks, the thread lives until that read returns.
    ///
    /// A read that fails or panics ends the child's input, and the call fails when the child has exited.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{CaptureOptions, Command};
    ///
    /// let file = std::fs::File::open("/etc/passwd")?;
    /// let output = Command::new("wc").arg("-l").output_with(CaptureOptions::new().input_reader(file))?;
    /// assert!(output.status.success() && output.stdout.trim_ascii() != b"0");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn input_reader(mut self, reader: impl Read + Send + 'static) -> Self {
        self.input = Some(CaptureInput::Reader(Box::new(reader)));
        self
    }
}
