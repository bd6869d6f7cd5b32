//! The ways to sleep of kqueue(2).

#![expect(unsafe_code, reason = "kqueue and kevent")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null;
use std::time::Duration;

use super::types::SleepCall;

/// Prepares the time-out of kevent(2).
pub(super) fn time_out() -> io::Result<SleepCall> {
    let queue = kqueue()?;
    Ok(Box::new(move |time| kevent(&queue, None, Some(time))))
}

/// Prepares a timer of the queue that fires once.
#[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
pub(super) fn timer() -> io::Result<SleepCall> {
    #[cfg(target_vendor = "apple")]
    const UNIT: u32 = libc::NOTE_NSECONDS | libc::NOTE_CRITICAL;
    #[cfg(target_os = "freebsd")]
    const UNIT: u32 = libc::NOTE_NSECONDS;

    let queue = kqueue()?;
    Ok(Box::new(move |time| {
        // SAFETY: a structure of numbers and a pointer that the kernel does not follow.
        let mut change: libc::kevent = unsafe { std::mem::zeroed() };
        change.ident = 1;
        change.filter = libc::EVFILT_TIMER;
        change.flags = libc::EV_ADD | libc::EV_ONESHOT;
        change.fflags = UNIT;
        change.data = time.as_nanos().try_into().unwrap_or(isize::MAX as _);
        kevent(&queue, Some(&change), None)
    }))
}

fn kqueue() -> io::Result<OwnedFd> {
    // SAFETY: no arguments.
    let raw = unsafe { libc::kqueue() };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel created this descriptor for this call, and nothing else owns it.
    let queue = unsafe { OwnedFd::from_raw_fd(raw) };
    rustix::io::fcntl_setfd(&queue, rustix::io::FdFlags::CLOEXEC)?;
    Ok(queue)
}

/// Makes a change, if there is one, and waits for one event.
fn kevent(queue: &OwnedFd, change: Option<&libc::kevent>, time: Option<Duration>) -> io::Result<()> {
    let time = time.map(|time| libc::timespec {
        tv_sec: time.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: time.subsec_nanos() as _,
    });
    // SAFETY: a structure of numbers and a pointer that is not followed.
    let mut event: libc::kevent = unsafe { std::mem::zeroed() };
    let change_at = change.map_or(null(), std::ptr::from_ref);
    let time_at = time.as_ref().map_or(null(), std::ptr::from_ref);
    // SAFETY: the descriptor is open; both pointers are null or point to values that outlive the call,
    // and there is memory for one event.
    let answer = unsafe {
        libc::kevent(queue.as_raw_fd(), change_at, change.is_some().into(), &mut event, 1, time_at)
    };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
