//! Handles of processes that are known by their pid.

#![expect(unsafe_code, reason = "opening processes")]

use std::io;
use std::os::windows::io::{FromRawHandle, OwnedHandle};

use windows_sys::Win32::Foundation::ERROR_INVALID_PARAMETER;
use windows_sys::Win32::System::Threading::{OpenProcess, PROCESS_SYNCHRONIZE};

use crate::sys::error::NoSuchProcess;

/// Opens any process, to wait for its exit.
///
/// # Errors
/// [`NoSuchProcess`] if no process has this pid; see
/// [`is_no_such_process`](crate::sys::error::is_no_such_process).
pub(crate) fn open_process(pid: u32) -> io::Result<OwnedHandle> {
    // SAFETY: takes numbers only; the handle is not inheritable.
    let raw = unsafe { OpenProcess(PROCESS_SYNCHRONIZE, 0, pid) };
    if raw.is_null() {
        let error = io::Error::last_os_error();
        let is_missing = error.raw_os_error() == Some(ERROR_INVALID_PARAMETER.cast_signed());
        return Err(if is_missing { io::Error::new(io::ErrorKind::NotFound, NoSuchProcess) } else { error });
    }
    // SAFETY: the call above created the handle, and nothing else owns it.
    Ok(unsafe { OwnedHandle::from_raw_handle(raw) })
}
