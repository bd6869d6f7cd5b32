//! What is measured, and what one measurement found.

use std::time::Duration;

use crate::stopwatch::CpuAndWall;

/// One thing to measure: a mechanism at a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The name of the mechanism: one of [`waits`](crate::waits), [`exits`](crate::exits),
    /// [`spawns`](crate::spawns) or [`cell_heaps`](crate::cell_heaps).
    pub mechanism: &'static str,
    /// The kind of operation, if the suite has several: see
    /// [`ExitSuite::KINDS`](crate::ExitSuite::KINDS).
    pub kind: Option<&'static str>,
    /// The number of objects or live children, the size of the parent in MiB, or that of a block in KiB.
    pub size: u64,
}

impl Case {
    /// Returns a case without a kind for each size and mechanism, in the order of measuring.
    #[must_use]
    pub fn grid(sizes: &[u64], mechanisms: &[&'static str]) -> Vec<Self> {
        let mut cases = Vec::new();
        for &size in sizes {
            for &mechanism in mechanisms {
                cases.push(Self { mechanism, kind: None, size });
            }
        }
        cases
    }
}

/// The result of measuring a case once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// The number of operations that were measured.
    pub operations: u64,
    /// Mean CPU time of one operation in nanoseconds.
    pub cpu_ns: f64,
    /// Mean wall time of one operation in nanoseconds.
    pub wall_ns: f64,
}

impl Measurement {
    /// Returns the mean of `operations` operations that took `total` together.
    #[must_use]
    pub fn of(operations: u64, total: CpuAndWall) -> Self {
        let mean = |time: Duration| time.as_nanos() as f64 / operations.max(1) as f64;
        Self { operations, cpu_ns: mean(total.cpu), wall_ns: mean(total.wall) }
    }
}
