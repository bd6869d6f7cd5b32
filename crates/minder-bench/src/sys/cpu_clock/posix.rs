//! The CPU clocks of POSIX, `CLOCK_PROCESS_CPUTIME_ID` and `CLOCK_THREAD_CPUTIME_ID`.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The resolution of the clock, which is too fine to matter.
pub(crate) const CPU_RESOLUTION: Duration = Duration::from_nanos(1);

/// Returns the CPU time of all threads of this process, including those that have exited.
pub(crate) fn cpu_time() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// Returns the CPU time of the calling thread.
pub(crate) fn thread_cpu_time() -> Duration {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}
