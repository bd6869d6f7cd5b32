//! Results of Windows functions that return a `BOOL`.

use std::io;

/// Converts the result of a function that returns zero if it fails and then sets the last error.
pub(super) fn check(result: i32) -> io::Result<()> {
    if result == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
