//! Windows events.

#![expect(unsafe_code, reason = "CreateEventW, SetEvent")]

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::null;

use windows_sys::Win32::System::Threading::{CreateEventW, SetEvent};

use super::last_error::check;

/// Makes an event that is not signalled and not inherited. With `manual_reset` it stays signalled
/// until it is reset; otherwise a satisfied wait resets it.
pub(super) fn create_event(manual_reset: bool) -> io::Result<OwnedHandle> {
    // SAFETY: the pointers to attributes and name may be null.
    let raw = unsafe { CreateEventW(null(), manual_reset.into(), 0, null()) };
    if raw.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above made this handle, and nothing else owns it.
    Ok(unsafe { OwnedHandle::from_raw_handle(raw) })
}

/// Signals an event.
pub(super) fn set_event(event: &OwnedHandle) -> io::Result<()> {
    // SAFETY: the borrowed handle is open.
    check(unsafe { SetEvent(event.as_raw_handle()) })
}
