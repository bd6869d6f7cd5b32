//! Events of the children of a set, with their ids and streams.

use std::fmt;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use crate::backlog::Charge;
use crate::chunk::Chunk;
use crate::error::Error;
use crate::exit_status::{ExitInfo, Outcome};

/// Names a child of a [`ChildSet`](crate::ChildSet) or a [`BackgroundSet`](crate::BackgroundSet).
///
/// An id is valid until the child is done. No set of this process gives it out again before 2³¹ other
/// children were started. Calls of another set with it fail with
/// [`Unknown`](crate::ErrorKind::Unknown).
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{ChildId, ChildSet, ChildSetOptions, Command, SpawnOptions};
///
/// let mut set = ChildSet::new(ChildSetOptions::new())?;
/// let mut names: Vec<Option<&str>> = Vec::new();
/// for name in ["true", "false"] {
///     let child = set.spawn(&Command::new(name), SpawnOptions::new())?;
///     names.resize(names.len().max(child.index() + 1), None);
///     names[child.index()] = Some(name);
///     // The number can be passed through code in another language.
///     assert_eq!(ChildId::from_u64(child.as_u64()), child);
/// }
/// set.wait_all(None, |event| {
///     if let minder::Event::Done { child, .. } = event {
///         println!("{:?} is done", names[child.index()].take());
///     }
/// })?;
/// assert!(names.iter().all(Option::is_none));
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChildId(u64);

impl ChildId {
    /// Returns a small number for use as an index: no two *live* children of one set share it.
    pub const fn index(self) -> usize {
        (self.0 & 0xffff_ffff) as usize
    }

    /// Returns the id as a number, for interfaces of other languages.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// Returns the id for a number. A number that [`as_u64`](Self::as_u64) did not return names no
    /// child: calls with it fail with [`Unknown`](crate::ErrorKind::Unknown).
    pub const fn from_u64(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for ChildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One of the outputs of a child.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{ChildSet, ChildSetOptions, Command, Event, SpawnOptions, Stdio, Stream};
///
/// let mut command = Command::new("sh");
/// command.args(["-c", "echo text; echo message >&2"]);
/// command.stdout(Stdio::piped()).stderr(Stdio::piped());
/// let mut set = ChildSet::new(ChildSetOptions::new())?;
/// set.spawn(&command, SpawnOptions::new())?;
/// let (mut text, mut messages) = (Vec::new(), Vec::new());
/// set.wait_all(None, |event| match event {
///     Event::Output { stream: Stream::Stdout, chunk, .. } => text.extend_from_slice(&chunk),
///     Event::Output { stream: Stream::Stderr, chunk, .. } => messages.extend_from_slice(&chunk),
///     _ => (),
/// })?;
/// assert!(text == b"text\n" && messages == b"message\n");
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
    /// Standard output, or all output of a child on a pseudo-terminal.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    pub(crate) const BOTH: [Self; 2] = [Self::Stdout, Self::Stderr];
}

/// Output for which there was no room in memory: a part of a file that the caller owns from now on.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{ChildSet, ChildSetOptions, Command, Event, OverflowPolicy, SpawnOptions, SpillFile, Stdio};
/// use std::io::{Read, Seek, SeekFrom};
///
/// let mut command = Command::new("head");
/// command.args(["-c", "300000", "/dev/zero"]).stdout(Stdio::piped());
/// let mut set = ChildSet::new(ChildSetOptions::new().max_buffered_bytes(64 << 10))?;
/// set.spawn(&command, SpawnOptions::new().overflow(OverflowPolicy::Spill).spill_as_file(true))?;
/// let (mut chunks, mut bytes) = (Vec::new(), 0);
/// set.wait_all(None, |event| match event {
///     // Chunks that are kept hold their memory: the rest of the output goes to a file.
///     Event::Output { chunk, .. } => chunks.push(chunk),
///     Event::Spilled { file: SpillFile { mut file, start, len, .. }, .. } => {
///         file.seek(SeekFrom::Start(start)).expect("a file has positions");
///         bytes += std::io::copy(&mut file.take(len), &mut std::io::sink()).expect("it is readable");
///     }
///     _ => (),
/// })?;
/// assert!(bytes > 0);
/// assert_eq!(bytes + chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>(), 300_000);
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct SpillFile {
    /// The file, open for reading and writing.
    pub file: File,
    /// The path of the file, if it has a name; the caller removes it. Without a name the file
    /// disappears with its last handle.
    pub path: Option<PathBuf>,
    /// The offset of the first byte.
    pub start: u64,
    /// The number of bytes.
    pub len: u64,
    /// Counts the bytes in the set's [`Backlog`](crate::Backlog) until it is dropped.
    pub charge: Charge,
}

/// An event of a [`ChildSet`](crate::ChildSet) or a [`BackgroundSet`](crate::BackgroundSet).
///
/// For one child the events come in this order: `Output` and `Eof` of each stream in the order of
/// the bytes; `Exited` when it exits, which may be before its last bytes were read; `Done` after
/// everything else. A child that is started again reports each run in this way, with `Restarting` in
/// place of `Done`, and `Restarted` before the events of the next run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// The child wrote these bytes.
    #[non_exhaustive]
    Output {
        /// The child that wrote.
        child: ChildId,
        /// The output that it wrote to.
        stream: Stream,
        /// The bytes. They count as memory of the set until they are dropped.
        chunk: Chunk,
    },
    /// The next bytes of this stream are in a file, to which no more bytes are written. For a child
    /// with [`SpawnOptions::spill_as_file`](crate::SpawnOptions::spill_as_file).
    #[non_exhaustive]
    Spilled {
        /// The child that wrote.
        child: ChildId,
        /// The output that it wrote to.
        stream: Stream,
        /// The file with the bytes.
        file: SpillFile,
    },
    /// Bytes went to the file of [`ChildSet::forward`](crate::ChildSet::forward).
    #[non_exhaustive]
    Forwarded {
        /// The child that wrote.
        child: ChildId,
        /// The output that it wrote to.
        stream: Stream,
        /// The number of bytes that went to the file since the last event of this kind.
        count: u64,
    },
    /// There is room again in the pipe of the child's standard input.
    #[non_exhaustive]
    Writable {
        /// The child that can be written to.
        child: ChildId,
    },
    /// The stream is at its end.
    #[non_exhaustive]
    Eof {
        /// The child that wrote.
        child: ChildId,
        /// The output that ended.
        stream: Stream,
    },
    /// A signal stopped the child (job control).
    #[non_exhaustive]
    Stopped {
        /// The child that was stopped.
        child: ChildId,
        /// The number of the signal. `SIGTTIN` and `SIGTTOU` mean that the child tried to use the
        /// terminal.
        signal: i32,
    },
    /// The child's process exited. Its descendants may still run, and its output may not have
    /// ended.
    #[non_exhaustive]
    Exited {
        /// The child that exited.
        child: ChildId,
        /// Its exit status and resource usage.
        exit: ExitInfo,
    },
    /// A run of the child ended as with `Done`, and the child is started again after a delay: see
    /// [`RestartPolicy`](crate::RestartPolicy). Its id stays valid.
    #[non_exhaustive]
    Restarting {
        /// The child that exited.
        child: ChildId,
        /// The result of the run that ended.
        outcome: Outcome,
        /// The time until the next start.
        delay: Duration,
        /// The number of times that the child was started again, this restart included.
        restarts: u64,
    },
    /// The child was started again. It has new pipes: what was written to the input of the last run is
    /// not repeated.
    #[non_exhaustive]
    Restarted {
        /// The child that runs again.
        child: ChildId,
        /// The pid of its new process.
        pid: u32,
    },
    /// The child could not be started again. Another attempt, or `Done` with the result of the last
    /// run, follows.
    #[non_exhaustive]
    RestartFailed {
        /// The child that does not run.
        child: ChildId,
        /// Why it could not be started.
        error: Error,
    },
    /// The child is done: it exited, and its outputs ended or were closed. Its id is no longer valid.
    #[non_exhaustive]
    Done {
        /// The child that is done.
        child: ChildId,
        /// Its result.
        outcome: Outcome,
    },
    /// A [`Waker`](crate::poll::Waker) was used.
    Woken,
}

