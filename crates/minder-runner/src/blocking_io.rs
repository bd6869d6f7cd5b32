//! Standard streams that do not block: whoever shares them with us may have set them so, for all
//! that share them.

use std::fs::File;
use std::io::{self, Read, Write};

use minder::Interest;
use minder::os::wait_ready;

/// One read, waited for.
pub(crate) fn read(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(buffer) {
            Err(error) => patient(file, Interest::READABLE, error)?,
            read => return read,
        }
    }
}

/// Writes all of it, waiting as often as it takes.
pub(crate) fn write_all(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match file.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => rest = &rest[count..],
            Err(error) => patient(file, Interest::WRITABLE, error)?,
        }
    }
    Ok(())
}

/// Tries until `file` takes something.
pub(crate) fn write_with(file: &File, mut write: impl FnMut() -> io::Result<u64>) -> io::Result<u64> {
    loop {
        match write() {
            Err(error) => patient(file, Interest::WRITABLE, error)?,
            written => return written,
        }
    }
}

/// Waits if waiting helps; gives the error back if not.
fn patient(file: &File, interest: Interest, error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::Interrupted => Ok(()),
        io::ErrorKind::WouldBlock => wait_ready(file, interest, None).map(drop),
        _ => Err(error),
    }
}
