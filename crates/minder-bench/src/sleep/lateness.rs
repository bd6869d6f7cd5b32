//! What many sleeps were like: percentiles and a histogram of their lateness.

use std::time::Duration;

use minder::clock::SleepSample;

/// The upper end of the first bucket of a histogram, and the lower end of the second.
const HISTOGRAM_FROM: Duration = Duration::from_micros(1);
/// The number of buckets for each factor of ten.
const BUCKETS_PER_DECADE: usize = 4;
/// The factors of ten of a histogram.
const DECADES: usize = 4;

/// What many sleeps of the same time were like. The samples may be added in any order.
///
/// ```
/// use minder_bench::{Lateness, SleepWay};
/// use std::sync::atomic::AtomicBool;
/// use std::time::Duration;
///
/// let way = SleepWay::available().next().expect("every system has a way to sleep");
/// let mut lateness = Lateness::default();
/// lateness.extend(way.measure(Duration::from_micros(100), 20, &AtomicBool::new(false))?);
/// let stats = lateness.stats().expect("there are samples");
/// assert!(stats.p50 <= stats.p99 && stats.p99 <= stats.p999 && stats.p999 <= stats.max);
/// assert_eq!(lateness.histogram().iter().sum::<u64>(), 20);
/// # Ok::<(), minder_bench::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    late: Vec<Duration>,
    slept: Duration,
    cpu_time: Duration,
    early: usize,
}

/// Percentiles of the lateness of sleeps, and means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SleepStats {
    /// The number of sleeps.
    pub count: usize,
    /// How many were shorter than asked for. Their lateness counts as zero.
    pub early: usize,
    /// The least lateness.
    pub min: Duration,
    /// The median: half of the sleeps are at most so late.
    pub p50: Duration,
    /// Nine of ten are at most so late.
    pub p90: Duration,
    /// 99 of 100.
    pub p99: Duration,
    /// 999 of 1,000. It is the maximum for fewer sleeps.
    pub p999: Duration,
    /// The greatest lateness.
    pub max: Duration,
    /// The mean lateness.
    pub mean: Duration,
    /// The mean time that a sleep took, which is the time that was asked for and the lateness.
    pub mean_slept: Duration,
    /// The mean CPU time of a sleep, with that of measuring it.
    ///
    /// - Windows: it is counted by ticks of the timer, so that only the mean of very many is useful.
    pub mean_cpu_time: Duration,
}

impl Lateness {
    /// Returns the statistics; `None` if there are no samples.
    #[must_use]
    pub fn stats(&self) -> Option<SleepStats> {
        let mut late = self.late.clone();
        late.sort_unstable();
        let count = late.len();
        let divisor = u32::try_from(count).ok()?;
        // The nearest rank: at least this share of the sleeps is not later.
        let percentile = |per_mille: usize| late[(count * per_mille).div_ceil(1000).saturating_sub(1)];
        Some(SleepStats {
            count,
            early: self.early,
            min: *late.first()?,
            p50: percentile(500),
            p90: percentile(900),
            p99: percentile(990),
            p999: percentile(999),
            max: *late.last()?,
            mean: late.iter().sum::<Duration>().checked_div(divisor)?,
            mean_slept: self.slept.checked_div(divisor)?,
            mean_cpu_time: self.cpu_time.checked_div(divisor)?,
        })
    }

    /// Returns the number of sleeps in each of 18 buckets: less than 1 us, four for each factor of ten
    /// from 1 us to 10 ms, and more.
    #[must_use]
    pub fn histogram(&self) -> [u64; BUCKETS_PER_DECADE * DECADES + 2] {
        let mut counts = [0; BUCKETS_PER_DECADE * DECADES + 2];
        for late in &self.late {
            let decades = (late.as_secs_f64() / HISTOGRAM_FROM.as_secs_f64()).log10();
            // A lateness of zero is minus infinity, which becomes 0.
            let bucket = (decades * BUCKETS_PER_DECADE as f64).floor() + 1.0;
            counts[(bucket.max(0.0) as usize).min(counts.len() - 1)] += 1;
        }
        counts
    }
}

impl Extend<SleepSample> for Lateness {
    fn extend<I: IntoIterator<Item = SleepSample>>(&mut self, samples: I) {
        for sample in samples {
            self.late.push(sample.late());
            self.slept += sample.slept;
            self.cpu_time += sample.cpu_time;
            self.early += usize::from(sample.is_early());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lateness(nanos: impl IntoIterator<Item = u64>) -> Lateness {
        let late: Vec<Duration> = nanos.into_iter().map(Duration::from_nanos).collect();
        let slept = late.iter().sum();
        Lateness { late, slept, ..Lateness::default() }
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let stats = lateness((1..=1000).rev()).stats().expect("there are samples");
        let nanos = [stats.min, stats.p50, stats.p90, stats.p99, stats.p999, stats.max, stats.mean];
        assert_eq!(nanos.map(|time| time.as_nanos()), [1, 500, 900, 990, 999, 1000, 500]);
        let stats = lateness([7]).stats().expect("there is a sample");
        assert_eq!([stats.min, stats.p50, stats.p999, stats.max].map(|time| time.as_nanos()), [7; 4]);
        assert_eq!(lateness([]).stats(), None);
    }

    #[test]
    fn buckets_are_logarithmic() {
        let histogram =
            lateness([0, 999, 1_000, 1_800, 9_999, 10_000, 9_999_999, 10_000_000, 1 << 40]).histogram();
        let filled: Vec<(usize, u64)> =
            histogram.into_iter().enumerate().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, [(0, 2), (1, 1), (2, 1), (4, 1), (5, 1), (16, 1), (17, 2)]);
    }
}
