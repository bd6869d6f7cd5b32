//! What can happen: tokens, interests, ends of children, pieces of output.

use std::fmt;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use crate::backlog::Charge;
use crate::chunk::Chunk;

/// Names a child of a [`ChildSet`](crate::ChildSet), or a source that is registered with a
/// [`Poller`](crate::Poller).
///
/// A set hands out tokens and never uses one twice. With a poller the caller chooses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

impl Token {
    /// A small number, free to index a table with: no two *live* children of one set share it.
    pub fn index(self) -> usize {
        (self.0 & 0xffff_ffff) as usize
    }
}

/// What to be told of a source, and how often.
///
/// Level-triggered unless said otherwise: what is ready and was not served is told again by every
/// wait.
///
/// ```
/// use minder::Interest;
/// let once = Interest::READABLE.oneshot();
/// assert!(once.is_readable() && once.is_oneshot() && !Interest::BOTH.is_oneshot());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct Interest(u8);

impl Interest {
    /// A read would not block: there are bytes, the end of file, or an error.
    pub const READABLE: Self = Self(1);
    /// A write would not block: there is room, or an error.
    pub const WRITABLE: Self = Self(2);
    /// Both.
    pub const BOTH: Self = Self(3);

    const ONESHOT: u8 = 4;
    const EDGE: u8 = 8;

    /// The same, told once: the source stays registered and silent until
    /// [`Poller::modify`](crate::Poller::modify).
    pub const fn oneshot(self) -> Self {
        Self(self.0 & !Self::EDGE | Self::ONESHOT)
    }

    /// The same, edge-triggered: told when it becomes ready, and not again while it stays so. It
    /// may be told more often than that, when more bytes come. Whoever asks for this reads, or
    /// writes, until that would block.
    ///
    /// - The backends `epoll`, `io_uring` (from Linux 5.13) and `kqueue` have it.
    /// - The backend `poll` refuses it (`Unsupported`), as do `io_uring` before, and those of
    ///   Windows but for processes.
    pub const fn edge(self) -> Self {
        Self(self.0 & !Self::ONESHOT | Self::EDGE)
    }

    /// Whether reading is asked for.
    pub const fn is_readable(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether writing is asked for.
    pub const fn is_writable(self) -> bool {
        self.0 & 2 != 0
    }

    /// Whether it is told once only.
    pub const fn is_oneshot(self) -> bool {
        self.0 & Self::ONESHOT != 0
    }

    /// Whether it is edge-triggered.
    pub const fn is_edge(self) -> bool {
        self.0 & Self::EDGE != 0
    }
}

/// One of a child's outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
    /// Standard output, or all output of a child on a pseudo-terminal.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExitStatus {
    /// It ended by itself with this code: 0 to 255 on Unix; the 32 bits of the code on Windows.
    Exited(i32),
    /// A signal ended it (Unix).
    Signaled {
        /// The signal's number.
        signal: i32,
        /// Whether it left a core file.
        core_dumped: bool,
    },
    /// It ended, but somebody else in this process took its status first, or the system keeps none
    /// (`SIGCHLD` ignored).
    Unknown,
}

impl ExitStatus {
    /// Whether the child said that all went well: it exited, with code 0.
    pub fn success(self) -> bool {
        self == Self::Exited(0)
    }

    /// The exit code, where there is one.
    pub fn code(self) -> Option<i32> {
        match self {
            Self::Exited(code) => Some(code),
            _ => None,
        }
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) if *code < 0 => write!(f, "exit {code:#010x}"),
            Self::Exited(code) => write!(f, "exit {code}"),
            Self::Signaled { signal, core_dumped: false } => write!(f, "signal {signal}"),
            Self::Signaled { signal, core_dumped: true } => write!(f, "signal {signal}, core dumped"),
            Self::Unknown => f.write_str("unknown status: somebody else reaped it"),
        }
    }
}

/// What a child used, with the descendants that it waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceUsage {
    /// Processor time in user mode.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// The largest resident set, in bytes.
    ///
    /// - Unix: at least that of the process that started the child (measured: `/bin/echo` started
    ///   by a host of 300 MB reports 309 MB), since the child begins in its parent's memory. Not a
    ///   child's figure in a big host.
    pub max_rss: Option<u64>,
}

/// The end of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitInfo {
    /// How it ended.
    pub status: ExitStatus,
    /// What it used; `None` where somebody else reaped it.
    pub usage: Option<ResourceUsage>,
}

/// Everything that is known of a child when all of it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// Its end.
    pub exit: ExitInfo,
    /// Whether its pipes were closed by us, since something that it left behind still held them,
    /// silently.
    pub leaked: bool,
    /// Whether members of its process group live on (a daemon, a background job).
    pub left_running: bool,
    /// Bytes of output that were dropped, by the caller's choice, when memory was full.
    pub dropped: u64,
    /// Whether an order to kill it was given while its process ran, by the caller or by its
    /// deadline.
    pub killed: bool,
    /// Whether its deadline came while its process ran: then that order was the deadline's.
    pub timed_out: bool,
    /// How long it stood still, by [`ChildSet::suspend`](crate::ChildSet::suspend).
    pub suspended: Duration,
}

/// Output that found no room in memory: a part of a file, which is the caller's from here on.
#[derive(Debug)]
pub struct SpillFile {
    /// The file, open for reading and writing.
    pub file: File,
    /// Its path, if it has a name: whoever takes it removes it. Without a name it goes with the
    /// last handle.
    pub path: Option<PathBuf>,
    /// Where the bytes begin.
    pub start: u64,
    /// How many there are.
    pub len: u64,
    /// They count in the set's [`Backlog`](crate::Backlog) until this is dropped.
    pub charge: Charge,
}

/// News of a [`ChildSet`](crate::ChildSet) or a [`Pump`](crate::BackgroundSet).
///
/// For one child they come in this order: `Output` and `Eof` of each stream, in the order of the
/// bytes; `Exited` whenever it exits, be it before its last bytes were read; `Done` last, after
/// everything else.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// Bytes that a child wrote.
    Output(Token, Stream, Chunk),
    /// The file that holds the bytes of a stream that come next, for a child with
    /// [`SpawnOptions::spill_as_file`](crate::SpawnOptions::spill_as_file). Nothing more is written
    /// to it.
    Spilled(Token, Stream, SpillFile),
    /// So many bytes went to the file that [`ChildSet::forward`](crate::ChildSet::forward) named.
    Forwarded(Token, Stream, u64),
    /// The child's standard input takes bytes again.
    Writable(Token),
    /// Nothing more comes from this stream.
    Eof(Token, Stream),
    /// The child stopped, by this signal (job control). `SIGTTIN` and `SIGTTOU` mean that it wants
    /// the terminal.
    Stopped(Token, i32),
    /// The child's process ended. What it started may live on, and its output may not be over.
    Exited(Token, ExitInfo),
    /// The child is over: it exited, and its outputs ended or were given up. The token is void now.
    Done(Token, Outcome),
    /// A [`Waker`](crate::Waker) was used.
    Woken,
}

impl Event {
    /// The child that this is about; `None` for a wake.
    pub fn token(&self) -> Option<Token> {
        match self {
            Self::Output(token, ..)
            | Self::Spilled(token, ..)
            | Self::Forwarded(token, ..)
            | Self::Writable(token)
            | Self::Eof(token, _)
            | Self::Stopped(token, _)
            | Self::Exited(token, _)
            | Self::Done(token, _) => Some(*token),
            Self::Woken => None,
        }
    }
}
