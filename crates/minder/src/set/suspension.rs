//! The time for which a child has been suspended.

use std::time::{Duration, Instant};

/// The clock of a child's suspension: it runs while the child is suspended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Suspension {
    since: Option<Instant>,
    /// The time of the suspensions that have ended.
    ended: Duration,
}

impl Suspension {
    pub(super) fn is_suspended(&self) -> bool {
        self.since.is_some()
    }

    /// Starts the clock. The child is not suspended.
    pub(super) fn start(&mut self, now: Instant) {
        self.since = Some(now);
    }

    /// Stops the clock and returns how long it ran since [`start`](Self::start) or
    /// [`restart`](Self::restart). Returns `None` for a child that is not suspended.
    pub(super) fn stop(&mut self, now: Instant) -> Option<Duration> {
        let time = now.saturating_duration_since(self.since.take()?);
        self.ended += time;
        Some(time)
    }

    /// Begins a new measurement, if the child is suspended: the next [`stop`](Self::stop) returns
    /// the time from `now` on.
    pub(super) fn restart(&mut self, now: Instant) {
        if self.stop(now).is_some() {
            self.start(now);
        }
    }

    /// Returns the time of all suspensions, including the present one.
    pub(super) fn total(&self) -> Duration {
        self.ended + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_returns_the_time_since_the_last_restart() {
        let second = Duration::from_secs(1);
        let start = Instant::now() - 10 * second;
        let mut suspension = Suspension::default();
        assert_eq!(suspension.stop(start), None);
        suspension.start(start);
        suspension.restart(start + second);
        assert_eq!(suspension.stop(start + 3 * second), Some(2 * second));
        assert!(!suspension.is_suspended());
        assert_eq!(suspension.total(), 3 * second);
    }
}
