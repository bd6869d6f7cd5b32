//! Plain data of events: ids, tokens, interests, exit statuses, output.

use std::fmt;
use std::fs::File;
use std::ops::{BitOr, BitOrAssign};
use std::path::PathBuf;
use std::time::Duration;

use crate::backlog::Charge;
use crate::chunk::Chunk;

/// Names a child of a [`ChildSet`](crate::ChildSet) or a [`BackgroundSet`](crate::BackgroundSet).
///
/// An id is valid until the child is done. The set does not reuse it before 2³¹ other children had the
/// same index. An id of one set means nothing to another.
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

/// Names a source or a timer of a [`Poller`](crate::Poller). The caller chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

/// Which readiness of a source is reported, and how often.
///
/// It is level-triggered unless requested otherwise: a source that stays ready is reported again by
/// every wait.
///
/// ```
/// use minder::Interest;
/// let once = Interest::READABLE.oneshot();
/// assert!(once.is_readable() && once.is_oneshot() && !once.is_writable());
/// let both = Interest::READABLE | Interest::WRITABLE;
/// assert!(both.is_readable() && both.is_writable());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct Interest(u8);

impl Interest {
    /// A read does not block: there are bytes, the end of the file, or an error.
    pub const READABLE: Self = Self(1);
    /// A write does not block: there is room, or an error.
    pub const WRITABLE: Self = Self(2);

    const ONESHOT: u8 = 4;
    const EDGE: u8 = 8;

    /// Returns this interest, reported once. The source stays registered, and is not reported again
    /// until [`Poller::modify`](crate::Poller::modify).
    pub const fn oneshot(self) -> Self {
        Self(self.0 & !Self::EDGE | Self::ONESHOT)
    }

    /// Returns this interest, edge-triggered: the source is reported when it becomes ready, and not
    /// again while it stays ready. It may be reported more often, when more bytes arrive. The
    /// caller must read or write until that would block.
    ///
    /// - The backends `epoll`, `io_uring` (from Linux 5.13) and `kqueue` support it.
    /// - It is `Unsupported` with the backend `poll`, with `io_uring` on older kernels, and on
    ///   Windows except for processes.
    pub const fn edge(self) -> Self {
        Self(self.0 & !Self::ONESHOT | Self::EDGE)
    }

    /// Returns the directions of both. `|` does the same; this works in constants. If one of them is
    /// one-shot or edge-triggered, so is the union; one-shot wins.
    pub const fn union(self, other: Self) -> Self {
        let bits = self.0 | other.0;
        Self(if bits & Self::ONESHOT != 0 { bits & !Self::EDGE } else { bits })
    }

    /// Returns whether it includes reading.
    pub const fn is_readable(self) -> bool {
        self.0 & 1 != 0
    }

    /// Returns whether it includes writing.
    pub const fn is_writable(self) -> bool {
        self.0 & 2 != 0
    }

    /// Returns whether it is reported once only.
    pub const fn is_oneshot(self) -> bool {
        self.0 & Self::ONESHOT != 0
    }

    /// Returns whether it is edge-triggered.
    pub const fn is_edge(self) -> bool {
        self.0 & Self::EDGE != 0
    }
}

impl BitOr for Interest {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl BitOrAssign for Interest {
    fn bitor_assign(&mut self, other: Self) {
        *self = self.union(other);
    }
}

/// One of the outputs of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
    /// Standard output, or all output of a child on a pseudo-terminal.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How a child exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExitStatus {
    /// It exited with this code: 0 to 255 on Unix; 32 bits on Windows.
    Exited(i32),
    /// A signal killed it (Unix).
    Signaled {
        /// The signal's number.
        signal: i32,
        /// Whether it wrote a core file.
        core_dumped: bool,
    },
    /// It exited, but other code of this process took its status first, or the kernel keeps none
    /// (`SIGCHLD` is ignored).
    Unknown,
}

impl ExitStatus {
    /// Returns whether the child exited with code 0.
    pub fn success(self) -> bool {
        self == Self::Exited(0)
    }

    /// Returns the exit code, if it exited with one.
    pub fn code(self) -> Option<i32> {
        match self {
            Self::Exited(code) => Some(code),
            _ => None,
        }
    }

    /// Returns the number of the signal that killed it, if one did.
    pub fn signal(self) -> Option<i32> {
        match self {
            Self::Signaled { signal, .. } => Some(signal),
            _ => None,
        }
    }