impl Event {
    /// Returns the child that the event concerns; `None` for [`Woken`](Self::Woken).
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{ChildSet, ChildSetOptions, Command, SpawnOptions};
    ///
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// let child = set.spawn(&Command::new("true"), SpawnOptions::new())?;
    /// set.wait_all(None, |event| assert_eq!(event.child(), Some(child)))?;
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn child(&self) -> Option<ChildId> {
        match self {
            Self::Output { child, .. }
            | Self::Spilled { child, .. }
            | Self::Forwarded { child, .. }
            | Self::Writable { child }
            | Self::Eof { child, .. }
            | Self::Stopped { child, .. }
            | Self::Exited { child, .. }
            | Self::Restarting { child, .. }
            | Self::Restarted { child, .. }
            | Self::RestartFailed { child, .. }
            | Self::Done { child, .. } => Some(*child),
            Self::Woken => None,
        }
    }
}

/// The result of a wait for events.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub enum NextEvent {
    /// An event.
    Event(Event),
    /// The deadline has passed, and there was no event.
    TimedOut,
    /// All children are done, and there is no event: none can come.
    Empty,
}

impl NextEvent {
    /// Returns the event, if there is one.
    ///
    /// ```
    /// use minder::{ChildSet, ChildSetOptions, Event, NextEvent};
    /// use std::time::Duration;
    ///
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// assert!(matches!(set.next_event(None)?, NextEvent::Empty), "there is no child");
    /// set.waker().wake()?;
    /// let event = set.next_event(Some(Duration::from_secs(60)))?.into_event();
    /// assert!(matches!(event, Some(Event::Woken)));
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn into_event(self) -> Option<Event> {
        match self {
            Self::Event(event) => Some(event),
            Self::TimedOut | Self::Empty => None,
        }
    }
}
