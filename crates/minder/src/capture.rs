//! `Command::status` and `Command::output`: run one child to its end.

use std::fmt;
use std::io::Read;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use crate::command::{Command, Stdio};
use crate::event::{ChildId, Event, NextEvent, Stream};
use crate::exit_status::{ExitInfo, ExitStatus, Outcome, ResourceUsage};
use crate::set::{ChildSet, ChildSetConfig, SpawnOptions};
use crate::sys::thread::without_signals;
use crate::{Error, ErrorKind, Operation, Result, Termination, Waker};

/// The most bytes of output that a call captures by default.
const CAPTURED_MAX: usize = 1 << 30;
/// The size of a read from the reader of [`CaptureOptions::input_reader`].
const INPUT_READ_BYTES: usize = 64 << 10;
/// How long a call waits for a child that it killed, or for the outputs after that.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// The end of a child, with what it wrote. [`Command::output`] returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Output {
    /// How it exited.
    pub status: ExitStatus,
    /// What it wrote to its standard output; with [`CaptureOptions::merge_stderr`] to both outputs.
    pub stdout: Vec<u8>,
    /// What it wrote to its standard error.
    pub stderr: Vec<u8>,
    /// The resources that it used. `None` if other code reaped it.
    pub usage: Option<ResourceUsage>,
    /// Whether it was still running at the end of [`CaptureOptions::timeout`].
    pub timed_out: bool,
    /// Whether a process that it left behind kept an output open and wrote nothing: the output was
    /// closed after [`CaptureOptions::leak_timeout`].
    pub leaked: bool,
}

/// How [`Command::output_with`] runs a child.
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
    timeout: Option<Duration>,
    kill: Termination,
    max_bytes: usize,
    leak_timeout: Option<Duration>,
    merge_stderr: bool,
    input: Option<Input>,
}

/// What the child reads.
enum Input {
    Bytes(Vec<u8>),
    Reader(Box<dyn Read + Send>),
}

impl Default for CaptureOptions {
    fn default() -> Self {
        Self {
            timeout: None,
            kill: Termination::IMMEDIATE,
            max_bytes: CAPTURED_MAX,
            leak_timeout: Some(Duration::from_millis(100)),
            merge_stderr: false,
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
            .field("leak_timeout", &self.leak_timeout)
            .field("merge_stderr", &self.merge_stderr)
            .finish_non_exhaustive()
    }
}

impl CaptureOptions {
    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Kills the child and what it started after this time: see [`kill`](Self::kill) and
    /// [`Output::timed_out`]. A process that escapes the kill and keeps writing delays the return by at
    /// most 5 s. Default: never.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets how the child is killed after the timeout. Default: at once.
    pub fn kill(mut self, how: Termination) -> Self {
        self.kill = how;
        self
    }

    /// Sets the most bytes of both outputs together. A child that writes more is killed, and the call
    /// fails. Default: 1 GiB.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets how long an output may be silent after the child's exit before it is closed, because a
    /// process that the child left behind keeps it open. `None` waits for the end of the output, as
    /// the standard library does. Default: 100 ms.
    pub fn leak_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.leak_timeout = timeout;
        self
    }

    /// Sends both outputs through one pipe, so that [`Output::stdout`] has them in the order of their
    /// writes. Default: no.
    pub fn merge_stderr(mut self, yes: bool) -> Self {
        self.merge_stderr = yes;
        self
    }

