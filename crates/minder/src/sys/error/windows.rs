//! Classes of errors on Windows, by error code.

use std::fmt;
use std::io;

use windows_sys::Win32::Foundation::{
    ERROR_COMMITMENT_LIMIT, ERROR_MAX_THRDS_REACHED, ERROR_NO_PROC_SLOTS, ERROR_NO_SYSTEM_RESOURCES,
    ERROR_NONPAGED_SYSTEM_RESOURCES, ERROR_NOT_ENOUGH_MEMORY, ERROR_NOT_ENOUGH_QUOTA, ERROR_OUTOFMEMORY,
    ERROR_PAGED_SYSTEM_RESOURCES, ERROR_TOO_MANY_OPEN_FILES, ERROR_WORKING_SET_QUOTA,
};

/// Returns whether the operating system lacks a resource that an exiting child gives back:
/// descriptors, processes, memory.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(i32::cast_unsigned);
    matches!(
        code,
        Some(
            ERROR_TOO_MANY_OPEN_FILES
                | ERROR_NOT_ENOUGH_MEMORY
                | ERROR_OUTOFMEMORY
                | ERROR_NO_PROC_SLOTS
                | ERROR_MAX_THRDS_REACHED
                | ERROR_NO_SYSTEM_RESOURCES
                | ERROR_NONPAGED_SYSTEM_RESOURCES
                | ERROR_PAGED_SYSTEM_RESOURCES
                | ERROR_WORKING_SET_QUOTA
                | ERROR_COMMITMENT_LIMIT
                | ERROR_NOT_ENOUGH_QUOTA
        )
    )
}

/// Returns whether the error says that no process has this pid.
pub(crate) fn is_no_such_process(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<NoSuchProcess>())
}

/// The error for a pid that no process has. Windows has no error code for that.
#[derive(Debug)]
pub(crate) struct NoSuchProcess;

impl fmt::Display for NoSuchProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such process")
    }
}

impl std::error::Error for NoSuchProcess {}
