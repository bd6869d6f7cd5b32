//! What is measured and not used: the clock of this process's CPU, and baselines as they were published.

#[cfg(unix)]
mod clock {
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    /// The CPU time of all threads of this process, those that ended included.
    pub(crate) fn cpu_time() -> Duration {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
    }
}
#[cfg(windows)]
mod clock;

pub(crate) use self::clock::cpu_time;
