//! Reads and writes that wait, on standard streams that may be non-blocking. Another process that
//! shares such a stream may have set it so, which changes it for all of them.

use std::fs::File;
use std::io::{self, Read, Write};

use minder::os::wait_ready;
use minder::poll::{Interest, Source};

/// Reads once, and waits until there is something to read.
///
/// # Errors
/// The error of the read, except one after which waiting helps.
pub fn read(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(buffer) {
            Err(error) => wait_for_retry(&*file, Interest::READABLE, error)?,
            read => return read,
        }
    }
}

/// Writes all of `bytes`, and waits as often as needed.
///
/// # Errors
/// The error of a write, except one after which waiting helps. A pipe without a reader is
/// [`BrokenPipe`](io::ErrorKind::BrokenPipe).
pub fn write_all<W>(to: &W, bytes: &[u8]) -> io::Result<()>
where
    for<'a> &'a W: Write + Into<Source<'a>>,
{
    let mut rest = bytes;
    while !rest.is_empty() {
        let mut writer = to;
        match writer.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => rest = &rest[count..],
            Err(error) => wait_for_retry(to, Interest::WRITABLE, error)?,
        }
    }
    Ok(())
}

/// Repeats `write` until `file` accepts something.
pub(crate) fn write_with<T>(file: &File, mut write: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match write() {
            Err(error) => wait_for_retry(file, Interest::WRITABLE, error)?,
            written => return written,
        }
    }
}

/// Waits if the error means that waiting helps; returns the error otherwise.
fn wait_for_retry<'a>(source: impl Into<Source<'a>>, interest: Interest, error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::Interrupted => Ok(()),
        io::ErrorKind::WouldBlock => Ok(wait_ready(source, interest, None).map(drop)?),
        _ => Err(error),
    }
}
