//! pidfds (Linux 5.3): a descriptor that names one process and no other, and is readable when it
//! has ended.

#![expect(unsafe_code, reason = "a kept exit status, and the signal to a group")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::OnceLock;

use crate::exit_status::ExitStatus;
use crate::sys::error::is_exhausted;

/// Returns whether the kernel hands out pidfds and waits by them. Asked of ourselves, until there is
/// an answer: a sandbox may refuse what the headers promise.
pub(crate) fn available() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    if let Some(known) = KNOWN.get() {
        return *known;
    }
    // Without a free descriptor there is no answer now. The caller then fails for the same reason.
    probe().is_none_or(|available| *KNOWN.get_or_init(|| available))
}

/// Returns `None` if the operating system lacks what the question itself needs.
fn probe() -> Option<bool> {
    use rustix::process::{PidfdFlags, WaitId, WaitIdOptions, getpid, pidfd_open, waitid};
    use std::os::fd::AsFd;
    match pidfd_open(getpid(), PidfdFlags::empty()) {
        Ok(own) => {
            // This process is not its own child: ECHILD means that the kernel understood the call,
            // EINVAL that it did not.
            let looked = waitid(WaitId::PidFd(own.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
            Some(matches!(looked, Err(rustix::io::Errno::CHILD)))
        }
        Err(error) if is_exhausted(&error.into()) => None,
        Err(_) => Some(false),
    }
}

/// Returns whether all threads of a process have exited: it is a zombie. `false` if that is unknown. It is a
/// quarter of the cost of a look in `/proc`.
pub(crate) fn has_exited(pid: libc::pid_t) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    const NO_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
    let pidfd = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    pidfd.is_some_and(|pidfd| poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&NO_TIME)) == Ok(1))
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

/// Sends a signal to the process group whose id is the pid of this process (Linux 6.9). The kernel keeps
/// the identity with the descriptor: another group that has the number by now gets nothing.
pub(crate) fn signal_group_of(pidfd: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    let info: *const libc::siginfo_t = std::ptr::null();
    let call = libc::SYS_pidfd_send_signal;
    let flags = libc::PIDFD_SIGNAL_PROCESS_GROUP;
    // SAFETY: the descriptor is open, and the siginfo may be null.
    match unsafe { libc::syscall(call, pidfd.as_raw_fd(), signal, info, flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
