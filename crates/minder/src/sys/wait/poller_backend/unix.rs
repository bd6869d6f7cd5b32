//! The implementation of the public poller: a backend, and the processes that are watched by pid.
//!
//! A process is watched by a pidfd (Linux), by the backend itself (kqueue), or else polled at
//! intervals.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use minder_os::sync::Mutex;

use crate::backend::Backend;
use crate::interest::Interest;
use crate::sys::pid;
use crate::sys::wait::{ExitPoller, PollHandle, Ready, Source, WaitBackend, Waker, open};

/// A backend, and the processes that it does not watch itself.
#[derive(Debug)]
pub(crate) struct PollerBackend {
    backend: Arc<dyn WaitBackend>,
    processes: Mutex<Processes>,
}

/// The processes that are watched by pid, and those among them that are polled.
#[derive(Debug, Default)]
struct Processes {
    handles: HashMap<u32, ProcessHandle>,
    exit_poller: ExitPoller,
}

#[derive(Debug)]
enum ProcessHandle {
    /// Watched by a descriptor. Unlike the pid, the descriptor still refers to this process when the
    /// source is deleted.
    Pidfd(OwnedFd),
    Backend,
    Polled,
}

impl PollerBackend {
    pub(crate) fn open(backend: Option<Backend>) -> io::Result<Self> {
        Ok(Self { backend: open(backend)?, processes: Mutex::default() })
    }

    pub(crate) fn kind(&self) -> Backend {
        self.backend.kind()
    }

    pub(crate) fn waker(&self) -> Arc<Waker> {
        self.backend.waker()
    }

    /// Returns whether running waits have to compute their bound again: see [`next_at`](Self::next_at).
    pub(crate) fn add(&self, source: Source<'_>, token: u64, interest: Interest) -> io::Result<bool> {
        match source {
            Source::Descriptor(fd) => self.backend.add(fd, token, interest).map(|()| false),
            Source::Process(pid) => {
                let mut processes = self.processes.lock();
                if processes.handles.contains_key(&pid) {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                let handle = self.watch_process(&mut processes.exit_poller, pid, token, interest)?;
                let polled = matches!(handle, ProcessHandle::Polled);
                processes.handles.insert(pid, handle);
                Ok(polled)
            }
        }
    }

    pub(crate) fn modify(&self, source: Source<'_>, token: u64, interest: Interest) -> io::Result<bool> {
        let pid = match source {
            Source::Descriptor(fd) => return self.backend.modify(fd, token, interest).map(|()| false),
            Source::Process(pid) => pid,
        };
        let mut processes = self.processes.lock();
        match processes.handles.get(&pid) {
            None => Err(io::ErrorKind::NotFound.into()),
            Some(ProcessHandle::Pidfd(pidfd)) => {
                self.backend.modify(pidfd.as_fd(), token, exit_interest(interest)).map(|()| false)
            }
            Some(_) => {
                self.unwatch_process(&mut processes, pid)?;
                let handle = self.watch_process(&mut processes.exit_poller, pid, token, interest)?;
                let polled = matches!(handle, ProcessHandle::Polled);
                processes.handles.insert(pid, handle);
                Ok(polled)
            }
        }
    }

    pub(crate) fn delete(&self, source: Source<'_>) -> io::Result<()> {
        match source {
            Source::Descriptor(fd) => self.backend.delete(fd),
            Source::Process(pid) => self.unwatch_process(&mut self.processes.lock(), pid),
        }
    }

    pub(crate) fn wait(&self, ready: &mut Vec<Ready>, deadline: Option<Instant>) -> io::Result<()> {
        self.backend.wait(ready, deadline)
    }

    /// See [`WaitBackend::poll_handle`].
    pub(crate) fn poll_handle(&self, deadline: Option<Instant>) -> io::Result<PollHandle<'_>> {
        self.backend.poll_handle(deadline)
    }

    /// Returns when [`poll_exits`](Self::poll_exits) is due, if there are processes that must be
    /// polled.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.processes.lock().exit_poller.next_at()
    }

    /// Polls the processes that neither a pidfd nor the backend watches, if it is time.
    pub(crate) fn poll_exits(&self, ready: &mut Vec<Ready>, now: Instant) {
        self.processes.lock().exit_poller.report(ready, now);
    }

    fn watch_process(
        &self,
        exit_poller: &mut ExitPoller,
        pid: u32,
        token: u64,
        interest: Interest,
    ) -> io::Result<ProcessHandle> {
        // Zero and negative numbers refer to process groups.
        let raw_pid = libc::pid_t::try_from(pid).ok().filter(|&raw_pid| raw_pid > 0);
        let raw_pid = raw_pid.ok_or(io::ErrorKind::InvalidInput)?;
        let interest = exit_interest(interest);
        if let Some(pidfd) = pid::open_pidfd(raw_pid)? {
            self.backend.add(pidfd.as_fd(), token, interest)?;
            return Ok(ProcessHandle::Pidfd(pidfd));
        }
        match self.backend.add_process(pid, token, interest) {
            Ok(()) => return Ok(ProcessHandle::Backend),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => (),
            Err(error) => return Err(error),
        }
        if !pid::exists(raw_pid) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        exit_poller.add(raw_pid, token, interest.is_oneshot());
        Ok(ProcessHandle::Polled)
    }

    fn unwatch_process(&self, processes: &mut Processes, pid: u32) -> io::Result<()> {
        match processes.handles.remove(&pid).ok_or(io::ErrorKind::NotFound)? {
            ProcessHandle::Pidfd(pidfd) => self.backend.delete(pidfd.as_fd()),
            ProcessHandle::Backend => self.backend.delete_process(pid),
            ProcessHandle::Polled => {
                processes.exit_poller.remove(libc::pid_t::try_from(pid).unwrap_or(0));
                Ok(())
            }
        }
    }
}

/// A process exits once, so edge-triggered is the same as one-shot.
fn exit_interest(interest: Interest) -> Interest {
    let once = interest.is_oneshot() || interest.is_edge();
    if once { Interest::READABLE.oneshot() } else { Interest::READABLE }
}
