//! Waiting: the contract of a backend, and the table of those that this system has.
//!
//! A *backend* tells which registered descriptors are ready. It is level-triggered: what is ready
//! and was not taken is told again at the next wait. A *port* is what endpoints are armed on: on
//! Unix a backend together with the sweep of children that nothing tells of; on Windows a
//! completion port. A *watch* is what the public poller stands on: a backend together with
//! processes that are watched by their numbers.

mod wake_flag;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod epoll;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod io_uring;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod timer;
#[cfg(any(target_vendor = "apple", target_os = "freebsd", target_os = "netbsd", target_os = "openbsd"))]
mod kqueue;
#[cfg(all(
    unix,
    any(test, target_vendor = "apple", target_os = "freebsd", target_os = "netbsd", target_os = "openbsd")
))]
mod kqueue_table;
#[cfg(unix)]
mod poll;
#[cfg(unix)]
mod waker;
#[cfg(unix)]
mod poller_backend;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use self::unix::PollHandle;
#[cfg(windows)]
pub use self::windows::PollHandle;

#[cfg(windows)]
pub(crate) use self::windows::{
    BACKENDS, Backend, CompletionPort, Operation, PollerBackend, Reactor, Source, Submission, Waker, Watched,
    millis,
};
#[cfg(unix)]
pub(crate) use self::{
    poller_backend::PollerBackend,
    unix::{BACKENDS, Backend, Reactor, Source, poll_once},
    waker::Waker,
};

use std::io;
use std::sync::Arc;

/// The token of reports that say that somebody used a waker.
pub(crate) const WAKE_TOKEN: u64 = u64::MAX;
/// The token of reports that say that what bounds a wait has changed.
pub(crate) const RECHECK_TOKEN: u64 = u64::MAX - 1;
/// The largest token that a caller may use.
pub(crate) const TOKEN_MAX: u64 = u64::MAX - 16;

/// What a wait tells of one token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ready {
    pub(crate) token: u64,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The other side is gone, or the source is in error.
    pub(crate) closed: bool,
    /// A timer has come to its deadline.
    pub(crate) expired: bool,
}

impl Ready {
    pub(crate) const fn none(token: u64) -> Self {
        Self { token, readable: false, writable: false, closed: false, expired: false }
    }
}

/// Reports for which reasons a bell was rung.
fn report_wakes(reasons: u8, ready: &mut Vec<Ready>) {
    for (reason, token) in [(wake_flag::WOKEN, WAKE_TOKEN), (wake_flag::NUDGED, RECHECK_TOKEN)] {
        if reasons & reason != 0 {
            ready.push(Ready { readable: true, ..Ready::none(token) });
        }
    }
}

/// A report to an endpoint, which knows what it means: on Unix readiness, on Windows that a packet
/// has landed.
pub(crate) type Report = Ready;

/// Whether a backend takes no more registrations: there is no memory, or the user has as many as it
/// may have (`fs.epoll.max_user_watches`, epoll_ctl(2)).
pub(crate) fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::StorageFull || super::is_exhausted(error)
}

/// A function that opens one backend.
type Open = fn() -> io::Result<Arc<dyn Backend>>;

/// Opens the backend of this name, or the best one.
pub(crate) fn open(name: Option<&str>) -> io::Result<Arc<dyn Backend>> {
    let found = BACKENDS.iter().find(|(known, _)| name.is_none_or(|name| name == *known));
    match found {
        Some((_, open)) => open(),
        None => Err(io::ErrorKind::Unsupported.into()),
    }
}
