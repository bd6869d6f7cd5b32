//! Windows: tokens are the count of a semaphore that has a name.

#![expect(unsafe_code, reason = "semaphores")]

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};

use windows_sys::Win32::Foundation::{WAIT_OBJECT_0, WAIT_TIMEOUT};
use windows_sys::Win32::System::Threading::{
    OpenSemaphoreW, ReleaseSemaphore, SEMAPHORE_MODIFY_STATE, SYNCHRONIZATION_SYNCHRONIZE,
    WaitForSingleObject,
};

/// A connection.
#[derive(Debug)]
pub(crate) struct Client(OwnedHandle);

impl Client {
    pub(crate) fn connect(auth: &str) -> io::Result<Self> {
        let name: Vec<u16> = auth.encode_utf16().chain([0]).collect();
        let access = SEMAPHORE_MODIFY_STATE | SYNCHRONIZATION_SYNCHRONIZE;
        // SAFETY: the name ends with a zero and outlives the call.
        let handle = unsafe { OpenSemaphoreW(access, 0, name.as_ptr()) };
        if handle.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the handle is open, and nothing else owns it.
        Ok(Self(unsafe { OwnedHandle::from_raw_handle(handle) }))
    }

    /// Takes a token, if one is free now.
    pub(crate) fn try_acquire(&self) -> io::Result<Option<u8>> {
        // SAFETY: the handle is open as long as we are.
        match unsafe { WaitForSingleObject(self.0.as_raw_handle(), 0) } {
            WAIT_OBJECT_0 => Ok(Some(b'+')),
            WAIT_TIMEOUT => Ok(None),
            _ => Err(io::Error::last_os_error()),
        }
    }

    pub(crate) fn release(&self, _token: u8) -> io::Result<()> {
        // SAFETY: the handle is open as long as we are; the count before is not asked for.
        match unsafe { ReleaseSemaphore(self.0.as_raw_handle(), 1, std::ptr::null_mut()) } {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// Returns `None`, because there are no guardians.
    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn held_tokens(&self) -> Option<super::held_tokens::HeldTokens> {
        None
    }

    /// Returns `None`: a wait for a semaphore takes a token, and nothing else reports one.
    pub(crate) fn source(&self) -> Option<crate::sys::wait::Source<'_>> {
        None
    }
}
