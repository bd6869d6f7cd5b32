//! The standard streams of this process as files.

mod closed;
mod types;
#[cfg(unix)]
mod nonblocking_unix;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;
mod nonblocking;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

pub use nonblocking::NonblockingWriter;
pub use types::StdStream;

use std::fs::File;
use std::io;
use std::path::PathBuf;

/// Returns a standard stream of this process as a file without a buffer: each write is one system
/// call, and no byte waits for a newline.
///
/// # Errors
/// Returns an error if the stream is closed, or if no descriptor is free.
pub fn std_file(stream: StdStream) -> io::Result<File> {
    system::std_file(stream)
}

/// Returns whether a standard stream was closed when the process started. Rust's runtime then opens
/// the null device in its place, so that writes to it succeed and lose everything.
///
/// - Windows: always false; [`std_file`] returns an error for a missing stream.
#[must_use]
pub fn std_was_closed(stream: StdStream) -> bool {
    closed::was_closed(stream as usize)
}

/// Returns the path of the regular file that standard input reads, if it reads it from the
/// beginning.
///
/// - Linux only; elsewhere always `None`.
#[must_use]
pub fn stdin_path() -> Option<PathBuf> {
    system::stdin_path()
}

/// Returns whether standard input is the null device, which has no line now or later.
///
/// - Windows: always false.
#[must_use]
pub fn stdin_is_null() -> bool {
    system::stdin_is_null()
}

/// Closes a standard stream of this process: its number refers to the null device afterwards. The process
/// at the other end of a pipe gets its end, unless a duplicate or another process keeps it open.
///
/// - Windows: without effect.
///
/// # Errors
/// Returns an error if the null device cannot be opened.
pub fn close_std(stream: StdStream) -> io::Result<()> {
    system::close_std(stream)
}

/// Returns whether standard output and standard error are the same pipe, socket or file, as after `2>&1`.
///
/// - Windows: always false.
#[must_use]
pub fn stderr_is_stdout() -> bool {
    system::stderr_is_stdout()
}

/// Returns whether standard output is a pipe or a socket. The process that reads it may write to the same
/// terminal as this one.
///
/// - Windows: true for everything that is neither a console nor a file.
#[must_use]
pub fn stdout_is_pipe() -> bool {
    system::stdout_is_pipe()
}

/// Returns the number of bytes in a pipe that its reader has not read, given the end that is written to.
/// Returns `None` if that is not a pipe, or no reader is left.
///
/// - Linux only; elsewhere always `None`.
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// use std::os::fd::OwnedFd;
///
/// let (read_end, mut write_end) = std::io::pipe()?;
/// std::io::Write::write_all(&mut write_end, b"text")?;
/// let file = std::fs::File::from(OwnedFd::from(write_end));
/// assert_eq!(minder_os::stdio::unread_bytes(&file), Some(4));
/// drop(read_end);
/// assert_eq!(minder_os::stdio::unread_bytes(&file), None);
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use]
pub fn unread_bytes(pipe: &File) -> Option<u64> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return unix::unread_bytes(pipe);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = pipe;
        None
    }
}

/// Requests a larger buffer for a pipe, as large as a user may have. Other files do not change.
///
/// - Linux: 1 MiB (`F_SETPIPE_SZ`, fcntl(2)).
/// - Elsewhere: without effect.
///
/// ```
/// let (read_end, _write_end) = std::io::pipe()?;
/// # #[cfg(unix)]
/// minder_os::stdio::grow_pipe(&std::fs::File::from(std::os::fd::OwnedFd::from(read_end)));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn grow_pipe(pipe: &File) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    unix::grow_pipe(pipe);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = pipe;
}