    /// Sets the standard input. It is written while the outputs are read, so that neither side waits
    /// for the other for ever. A child may leave input unread: that does not fail the call.
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Some(Input::Bytes(bytes.into()));
        self
    }

    /// Sets a reader for the standard input. A separate thread reads it, at most 192 KiB ahead
    /// of the child. If the child ends while a read blocks, the thread lives until that read returns.
    ///
    /// A read that fails ends the child's input, and the call fails when the child has exited.
    pub fn input_reader(mut self, reader: impl Read + Send + 'static) -> Self {
        self.input = Some(Input::Reader(Box::new(reader)));
        self
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

    /// Starts the command, waits until it exits, and returns what it wrote. Its input is the null
    /// device, and its outputs are captured, unless they are set.
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
    /// # Errors
    /// As [`output_with`](Self::output_with).
    pub fn output_timeout(&self, timeout: Duration) -> Result<Output> {
        self.output_with(CaptureOptions::new().timeout(timeout))
    }

    /// Does the same as [`output`](Self::output), with these options.
    ///
    /// # Errors
    /// - As [`spawn`](Self::spawn).
    /// - [`Limit`](ErrorKind::Limit): the child wrote more than [`CaptureOptions::max_bytes`].
    /// - The error of the reader of [`CaptureOptions::input_reader`] ([`Operation::Read`]).
    ///
    /// A call that fails leaves no child behind, except one that no signal ends within 5 s.
    pub fn output_with(&self, options: CaptureOptions) -> Result<Output> {
        let CaptureOptions { timeout, kill, max_bytes, leak_timeout, merge_stderr, input } = options;
        let mut command = self.clone();
        command.stdout.get_or_insert(Stdio::piped());
        command.stderr.get_or_insert(Stdio::piped());
        let config = ChildSetConfig::new().max_children(1).leak_timeout(leak_timeout);
        let mut set = ChildSet::new(config)?;
        let input = match input {
            None => {
                command.stdin.get_or_insert(Stdio::null());
                None
            }
            Some(input) => {
                command.stdin(Stdio::piped());
                Some(InputFeed::start(input, set.waker())?)
            }
        };
        if merge_stderr {
            command.stderr_to_stdout();
        }
        let mut spawn = SpawnOptions::new();
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        if let Some(deadline) = deadline {
            spawn = spawn.deadline(deadline, kill);
        }
        let give_up_at = deadline
            .and_then(|deadline| deadline.checked_add(kill.total_pause().saturating_add(KILL_TIMEOUT)));
        let child = set.spawn(&command, spawn)?;
        let mut capture = Capture {
            set,
            child,
            input,
            stdout: Vec::new(),
            stderr: Vec::new(),
            max_bytes,
            deadline,
            give_up_at,
        };
        let ended = match capture.run() {
            Ok(ended) => ended,
            Err(error) => {
                capture.kill();
                return Err(error.with_subject(&self.program));
            }
        };
        if let Some(error) = capture.input.and_then(|input| input.error) {
            return Err(Error::new("read the input of", error)
                .during(Operation::Read)
                .with_subject(&self.program));
        }
        Ok(Output {
            status: ended.exit.status,
            stdout: capture.stdout,
            stderr: capture.stderr,
            usage: ended.exit.usage,
            timed_out: ended.timed_out,
            leaked: ended.leaked,
        })
    }
}

/// One child that is run to its end.
struct Capture {
    set: ChildSet,
    child: ChildId,
    input: Option<InputFeed>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    max_bytes: usize,
    deadline: Option<Instant>,
    /// When the outputs are closed that a process which escaped the kill keeps open.
    give_up_at: Option<Instant>,
}

/// How a child ended.
struct Ended {
    exit: ExitInfo,
    timed_out: bool,
    leaked: bool,
}

impl Capture {
    fn run(&mut self) -> Result<Ended> {
        self.feed()?;
        let mut exited = None;
        loop {
            match self.set.next_event_deadline(self.give_up_at)? {
                NextEvent::Event(Event::Output { stream, chunk, .. }) => {
                    if chunk.len() > self.max_bytes - self.stdout.len() - self.stderr.len() {
                        let reason = "it wrote more than may be captured";
                        return Err(Error::of_kind(ErrorKind::Limit, "capture the output of", reason)
                            .during(Operation::Read));
                    }
                    let bytes = if stream == Stream::Stdout { &mut self.stdout } else { &mut self.stderr };
                    bytes.extend_from_slice(&chunk);
                }
                NextEvent::Event(Event::Writable { .. } | Event::Woken) => self.feed()?,
                NextEvent::Event(Event::Exited { exit, .. }) => {
                    let timed_out = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
                    exited = Some(Ended { exit, timed_out, leaked: true });
                }
                NextEvent::Event(Event::Done { outcome, .. }) => {
                    let Outcome { exit, timed_out, leaked, .. } = outcome;
                    return Ok(Ended { exit, timed_out, leaked });
                }
                NextEvent::Event(_) => (),
                NextEvent::TimedOut | NextEvent::Empty => {
                    let reason = "it is not gone 5 s after it was killed";
                    let error = Error::of_kind(ErrorKind::Other, "wait for", reason).during(Operation::Wait);
                    return exited.ok_or(error);
                }
            }
        }
    }

