//! Measures one start of a child from a parent of a given size.

use std::time::{Duration, Instant};

use minder::Command;

use super::ballast::Ballast;
use super::bench::SpawnBench;
use crate::case::{Case, Measurement};
use crate::error::Result;
use crate::rounds::Suite;
use crate::stopwatch::{CpuAndWall, Stopwatch};

/// The most starts of one measurement.
const SPAWNS_MAX: u64 = 100;
/// The least starts of one measurement, even if they take longer than [`TIME`].
const SPAWNS_MIN: u64 = 5;
/// The duration of one measurement, with at least 64 steps of the CPU clock.
const TIME: Duration = Stopwatch::at_least(64, Duration::from_millis(500));

/// Measures one start of a child from a parent of [`Case::size`] MiB.
///
/// ```
/// use minder_bench::{Case, SpawnSuite, Suite, short_command};
/// let case = Case { mechanism: "minder", kind: None, size: 1 };
/// let mut suite = SpawnSuite::new(short_command());
/// let measurement = suite.measure(&case, &mut || false)?;
/// assert!(measurement.is_some_and(|it| it.operations >= 5));
/// # Ok::<(), minder_bench::Error>(())
/// ```
#[derive(Debug)]
pub struct SpawnSuite {
    command: Command,
    /// The memory of the case before, and its size in MiB.
    ballast: Option<(u64, Ballast)>,
}

impl SpawnSuite {
    /// Makes a suite that starts this command, which must exit at once.
    #[must_use]
    pub fn new(command: Command) -> Self {
        Self { command, ballast: None }
    }
}

impl Suite for SpawnSuite {
    fn measure(
        &mut self,
        case: &Case,
        is_cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Measurement>> {
        if self.ballast.as_ref().is_none_or(|(mib, _)| *mib != case.size) {
            // The old memory is freed before the new one is allocated.
            self.ballast = None;
            self.ballast = Some((case.size, Ballast::new(case.size)?));
        }
        let mut bench = SpawnBench::new(case.mechanism, &self.command)?;
        let started = Instant::now();
        let mut count = 0;
        let mut total = CpuAndWall::default();
        while count < SPAWNS_MIN || (count < SPAWNS_MAX && started.elapsed() < TIME) {
            total += bench.spawn()?;
            count += 1;
            if is_cancelled() {
                return Ok(None);
            }
        }
        Ok(Some(Measurement::of(count, total)))
    }
}
