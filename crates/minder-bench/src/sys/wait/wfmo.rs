//! `WaitForMultipleObjects` with a list that is made once. One call takes at most 64 handles
//! (`MAXIMUM_WAIT_OBJECTS`).

#![expect(unsafe_code, reason = "WaitForMultipleObjects over a list of handles that outlives any borrow")]

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::sync::Arc;

use windows_sys::Win32::Foundation::{HANDLE, WAIT_FAILED, WAIT_TIMEOUT};
use windows_sys::Win32::System::Threading::{INFINITE, WaitForMultipleObjects};

use super::objects::Objects;
use super::types::{CALL_MAX, WaitBaseline};

#[derive(Debug)]
pub(super) struct Wfmo {
    list: List,
    /// Keeps the handles open.
    _objects: Arc<Objects>,
}

impl Wfmo {
    /// Opens it for at most [`CALL_MAX`] objects; with more, every wait fails.
    pub(super) fn open(objects: Arc<Objects>) -> Self {
        let list = List::new((0..objects.len()).map(|index| objects.source(index)));
        Self { list, _objects: objects }
    }

    /// Opens it, and refuses a number of objects that one call does not take.
    pub(super) fn within_one_call(objects: Arc<Objects>) -> io::Result<Self> {
        match objects.len() {
            1..=CALL_MAX => Ok(Self::open(objects)),
            _ => Err(io::Error::new(io::ErrorKind::Unsupported, "one call takes 1 to 64 objects")),
        }
    }
}

impl WaitBaseline for Wfmo {
    fn wait(&mut self) -> io::Result<Option<usize>> {
        self.list.wait()
    }

    fn poll(&mut self) -> io::Result<Option<usize>> {
        self.list.poll()
    }
}

/// Handles as `WaitForMultipleObjects` takes them. The owner of a list keeps them open; otherwise
/// the call reports an unrelated object that got the same handle.
pub(super) struct List(Vec<HANDLE>);

impl std::fmt::Debug for List {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("List").field(&self.0.len()).finish()
    }
}

impl List {
    pub(super) fn new<'a>(sources: impl Iterator<Item = &'a OwnedHandle>) -> Self {
        Self(sources.map(AsRawHandle::as_raw_handle).collect())
    }

    pub(super) fn push(&mut self, source: &OwnedHandle) {
        self.0.push(source.as_raw_handle());
    }

    /// Removes the handle at a position, which the last handle then takes.
    pub(super) fn swap_remove(&mut self, position: usize) {
        self.0.swap_remove(position);
    }

    /// Waits, and returns the position of the first handle that is signalled.
    pub(super) fn wait(&mut self) -> io::Result<Option<usize>> {
        self.call(INFINITE)
    }

    /// Returns the position of the first handle that is signalled. Never waits. The call refuses an
    /// empty list, so it is not made for one.
    pub(super) fn poll(&mut self) -> io::Result<Option<usize>> {
        if self.0.is_empty() { Ok(None) } else { self.call(0) }
    }

    fn call(&mut self, timeout_ms: u32) -> io::Result<Option<usize>> {
        let count = self.0.len() as u32;
        // SAFETY: the list has this many handles. Its owner keeps them open; the call fails for one
        // that is not.
        match unsafe { WaitForMultipleObjects(count, self.0.as_ptr(), 0, timeout_ms) } {
            WAIT_FAILED => Err(io::Error::last_os_error()),
            WAIT_TIMEOUT => Ok(None),
            // `WAIT_OBJECT_0`, which is 0, plus the position; or an abandoned mutex.
            position if (position as usize) < self.0.len() => Ok(Some(position as usize)),
            _ => Ok(None),
        }
    }
}