    /// Writes as much of the input as there is room for.
    fn feed(&mut self) -> Result<()> {
        let Some(input) = &mut self.input else { return Ok(()) };
        loop {
            match input.next() {
                InputStep::Pending => return Ok(()),
                InputStep::Ended => {
                    return match self.set.close_stdin(self.child) {
                        Err(error) if error.kind() != ErrorKind::Unknown => Err(error),
                        _ => Ok(()),
                    };
                }
                InputStep::Bytes(bytes) => match self.set.write(self.child, bytes) {
                    Ok(0) => return Ok(()),
                    Ok(count) => input.written += count,
                    // The child closed its input or exited: it does not want the rest.
                    Err(error)
                        if error.kind() == ErrorKind::Unknown
                            || error.io_error().kind() == std::io::ErrorKind::BrokenPipe =>
                    {
                        input.stop();
                        return Ok(());
                    }
                    Err(error) => return Err(error),
                },
            }
        }
    }

    /// Kills the child and waits for its end, for a bounded time.
    fn kill(&mut self) {
        let deadline = Instant::now() + KILL_TIMEOUT;
        let _ = self.set.kill_all(Termination::IMMEDIATE);
        while !self.set.is_empty() && Instant::now() < deadline {
            let _ = self.set.next_event_deadline(Some(deadline));
        }
    }
}

/// The input on its way to the child.
struct InputFeed {
    /// What is to be written next, and how much of it is written.
    bytes: Vec<u8>,
    written: usize,
    /// The blocks of a reader that follow.
    blocks: Option<Receiver<std::io::Result<Vec<u8>>>>,
    error: Option<std::io::Error>,
}

/// What to do about the input.
enum InputStep<'a> {
    Bytes(&'a [u8]),
    /// The reader has no bytes now. It wakes the set when it has some.
    Pending,
    Ended,
}

impl InputFeed {
    fn start(input: Input, waker: Waker) -> Result<Self> {
        let (bytes, blocks) = match input {
            Input::Bytes(bytes) => (bytes, None),
            Input::Reader(reader) => {
                let (sender, receiver) = sync_channel(1);
                let body = move || {
                    read_blocks(reader, &sender, &waker);
                    // The set finds the end of the input when it wakes, so the sender goes first.
                    drop(sender);
                    let _ = waker.wake();
                };
                let thread =
                    without_signals(|| std::thread::Builder::new().name("minder-input".into()).spawn(body));
                thread.map_err(|error| {
                    Error::new("start the thread that reads the input", error).during(Operation::Spawn)
                })?;
                (Vec::new(), Some(receiver))
            }
        };
        Ok(Self { bytes, written: 0, blocks, error: None })
    }

    fn next(&mut self) -> InputStep<'_> {
        if self.written == self.bytes.len()
            && let Some(blocks) = &self.blocks
        {
            match blocks.try_recv() {
                Ok(Ok(bytes)) => (self.bytes, self.written) = (bytes, 0),
                Ok(Err(error)) => {
                    self.error = Some(error);
                    self.stop();
                }
                Err(TryRecvError::Empty) => return InputStep::Pending,
                Err(TryRecvError::Disconnected) => self.stop(),
            }
        }
        match &self.bytes[self.written..] {
            [] => InputStep::Ended,
            rest => InputStep::Bytes(rest),
        }
    }

    /// Drops the rest of the input. The thread of a reader ends with its next block.
    fn stop(&mut self) {
        self.blocks = None;
        self.bytes.clear();
        self.written = 0;
    }
}

/// Reads to the end, to an error, or until no more blocks are wanted, and hands the blocks over.
fn read_blocks(
    mut reader: Box<dyn Read + Send>,
    sender: &SyncSender<std::io::Result<Vec<u8>>>,
    waker: &Waker,
) {
    loop {
        let mut bytes = vec![0; INPUT_READ_BYTES];
        let block = match reader.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => {
                bytes.truncate(count);
                Ok(bytes)
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let is_last = block.is_err();
        if sender.send(block).is_err() || is_last {
            return;
        }
        // It fails only if many wake-ups are pending already.
        let _ = waker.wake();
    }
}
