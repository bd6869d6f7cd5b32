//! The run of one child to its end in steps, for a program with an event loop.
//!
//! It knows no descriptor: the caller reads the outputs and hands the bytes over. [`super::run`] does the
//! same with a set, which does all of that itself.

use std::ffi::{OsStr, OsString};
use std::io;
use std::time::{Duration, Instant};

use super::captured::{KILL_TIMEOUT, input_failed, not_gone, set_streams};
use super::options::{CaptureInput, CaptureOptions};
use super::output::Output;
use super::output_buffer::{OutputBuffer, OutputLimit, too_much};
use super::read_order::ReadOrder;
use crate::child::{Child, Kill, KillStep};
use crate::command::Command;
use crate::deadline::deadline_after;
use crate::event::Stream;
use crate::exit_status::ExitInfo;
use crate::spawn::spawn;
use crate::{Result, Termination};

/// A child that is run to its end in steps: [`Command::output_with`] for a program with an event loop.
///
/// The program takes the pipes out of [`child`](Self::child), reads them when its loop says so, appends the
/// bytes to [`buffer`](Self::buffer), and calls [`end`](Self::end) at the end of each. After each change,
/// [`advance`](Self::advance) says what to wait for. It watches the limits of [`CaptureOptions`] and kills
/// the child at the time limit. The crate `minder-tokio` is such a program.
///
/// Dropping this is as dropping the [`Child`]: it does not kill.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{Capture, CaptureOptions, CaptureStep, Command, Stream};
/// use std::io::Read;
///
/// let mut command = Command::new("sh");
/// command.args(["-c", "echo text; exit 3"]);
/// let mut capture = Capture::start(&command, &mut CaptureOptions::new().merge_stderr(true))?;
/// // An event loop would read what is there, and do other things while nothing is.
/// let mut stdout = capture.child.stdout.take().expect("it is captured");
/// stdout.read_to_end(capture.buffer(Stream::Stdout))?;
/// capture.end(Stream::Stdout);
/// let output = loop {
///     match capture.advance()? {
///         CaptureStep::Done(output) => break *output,
///         // An event loop would watch `child.pidfd()` and set a timer.
///         CaptureStep::Wait { for_exit, until, .. } => {
///             assert!(for_exit && until.is_none(), "the output has ended, and there is no time limit");
///             capture.child.wait()?;
///         }
///         _ => (),
///     }
/// };
/// assert!(output.stdout == b"text\n" && output.status.code() == Some(3));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Capture {
    /// The child. Its pipes are for the caller to take.
    pub child: Child,
    /// The input that the caller writes to the standard input of the child; the caller then drops
    /// that. `None` if nothing is to be written.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Capture, CaptureInput, CaptureOptions, Command};
    ///
    /// let mut options = CaptureOptions::new().input("text");
    /// let mut capture = Capture::start(&Command::new("cat"), &mut options)?;
    /// let Some(CaptureInput::Bytes(bytes)) = capture.input.take() else { panic!() };
    /// assert_eq!(bytes, b"text");
    /// drop(capture.child.stdin.take()); // this program writes nothing
    /// capture.child.wait()?;
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub input: Option<CaptureInput>,
    input_error: Option<io::Error>,
    program: Box<OsStr>,
    /// Indexed by `Stream`.
    outputs: [OutputBuffer; 2],
    /// The number of bytes of each output when the limit was applied.
    lengths: [usize; 2],
    order: ReadOrder,
    /// `true` once the outputs are too long, which each step reports from then on.
    is_too_much: bool,
    /// `true` for each output that may get more.
    is_open: [bool; 2],
    limit: OutputLimit,
    leak_timeout: Option<Duration>,
    deadline: Option<Instant>,
    how: Termination,
    /// The kill at the deadline, while it is under way.
    kill: Option<Kill>,
    /// The exit of the child, and the time at which it was seen.
    exited: Option<(ExitInfo, Instant)>,
    timed_out: bool,
}

/// The next step of a [`Capture`]: see [`Capture::advance`].
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub enum CaptureStep {
    /// The child has ended, and is reaped.
    Done(Box<Output>),
    /// Nothing is to be done before one of these events: bytes or the end of an output, and the others.
    #[non_exhaustive]
    Wait {
        /// `true` if the exit of the child is one of them.
        for_exit: bool,
        /// The time that is one.
        until: Option<Instant>,
    },
}

