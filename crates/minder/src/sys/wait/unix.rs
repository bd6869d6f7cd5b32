//! Readiness: what a backend must supply on Unix, and the port that is made of one.

use std::fmt::Debug;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use super::{Doorbell, Open, Ready, Report, WAKE, open};
use crate::event::Interest;
use crate::sys::reap::Sweep;

/// The contract of a wait backend on Unix. The conformance suite checks every clause.
///
/// 1. Level-triggered: a source that is ready and was not served is told again at the next wait.
/// 2. A token is never told after `delete` of its source returned.
/// 3. `wait` never ends before its deadline without something to tell, but for a ring of the doorbell.
/// 4. Adding a source twice, or changing or deleting an unknown one, is an error.
/// 5. Hang-up and error are told as readiness for whatever was asked for, so that the next read or write says why.
/// 6. All functions may be called from any thread; a change made during a wait takes effect in that wait.
pub(crate) trait Backend: Debug + Send + Sync {
    /// The name in the table, in `minder doctor` and in `--backend`.
    fn name(&self) -> &'static str;
    fn add(&self, source: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()>;
    fn modify(&self, source: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()>;
    fn delete(&self, source: BorrowedFd<'_>) -> io::Result<()>;
    /// Appends what is ready. A ring of the doorbell is told with the token [`WAKE`].
    fn wait(&self, ready: &mut Vec<Ready>, deadline: Option<Instant>) -> io::Result<()>;
    /// The bell that ends a wait from any thread.
    fn doorbell(&self) -> Arc<Doorbell>;
    /// A descriptor that is readable while `wait` would return at once, and from `deadline` on; `None` if there is none.
    fn news(&self, deadline: Option<Instant>) -> io::Result<Option<BorrowedFd<'_>>>;
}

/// What can be registered with a backend.
pub(crate) type Source<'a> = BorrowedFd<'a>;

/// The backends of this system, best first: name and opener.
pub(crate) const BACKENDS: &[(&str, Open)] = &[
    #[cfg(any(target_os = "linux", target_os = "android"))]
    ("epoll", || Ok(Arc::new(super::epoll::Epoll::new()?))),
    ("poll", || Ok(Arc::new(super::poll::Poll::new()?))),
];

/// What the endpoints of one set are armed on.
#[derive(Debug)]
pub(crate) struct Port {
    backend: Arc<dyn Backend>,
    pub(crate) sweep: Sweep,
}

impl Port {
    pub(crate) fn open(name: Option<&str>) -> io::Result<Self> {
        Ok(Self { backend: open(name)?, sweep: Sweep::default() })
    }

    pub(crate) fn name(&self) -> &'static str {
        self.backend.name()
    }

    pub(crate) fn doorbell(&self) -> Arc<Doorbell> {
        self.backend.doorbell()
    }

    /// Waits until there is a report, the doorbell rings, or the deadline has come. Appends to `reports`.
    pub(crate) fn wait(&mut self, reports: &mut Vec<Report>, deadline: Option<Instant>) -> io::Result<()> {
        let Some(sweep_at) = self.sweep.next_at() else { return self.backend.wait(reports, deadline) };
        let until = deadline.map_or(sweep_at, |deadline| deadline.min(sweep_at));
        self.backend.wait(reports, Some(until))?;
        self.sweep.report(reports, Instant::now());
        Ok(())
    }

    /// See [`Backend::news`].
    pub(crate) fn news(&self, deadline: Option<Instant>) -> io::Result<Option<BorrowedFd<'_>>> {
        let deadline = [deadline, self.sweep.next_at()].into_iter().flatten().min();
        self.backend.news(deadline)
    }

    pub(crate) fn add(&self, source: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        debug_assert!(token < WAKE);
        self.backend.add(source.as_fd(), token, interest)
    }

    pub(crate) fn delete(&self, source: impl AsFd) -> io::Result<()> {
        self.backend.delete(source.as_fd())
    }
}
