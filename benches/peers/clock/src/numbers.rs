//! The results of a measurement: CPU time, percentiles, and their names.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// The numbers of a sample, with their names.
pub(crate) type Numbers = Vec<(&'static str, f64)>;

/// The times at the begin of the work.
pub(crate) struct Stopwatch {
    cpu: Duration,
    wall: Instant,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self { cpu: cpu_time(), wall: Instant::now() }
    }

    /// Returns the CPU time of the process since the start, and its share of the time that passed.
    pub(crate) fn stop(&self) -> Numbers {
        let cpu = cpu_time().saturating_sub(self.cpu).as_secs_f64();
        let wall = self.wall.elapsed().as_secs_f64();
        vec![("cpu_ms", cpu * 1e3), ("wall_ms", wall * 1e3), ("cpu_percent", cpu / wall * 100.0)]
    }
}

/// Returns the CPU time of this process, with all threads.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Returns the value below which this part of the values is, in percent; 0 without values.
pub(crate) fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(place).copied().unwrap_or_default()
}

/// Returns the microseconds from `expected` to `now`; negative if `now` is earlier.
pub(crate) fn micros_after(expected: Instant, now: Instant) -> f64 {
    let after = now.saturating_duration_since(expected).as_secs_f64();
    (after - expected.saturating_duration_since(now).as_secs_f64()) * 1e6
}

/// Returns the number of values below zero, and percentiles, of latenesses in microseconds.
pub(crate) fn lateness(late: &[f64]) -> Numbers {
    let early = late.iter().filter(|late| **late < 0.0).count();
    vec![
        ("early", count(early)),
        ("p50_us", percentile(late, 50)),
        ("p99_us", percentile(late, 99)),
        ("max_us", percentile(late, 100)),
    ]
}

/// Returns a count as a number of a sample.
#[expect(clippy::cast_precision_loss, reason = "counts are small")]
pub(crate) fn count(count: usize) -> f64 {
    count as f64
}
