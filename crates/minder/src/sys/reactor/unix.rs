//! The reactor on Unix: a backend, and the polling of children that no descriptor reports.

use std::cell::Cell;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

use crate::backend::Backend;
use crate::interest::Interest;
use crate::sys::error::{is_no_such_process, is_registration_limit};
use crate::sys::wait::{ExitPoller, PollHandle, Report, TOKEN_MAX, WaitBackend, Waker, open};

/// The port that watches the endpoints of one set.
#[derive(Debug)]
pub(crate) struct Reactor {
    backend: Arc<dyn WaitBackend>,
    exit_poller: ExitPoller,
    /// The number of further descriptors that it accepts; a test may set a limit.
    capacity: Cell<Option<usize>>,
}

impl Reactor {
    pub(crate) fn open(backend: Option<Backend>) -> io::Result<Self> {
        Ok(Self { backend: open(backend)?, exit_poller: ExitPoller::default(), capacity: Cell::new(None) })
    }

    /// Takes this many descriptors and no more. For tests.
    pub(crate) fn limit_descriptors(&mut self, left: Option<usize>) {
        self.capacity.set(left);
    }

    pub(crate) fn kind(&self) -> Backend {
        self.backend.kind()
    }

    pub(crate) fn waker(&self) -> Arc<Waker> {
        self.backend.waker()
    }

    /// Waits until there is a report, the waker is used, or the deadline has passed. Appends to
    /// `reports`.
    pub(crate) fn wait(&mut self, reports: &mut Vec<Report>, deadline: Option<Instant>) -> io::Result<()> {
        let Some(poll_at) = self.exit_poller.next_at() else { return self.backend.wait(reports, deadline) };
        let until = deadline.map_or(poll_at, |deadline| deadline.min(poll_at));
        self.backend.wait(reports, Some(until))?;
        self.exit_poller.report(reports, Instant::now());
        Ok(())
    }

    /// See [`WaitBackend::poll_handle`].
    pub(crate) fn poll_handle(&self, deadline: Option<Instant>) -> io::Result<PollHandle<'_>> {
        let deadline = [deadline, self.exit_poller.next_at()].into_iter().flatten().min();
        self.backend.poll_handle(deadline)
    }

    pub(crate) fn add(&self, source: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        debug_assert!(token <= TOKEN_MAX);
        if self.capacity.get() == Some(0) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.backend.add(source.as_fd(), token, interest)?;
        self.capacity.set(self.capacity.get().map(|left| left - 1));
        Ok(())
    }

    pub(crate) fn modify(&self, source: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        self.backend.modify(source.as_fd(), token, interest)
    }

    pub(crate) fn delete(&self, source: impl AsFd) -> io::Result<()> {
        self.backend.delete(source.as_fd())?;
        self.count_deleted();
        Ok(())
    }

    /// See [`WaitBackend::delete_reported`].
    pub(crate) fn delete_reported(&self, source: impl AsFd) -> io::Result<()> {
        self.backend.delete_reported(source.as_fd())?;
        self.count_deleted();
        Ok(())
    }

    fn count_deleted(&self) {
        self.capacity.set(self.capacity.get().map(|left| left + 1));
    }

    /// Reports the exit of a child that has no descriptor.
    pub(crate) fn add_process(&mut self, pid: libc::pid_t, token: u64) -> io::Result<()> {
        match self.backend.add_process(pid.unsigned_abs(), token, Interest::READABLE) {
            // Other code, or the kernel, reaped it already: the exit poller reports that as an exit
            // as well. It also reports the exit of a process for which the backend has no room.
            Err(error)
                if error.kind() == io::ErrorKind::Unsupported
                    || is_no_such_process(&error)
                    || is_registration_limit(&error) =>
            {
                self.exit_poller.add(pid, token, false);
                Ok(())
            }
            result => result,
        }
    }

    pub(crate) fn delete_process(&mut self, pid: libc::pid_t) -> io::Result<()> {
        if self.exit_poller.remove(pid) { Ok(()) } else { self.backend.delete_process(pid.unsigned_abs()) }
    }
}
