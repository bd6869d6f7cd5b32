//! `WaitForMultipleObjects`, with a list that is made once. A call takes 64 objects at most
//! (`MAXIMUM_WAIT_OBJECTS`).

#![expect(unsafe_code, reason = "WaitForMultipleObjects over a list that outlives any one borrow")]

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::sync::Arc;

use windows_sys::Win32::Foundation::{HANDLE, WAIT_FAILED, WAIT_TIMEOUT};
use windows_sys::Win32::System::Threading::{INFINITE, WaitForMultipleObjects};

use super::{Baseline, CALL_MAX, Objects};

#[derive(Debug)]
pub(super) struct Wfmo {
    list: List,
    /// Keeps the handles open.
    _objects: Arc<Objects>,
}

impl Wfmo {
    /// For at most [`CALL_MAX`] objects; more make every wait fail.
    pub(super) fn open(objects: Arc<Objects>) -> Self {
        let list = List::of((0..objects.len()).map(|index| objects.source(index)));
        Self { list, _objects: objects }
    }

    /// The same, for whoever has nothing but one call.
    pub(super) fn within_one_call(objects: Arc<Objects>) -> io::Result<Self> {
        match objects.len() {
            1..=CALL_MAX => Ok(Self::open(objects)),
            _ => Err(io::Error::new(io::ErrorKind::Unsupported, "one call takes 1 to 64 objects")),
        }
    }
}

impl Baseline for Wfmo {
    fn wait(&mut self) -> io::Result<Option<usize>> {
        self.list.wait()
    }

    fn look(&mut self) -> io::Result<Option<usize>> {
        self.list.look()
    }
}

/// Handles in the form that the system wants. Whoever has one keeps them open, or else is told of
/// strangers.
pub(super) struct List(Vec<HANDLE>);

impl std::fmt::Debug for List {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("List").field(&self.0.len()).finish()
    }
}

impl List {
    pub(super) fn of<'a>(sources: impl Iterator<Item = &'a OwnedHandle>) -> Self {
        Self(sources.map(AsRawHandle::as_raw_handle).collect())
    }

    pub(super) fn push(&mut self, source: &OwnedHandle) {
        self.0.push(source.as_raw_handle());
    }

    /// Takes one out; the last one comes in its place.
    pub(super) fn swap_remove(&mut self, place: usize) {
        self.0.swap_remove(place);
    }

    /// Waits; says which is the first that is signalled.
    pub(super) fn wait(&mut self) -> io::Result<Option<usize>> {
        self.call(INFINITE)
    }

    /// The same without waiting. Nothing is in an empty list, and the system is not asked.
    pub(super) fn look(&mut self) -> io::Result<Option<usize>> {
        if self.0.is_empty() { Ok(None) } else { self.call(0) }
    }

    fn call(&mut self, timeout_ms: u32) -> io::Result<Option<usize>> {
        let (count, list) = (self.0.len() as u32, self.0.as_ptr());
        // SAFETY: the list has so many handles, which whoever has it keeps open; one that is not is an
        // error.
        match unsafe { WaitForMultipleObjects(count, list, 0, timeout_ms) } {
            WAIT_FAILED => Err(io::Error::last_os_error()),
            WAIT_TIMEOUT => Ok(None),
            // From `WAIT_OBJECT_0`, which is 0, on.
            place => Ok(Some(place as usize).filter(|place| *place < self.0.len())),
        }
    }
}