impl Capture {
    /// Starts the command. Its streams are as [`Command::output_with`] sets them. The time limit begins
    /// now. The input of the options is taken when the child was started: a start that failed can be tried
    /// again.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Capture, CaptureOptions, Command, ErrorKind};
    ///
    /// let mut options = CaptureOptions::new().input("text");
    /// let error = Capture::start(&Command::new("no-such-program"), &mut options).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::NotFound);
    /// let mut capture = Capture::start(&Command::new("true"), &mut options)?;
    /// assert!(capture.input.is_some() && capture.child.wait()?.status.success());
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Command::spawn`].
    pub fn start(command: &Command, options: &mut CaptureOptions) -> Result<Self> {
        let mut command = command.clone();
        set_streams(std::slice::from_mut(&mut command), options.merge_stderr);
        if options.input.is_some() {
            command.stdin(crate::Stdio::piped());
        }
        let mut child = spawn(&command)?;
        if options.input.is_none()
            && let Some(stdin) = child.stdin.take()
        {
            // A terminal ends in this way. A pipe ends when it is dropped.
            let _ = stdin.send_eof();
        }
        let is_open = [child.stdout.is_some(), child.stderr.is_some()];
        let mut capture = Self::of_child(child, options);
        capture.program = command.program.into_boxed_os_str();
        capture.is_open = is_open;
        Ok(capture)
    }

    /// Takes a child that runs. Both outputs count as open until [`end`](Self::end) is called for them.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Capture, CaptureOptions, CaptureStep, Command, Stream};
    ///
    /// let child = Command::new("true").spawn()?;
    /// let mut capture = Capture::of_child(child, &mut CaptureOptions::new());
    /// assert!(matches!(capture.advance()?, CaptureStep::Wait { for_exit: false, .. }));
    /// capture.end(Stream::Stdout);
    /// capture.end(Stream::Stderr);
    /// capture.child.wait()?;
    /// let CaptureStep::Done(output) = capture.advance()? else { panic!() };
    /// assert!(output.status.success() && output.stdout.is_empty());
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn of_child(child: Child, options: &mut CaptureOptions) -> Self {
        Self {
            program: OsString::from(child.id().to_string()).into_boxed_os_str(),
            child,
            input: options.input.take(),
            input_error: None,
            outputs: Default::default(),
            lengths: [0; 2],
            order: ReadOrder::default(),
            is_too_much: false,
            is_open: [true; 2],
            limit: OutputLimit::new(options),
            leak_timeout: options.leak_timeout,
            deadline: deadline_after(options.timeout),
            how: options.kill,
            kill: None,
            exited: None,
            timed_out: false,
        }
    }

    /// Notes that the reader of [`CaptureOptions::input_reader`] failed. The caller has ended the input;
    /// [`advance`](Self::advance) returns the error when the child has ended.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Capture, CaptureOptions, CaptureStep, Command, Operation, Stream};
    ///
    /// let mut capture = Capture::start(&Command::new("true"), &mut CaptureOptions::new())?;
    /// capture.fail_input(std::io::Error::other("no disk"));
    /// capture.child.wait()?;
    /// capture.end(Stream::Stdout);
    /// capture.end(Stream::Stderr);
    /// assert_eq!(capture.advance().unwrap_err().operation(), Operation::Read);
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn fail_input(&mut self, error: io::Error) {
        self.input_error = Some(error);
    }

    /// Returns the name of the program, or the pid after [`of_child`](Self::of_child).
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Capture, CaptureOptions, Command};
    ///
    /// let mut capture = Capture::start(&Command::new("true"), &mut CaptureOptions::new())?;
    /// assert_eq!(capture.subject(), "true");
    /// capture.child.wait()?;
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn subject(&self) -> &OsStr {
        &self.program
    }

    /// Returns the memory of an output, to which the caller appends. It does not remove bytes.
    pub fn buffer(&mut self, stream: Stream) -> &mut Vec<u8> {
        // One output at a time has bytes to which the limit was not applied.
        self.apply_limit();
        self.outputs[stream as usize].memory()
    }

    /// Notes that an output has ended.
    pub fn end(&mut self, stream: Stream) {
        self.is_open[stream as usize] = false;
    }

    /// Does what is due, and returns what to wait for. The caller has read what was there: an
    /// output that a process keeps open is given up as [`CaptureOptions::leak_timeout`] says.
    ///
    /// It does not wait for the child. A kill waits a moment, and 0.5 s at most, until processes that left
    /// the group of the child have stopped.
    ///
    /// # Errors
    /// - [`Limit`](crate::ErrorKind::Limit): the child wrote more than [`CaptureOptions::max_bytes`]. Each
    ///   call returns it from then on.
    /// - The error of [`fail_input`](Self::fail_input).
    /// - `Other`: the child has not exited 5 s after the kill at its time limit.
    ///
    /// The child may run after an error: the caller kills it.
    pub fn advance(&mut self) -> Result<CaptureStep> {
        self.apply_limit();
        if self.is_too_much {
            return Err(too_much().with_subject(&self.program));
        }
        let is_open = self.is_open.contains(&true);
        if !is_open && self.kill.is_none() && self.exited.is_none() {
            // Both outputs of most children end right before the exit.
            self.exited = self.child.try_wait()?.map(|exit| (exit, Instant::now()));
        }
        if let (Some((exit, _)), None, false) = (self.exited, &self.kill, is_open) {
            return self.finish(exit);
        }
        let waits_for_leaks = self.leak_timeout.is_some() || self.timed_out;
        if waits_for_leaks && self.exited.is_none() && self.kill.is_none() {
            self.exited = self.child.peek()?.map(|exit| (exit, Instant::now()));
        }
        let now = Instant::now();
        let mut until = None;
        if !self.timed_out && self.deadline.is_some_and(|deadline| now >= deadline) {
            self.timed_out = true;
            self.kill = Some(self.child.start_kill(self.how)?);
        }
        if let Some(kill) = &mut self.kill {
            match self.child.advance_kill(kill)? {
                KillStep::Finished(exit) => {
                    self.kill = None;
                    self.exited = Some((exit, now));
                    return self.advance();
                }
                KillStep::Running(at) | KillStep::Exited(at) => until = Some(at),
            }
        } else if let Some(at) = self.give_up_at() {
            if let (true, Some((exit, _))) = (now >= at, self.exited) {
                return self.finish(exit);
            }
            if now >= at {
                return Err(not_gone().with_subject(&self.program));
            }
            until = Some(at);
        }
        if !self.timed_out {
            until = [until, self.deadline].into_iter().flatten().min();
        }
        let for_exit = self.exited.is_none() && (!is_open || self.leak_timeout.is_some() || self.timed_out);
        Ok(CaptureStep::Wait { for_exit, until })
    }

    /// Notes what was appended, and drops what is too much of it.
    fn apply_limit(&mut self) {
        for stream in Stream::BOTH {
            let place = stream as usize;
            let added = self.outputs[place].memory().len() - self.lengths[place];
            if added == 0 {
                continue;
            }
            match self.limit.apply(&mut self.outputs, place, added) {
                Ok(()) => self.limit.record(&mut self.order, stream, added, self.outputs.each_ref()),
                Err(_) => self.is_too_much = true,
            }
            self.lengths = self.outputs.each_mut().map(|output| output.memory().len());
        }
    }

    /// Returns when outputs are given up that other processes keep open.
    fn give_up_at(&self) -> Option<Instant> {
        if self.timed_out {
            let patience = self.how.total_pause().saturating_add(KILL_TIMEOUT);
            return self.deadline.and_then(|deadline| deadline.checked_add(patience));
        }
        let (_, exited_at) = self.exited?;
        // At the deadline, what holds the outputs is killed.
        let close_at = exited_at.checked_add(self.leak_timeout?)?;
        self.deadline.is_none_or(|deadline| close_at < deadline).then_some(close_at)
    }

    /// Reaps the child and returns what it wrote.
    fn finish(&mut self, exit: ExitInfo) -> Result<CaptureStep> {
        self.child.try_wait()?;
        if let Some(error) = self.input_error.take() {
            return Err(input_failed(error).with_subject(&self.program));
        }
        let leaked = self.is_open.contains(&true);
        let outputs = std::mem::take(&mut self.outputs).map(OutputBuffer::into_kept);
        let [(stdout, stdout_dropped), (stderr, stderr_dropped)] = outputs;
        Ok(CaptureStep::Done(Box::new(Output {
            status: exit.status,
            stdout,
            stderr,
            stdout_dropped,
            stderr_dropped,
            usage: exit.usage,
            timed_out: self.timed_out,
            leaked,
            order: std::mem::take(&mut self.order),
        })))
    }
}
