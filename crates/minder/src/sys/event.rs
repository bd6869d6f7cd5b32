//! Events of Windows.

#![expect(unsafe_code, reason = "making events")]

use std::io;
use std::os::windows::io::{FromRawHandle, OwnedHandle};
use std::ptr::null;

use windows_sys::Win32::System::Threading::CreateEventW;

/// Creates an event that is not set and not inheritable. It stays set until it is reset (`stays`),
/// or until one wait was satisfied.
pub(super) fn event(stays: bool) -> io::Result<OwnedHandle> {
    // SAFETY: no attributes, no name.
    let raw = unsafe { CreateEventW(null(), stays.into(), 0, null()) };
    if raw.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above created the handle, and nothing else owns it.
    Ok(unsafe { OwnedHandle::from_raw_handle(raw) })
}
