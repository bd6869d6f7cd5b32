//! Writing without SIGPIPE.

#![expect(unsafe_code, reason = "SIGPIPE of this thread alone: sigmask and sigtimedwait")]

use std::io::{self, IoSlice};
use std::os::fd::AsFd;

use rustix::io::Errno;

/// The most slices that every operating system accepts: `IOV_MAX` is 1024 on all of them.
const SLICES_MAX: usize = 1024;

/// Writes to a pipe, and waits while it is full. A reader that is gone is an error and no signal.
pub(crate) fn write(pipe: &impl AsFd, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    let slices = &slices[..slices.len().min(SLICES_MAX)];
    // If the reader goes while a write waits, Linux returns what was written, and raises the signal, too.
    let is_raised = |result: &Result<usize, Errno>| result.is_ok() && is_pending(libc::SIGPIPE);
    Ok(masked(|| rustix::io::writev(pipe, slices), is_raised)?)
}

/// Runs `write` so that a reader that is gone is an error and no signal. The disposition of SIGPIPE
/// belongs to the host and to all its threads; the mask is this thread's own. For writes that do not
/// wait.
pub(super) fn without_sigpipe<T>(write: impl FnOnce() -> Result<T, Errno>) -> Result<T, Errno> {
    masked(write, |_| false)
}

/// Does that. `is_raised` returns whether a result other than `EPIPE` comes with the signal.
fn masked<T>(
    write: impl FnOnce() -> Result<T, Errno>,
    is_raised: impl FnOnce(&Result<T, Errno>) -> bool,
) -> Result<T, Errno> {
    let pipe = set_of(libc::SIGPIPE);
    let mut before = set_of(0);
    // SAFETY: both sets are initialised and ours; only this thread's mask changes.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &pipe, &mut before) };
    let pending = is_pending(libc::SIGPIPE);
    let result = write();
    if !pending && (matches!(result, Err(Errno::PIPE)) || is_raised(&result)) {
        take_pending(&pipe);
    }
    // SAFETY: `before` was filled in by the call above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    result
}

/// The set of this one signal; the empty set for 0.
fn set_of(signal: i32) -> libc::sigset_t {
    let mut set = std::mem::MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises what it is given.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: initialised by the line above.
    let mut set = unsafe { set.assume_init() };
    if signal != 0 {
        // SAFETY: the set is initialised, the number is one of the operating system's own.
        unsafe { libc::sigaddset(&mut set, signal) };
    }
    set
}

fn is_pending(signal: i32) -> bool {
    let mut set = set_of(0);
    // SAFETY: the set is ours to write to.
    unsafe { libc::sigpending(&mut set) };
    // SAFETY: the set is initialised.
    unsafe { libc::sigismember(&set, signal) == 1 }
}

/// Takes the pending signal of this thread, which the write just raised and the mask holds back.
fn take_pending(set: &libc::sigset_t) {
    #[cfg(not(any(target_vendor = "apple", target_os = "openbsd")))]
    {
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: all three point to initialised values of ours, or are null where that is allowed.
        unsafe { libc::sigtimedwait(set, std::ptr::null_mut(), &zero) };
    }
    #[cfg(any(target_vendor = "apple", target_os = "openbsd"))]
    {
        let mut signal = 0;
        // SAFETY: the signal is pending and blocked, so sigwait returns at once with it.
        unsafe { libc::sigwait(set, &mut signal) };
    }
}
