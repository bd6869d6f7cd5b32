//! Classes of errors on Unix, by `errno`.

use std::io;

/// Returns whether the operating system lacks a resource that an exiting child gives back:
/// descriptors, processes, memory.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::EAGAIN | libc::ENOMEM))
}

/// Returns whether the error says that no process has this pid.
pub(crate) fn is_no_such_process(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}
