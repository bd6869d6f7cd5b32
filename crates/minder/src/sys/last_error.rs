//! The results of calls of Windows.

use std::io;

/// The answer of a call that returns zero when it failed, and then has left the reason.
pub(super) fn done(answer: i32) -> io::Result<()> {
    if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
