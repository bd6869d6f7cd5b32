//! pidfds (Linux 5.3): a descriptor that names one process and no other, and is readable when it
//! has ended.

#![expect(unsafe_code, reason = "the ioctl that reads a kept exit status")]

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::OnceLock;

use crate::exit_status::ExitStatus;

/// Returns whether the kernel hands out pidfds and waits by them. Asked once, of ourselves: a
/// sandbox may refuse what the headers promise.
pub(crate) fn available() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        use rustix::process::{PidfdFlags, WaitId, WaitIdOptions, getpid, pidfd_open, waitid};
        // This process is not its own child: ECHILD means that the kernel understood the call,
        // EINVAL that it did not.
        use std::os::fd::AsFd;
        pidfd_open(getpid(), PidfdFlags::empty()).is_ok_and(|own| {
            let looked = waitid(WaitId::PidFd(own.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
            matches!(looked, Err(rustix::io::Errno::CHILD))
        })
    })
}

/// `struct pidfd_info` of linux/pidfd.h, first version.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup_id: u64,
    ids: [u32; 11],
    exit_code: i32,
}

const PIDFD_INFO_EXIT: u64 = 1 << 3;
/// `_IOWR(0xFF, 11, struct pidfd_info)`, of 64 bytes.
const PIDFD_GET_INFO: libc::c_ulong = (3 << 30) | (64 << 16) | (0xFF << 8) | 11;

/// Returns the status that the kernel keeps with a pidfd after the process was reaped (Linux 6.15).
pub(super) fn kept_status(pidfd: BorrowedFd<'_>) -> Option<ExitStatus> {
    let mut info = PidfdInfo { mask: PIDFD_INFO_EXIT, ..PidfdInfo::default() };
    const { assert!(size_of::<PidfdInfo>() == 64) };
    // SAFETY: the request carries the size of `info`, which is ours to write to.
    let result = unsafe { libc::ioctl(pidfd.as_raw_fd(), PIDFD_GET_INFO as _, &mut info) };
    if result != 0 || info.mask & PIDFD_INFO_EXIT == 0 {
        return None;
    }
    let code = info.exit_code;
    Some(if libc::WIFEXITED(code) {
        ExitStatus::Exited(libc::WEXITSTATUS(code))
    } else {
        ExitStatus::Signaled { signal: libc::WTERMSIG(code), core_dumped: libc::WCOREDUMP(code) }
    })
}
