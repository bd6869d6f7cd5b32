//! Measures one wait for one of many objects.

use std::time::Duration;

use minder::ErrorKind;

use super::bench::WaitBench;
use super::objects::WaitObjects;
use crate::case::{Case, Measurement};
use crate::error::{Error, Result};
use crate::random::Random;
use crate::rounds::Suite;
use crate::stopwatch::Stopwatch;

/// The duration of one measurement, with at least 16 steps of the CPU clock.
const TIME: Duration = Stopwatch::at_least(16, Duration::from_millis(30));
/// The least number of waits of one measurement, unless they take more than [`TIME_MAX`].
const WAITS_MIN: u64 = 50;
const TIME_MAX: Duration = Duration::from_secs(1);
/// The duration of one measurement of the signal and the reset alone.
const OVERHEAD_TIME: Duration = Stopwatch::at_least(8, Duration::from_millis(1));
/// The number of such measurements. The least one counts, so that other load on the machine in
/// these moments is not subtracted from the wait.
const OVERHEAD_RUNS: usize = if OVERHEAD_TIME.as_millis() > 1 { 2 } else { 8 };
/// Waits before the measurement, which move threads to their processors and fill caches.
const WARM_UP: u64 = 5;
/// Descriptors besides the objects: standard streams, signals, and those of the mechanism.
const OTHER_DESCRIPTORS: u64 = 32;

/// Measures one wait for one of [`Case::size`] objects: a [cycle](WaitBench::cycle) without the
/// signal and the reset. Each object is equally likely. With 0 objects it measures a
/// [poll](WaitBench::poll).
///
/// ```
/// use minder_bench::{Case, Suite, WaitSuite};
/// let case = Case { mechanism: "pool", kind: None, size: 8 };
/// let measurement = WaitSuite::new(1024).measure(&case, &mut || false)?;
/// assert!(measurement.is_some_and(|it| it.operations >= 50));
/// # Ok::<(), minder_bench::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct WaitSuite {
    descriptors_max: u64,
}

impl WaitSuite {
    /// Makes a suite for a process that may open a given number of descriptors or handles. It refuses
    /// cases that need more.
    #[must_use]
    pub fn new(descriptors_max: u64) -> Self {
        Self { descriptors_max }
    }
}

impl Suite for WaitSuite {
    fn measure(
        &mut self,
        case: &Case,
        _is_cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Measurement>> {
        let needed =
            case.size.saturating_mul(WaitObjects::DESCRIPTORS as u64).saturating_add(OTHER_DESCRIPTORS);
        let limit = self.descriptors_max;
        if needed > limit {
            let text = format!(
                "{needed} descriptors are needed, and this process may have {limit}; \
                 hint: a higher hard limit, such as `ulimit -n {needed}` as root"
            );
            return Err(Error::with_text(ErrorKind::Limit, text));
        }
        // The limit is that of descriptors, so the number fits into memory.
        let count = case.size as usize;
        let objects = WaitObjects::open(count)?;
        if count == 0 {
            let mut bench = WaitBench::open(case.mechanism, objects)?;
            return repeat(TIME, || bench.poll()).map(Some);
        }
        measure_cycles(case, objects).map(Some)
    }
}

fn measure_cycles(case: &Case, objects: WaitObjects) -> Result<Measurement> {
    let count = objects.len();
    let mut random = Random::new(0);
    let mut overhead = repeat(OVERHEAD_TIME, || objects.signal_and_reset(random.below(count)))?;
    for _ in 1..OVERHEAD_RUNS {
        let next = repeat(OVERHEAD_TIME, || objects.signal_and_reset(random.below(count)))?;
        overhead.cpu_ns = overhead.cpu_ns.min(next.cpu_ns);
        overhead.wall_ns = overhead.wall_ns.min(next.wall_ns);
    }
    let mut bench = WaitBench::open(case.mechanism, objects)?;
    for _ in 0..WARM_UP {
        bench.cycle(random.below(count))?;
    }
    let cycle = repeat(TIME, || bench.cycle(random.below(count)))?;
    Ok(Measurement {
        operations: cycle.operations,
        cpu_ns: (cycle.cpu_ns - overhead.cpu_ns).max(0.0),
        wall_ns: (cycle.wall_ns - overhead.wall_ns).max(0.0),
    })
}

/// Repeats an operation for at least `time` and [`WAITS_MIN`] times, or for [`TIME_MAX`].
fn repeat(time: Duration, mut operation: impl FnMut() -> Result<()>) -> Result<Measurement> {
    let stopwatch = Stopwatch::start();
    let mut count = 0;
    let mut batch = 1;
    loop {
        for _ in 0..batch {
            operation()?;
        }
        count += batch;
        let elapsed = stopwatch.elapsed();
        if elapsed.wall >= time && count >= WAITS_MIN || elapsed.wall >= TIME_MAX {
            return Ok(Measurement::of(count, elapsed));
        }
        // Reading the clocks costs as much as a short wait.
        if elapsed.wall < time / 16 {
            batch *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeat_takes_the_given_time_and_number_of_operations() {
        let mut done = 0;
        let mean = repeat(Duration::from_millis(2), || {
            done += 1;
            Ok(())
        })
        .expect("repeat an empty operation");
        assert!(mean.operations == done && mean.operations >= WAITS_MIN, "{mean:?}");
        assert!(mean.wall_ns * mean.operations as f64 >= 2e6, "{mean:?}");
    }

    #[test]
    fn case_beyond_descriptor_limit_is_refused() {
        let case = Case { mechanism: "pool", kind: None, size: 1000 };
        let error = WaitSuite::new(100).measure(&case, &mut || false).expect_err("measure 1000 objects");
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert!(error.to_string().contains("may have 100; hint: "), "{error}");
    }
}
