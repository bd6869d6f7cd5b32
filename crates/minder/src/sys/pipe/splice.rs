//! From one pipe to another without a copy: splice(2).

use std::fs::File;
use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};

use super::sigpipe::without_sigpipe;
use super::types::ReadOutcome;

/// Bytes moved at once, and the size that both pipes are given: what a user may have without a
/// privilege (pipe(7)).
const AT_ONCE: usize = 1 << 20;

/// Returns whether `to` is a pipe or a plain file that is not appended to, which splice(2) refuses.
pub(super) fn takes(to: &File) -> bool {
    let Ok(flags) = rustix::fs::fcntl_getfl(to) else { return false };
    let kind = rustix::fs::fstat(to).map(|stat| FileType::from_raw_mode(stat.st_mode));
    !flags.contains(OFlags::APPEND) && matches!(kind, Ok(FileType::Fifo | FileType::RegularFile))
}

/// Enlarges a pipe as far as the kernel allows. Other files, and larger pipes, stay as they are.
pub(super) fn enlarge(pipe: impl AsFd) {
    if rustix::pipe::fcntl_getpipe_size(&pipe).is_ok_and(|size| size < AT_ONCE) {
        let _ = rustix::pipe::fcntl_setpipe_size(&pipe, AT_ONCE);
    }
}

/// Moves what is there. Neither side blocks the call, whatever its flags say; when it is `to` that
/// takes nothing, that is the error `WouldBlock`.
pub(super) fn forward(from: &OwnedFd, to: &File) -> io::Result<ReadOutcome> {
    match without_sigpipe(|| splice(from, None, to, None, AT_ONCE, SpliceFlags::MOVE | SpliceFlags::NONBLOCK))
    {
        Ok(0) => Ok(ReadOutcome::Eof),
        Ok(count) => Ok(ReadOutcome::Data(count)),
        Err(Errno::AGAIN) if rustix::io::ioctl_fionread(from)? > 0 => Err(io::ErrorKind::WouldBlock.into()),
        Err(Errno::AGAIN | Errno::INTR) => Ok(ReadOutcome::WouldBlock),
        Err(error) => Err(error.into()),
    }
}

/// Moves what is there to a place in a file: one copy instead of two. With an error nothing is
/// lost: what the file did not take is still in the pipe.
pub(super) fn store(from: &OwnedFd, to: &File, mut at: u64) -> io::Result<ReadOutcome> {
    match splice(from, None, to, Some(&mut at), AT_ONCE, SpliceFlags::MOVE | SpliceFlags::NONBLOCK) {
        Ok(0) => Ok(ReadOutcome::Eof),
        Ok(count) => Ok(ReadOutcome::Data(count)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(ReadOutcome::WouldBlock),
        Err(error) => Err(error.into()),
    }
}

/// Waits until `to` may take bytes, for at most `patience`.
pub(super) fn wait_for_room(to: &File, patience: Duration) {
    let Ok(timeout) = rustix::event::Timespec::try_from(patience) else { return };
    // What fails here shows at the next try.
    let _ = poll(&mut [PollFd::new(to, PollFlags::OUT)], Some(&timeout));
}
