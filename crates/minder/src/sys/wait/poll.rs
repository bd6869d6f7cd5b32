//! poll(2): a list of descriptors, handed to the kernel at every wait. The plainest backend, there
//! on every Unix.
//!
//! A wait costs about 0.1 us for each descriptor watched (measured, Linux 6.18), so this one is for
//! systems that have nothing better, and for comparison.

mod notifier;
mod registry;
mod syscall;

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
use super::unix::{Backend, PollHandle};
use super::waker::Waker;
use crate::event::Interest;

#[derive(Debug)]
pub(crate) struct Poll {
    shared: Arc<Shared>,
    /// Looks in our place, for a foreign loop.
    notifier: OnceLock<Notifier>,
}

impl Poll {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { shared: Arc::new(Shared::new()?), notifier: OnceLock::new() })
    }
}

impl Backend for Poll {
    fn name(&self) -> &'static str {
        "poll"
    }

    fn add(&self, source: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        refuse_edge(interest)?;
        rustix::io::fcntl_getfd(source)?;
        let fd = source.as_raw_fd();
        let mut sources = self.shared.lock();
        let place = sources.list.len();
        if sources.places.contains_key(&fd) {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        sources.places.insert(fd, place);
        sources.list.push(libc::pollfd { fd, events: events(interest), revents: 0 });
        let since = sources.generation + 1;
        sources.kept.push(Registration { fd, token, once: interest.is_oneshot(), since });
        self.shared.report_ready(&mut sources)
    }

    fn modify(&self, source: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        refuse_edge(interest)?;
        rustix::io::fcntl_getfd(source)?;
        let fd = source.as_raw_fd();
        let mut sources = self.shared.lock();
        let place = *sources.places.get(&fd).ok_or(io::ErrorKind::NotFound)?;
        sources.list[place] = libc::pollfd { fd, events: events(interest), revents: 0 };
        let since = sources.generation + 1;
        sources.kept[place] = Registration { fd, token, once: interest.is_oneshot(), since };
        self.shared.report_ready(&mut sources)
    }

    fn delete(&self, source: BorrowedFd<'_>) -> io::Result<()> {
        let mut sources = self.shared.lock();
        let place = sources.places.remove(&source.as_raw_fd()).ok_or(io::ErrorKind::NotFound)?;
        sources.list.swap_remove(place);
        sources.kept.swap_remove(place);
        if let Some(moved) = sources.kept.get(place).map(|kept| kept.fd) {
            sources.places.insert(moved, place);
        }
        self.shared.report_ready(&mut sources)
    }

    fn wait(&self, ready: &mut Vec<Ready>, deadline: Option<Instant>) -> io::Result<()> {
        let before = ready.len();
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let (mut polled, generation) = self.shared.enter();
            if !self.shared.look(&mut polled, generation, left)? {
                continue;
            }
            self.shared.collect(polled, generation, ready);
            // Without anything to tell we go on until a look *after* the deadline found nothing.
            if ready.len() > before || left == Some(Duration::ZERO) {
                return Ok(());
            }
        }
    }

    fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.shared.waker)
    }

    fn news(&self, deadline: Option<Instant>) -> io::Result<PollHandle<'_>> {
        let herald = match self.notifier.get() {
            Some(herald) => herald,
            None => {
                // Two threads may come here at once: the herald that is one too many ends when it is dropped.
                let herald = Notifier::start(Arc::clone(&self.shared))?;
                self.notifier.get_or_init(|| herald)
            }
        };
        herald.look_again(deadline)?;
        Ok(herald.news())
    }
}

/// The list of what is ready tells nothing of what became ready.
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
