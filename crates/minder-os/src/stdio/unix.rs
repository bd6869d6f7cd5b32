//! Unix: duplicates of descriptors 0, 1 and 2, and the pipes behind them.

#![expect(unsafe_code, reason = "replaces a standard descriptor")]

use std::fs::File;
use std::io::{self, Seek};
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;

use super::types::StdStream;

pub(super) use super::nonblocking_unix::NonblockingWriter;

pub(super) fn std_file(stream: StdStream) -> io::Result<File> {
    let duplicate = match stream {
        StdStream::Input => io::stdin().as_fd().try_clone_to_owned(),
        StdStream::Output => io::stdout().as_fd().try_clone_to_owned(),
        StdStream::Error => io::stderr().as_fd().try_clone_to_owned(),
    };
    duplicate.map(File::from)
}

pub(super) fn stdin_path() -> Option<PathBuf> {
    let mut input = std_file(StdStream::Input).ok()?;
    if !input.metadata().ok()?.is_file() || input.stream_position().ok()? != 0 {
        return None;
    }
    // This link exists on Linux only.
    std::fs::read_link("/proc/self/fd/0").ok().filter(|path| path.is_file())
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn grow_pipe(pipe: &File) {
    /// The limit for users without privileges (`/proc/sys/fs/pipe-max-size`).
    const SIZE: usize = 1 << 20;
    if rustix::pipe::fcntl_getpipe_size(pipe).is_ok_and(|size| size < SIZE) {
        let _ = rustix::pipe::fcntl_setpipe_size(pipe, SIZE);
    }
}

pub(super) fn stdin_is_null() -> bool {
    let Ok(input) = rustix::fs::fstat(io::stdin()) else { return false };
    let Ok(null) = rustix::fs::stat("/dev/null") else { return false };
    (input.st_mode, input.st_rdev) == (null.st_mode, null.st_rdev)
}

pub(super) fn close_std(stream: StdStream) -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    // SAFETY: the number of a standard stream, which no object owns: it stays open, as another file.
    let result = unsafe { libc::dup2(null.as_raw_fd(), stream as i32) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub(super) fn stderr_is_stdout() -> bool {
    let Ok(output) = rustix::fs::fstat(io::stdout()) else { return false };
    let Ok(errors) = rustix::fs::fstat(io::stderr()) else { return false };
    (output.st_dev, output.st_ino) == (errors.st_dev, errors.st_ino)
}

pub(super) fn stdout_is_pipe() -> bool {
    use rustix::fs::FileType;
    let Ok(output) = rustix::fs::fstat(io::stdout()) else { return false };
    matches!(FileType::from_raw_mode(output.st_mode), FileType::Fifo | FileType::Socket)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn unread_bytes(pipe: &File) -> Option<u64> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::os::unix::fs::FileTypeExt;
    if !pipe.metadata().ok()?.file_type().is_fifo() {
        return None;
    }
    // A pipe without readers has an error at this end (poll(2)).
    let mut ends = [PollFd::new(pipe, PollFlags::empty())];
    poll(&mut ends, Some(&Timespec::default())).ok()?;
    if ends[0].revents().contains(PollFlags::ERR) {
        return None;
    }
    rustix::io::ioctl_fionread(pipe).ok()
}
