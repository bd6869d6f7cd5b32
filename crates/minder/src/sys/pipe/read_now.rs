//! Reads that never wait, from a pipe whose descriptor blocks.
//!
//! `preadv2` with `RWF_NOWAIT` is supported by pipes since Linux 6.5 (`FMODE_NOWAIT` in
//! `create_pipe_files`, fs/pipe.c). It saves the `ioctl` that makes each pipe non-blocking.

#![expect(unsafe_code, reason = "preadv2 into memory that is not initialised")]

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

/// `true` once the kernel has refused such a read.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// Returns whether [`read_now`] may work.
pub(super) fn may_work() -> bool {
    !REFUSED.load(Ordering::Relaxed)
}

/// Reads what is in the pipe into the spare capacity of `buffer`, or returns `Errno::AGAIN`.
/// `Errno::OPNOTSUPP` means that the kernel does not support this: then [`may_work`] returns `false` from
/// now on.
pub(super) fn read_now(pipe: impl AsFd, buffer: &mut Vec<u8>) -> Result<usize, Errno> {
    let spare = buffer.spare_capacity_mut();
    let part = libc::iovec { iov_base: spare.as_mut_ptr().cast(), iov_len: spare.len() };
    // An offset of -1 is the present position, as in read(2).
    // SAFETY: the kernel writes at most `iov_len` bytes to the spare capacity, which this call borrows.
    let count = unsafe { libc::preadv2(pipe.as_fd().as_raw_fd(), &part, 1, -1, libc::RWF_NOWAIT) };
    match usize::try_from(count) {
        Ok(count) => {
            let len = buffer.len() + count;
            // SAFETY: the kernel has written `count` bytes behind the first `buffer.len()`.
            unsafe { buffer.set_len(len) };
            Ok(count)
        }
        Err(_) => match Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO) {
            // An unknown system call, an unknown flag, and a flag that this file does not support.
            Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP => {
                REFUSED.store(true, Ordering::Relaxed);
                Err(Errno::OPNOTSUPP)
            }
            other => Err(other),
        },
    }
}