    /// Returns whether a signal killed it, and it wrote a core file.
    pub fn core_dumped(self) -> bool {
        matches!(self, Self::Signaled { core_dumped: true, .. })
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) if *code < 0 => write!(f, "exit {code:#010x}"),
            Self::Exited(code) => write!(f, "exit {code}"),
            Self::Signaled { signal, core_dumped: false } => write!(f, "signal {signal}"),
            Self::Signaled { signal, core_dumped: true } => write!(f, "signal {signal}, core dumped"),
            Self::Unknown => f.write_str("unknown status: other code reaped it, or SIGCHLD is ignored"),
        }
    }
}

/// The resources that a child used, including descendants that it waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceUsage {
    /// The processor time in user mode.
    pub user: Duration,
    /// The processor time in the kernel.
    pub system: Duration,
    /// The largest resident set, in bytes.
    ///
    /// - Unix: at least that of the process that started the child, because the child begins in the
    ///   memory of its parent (measured: `/bin/echo` started by a host of 300 MB reports 309 MB).
    ///   In a big host it is therefore not a measurement of the child.
    pub max_rss: Option<u64>,
}

/// The exit of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitInfo {
    /// How it exited.
    pub status: ExitStatus,
    /// What it used. `None` if other code reaped it.
    pub usage: Option<ResourceUsage>,
}

/// The result of a child that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// How it exited.
    pub exit: ExitInfo,
    /// Whether the set closed its pipes, because a process that it left behind kept them open and
    /// wrote nothing.
    pub leaked: bool,
    /// Whether members of its process group are still running (a daemon, a background job).
    pub left_running: bool,
    /// How many bytes of output were dropped because memory was full
    /// ([`OverflowPolicy::DropOldest`](crate::OverflowPolicy::DropOldest)).
    pub dropped: u64,
    /// Whether a kill was requested while its process ran, by the caller or by its deadline.
    pub killed: bool,
    /// Whether its deadline came while its process ran.
    pub timed_out: bool,
    /// How long it was suspended by [`ChildSet::suspend`](crate::ChildSet::suspend).
    pub suspended: Duration,
}

/// Output for which there was no room in memory: a part of a file that the caller owns from now on.
#[derive(Debug)]
pub struct SpillFile {
    /// The file, open for reading and writing.
    pub file: File,
    /// The path of the file, if it has a name; the caller removes it. Without a name the file
    /// disappears with its last handle.
    pub path: Option<PathBuf>,
    /// The offset of the first byte.
    pub start: u64,
    /// How many bytes there are.
    pub len: u64,
    /// Counts the bytes in the set's [`Backlog`](crate::Backlog) until it is dropped.
    pub charge: Charge,
}

/// An event of a [`ChildSet`](crate::ChildSet) or a [`BackgroundSet`](crate::BackgroundSet).
///
/// For one child the events come in this order: `Output` and `Eof` of each stream in the order of
/// the bytes; `Exited` when it exits, which may be before its last bytes were read; `Done` after
/// everything else.
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
        /// Where the bytes are.
        file: SpillFile,
    },
    /// Bytes went to the file of [`ChildSet::forward`](crate::ChildSet::forward).
    #[non_exhaustive]
    Forwarded {
        /// The child that wrote.
        child: ChildId,
        /// The output that it wrote to.
        stream: Stream,
        /// How many bytes went to the file since the last event of this kind.
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
        /// How it exited.
        exit: ExitInfo,
    },
    /// The child is done: it exited, and its outputs ended or were closed. Its id is no longer valid.
    #[non_exhaustive]
    Done {
        /// The child that is done.
        child: ChildId,
        /// Its result.
        outcome: Outcome,
    },
    /// A [`Waker`](crate::Waker) was used.
    Woken,
}

impl Event {
    /// Returns the child that the event concerns; `None` for [`Woken`](Self::Woken).
    pub fn child(&self) -> Option<ChildId> {
        match self {
            Self::Output { child, .. }
            | Self::Spilled { child, .. }
            | Self::Forwarded { child, .. }
            | Self::Writable { child }
            | Self::Eof { child, .. }
            | Self::Stopped { child, .. }
            | Self::Exited { child, .. }
            | Self::Done { child, .. } => Some(*child),
            Self::Woken => None,
        }
    }
}

/// What a wait for events returned.
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
    pub fn into_event(self) -> Option<Event> {
        match self {
            Self::Event(event) => Some(event),
            Self::TimedOut | Self::Empty => None,
        }
    }
}
