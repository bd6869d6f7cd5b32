//! The CPU clock of POSIX, `CLOCK_PROCESS_CPUTIME_ID`.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The resolution of the clock, which is too fine to matter.
pub(crate) const CPU_RESOLUTION: Duration = Duration::from_nanos(1);

/// Returns the CPU time of all threads of this process, including those that have exited.
pub(crate) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}
