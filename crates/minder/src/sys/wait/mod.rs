//! Waiting: the contract of a backend, and the table of the backends of this operating system.
//!
//! A *backend* reports which registered descriptors are ready. It is level-triggered: a descriptor
//! that stays ready is reported again by the next wait. The *reactor* of [`sys`](super) adds what a
//! set of children needs. [`PollerBackend`] is what the public `Poller` uses: a backend together
//! with processes that are watched by pid.
//!
//! To add a backend, write one file that implements [`WaitBackend`], declare it here before `backends`, and
//! add one line to `backends.rs`. A new name also needs a variant of [`Backend`](crate::Backend).

#[cfg(any(target_os = "linux", target_os = "android"))]
mod timer;
mod types;
#[cfg(all(
    unix,
    any(test, target_vendor = "apple", target_os = "freebsd", target_os = "netbsd", target_os = "openbsd")
))]
mod kqueue_table;
mod wake_flag;
#[cfg(unix)]
mod waker;
#[cfg(unix)]
mod unix;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod epoll;
#[cfg(unix)]
mod poll;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod io_uring;
#[cfg(any(target_vendor = "apple", target_os = "freebsd", target_os = "netbsd", target_os = "openbsd"))]
mod kqueue;
#[cfg(unix)]
mod exit_poller;
#[cfg(unix)]
mod poll_once;
#[cfg(windows)]
mod windows;
mod backends;
mod poller_backend;

#[cfg(unix)]
pub use self::unix::PollHandle;
#[cfg(windows)]
pub use self::windows::PollHandle;

pub(crate) use self::backends::{BACKENDS, open};
pub(crate) use self::poller_backend::PollerBackend;
pub(crate) use self::types::{RECHECK_TOKEN, Ready, Report, TOKEN_MAX, WAKE_TOKEN};
#[cfg(windows)]
pub(crate) use self::windows::{
    CompletionPort, Operation, Source, Submission, WaitBackend, Waker, Watched, millis,
};
#[cfg(unix)]
pub(crate) use self::{
    exit_poller::ExitPoller,
    poll_once::poll_once,
    unix::{Source, WaitBackend},
    waker::Waker,
};
