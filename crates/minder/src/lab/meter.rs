//! What something takes: CPU time of this process, and time that passes.

use std::time::{Duration, Instant};

use crate::sys::lab as sys;

/// What something took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spent {
    /// The CPU time of this process: of all its threads, in user code and in the system, without
    /// its children.
    pub cpu: Duration,
    /// The time that passed.
    pub wall: Duration,
}

/// Measures from its start on.
///
/// - Unix: CPU time in nanoseconds, or nearly so. Windows: in steps of 1/64 s, see
///   [`TICK`](Self::TICK).
/// - Wine: what the program asks of Wine's server is done by another process, whose CPU time is in
///   no figure.
///
/// ```
/// let meter = minder::lab::Meter::start();
/// let sum: u64 = (0..100_000).sum();
/// let spent = meter.spent();
/// assert!(sum > 0 && spent.wall > std::time::Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    cpu: Duration,
    wall: Instant,
}

impl Meter {
    /// The steps in which CPU time is counted. A figure needs many of them to mean something.
    pub const TICK: Duration = sys::TICK;

    /// Begins now.
    #[must_use]
    pub fn start() -> Self {
        // The clock of the CPU is a system call: it stays outside.
        let cpu = sys::cpu_time();
        Self { cpu, wall: Instant::now() }
    }

    /// What was spent since the start.
    #[must_use]
    pub fn spent(&self) -> Spent {
        let wall = self.wall.elapsed();
        Spent { cpu: sys::cpu_time().saturating_sub(self.cpu), wall }
    }
}

/// Whether this is a program for Windows that runs under Wine: what it measures then is Wine, and
/// says nothing about times on Windows.
#[must_use]
pub fn is_wine() -> bool {
    sys::is_wine()
}
