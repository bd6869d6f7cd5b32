//! Readiness: what a backend must supply on Unix, and the port that is made of one.

use std::cell::Cell;
use std::fmt::Debug;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use super::{Open, Ready, Report, TOKEN_MAX, Waker, is_full, open};
use crate::event::Interest;
use crate::sys::reap::{ExitPoller, is_nobody};

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
    fn news(&self, deadline: Option<Instant>) -> io::Result<PollHandle<'_>>;
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

/// Waits by poll(2) until the source is ready, or the deadline has come; whether it is ready.
/// `None` for what has no descriptor.
pub(crate) fn poll_once(
    source: &Source<'_>,
    interest: Interest,
    deadline: Option<Instant>,
) -> Option<io::Result<bool>> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let Source::Descriptor(fd) = source else { return None };
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, interest.is_readable());
    flags.set(PollFlags::OUT, interest.is_writable());
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let time = left.map(|left| Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        match poll(&mut [PollFd::from_borrowed_fd(*fd, flags)], time.as_ref()) {
            Err(rustix::io::Errno::INTR) => (),
            polled => return Some(polled.map(|ready| ready > 0).map_err(io::Error::from)),
        }
    }
}

/// A descriptor that becomes readable when there is news. Watch it level-triggered, in any loop;
/// never read from it.
pub type PollHandle<'a> = BorrowedFd<'a>;

/// The backends of this system, best first: name and opener.
pub(crate) const BACKENDS: &[(&str, Open)] = &[
    #[cfg(any(target_os = "linux", target_os = "android"))]
    ("epoll", || Ok(Arc::new(super::epoll::Epoll::new()?))),
    #[cfg(any(target_os = "linux", target_os = "android"))]
    ("io_uring", || Ok(Arc::new(super::io_uring::Uring::new()?))),
    #[cfg(any(target_vendor = "apple", target_os = "freebsd", target_os = "netbsd", target_os = "openbsd"))]
    ("kqueue", || Ok(Arc::new(super::kqueue::Kqueue::new()?))),
    ("poll", || Ok(Arc::new(super::poll::Poll::new()?))),
];

/// What the endpoints of one set are armed on.
#[derive(Debug)]
pub(crate) struct Reactor {
    backend: Arc<dyn Backend>,
    sweep: ExitPoller,
    /// How many more descriptors it takes, where a test says so.
    capacity: Cell<Option<usize>>,
}

impl Reactor {
    pub(crate) fn open(name: Option<&str>) -> io::Result<Self> {
        Ok(Self { backend: open(name)?, sweep: ExitPoller::default(), capacity: Cell::new(None) })
    }

    /// Takes this many descriptors and no more. For tests.
    pub(crate) fn fault_room(&mut self, room: Option<usize>) {
        self.capacity.set(room);
    }

    pub(crate) fn name(&self) -> &'static str {
        self.backend.name()
    }

    pub(crate) fn waker(&self) -> Arc<Waker> {
        self.backend.waker()
    }

    /// Waits until there is a report, the waker rings, or the deadline has come. Appends to
    /// `reports`.
    pub(crate) fn wait(&mut self, reports: &mut Vec<Report>, deadline: Option<Instant>) -> io::Result<()> {
        let Some(sweep_at) = self.sweep.next_at() else { return self.backend.wait(reports, deadline) };
        let until = deadline.map_or(sweep_at, |deadline| deadline.min(sweep_at));
        self.backend.wait(reports, Some(until))?;
        self.sweep.report(reports, Instant::now());
        Ok(())
    }

    /// See [`Backend::news`].
    pub(crate) fn news(&self, deadline: Option<Instant>) -> io::Result<PollHandle<'_>> {
        let deadline = [deadline, self.sweep.next_at()].into_iter().flatten().min();
        self.backend.news(deadline)
    }

    pub(crate) fn add(&self, source: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        debug_assert!(token <= TOKEN_MAX);
        if self.capacity.get() == Some(0) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.backend.add(source.as_fd(), token, interest)?;
        self.capacity.set(self.capacity.get().map(|room| room - 1));
        Ok(())
    }

    pub(crate) fn delete(&self, source: impl AsFd) -> io::Result<()> {
        self.backend.delete(source.as_fd())?;
        self.capacity.set(self.capacity.get().map(|room| room + 1));
        Ok(())
    }

    /// Reports the end of a child that has no descriptor of its own.
    pub(crate) fn add_process(&mut self, pid: libc::pid_t, token: u64) -> io::Result<()> {
        match self.backend.add_process(pid.unsigned_abs(), token, Interest::READABLE) {
            // Somebody else, or the kernel, reaped it already: that is an end, too, and the sweep finds it.
            // It also finds the end of a process for which the backend has no room.
            Err(error)
                if error.kind() == io::ErrorKind::Unsupported || is_nobody(&error) || is_full(&error) =>
            {
                self.sweep.add(pid, token, false);
                Ok(())
            }
            result => result,
        }
    }

    pub(crate) fn delete_process(&mut self, pid: libc::pid_t) -> io::Result<()> {
        if self.sweep.remove(pid) { Ok(()) } else { self.backend.delete_process(pid.unsigned_abs()) }
    }
}
