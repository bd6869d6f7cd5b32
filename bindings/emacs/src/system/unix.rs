//! Descriptors above those that Emacs can watch, the limit on descriptors, and signals.
//!
//! Emacs watches descriptors below `FD_SETSIZE` (1024), and starts no process when these are used up. So a
//! call that makes descriptors of ours is made while all of these are taken: the kernel gives out the lowest
//! free number. Emacs itself is in a call of ours meanwhile, and makes none.
#![expect(unsafe_code, reason = "a descriptor of Emacs; rustix has no signal mask of a thread")]

use std::ffi::{OsString, c_int};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getrlimit, kill_process_group, setrlimit,
    test_kill_process_group, waitid,
};

/// The number of descriptors that Emacs can watch.
const FD_SETSIZE: i32 = 1024;
/// The highest limit that is set.
const LIMIT_MAX: u64 = 1 << 18;
/// The lowest limit with which descriptors are moved: ours need room above [`FD_SETSIZE`].
const LIMIT_MIN: u64 = 2048;

/// The end of a pipe whose other end Emacs reads.
#[derive(Debug)]
pub(crate) struct Channel(OwnedFd);

impl Channel {
    /// Takes over the result of `open_channel`.
    ///
    /// # Safety
    /// It is an open descriptor that belongs to the caller.
    pub(crate) unsafe fn adopt(descriptor: c_int) -> Self {
        // SAFETY: see above.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let (copy, _) = with_raised_limit(|_| fcntl_dupfd_cloexec(&descriptor, FD_SETSIZE));
        Self(copy.unwrap_or(descriptor))
    }

    /// Writes one byte. Without effect if Emacs has closed its end.
    pub(crate) fn notify(&self) {
        let _ = rustix::io::write(&self.0, b"!");
    }
}

/// The limit that a child gets.
pub(crate) type Limit = Rlimit;

/// Calls `make`. The descriptors that it makes have high numbers, as far as the hard limit allows. Returns
/// the limit on descriptors, too, which is higher during the call.
pub(crate) fn made_high<T>(make: impl FnOnce() -> T) -> (T, Limit) {
    with_raised_limit(|high| {
        let taken = if high >= LIMIT_MIN { take_low() } else { Vec::new() };
        let made = make();
        drop(taken);
        made
    })
}

/// Gives a child that was started with the raised limit the limit of Emacs.
#[cfg(target_os = "linux")]
pub(crate) fn restore_limit(pid: u32, limit: Limit) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It fails if the child has exited.
        let _ = rustix::process::prlimit(Some(pid), Resource::Nofile, limit);
    }
}

/// Does nothing: only Linux can change the limit of another process.
#[cfg(not(target_os = "linux"))]
pub(crate) fn restore_limit(_: u32, _: Limit) {}

/// Takes all free descriptors below [`FD_SETSIZE`].
fn take_low() -> Vec<OwnedFd> {
    let Ok(null) = File::open("/dev/null") else { return Vec::new() };
    let mut taken = Vec::with_capacity(FD_SETSIZE as usize);
    taken.push(OwnedFd::from(null));
    let mut next = 0;
    while next < FD_SETSIZE {
        let Ok(copy) = fcntl_dupfd_cloexec(taken[0].as_fd(), next) else { break };
        next = copy.as_raw_fd() + 1;
        taken.push(copy);
    }
    taken
}

/// Calls `make` with the highest soft limit, and restores the limit. With a high limit Emacs could get a
/// descriptor that it cannot watch, so it is high for the time of our calls alone.
fn with_raised_limit<T>(make: impl FnOnce(u64) -> T) -> (T, Limit) {
    let before = getrlimit(Resource::Nofile);
    let now = before.current.unwrap_or(u64::MAX);
    let high = before.maximum.unwrap_or(LIMIT_MAX).min(LIMIT_MAX).max(now);
    let is_raised = now < high
        && setrlimit(Resource::Nofile, Rlimit { current: Some(high), maximum: before.maximum }).is_ok();
    let made = make(if is_raised { high } else { now });
    if is_raised {
        let _ = setrlimit(Resource::Nofile, before);
    }
    (made, before)
}

/// Blocks all signals of the calling thread: a handler of Emacs belongs to its main thread.
pub(crate) fn block_signals() {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the pointer is valid for a set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: the set is initialized, and the old mask is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut()) };
}

/// Prepares the terminal of a child that has just started as Emacs does: without echo, and a line end stays
/// one byte. Before the first input comes, that is: the caller has not returned to Emacs yet.
#[cfg(target_os = "linux")]
pub(crate) fn prepare_terminal(pid: u32) {
    use rustix::fs::{Mode, OFlags, open};
    use rustix::termios::{LocalModes, OptionalActions, OutputModes, tcgetattr, tcsetattr};

    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    // Each step fails only if the child has exited.
    let Ok(terminal) = open(format!("/proc/{pid}/fd/0"), flags, Mode::empty()) else { return };
    let Ok(mut state) = tcgetattr(&terminal) else { return };
    state.local_modes.remove(LocalModes::ECHO);
    state.output_modes.remove(OutputModes::ONLCR);
    let _ = tcsetattr(&terminal, OptionalActions::Now, &state);
}

/// Does nothing: the command of the child prepares its terminal.
#[cfg(not(target_os = "linux"))]
pub(crate) fn prepare_terminal(_: u32) {}

/// Sends a signal to the process group of a child of this process. Returns whether there was one. The
/// signal 0 only asks.
///
/// The group is not signalled if the child has been reaped: its number may be that of another group.
pub(crate) fn send_to_group(pid: u32, signal: i32) -> std::io::Result<bool> {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(false) };
    let named = Signal::from_named_raw(signal);
    if named.is_none() && signal != 0 {
        return Err(std::io::Error::from(rustix::io::Errno::INVAL));
    }
    // It fails for a process that is not a child of ours, or not any more.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    if waitid(WaitId::Pid(pid), options).is_err() {
        return Ok(false);
    }
    match named.map_or_else(|| test_kill_process_group(pid), |signal| kill_process_group(pid, signal)) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::SRCH) => Ok(false),
        // A program with other rights is there.
        Err(rustix::io::Errno::PERM) if signal == 0 => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Returns bytes as a string of the system.
pub(crate) fn os_string(bytes: Vec<u8>) -> OsString {
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_made_high_and_the_low_ones_are_free_again() {
        let before = getrlimit(Resource::Nofile);
        let (high, limit) = made_high(|| File::open("/dev/null").unwrap());
        if before.maximum.is_none_or(|maximum| maximum >= LIMIT_MIN) {
            assert!(high.as_raw_fd() >= FD_SETSIZE, "{}", high.as_raw_fd());
        }
        assert_eq!(getrlimit(Resource::Nofile).current, before.current);
        assert_eq!(limit.current, before.current);
        assert!(File::open("/dev/null").unwrap().as_raw_fd() < FD_SETSIZE);
    }

    #[test]
    fn only_children_are_signalled() {
        // A signal to the group of this process would end the test.
        assert!(!send_to_group(std::process::id(), 9).unwrap());
        assert!(!send_to_group(std::process::id(), 0).unwrap());
        assert!(send_to_group(1, 1000).is_err());
    }
}
