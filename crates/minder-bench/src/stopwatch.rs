//! CPU time of this process, and wall time.

use std::ops::AddAssign;
use std::time::{Duration, Instant};

use crate::sys;

/// CPU time and wall time of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CpuAndWall {
    /// The CPU time of this process: of all its threads, in user and kernel mode, without its
    /// children.
    pub cpu: Duration,
    /// The time that passed.
    pub wall: Duration,
}

impl AddAssign for CpuAndWall {
    fn add_assign(&mut self, other: Self) {
        self.cpu += other.cpu;
        self.wall += other.wall;
    }
}

/// Measures CPU time and wall time from its start on.
///
/// - Unix: CPU time has a resolution of nanoseconds or microseconds. Windows: the resolution is
///   1/64 s, see [`CPU_RESOLUTION`](Self::CPU_RESOLUTION).
/// - Wine: requests to Wine's server are served by another process, whose CPU time is not counted.
///
/// ```
/// use std::time::Duration;
/// let stopwatch = minder_bench::Stopwatch::start();
/// let sum: u64 = (0..100_000).sum();
/// let elapsed = stopwatch.elapsed();
/// assert!(sum > 0 && elapsed.wall > Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    cpu: Duration,
    wall: Instant,
}

impl Stopwatch {
    /// The resolution of CPU time. A measurement needs many such steps to be meaningful.
    pub const CPU_RESOLUTION: Duration = sys::CPU_RESOLUTION;

    /// Starts now.
    #[must_use]
    pub fn start() -> Self {
        // Reading the CPU clock is a system call: it comes first, outside of the wall time.
        let cpu = sys::cpu_time();
        Self { cpu, wall: Instant::now() }
    }

    /// Returns the time since the start.
    #[must_use]
    pub fn elapsed(&self) -> CpuAndWall {
        let wall = self.wall.elapsed();
        CpuAndWall { cpu: sys::cpu_time().saturating_sub(self.cpu), wall }
    }

    /// Returns the longer of `time` and `steps` steps of the CPU clock.
    pub(crate) const fn at_least(steps: u32, time: Duration) -> Duration {
        let steps = Self::CPU_RESOLUTION.saturating_mul(steps);
        if steps.as_nanos() > time.as_nanos() { steps } else { time }
    }
}

/// Returns whether this is a program for Windows that runs under Wine. Its measurements then
/// describe Wine, not Windows.
#[must_use]
pub fn is_wine() -> bool {
    sys::is_wine()
}
