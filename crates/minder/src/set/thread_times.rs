//! The choice of the children whose thread times are read: each read is an open, a read and a close.

use std::time::{Duration, Instant};

/// Children that ran at least this long are always read: the cost is small compared with theirs.
const LONG_RUN: Duration = Duration::from_millis(10);

/// Decides whose thread times are read.
#[derive(Debug)]
pub(super) struct ThreadTimeReads {
    /// The time between two reads of short runs.
    interval: Duration,
    /// The earliest time at which the next short run is read.
    next_at: Option<Instant>,
}

impl ThreadTimeReads {
    /// Reads at most this many short runs a second.
    pub(super) fn at_rate(per_second: u32) -> Self {
        let interval = Duration::from_secs(1).checked_div(per_second).unwrap_or(Duration::MAX);
        Self { interval, next_at: None }
    }

    /// Returns whether a child that started at `started` and has exited is read.
    pub(super) fn is_due(&mut self, started: Instant, now: Instant) -> bool {
        if now.duration_since(started) >= LONG_RUN {
            return true;
        }
        if self.interval == Duration::MAX || self.next_at.is_some_and(|at| now < at) {
            return false;
        }
        self.next_at = now.checked_add(self.interval);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_are_always_read_and_short_ones_at_the_rate() {
        let start = Instant::now();
        let mut reads = ThreadTimeReads::at_rate(100);
        let at = |micros| start + Duration::from_micros(micros);
        let read = (0..10_000).filter(|run| reads.is_due(at(run * 100), at(run * 100 + 50))).count();
        assert_eq!(read, 100, "10,000 runs in a second");
        assert!((0..50).all(|run| reads.is_due(at(run), at(run + 10_000))), "runs of 10 ms");
        let mut none = ThreadTimeReads::at_rate(0);
        assert!(!none.is_due(at(0), at(9_999)) && none.is_due(at(0), at(10_000)));
    }
}
