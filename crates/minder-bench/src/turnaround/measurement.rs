//! What one run of a case found.

use std::time::Duration;

/// What one run of a case found.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TurnaroundMeasurement {
    /// The time from the start to the end of the last finisher.
    pub elapsed: Duration,
    /// The mean of the relative turnarounds: the time from the start of the run until a computation is
    /// finished, divided by its length.
    pub turnaround: f64,
    /// The 95th percentile of them.
    pub turnaround_p95: f64,
    /// The longest time for which the caller's thread was kept from its next duty.
    ///
    /// - Serial: the longest time between two finishers, in which the thread computes or sleeps.
    /// - Threads: the longest time from the end of a processor, on its thread, to the finisher on the
    ///   caller's. The caller's thread sleeps before, so this is its wait for a processor.
    /// - Timers: the longest time from a deadline to its finisher.
    /// - Children: the longest time between two waits of the caller's thread, in which it starts children.
    ///   Its wait for a processor is not included: the end of the child is not known.
    pub unresponsive: Duration,
    /// The CPU time of this process, and of the children in that form.
    pub cpu: Duration,
}

impl TurnaroundMeasurement {
    /// Makes a measurement. A column of turnarounds has one value for each computation.
    #[must_use]
    pub fn new(elapsed: Duration, turnarounds: Vec<f64>, unresponsive: Duration, cpu: Duration) -> Self {
        let turnaround = mean(&turnarounds);
        Self { elapsed, turnaround, turnaround_p95: percentile_95(turnarounds), unresponsive, cpu }
    }

    /// Makes a measurement of values that [`new`](Self::new) computed before.
    #[must_use]
    pub fn from_parts(
        elapsed: Duration,
        (turnaround, turnaround_p95): (f64, f64),
        unresponsive: Duration,
        cpu: Duration,
    ) -> Self {
        Self { elapsed, turnaround, turnaround_p95, unresponsive, cpu }
    }
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns the least value that at least 95 % of the values do not exceed (nearest rank).
pub(super) fn percentile_95(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() * 95).div_ceil(100);
    values.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_is_the_nearest_rank() {
        let to = |count: u32| (1..=count).rev().map(f64::from).collect::<Vec<_>>();
        assert_eq!([1, 2, 17, 20, 100].map(|count| percentile_95(to(count))), [1.0, 2.0, 17.0, 19.0, 95.0]);
        assert_eq!((percentile_95(vec![]), mean(&[]), mean(&[1.0, 2.0])), (0.0, 0.0, 1.5));
    }
}
