//! One child on the list: its process and its group, without a mistake about either.
//!
//! A pid names another process as soon as its own is reaped, and after the host's end init reaps at
//! once. A pidfd names one process for ever. Since Linux 6.9 it also names that process's group, even
//! after the leader was reaped and while others are left in the group.

#![expect(unsafe_code, reason = "kill, and pidfd_send_signal with a null siginfo")]

use std::os::fd::OwnedFd;

#[derive(Debug)]
pub(super) struct Target {
    /// The number of the child, by which the host removes it.
    pub(super) id: u64,
    pub(super) pid: libc::pid_t,
    /// `true` if it leads a group, or is about to.
    pub(super) leads_group: bool,
    /// Without one the pid is used: the system has no pidfds, or no descriptor was free.
    #[cfg_attr(
        not(any(target_os = "linux", target_os = "android")),
        expect(dead_code, reason = "only Linux has pidfds")
    )]
    pub(super) pidfd: Option<OwnedFd>,
}

impl Target {
    /// Sends a signal to the group and to its leader, which may not have joined it yet, or has left it.
    /// Signal 0 only asks. Returns whether any process is left that is not reaped.
    pub(super) fn signal(&self, signal: i32) -> bool {
        let group = self.leads_group && self.signal_group(signal);
        self.signal_process(signal) || group
    }

    /// Returns whether the pid and the group id still belong to this child: a process of it is left.
    pub(super) fn exists(&self) -> bool {
        self.signal(0)
    }

    /// Returns whether the leader was not reaped.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) fn leader_exists(&self) -> bool {
        self.signal_process(0)
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn signal_process(&self, signal: i32) -> bool {
        match self.pidfd.as_ref().map(|pidfd| send(pidfd, signal, 0)) {
            None | Some(Err(libc::ENOSYS)) => kill(self.pid, signal),
            Some(sent) => reached(sent),
        }
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn signal_group(&self, signal: i32) -> bool {
        /// Linux 6.9 (linux/pidfd.h).
        const PIDFD_SIGNAL_PROCESS_GROUP: u32 = 1 << 2;
        let Some(pidfd) = &self.pidfd else { return kill(-self.pid, signal) };
        match send(pidfd, signal, PIDFD_SIGNAL_PROCESS_GROUP) {
            // An older kernel, or a sandbox. While the leader is not reaped, the number is that of its
            // group. After that another process may have got it.
            Err(libc::EINVAL | libc::ENOSYS) => {
                let is_ours = self.leader_exists() || !crate::sys::pid::exists(self.pid);
                is_ours && kill(-self.pid, signal)
            }
            sent => reached(sent),
        }
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn signal_process(&self, signal: i32) -> bool {
        kill(self.pid, signal)
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn signal_group(&self, signal: i32) -> bool {
        kill(-self.pid, signal)
    }
}

/// Signals a process, or a group by its negative number. Returns whether there is any.
fn kill(pid: libc::pid_t, signal: i32) -> bool {
    // SAFETY: two numbers. No caller passes 0, 1 or -1: a child never has the pid 1.
    let result = unsafe { libc::kill(pid, signal) };
    result == 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn send(pidfd: &OwnedFd, signal: i32, flags: u32) -> Result<(), i32> {
    use std::os::fd::AsRawFd;
    let info: *const libc::siginfo_t = std::ptr::null();
    // SAFETY: the descriptor is open, and the siginfo may be null.
    let result =
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal, info, flags) };
    if result == 0 {
        return Ok(());
    }
    Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

/// Returns whether there was a process for the signal, even one that may not be signalled.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn reached(sent: Result<(), i32>) -> bool {
    matches!(sent, Ok(()) | Err(libc::EPERM))
}
