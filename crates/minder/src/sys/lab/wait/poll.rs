//! poll(2), with a list that is made once.

#![expect(unsafe_code, reason = "the poll system call over a list that outlives any one borrow")]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use super::{Baseline, Objects};

#[derive(Debug)]
pub(super) struct Poll {
    list: List,
    /// Keeps the descriptors open.
    _objects: Arc<Objects>,
}

impl Poll {
    pub(super) fn open(objects: Arc<Objects>) -> Self {
        let list = List::of((0..objects.len()).map(|index| objects.source(index)));
        Self { list, _objects: objects }
    }
}

impl Baseline for Poll {
    fn wait(&mut self) -> io::Result<Option<usize>> {
        self.list.wait()
    }

    fn look(&mut self) -> io::Result<Option<usize>> {
        self.list.look()
    }
}

/// Descriptors in the form that the system wants. Whoever has one keeps them open, or else is told
/// of strangers.
pub(super) struct List(Vec<libc::pollfd>);

impl std::fmt::Debug for List {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("List").field(&self.0.len()).finish()
    }
}

impl List {
    pub(super) fn of<'a>(sources: impl Iterator<Item = &'a OwnedFd>) -> Self {
        let entry =
            |source: &OwnedFd| libc::pollfd { fd: source.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        Self(sources.map(entry).collect())
    }

    /// Waits; says which is the first that is ready.
    pub(super) fn wait(&mut self) -> io::Result<Option<usize>> {
        self.call(-1)
    }

    /// The same without waiting.
    pub(super) fn look(&mut self) -> io::Result<Option<usize>> {
        self.call(0)
    }

    fn call(&mut self, timeout_ms: i32) -> io::Result<Option<usize>> {
        let (list, len) = (self.0.as_mut_ptr(), self.0.len() as libc::nfds_t);
        // SAFETY: the list is ours alone for the call, and has so many entries.
        if unsafe { libc::poll(list, len, timeout_ms) } < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(None) } else { Err(error) };
        }
        Ok(self.0.iter().position(|entry| entry.revents != 0))
    }
}
