//! Errors that report a lack of descriptors, processes, threads or memory.

use std::io;

/// Returns whether the operating system lacks something that is freed when processes exit.
#[cfg(unix)]
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::EAGAIN | libc::ENOMEM))
}

/// Returns whether the operating system lacks something that is freed when processes exit.
#[cfg(windows)]
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    use windows_sys::Win32::Foundation::{
        ERROR_COMMITMENT_LIMIT, ERROR_MAX_THRDS_REACHED, ERROR_NO_SYSTEM_RESOURCES, ERROR_NOT_ENOUGH_MEMORY,
        ERROR_NOT_ENOUGH_QUOTA, ERROR_OUTOFMEMORY, ERROR_TOO_MANY_OPEN_FILES,
    };
    let code = error.raw_os_error().map(i32::cast_unsigned);
    matches!(
        code,
        Some(
            ERROR_TOO_MANY_OPEN_FILES
                | ERROR_NOT_ENOUGH_MEMORY
                | ERROR_OUTOFMEMORY
                | ERROR_MAX_THRDS_REACHED
                | ERROR_NO_SYSTEM_RESOURCES
                | ERROR_COMMITMENT_LIMIT
                | ERROR_NOT_ENOUGH_QUOTA
        )
    )
}
