//! The CPU time of this process where rustix has no clock of it: NetBSD and OpenBSD.

#![expect(unsafe_code, reason = "getrusage")]

use std::time::Duration;

/// The CPU time of all threads of this process, those that ended included, in microseconds.
pub(crate) fn cpu_time() -> Duration {
    // SAFETY: rusage is plain numbers; all zero is a value of it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a local that outlives the call, which cannot fail for this process.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec.unsigned_abs())
            + Duration::from_micros(time.tv_usec.unsigned_abs().into())
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}
