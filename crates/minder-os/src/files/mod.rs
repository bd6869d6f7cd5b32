//! Private files and directories, opening without following links, and positioned reads and writes.

mod new_name;
#[cfg(windows)]
mod acl;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

/// Creates a file that only its owner can open, for reading and writing. The path must not exist,
/// and a link at the path is not followed.
///
/// - Unix: mode 0600, `O_EXCL`, `O_NOFOLLOW`.
/// - Windows: the file inherits the access rights of its directory; see [`create_private_dir`].
///
/// # Errors
/// `AlreadyExists`, and any other error of the file system.
pub fn create_private_file(path: &Path) -> io::Result<File> {
    system::create_private_file(path)
}

/// Opens a regular file for reading and writing, and creates it like [`create_private_file`] if it is
/// missing. A link is not followed.
///
/// - Unix: `O_NOFOLLOW`, and mode 0600 for a new file.
///
/// # Errors
/// Those of [`open_no_follow`], and any other error of the file system.
pub fn open_private_file(path: &Path) -> io::Result<File> {
    system::open_private_file(path)
}

/// Returns whether the error of a lock says that the file system has no locks, as NFS without its lock daemon
/// (`ENOLCK`).
#[must_use]
pub fn has_no_locks(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported || system::has_no_locks(error)
}

/// Creates a file with these permissions, as far as the umask allows. The path must not exist, and a link at
/// the path is not followed. The owner can write it in any case.
///
/// - Windows: `mode` has no effect.
///
/// # Errors
/// `AlreadyExists`, and any other error of the file system.
pub fn create_file_with_mode(path: &Path, mode: u32) -> io::Result<File> {
    system::create_file_with_mode(path, mode)
}

/// Returns the permissions of a file, such as 0o644.
///
/// - Windows: always 0o644.
pub fn mode(metadata: &Metadata) -> u32 {
    system::mode(metadata)
}

/// Creates a file without a name in `dir`, for reading and writing. The kernel removes it with its
/// last handle, also if the process is killed.
///
/// - Linux: the file never has a name (`O_TMPFILE`, open(2)). Where the file system does not
///   support that, and on other Unix systems, the file is removed right after it was created: a
///   kill between the two calls leaves an empty file.
/// - Windows: the file has a name, but it cannot be opened again, and Windows removes it
///   (`FILE_FLAG_DELETE_ON_CLOSE`, CreateFileW).
///
/// # Errors
/// Any error of the file system.
pub fn create_unnamed_file(dir: &Path) -> io::Result<File> {
    system::create_unnamed_file(dir)
}

/// Creates a named pipe that only its owner can open.
///
/// # Errors
/// `AlreadyExists`, and any other error of the file system. `Unsupported` on macOS and on Windows.
pub fn create_fifo(path: &Path) -> io::Result<()> {
    system::create_fifo(path)
}

/// Creates a directory that only its owner can open. The path must not exist.
///
/// - Unix: mode 0700.
/// - Windows: only the user, the administrators and the account SYSTEM have rights on it and on
///   what is created in it.
///
/// # Errors
/// `AlreadyExists`, and any other error of the file system.
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    system::create_private_dir(path)
}

/// Removes all rights on a directory except those of its owner.
///
/// - Unix: sets mode 0700. A file system without modes may ignore that, or refuse it.
/// - Windows: does nothing.
///
/// # Errors
/// Any error of the file system.
pub fn restrict_to_owner(dir: &Path) -> io::Result<()> {
    system::restrict_to_owner(dir)
}

/// Returns whether this is a named pipe, whose opening waits for a writer.
///
/// - Windows: always false; opening a pipe does not wait.
#[must_use]
pub fn is_fifo(metadata: &Metadata) -> bool {
    system::is_fifo(metadata)
}

/// Returns whether a file or directory belongs to the user that this process acts as.
///
/// - Unix: its owner is the effective user.
/// - Windows: always true; a directory in the user's profile has its own access rights.
#[must_use]
pub fn is_owned_by_user(metadata: &Metadata) -> bool {
    system::is_owned_by_user(metadata)
}

