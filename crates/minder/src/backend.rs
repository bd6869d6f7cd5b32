//! The names of the wait backends: plain data.

use std::fmt;

/// A mechanism of the operating system that waits for many sources at once.
///
/// The command line, the records and the reports use the [name](Self::name) of a backend.
///
/// ```
/// use minder::Backend;
/// use minder::poll::Poller;
/// let best = Backend::available().next().expect("every system has a backend");
/// assert_eq!(best.name().parse::<Backend>()?, best);
/// assert_eq!(Poller::with_backend(best)?.backend(), best);
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// `epoll`: epoll(7). Linux.
    Epoll,
    /// `io_uring`: multishot polls on an io_uring(7). Linux 5.11; often forbidden in containers.
    IoUring,
    /// `kqueue`: kqueue(2). macOS, FreeBSD, NetBSD, OpenBSD.
    Kqueue,
    /// `poll`: poll(2). Every Unix.
    Poll,
    /// `iocp`: one completion port, and registered waits of the thread pool for handles. Windows.
    Iocp,
    /// `wait_pool`: one completion port, and threads of ours that wait for up to 63 handles each.
    /// Windows.
    WaitPool,
    /// `thread_pool`: one completion port, and waits of the thread pool that are armed again after
    /// each report. Windows.
    ThreadPool,
}

impl Backend {
    /// All backends, of all operating systems.
    pub(crate) const ALL: [Self; 7] =
        [Self::Epoll, Self::IoUring, Self::Kqueue, Self::Poll, Self::Iocp, Self::WaitPool, Self::ThreadPool];

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Epoll => "epoll",
            Self::IoUring => "io_uring",
            Self::Kqueue => "kqueue",
            Self::Poll => "poll",
            Self::Iocp => "iocp",
            Self::WaitPool => "wait_pool",
            Self::ThreadPool => "thread_pool",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
