//! The results of a measurement: CPU time, wall time, and their names.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// The numbers of a sample, with their names.
pub(crate) type Numbers = Vec<(String, f64)>;

/// CPU time and wall time of something, in seconds.
#[derive(Clone, Copy)]
pub(crate) struct Spent {
    pub(crate) cpu: f64,
    pub(crate) wall: f64,
}

/// Measures an operation. Returns what it returns.
pub(crate) fn spent<T>(operation: impl FnOnce() -> T) -> (Spent, T) {
    let cpu = cpu_time();
    let wall = Instant::now();
    let value = operation();
    let wall = wall.elapsed().as_secs_f64();
    (Spent { cpu: cpu_time().saturating_sub(cpu).as_secs_f64(), wall }, value)
}

/// Returns the CPU time of this process, with all threads.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Returns the middle one of some values; 0 without values.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Returns a count as a number of a sample.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
pub(crate) fn count(count: usize) -> f64 {
    count as f64
}