/// Returns whether a file belongs to the user that this process acts as, or to root.
///
/// - Unix: its owner is the effective user, or user 0.
/// - Windows: always true, as for [`is_owned_by_user`].
#[must_use]
pub fn is_owned_by_user_or_root(metadata: &Metadata) -> bool {
    system::is_owned_by_user_or_root(metadata)
}

/// Returns whether the mode lets users other than the owner write to a file or change a directory.
///
/// - Unix: the mode has a write bit for the group or for others.
/// - Windows: always false.
#[must_use]
pub fn is_writable_by_others(metadata: &Metadata) -> bool {
    system::is_writable_by_others(metadata)
}

/// Returns whether the mode lets any user execute a file.
///
/// - Windows: always true.
#[must_use]
pub fn is_executable(metadata: &Metadata) -> bool {
    system::is_executable(metadata)
}

/// Removes a file so that its name is free at once, even if the file is open. A link is removed,
/// not followed.
///
/// - Windows: a file that is open keeps its name until its last handle is closed (DeleteFileW). So
///   the file is renamed in its directory first. The handles must allow deletion, as those of this
///   crate and of std do.
///
/// # Errors
/// `NotFound`, and any other error of the file system.
pub fn remove_open_file(path: &Path) -> io::Result<()> {
    system::remove_open_file(path)
}

/// Opens a regular file for reading, without following a link and without blocking.
///
/// - Unix: `O_NOFOLLOW | O_NONBLOCK`; the type is read from the descriptor (fstat(2)). A named pipe
///   does not block the call, and no device is read.
/// - Windows: `FILE_FLAG_OPEN_REPARSE_POINT`. Devices and named pipes are errors too, also under
///   names such as `NUL` that exist in every directory.
///
/// # Errors
/// `InvalidInput` if the path is not a regular file, `FilesystemLoop` (Unix) or `InvalidInput`
/// (Windows) if it is a link, and any other error of the file system.
pub fn open_no_follow(path: &Path) -> io::Result<File> {
    system::open_no_follow(path)
}

/// Reads from an offset in a file. Returns the number of bytes read, 0 at the end of the file.
///
/// - Unix: the position of the file does not change. Windows: it does.
///
/// # Errors
/// Any error of the file system.
pub fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    system::read_at(file, buffer, offset)
}

/// Writes all of `bytes` at an offset in a file, whatever its position is.
///
/// - Unix: the position of the file does not change. Windows: it does.
///
/// # Errors
/// Any error of the file system. A part of the bytes may have been written.
///
/// ```
/// use minder_os::files::{create_unnamed_file, read_at, write_all_at};
/// let file = create_unnamed_file(&std::env::temp_dir())?;
/// write_all_at(&file, b"ab", 0)?;
/// write_all_at(&file, b"c", 2)?;
/// let mut buffer = [0; 4];
/// assert_eq!((read_at(&file, &mut buffer, 1)?, &buffer[..2]), (2, &b"bc"[..]));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    system::write_all_at(file, bytes, offset)
}

/// Opens a named pipe for writing if it has a reader, without waiting for one. A write to it may be
/// refused while the pipe is full ([`WouldBlock`](io::ErrorKind::WouldBlock)).
///
/// - Windows: opens the path.
///
/// # Errors
/// The pipe cannot be opened.
pub fn open_fifo_now(path: &Path) -> io::Result<Option<File>> {
    system::open_fifo_now(path)
}

/// Returns a duplicate of `file` whose descriptor has a number that scripts rarely use, for a program that
/// inherits it. Without such a number, it is any free one.
///
/// - Windows: any handle.
///
/// # Errors
/// No descriptor is free.
pub fn duplicate_high(file: &File) -> io::Result<File> {
    system::duplicate_high(file)
}

/// Copies up to `len` bytes from an offset in a file to another file or a pipe, inside the kernel.
/// Returns the number of bytes copied.
///
/// - Linux: sendfile(2). Elsewhere: `Unsupported`.
///
/// # Errors
/// `Unsupported` or `InvalidInput` if the kernel cannot copy between these two files; nothing was
/// copied then. Otherwise the errors of a write.
pub fn send_file(from: &File, offset: u64, len: u64, to: &File) -> io::Result<u64> {
    system::send_file(from, offset, len, to)
}
