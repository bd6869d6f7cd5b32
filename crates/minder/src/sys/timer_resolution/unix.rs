//! Unix: timers do not wait for a tick, so there is none to ask for.

use std::io;

/// Requests a tick of this many milliseconds.
pub(crate) fn begin(_millis: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Takes that back.
pub(crate) fn end(_millis: u32) {}
