//! A handoff by an event that a satisfied wait resets.

#![expect(unsafe_code, reason = "WaitForSingleObject")]

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};

use windows_sys::Win32::System::Threading::{INFINITE, WaitForSingleObject};

use crate::sys::event::{create_event, set_event};

/// Blocks one thread until another calls [`release`](Self::release). Calls before the thread waits
/// are merged into one.
#[derive(Debug)]
pub(crate) struct Handoff(OwnedHandle);

impl Handoff {
    pub(crate) fn new() -> io::Result<Self> {
        create_event(false).map(Self)
    }

    /// Releases the thread that waits, or the next one that does.
    pub(crate) fn release(&self) {
        // SetEvent fails for an invalid handle only, and this one is open.
        let _ = set_event(&self.0);
    }

    /// Blocks until [`release`](Self::release) is called.
    pub(crate) fn wait(&self) {
        // SAFETY: the handle is open.
        unsafe { WaitForSingleObject(self.0.as_raw_handle(), INFINITE) };
    }
}
