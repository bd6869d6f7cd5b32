//! CPU time by `getrusage` and C's `clock_gettime`, where rustix has no CPU clock: NetBSD and OpenBSD.

#![expect(unsafe_code, reason = "getrusage and clock_gettime")]

use std::time::Duration;

/// The resolution of the times.
pub(crate) const CPU_RESOLUTION: Duration = Duration::from_micros(1);

/// The clock of the calling thread. `libc` does not name that of NetBSD; its <time.h> does.
const THREAD_CLOCK: libc::clockid_t = if cfg!(target_os = "netbsd") { 0x2000_0000 } else { 4 };

/// Returns the CPU time of all threads of this process, including those that have exited.
pub(crate) fn cpu_time() -> Duration {
    // SAFETY: rusage consists of integers, for which zero is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a local that outlives the call. It cannot fail for this process.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    duration(usage.ru_utime) + duration(usage.ru_stime)
}

/// Returns the CPU time of the calling thread.
pub(crate) fn thread_cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local that outlives the call. If the call fails, the time stays zero.
    unsafe { libc::clock_gettime(THREAD_CLOCK, &mut time) };
    Duration::from_secs(time.tv_sec.unsigned_abs()) + Duration::from_nanos(time.tv_nsec.unsigned_abs().into())
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec.unsigned_abs())
        + Duration::from_micros(time.tv_usec.unsigned_abs().into())
}
