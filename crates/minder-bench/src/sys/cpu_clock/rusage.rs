//! CPU time by `getrusage`, where rustix has no CPU clock: NetBSD and OpenBSD.

#![expect(unsafe_code, reason = "getrusage")]

use std::time::Duration;

/// The resolution of the times.
pub(crate) const CPU_RESOLUTION: Duration = Duration::from_micros(1);

/// Returns the CPU time of all threads of this process, including those that have exited.
pub(crate) fn cpu_time() -> Duration {
    // SAFETY: rusage consists of integers, for which zero is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a local that outlives the call. It cannot fail for this process.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    duration(usage.ru_utime) + duration(usage.ru_stime)
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec.unsigned_abs())
        + Duration::from_micros(time.tv_usec.unsigned_abs().into())
}
