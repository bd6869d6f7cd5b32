//! The contract of a wait backend on Unix, and what can be registered with one.

use std::fmt::Debug;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use super::{Ready, Waker};
use crate::backend::Backend;
use crate::interest::Interest;

/// The contract of a wait backend on Unix. The conformance suite checks every clause.
///
/// 1. Level-triggered: the next wait reports a source again if it is still ready. A wait does not
///    report what was served before it began. One-shot and edge-triggered on request, or
///    `Unsupported`.
/// 2. A token is never reported after `delete` of its source has returned, and the backend no
///    longer holds the source's file open.
/// 3. `wait` never returns before its deadline without something to report. A wake-up counts as
///    something to report.
/// 4. Adding a source twice (`AlreadyExists`), changing or deleting an unknown one (`NotFound`),
///    and a descriptor that is not open (`EBADF`) are errors.
/// 5. Hang-up and error are reported as readiness for the requested directions, so that the next
///    read or write returns the cause.
/// 6. All functions may be called from any thread. A change made during a wait takes effect in that
///    wait. The exit of a thread removes no registration.
/// 7. If many sources are ready, each is reported before any other is reported two more times.
pub(crate) trait WaitBackend: Debug + Send + Sync {
    /// Returns the variant of [`Backend`] of this backend.
    fn kind(&self) -> Backend;
    fn add(&self, source: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()>;
    fn modify(&self, source: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()>;
    fn delete(&self, source: BorrowedFd<'_>) -> io::Result<()>;
    /// Deletes a one-shot source that was reported and is not armed again. The caller closes its
    /// descriptor next, so a backend may leave the rest to that.
    fn delete_reported(&self, source: BorrowedFd<'_>) -> io::Result<()> {
        self.delete(source)
    }
    /// Watches the exit of a process by its pid, where the kernel supports it. The exit is reported
    /// as readable until it is deleted.
    fn add_process(&self, _pid: u32, _token: u64, _interest: Interest) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn delete_process(&self, _pid: u32) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Appends what is ready. A wake-up is reported with the token
    /// [`WAKE_TOKEN`](super::WAKE_TOKEN) or [`RECHECK_TOKEN`](super::RECHECK_TOKEN).
    fn wait(&self, ready: &mut Vec<Ready>, deadline: Option<Instant>) -> io::Result<()>;
    /// Returns the waker that ends a wait from any thread.
    fn waker(&self) -> Arc<Waker>;
    /// Returns a descriptor that is readable while `wait` would return at once, and from `deadline` on.
    /// After the first call, call it again whenever a wait has returned or the deadline has changed.
    fn poll_handle(&self, deadline: Option<Instant>) -> io::Result<PollHandle<'_>>;
}

/// A source that can be registered with a [`PollerBackend`](super::PollerBackend).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    Descriptor(BorrowedFd<'a>),
    /// The exit of a process, which may be any process.
    Process(u32),
}

impl<'a> Source<'a> {
    pub(crate) fn descriptor(source: &'a impl AsFd) -> Self {
        Self::Descriptor(source.as_fd())
    }
}

/// A descriptor that becomes readable when an event is pending. Watch it level-triggered, in any loop;
/// never read from it.
#[cfg_attr(docsrs, doc(cfg(true)))] // Each system has it.
pub type PollHandle<'a> = BorrowedFd<'a>;
