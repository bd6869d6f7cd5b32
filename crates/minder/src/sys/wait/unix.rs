//! The contract of a wait backend on Unix, and what can be registered with one.

use std::fmt::Debug;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use super::{Ready, Waker};
use crate::event::Interest;

/// The contract of a wait backend on Unix. The conformance suite checks every clause.
///
/// 1. Level-triggered: a source that is ready and was not served is told again at the next wait;
///    what was served before a wait began is not told by it. One-shot and edge where asked for, or
///    `Unsupported`.
/// 2. A token is never told after `delete` of its source returned, and the source's file is not
///    held open any longer.
/// 3. `wait` never ends before its deadline without something to tell, but for a ring of the waker.
/// 4. Adding a source twice (`AlreadyExists`), changing or deleting an unknown one (`NotFound`),
///    and a descriptor that is not open (`EBADF`) are errors.
/// 5. Hang-up and error are told as readiness for whatever was asked for, so that the next read or
///    write says why.
/// 6. All functions may be called from any thread; a change made during a wait takes effect in that
///    wait. A thread that ends takes nothing along.
/// 7. However many sources are ready, each is told before any is told twice more.
pub(crate) trait Backend: Debug + Send + Sync {
    /// The name in the table, in `minder doctor` and in `--backend`.
    fn name(&self) -> &'static str;
    fn add(&self, source: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()>;
    fn modify(&self, source: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()>;
    fn delete(&self, source: BorrowedFd<'_>) -> io::Result<()>;
    /// Watches the end of a process by its number, where the system can: told as readable until it
    /// is deleted.
    fn add_process(&self, _pid: u32, _token: u64, _interest: Interest) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn delete_process(&self, _pid: u32) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Appends what is ready. A ring of the waker is told with the token
    /// [`WAKE`](super::WAKE_TOKEN), or [`NUDGE`](super::RECHECK_TOKEN).
    fn wait(&self, ready: &mut Vec<Ready>, deadline: Option<Instant>) -> io::Result<()>;
    /// The bell that ends a wait from any thread.
    fn waker(&self) -> Arc<Waker>;
    /// A descriptor that is readable while `wait` would return at once, and from `deadline` on.
    /// From the first call on it has to be called again whenever a wait has returned, or the
    /// deadline is another one.
    fn poll_handle(&self, deadline: Option<Instant>) -> io::Result<PollHandle<'_>>;
}

/// What can be registered with a [`Watch`](super::PollerBackend).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    Descriptor(BorrowedFd<'a>),
    /// The end of a process, ours or not.
    Process(u32),
}

impl<'a> Source<'a> {
    pub(crate) fn descriptor(source: &'a impl AsFd) -> Self {
        Self::Descriptor(source.as_fd())
    }
}

/// A descriptor that becomes readable when there is news. Watch it level-triggered, in any loop;
/// never read from it.
pub type PollHandle<'a> = BorrowedFd<'a>;
