//! What differs between systems in the public interface, and the little that a command needs of its system.

mod gauge;
mod jobserver;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use self::unix as system;
#[cfg(windows)]
use self::windows as system;

pub use self::gauge::{Disk, Memory, Swaps, disks, load, memory, swaps};
pub use self::jobserver::{JobToken, Jobserver};
pub use self::system::News;

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::command::Size;

/// One of this process's standard streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standard {
    /// Standard input.
    Input,
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// A standard stream of this process as a file without a buffer: every write is one system call, and no byte waits
/// for a newline.
///
/// # Errors
/// When the stream is closed, or no descriptor is free.
pub fn standard(which: Standard) -> io::Result<File> {
    system::standard(which)
}

/// Whether [`Event::Stopped`](crate::Event::Stopped) with this signal means that the child wants the terminal, which
/// belongs to another process group: `SIGTTIN` (it reads) or `SIGTTOU` (it writes or changes modes).
pub fn wants_terminal(signal: i32) -> bool {
    system::wants_terminal(signal)
}

/// The number of the signal of this name (`TERM`, without `SIG`) on this system.
///
/// - Unix: the signals of POSIX, and `WINCH`. Windows has none; `KILL` and `TERM` stand for how a job is ended.
pub fn signal_number(name: &str) -> Option<i32> {
    system::signal_number(name)
}

/// Whether this process has a controlling terminal. Without one, a child that wants it gets an error and is not stopped.
pub fn has_terminal() -> bool {
    system::has_terminal()
}

/// Opens the terminal that controls this process, to ask and to be answered, whatever the standard streams are. On Windows it
/// is the console's input.
///
/// # Errors
/// There is none.
pub fn terminal() -> io::Result<File> {
    system::terminal()
}

/// Bytes as an argument for a program.
///
/// - Unix: any bytes. Windows: what is no UTF-8 is replaced.
pub fn argument(bytes: Vec<u8>) -> OsString {
    system::argument(bytes)
}

/// Bytes that were cut from an [`OsStr`] at ASCII characters only, as one again.
///
/// - Unix: exact. Windows: a lone surrogate in what was cut is replaced; the standard library has no safe way back.
pub fn os_str(bytes: &[u8]) -> Cow<'_, OsStr> {
    system::os_str(bytes)
}

/// Makes a file for its owner alone, to write to and to read from. It must not exist, and a link in its place is not
/// followed.
///
/// - Unix: mode 0600, `O_EXCL`, `O_NOFOLLOW`. Windows: as private as the folder that it is in.
///
/// # Errors
/// `AlreadyExists`; whatever the file system says.
pub fn private_file(path: &Path) -> io::Result<File> {
    system::private_file(path)
}

/// Makes a file for its owner alone that has no name: nothing is left of it, whatever happens.
///
/// # Errors
/// Whatever the file system says.
pub fn nameless_file(folder: &Path) -> io::Result<File> {
    // Made with `O_EXCL` and mode 0600, and without a name from here on.
    let (file, path) = tempfile::Builder::new().prefix("minder-").tempfile_in(folder)?.into_parts();
    path.close()?;
    Ok(file)
}

/// Makes a pipe that has this name and that nobody else may open.
///
/// - macOS has no `mknod` for it here, and Windows names pipes otherwise: `Unsupported`.
///
/// # Errors
/// `AlreadyExists` for a path that is there, and what the system says.
pub fn private_pipe(path: &Path) -> io::Result<()> {
    system::private_pipe(path)
}

/// Makes a folder for its owner alone. It must not exist.
///
/// - Unix: mode 0700. Windows: as private as the folder that it is in.
///
/// # Errors
/// `AlreadyExists`; whatever the file system says.
pub fn private_folder(path: &Path) -> io::Result<()> {
    system::private_folder(path)
}

/// Opens a file for reading. A link in its place is an error, where the system can say so in one call.
///
/// - Unix: `O_NOFOLLOW`. Windows: links are followed.
///
/// # Errors
/// Whatever the file system says.
pub fn open_plain(path: &Path) -> io::Result<File> {
    system::open_plain(path)
}

/// Reads from a place in a file, without moving its position.
///
/// - Windows: the position moves.
///
/// # Errors
/// Whatever the file system says.
pub fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    system::read_at(file, buffer, at)
}

/// Moves bytes from a place in a file to another file or a pipe, without a copy through our memory; says how many.
///
/// - Linux: sendfile(2). Elsewhere: `Unsupported`.
///
/// # Errors
/// `Unsupported` or `InvalidInput` where these two files refuse, with nothing moved; else as a write.
pub fn send(from: &File, at: u64, len: u64, to: &File) -> io::Result<u64> {
    system::send(from, at, len, to)
}

/// Asks for a larger buffer of a pipe, as large as a user may have; other files stay as they are.
///
/// - Linux: 1 MiB, `F_SETPIPE_SZ`. Elsewhere: without effect.
pub fn enlarge_pipe(pipe: &File) {
    system::enlarge_pipe(pipe);
}

/// The path of the file that standard input reads from its beginning, if it is a plain file that has one.
///
/// - Linux only; elsewhere `None`.
pub fn path_of_input() -> Option<PathBuf> {
    system::path_of_input()
}

/// The name of the terminal that standard input, or else another standard stream, is.
///
/// - Windows: `None`, consoles have no names.
pub fn terminal_name() -> Option<OsString> {
    system::terminal_name()
}

/// The size of the terminal that standard error or standard output is, if one of them is a terminal.
pub fn terminal_size() -> Option<Size> {
    system::terminal_size()
}
