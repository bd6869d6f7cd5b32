//! The operating system call poll(2), and ppoll(2) where it exists.

#![expect(unsafe_code, reason = "the poll system call over a list that outlives any one borrow")]

use std::io;
use std::time::Duration;

/// Polls `list` without waiting. poll(2) is faster than ppoll(2) here, which copies the time-out in
/// and out.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn poll_now(list: &mut [libc::pollfd]) -> io::Result<()> {
    loop {
        // SAFETY: `list` is ours alone for the call.
        let result = unsafe { libc::poll(list.as_mut_ptr(), list.len() as libc::nfds_t, 0) };
        if result >= 0 {
            return Ok(());
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => (),
            error => return Err(error),
        }
    }
}

/// Waits for one of `list`, for at most `left`.
#[cfg(not(target_vendor = "apple"))]
pub(crate) fn poll(list: &mut [libc::pollfd], left: Option<Duration>) -> io::Result<()> {
    let time = left.map(|left| libc::timespec {
        // The name of the type depends on the system. A year counts as unlimited.
        tv_sec: left.as_secs().min(365 * 86_400) as _,
        tv_nsec: left.subsec_nanos() as libc::c_long,
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `list` is ours alone for the call, `time` is null or points to a local that outlives it,
    // and no signal mask is given.
    let result =
        unsafe { libc::ppoll(list.as_mut_ptr(), list.len() as libc::nfds_t, time, std::ptr::null()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits for one of `list`, for at most `left`, rounded up to the millisecond.
#[cfg(target_vendor = "apple")]
pub(crate) fn poll(list: &mut [libc::pollfd], left: Option<Duration>) -> io::Result<()> {
    let millis =
        left.map_or(-1, |left| i32::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX));
    // SAFETY: `list` is ours alone for the call.
    let result = unsafe { libc::poll(list.as_mut_ptr(), list.len() as libc::nfds_t, millis) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
