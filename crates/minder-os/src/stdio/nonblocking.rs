//! Writes that do not wait for a reader.

use std::fs::File;
use std::io;

use super::system;

/// Writes to one file without waiting for its reader. The file itself stays as it is: it may be
/// shared with other processes, which do not expect that their writes fail.
///
/// - Linux: pwritev2(2) with `RWF_NOWAIT` for pipes and sockets. For terminals, named pipes and older
///   kernels a private open file description with `O_NONBLOCK`, by way of `/proc/self/fd` (proc(5)).
/// - Other Unix, and where that is refused: poll(2), then no more than `PIPE_BUF` bytes, which a pipe
///   that is ready takes at once (pipe(7), poll in POSIX.1-2024). A terminal that is ready may have room
///   for less, and then the write waits.
/// - Windows: every write waits.
///
/// ```
/// # #[cfg(unix)] {
/// use minder_os::stdio::NonblockingWriter;
/// use std::{fs::File, io, os::fd::OwnedFd};
///
/// let (_reader, writer) = io::pipe()?;
/// let pipe = File::from(OwnedFd::from(writer));
/// let mut nonblocking = NonblockingWriter::new(&pipe);
/// let error = loop {
///     match nonblocking.write(&pipe, &[0; 4096]) {
///         Ok(written) => assert!(written > 0),
///         Err(error) => break error,
///     }
/// };
/// assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct NonblockingWriter(system::NonblockingWriter);

impl NonblockingWriter {
    /// Looks at a file that is written to.
    #[must_use]
    pub fn new(file: &File) -> Self {
        Self(system::NonblockingWriter::new(file))
    }

    /// Returns whether the file is a terminal.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.0.is_terminal()
    }

    /// Returns whether both write to the same pipe, socket or terminal.
    ///
    /// - Windows: always false.
    #[must_use]
    pub fn has_same_reader(&self, other: &Self) -> bool {
        self.0.has_same_reader(&other.0)
    }

    /// Writes what the file takes at once. `file` is the one that [`new`](Self::new) looked at.
    ///
    /// # Errors
    /// `WouldBlock` if that is nothing; otherwise the errors of a write.
    pub fn write(&mut self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(file, bytes)
    }

    /// Copies what the file takes at once of `len` bytes from an offset in another file, inside the
    /// kernel. Returns the number of bytes copied.
    ///
    /// # Errors
    /// `WouldBlock` if that is nothing. `Unsupported` or `InvalidInput` if the kernel cannot do that between
    /// these two files; nothing was copied then. Otherwise the errors of a write.
    pub fn send_file(&mut self, file: &File, from: &File, offset: u64, len: u64) -> io::Result<u64> {
        self.0.send_file(file, from, offset, len)
    }
}
