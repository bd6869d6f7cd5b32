//! What a baseline observes, and what that costs.

use std::time::Duration;

/// The shortest time after which an exit that was not observed counts as lost.
pub(crate) const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// An exit that was observed. On Unix the child is reaped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObservedExit {
    pub(crate) pid: u32,
    /// Whether the benchmark killed the child: it ended by `SIGKILL`, or on Windows with the exit
    /// code that the benchmark uses.
    pub(crate) killed: bool,
}

/// The order in which children are killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KillMode {
    /// The next child is killed after the exit of the one before was observed.
    OneByOne,
    /// All children are killed at once.
    Burst,
}

/// Exits that were observed, and their cost.
#[derive(Debug, Default)]
pub(crate) struct ExitMeasurement {
    /// Fewer than children were killed if an exit was lost, or if another child exited by itself.
    pub(crate) exits: Vec<ObservedExit>,
    pub(crate) cpu: Duration,
    pub(crate) wall: Duration,
}
