//! Objects on Windows: events that stay signalled until they are reset, as a process does after its
//! exit.

#![expect(unsafe_code, reason = "ResetEvent")]

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};

use windows_sys::Win32::System::Threading::ResetEvent;

use crate::sys::event::{create_event, set_event};
use crate::sys::last_error::check;

/// Numbers of objects at which the costs of mechanisms change: one call takes 64 handles, one of
/// which may have to wake the thread.
pub(crate) const SIZES: &[u64] = &[0, 2, 32, 63, 64, 65, 256, 1024, 2048, 4096];

/// Objects that a program can signal, wait for and reset.
#[derive(Debug)]
pub(crate) struct Objects(Vec<OwnedHandle>);

impl Objects {
    /// The number of handles of one object.
    pub(crate) const DESCRIPTORS: usize = 1;

    pub(crate) fn open(count: usize) -> io::Result<Self> {
        (0..count).map(|_| create_event(true)).collect::<io::Result<_>>().map(Self)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn signal(&self, index: usize) -> io::Result<()> {
        set_event(&self.0[index])
    }

    pub(crate) fn reset(&self, index: usize) -> io::Result<()> {
        // SAFETY: the handle is open.
        check(unsafe { ResetEvent(self.0[index].as_raw_handle()) })
    }

    /// Returns the handle that satisfies a wait while the object is signalled.
    pub(crate) fn source(&self, index: usize) -> &OwnedHandle {
        &self.0[index]
    }
}
