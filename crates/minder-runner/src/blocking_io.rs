//! Reads and writes that wait, on standard streams that may be non-blocking. Another process that
//! shares such a stream may have set it so, which changes it for all of them.

use std::fs::File;
use std::io::{self, Read, Write};

use minder::Interest;
use minder::os::wait_ready;

/// Reads once, and waits until there is something to read.
pub(crate) fn read(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(buffer) {
            Err(error) => wait_for_retry(file, Interest::READABLE, error)?,
            read => return read,
        }
    }
}

/// Writes all of `bytes`, and waits as often as needed.
pub(crate) fn write_all(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match file.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => rest = &rest[count..],
            Err(error) => wait_for_retry(file, Interest::WRITABLE, error)?,
        }
    }
    Ok(())
}

/// Repeats `write` until `file` accepts something.
pub(crate) fn write_with(file: &File, mut write: impl FnMut() -> io::Result<u64>) -> io::Result<u64> {
    loop {
        match write() {
            Err(error) => wait_for_retry(file, Interest::WRITABLE, error)?,
            written => return written,
        }
    }
}

/// Waits if the error means that waiting helps; returns the error otherwise.
fn wait_for_retry(file: &File, interest: Interest, error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::Interrupted => Ok(()),
        io::ErrorKind::WouldBlock => wait_ready(file, interest, None).map(drop),
        _ => Err(error),
    }
}
