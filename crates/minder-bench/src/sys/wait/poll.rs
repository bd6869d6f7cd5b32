//! poll(2) with a list that is made once.

#![expect(unsafe_code, reason = "poll over a list of descriptors that outlives any borrow")]

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use super::objects::Objects;
use super::types::WaitBaseline;

#[derive(Debug)]
pub(super) struct Poll {
    list: List,
    /// Keeps the descriptors open.
    _objects: Arc<Objects>,
}

impl Poll {
    pub(super) fn open(objects: Arc<Objects>) -> Self {
        let list = List::new((0..objects.len()).map(|index| objects.source(index)));
        Self { list, _objects: objects }
    }
}

impl WaitBaseline for Poll {
    fn wait(&mut self) -> io::Result<Option<usize>> {
        self.list.wait()
    }

    fn poll(&mut self) -> io::Result<Option<usize>> {
        self.list.poll()
    }
}

/// Descriptors as poll(2) takes them. The owner of a list keeps them open; otherwise poll(2)
/// reports an unrelated file that got the same number.
pub(super) struct List(Vec<libc::pollfd>);

impl std::fmt::Debug for List {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("List").field(&self.0.len()).finish()
    }
}

impl List {
    pub(super) fn new<'a, S: AsRawFd + 'a>(sources: impl Iterator<Item = &'a S>) -> Self {
        let entry = |source: &S| libc::pollfd { fd: source.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        Self(sources.map(entry).collect())
    }

    /// Waits, and returns the position of the first descriptor that is ready.
    pub(super) fn wait(&mut self) -> io::Result<Option<usize>> {
        self.call(-1)
    }

    /// Returns the position of the first descriptor that is ready. Never waits.
    pub(super) fn poll(&mut self) -> io::Result<Option<usize>> {
        self.call(0)
    }

    fn call(&mut self, timeout_ms: i32) -> io::Result<Option<usize>> {
        let len = self.0.len() as libc::nfds_t;
        // SAFETY: the list is borrowed exclusively for the call, and has this many entries.
        if unsafe { libc::poll(self.0.as_mut_ptr(), len, timeout_ms) } < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(None) } else { Err(error) };
        }
        Ok(self.0.iter().position(|entry| entry.revents != 0))
    }
}
