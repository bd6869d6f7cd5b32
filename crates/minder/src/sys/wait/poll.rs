//! poll(2): a list of descriptors, passed to the kernel in every wait. The simplest backend; every
//! Unix has it.
//!
//! A wait costs about 0.1 us for each descriptor watched (measured, Linux 6.18), so this one is for
//! systems that have no other, and for comparison.

mod syscall;
mod registry;
mod notifier;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use self::notifier::Notifier;
use self::registry::{Registration, Shared};
#[cfg(any(target_vendor = "apple", target_os = "freebsd", target_os = "netbsd", target_os = "openbsd"))]
pub(super) use self::syscall::poll;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) use self::syscall::poll_now;
use super::types::Ready;
use super::unix::{PollHandle, WaitBackend};
use super::waker::Waker;
use crate::backend::Backend;
use crate::interest::Interest;

#[derive(Debug)]
pub(crate) struct Poll {
    shared: Arc<Shared>,
    /// Polls for a foreign loop; started by the first request for a descriptor.
    notifier: OnceLock<Notifier>,
}

impl Poll {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { shared: Arc::new(Shared::new()?), notifier: OnceLock::new() })
    }
}

impl WaitBackend for Poll {
    fn kind(&self) -> Backend {
        Backend::Poll
    }

    fn add(&self, source: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        refuse_edge(interest)?;
        rustix::io::fcntl_getfd(source)?;
        let fd = source.as_raw_fd();
        let mut sources = self.shared.lock();
        let index = sources.list.len();
        if sources.indexes.contains_key(&fd) {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        sources.indexes.insert(fd, index);
        sources.list.push(libc::pollfd { fd, events: events(interest), revents: 0 });
        let since = sources.generation + 1;
        sources.registrations.push(Registration { fd, token, once: interest.is_oneshot(), since });
        self.shared.list_changed(&mut sources)
    }

    fn modify(&self, source: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        refuse_edge(interest)?;
        rustix::io::fcntl_getfd(source)?;
        let fd = source.as_raw_fd();
        let mut sources = self.shared.lock();
        let index = *sources.indexes.get(&fd).ok_or(io::ErrorKind::NotFound)?;
        sources.list[index] = libc::pollfd { fd, events: events(interest), revents: 0 };
        let since = sources.generation + 1;
        sources.registrations[index] = Registration { fd, token, once: interest.is_oneshot(), since };
        self.shared.list_changed(&mut sources)
    }

    fn delete(&self, source: BorrowedFd<'_>) -> io::Result<()> {
        let mut sources = self.shared.lock();
        let index = sources.indexes.remove(&source.as_raw_fd()).ok_or(io::ErrorKind::NotFound)?;
        sources.list.swap_remove(index);
        sources.registrations.swap_remove(index);
        if let Some(moved) = sources.registrations.get(index).map(|registration| registration.fd) {
            sources.indexes.insert(moved, index);
        }
        self.shared.list_changed(&mut sources)
    }

    fn wait(&self, ready: &mut Vec<Ready>, deadline: Option<Instant>) -> io::Result<()> {
        let before = ready.len();
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let (mut polled, generation) = self.shared.enter();
            if !self.shared.poll_once(&mut polled, generation, left)? {
                continue;
            }
            self.shared.collect(polled, generation, ready);
            // With nothing to report, the wait continues until a poll *after* the deadline finds
            // nothing.
            if ready.len() > before || left == Some(Duration::ZERO) {
                return Ok(());
            }
        }
    }

    fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.shared.waker)
    }

    fn poll_handle(&self, deadline: Option<Instant>) -> io::Result<PollHandle<'_>> {
        let notifier = match self.notifier.get() {
            Some(notifier) => notifier,
            None => {
                // Two threads may start one at the same time: the surplus notifier ends when it is dropped.
                let notifier = Notifier::start(Arc::clone(&self.shared))?;
                self.notifier.get_or_init(|| notifier)
            }
        };
        notifier.restart(deadline)?;
        Ok(notifier.poll_handle())
    }
}

/// Rejects edge-triggered interest: poll(2) reports what is ready, not what became ready.
fn refuse_edge(interest: Interest) -> io::Result<()> {
    if interest.is_edge() { Err(io::ErrorKind::Unsupported.into()) } else { Ok(()) }
}

fn events(interest: Interest) -> i16 {
    let mut events = 0;
    if interest.is_readable() {
        events |= libc::POLLIN;
    }
    if interest.is_writable() {
        events |= libc::POLLOUT;
    }
    events
}
