//! `Interval`: ticks whose schedule does not drift.

use std::time::{Duration, Instant};

use super::sleeper::Sleeper;

/// The reaction of an [`Interval`] to a tick that was so late that the next one is due already.
///
/// A tick that is late by less than the period changes nothing: the next one comes as planned.
///
/// ```
/// use minder::clock::{Interval, MissedTicks, Sleeper};
/// use std::time::{Duration, Instant};
///
/// let period = Duration::from_millis(1);
/// let begin = Instant::now();
/// for policy in [MissedTicks::CatchUp, MissedTicks::Postpone, MissedTicks::Skip] {
///     let mut interval = Interval::starting_at(begin, period).missed_ticks(policy);
///     Sleeper::cheap().sleep(3 * period);
///     let late = interval.tick();
///     let gap = interval.next_tick() - late.due;
///     match policy {
///         MissedTicks::CatchUp => assert_eq!(gap, period),
///         MissedTicks::Postpone => assert_eq!(gap, late.late + period),
///         _ => assert_eq!(gap, period * (late.skipped as u32 + 1)),
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MissedTicks {
    /// Reports each missed tick at once, one after another, until the schedule is caught up. No tick is
    /// lost. tokio calls it `Burst`.
    #[default]
    CatchUp,
    /// Postpones the schedule: the next tick comes one period after the late one, and those after it in
    /// the same distance. No tick is lost, and no two are closer than the period. tokio calls it `Delay`.
    Postpone,
    /// Leaves out the missed ticks and keeps the schedule: the next tick is the first one of the schedule
    /// that is not due yet.
    Skip,
}

/// One tick of an [`Interval`].
///
/// ```
/// use minder::clock::{Interval, Tick};
/// use std::time::{Duration, Instant};
///
/// let Tick { due, late, skipped, .. } = Interval::new(Duration::from_millis(1)).tick();
/// assert!(Instant::now() >= due + late && skipped == 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tick {
    /// The time at which the tick was due.
    pub due: Instant,
    /// The time from then until it was reported.
    pub late: Duration,
    /// The number of ticks that are left out after this one, by [`MissedTicks::Skip`].
    pub skipped: u64,
}

/// Reports ticks in a constant distance.
///
/// The schedule is computed from the first tick, not from the moment at which a tick was reported. So
/// lateness does not add up, and the schedule does not drift, however long the interval runs.
///
/// ```
/// use minder::clock::{Interval, MissedTicks, Sleeper};
/// use std::time::{Duration, Instant};
///
/// let period = Duration::from_millis(2);
/// let mut interval = Interval::new(period).missed_ticks(MissedTicks::Skip).sleeper(Sleeper::precise());
/// let first = interval.tick();
/// Sleeper::cheap().sleep(Duration::from_millis(5)); // too long: at least one tick is missed
/// let late = interval.tick();
/// assert!(late.due == first.due + period && late.late >= period && late.skipped >= 1);
/// assert_eq!(interval.next_tick(), late.due + period * (late.skipped as u32 + 1));
/// assert_eq!(interval.period(), period);
/// ```
#[derive(Debug)]
#[must_use = "it reports ticks when it is asked for them"]
pub struct Interval {
    sleeper: Sleeper,
    next: Instant,
    period: Duration,
    missed: MissedTicks,
}

impl Interval {
    /// Creates an interval whose first tick is due one period from now. It uses a
    /// [precise](Sleeper::precise) sleeper. A period of zero counts as one nanosecond.
    ///
    /// # Panics
    /// The clock cannot represent the end of the period.
    pub fn new(period: Duration) -> Self {
        Self::starting_at(Instant::now() + period, period)
    }

    /// Creates an interval whose first tick is due at this time, which may have passed.
    ///
    /// ```
    /// use minder::clock::Interval;
    /// use std::time::{Duration, Instant};
    ///
    /// let begin = Instant::now();
    /// let mut interval = Interval::starting_at(begin, Duration::from_millis(1));
    /// let dues = [interval.tick().due, interval.tick().due];
    /// assert_eq!(dues, [begin, begin + Duration::from_millis(1)]);
    /// ```
    pub fn starting_at(first: Instant, period: Duration) -> Self {
        Self {
            sleeper: Sleeper::precise(),
            next: first,
            period: period.max(Duration::from_nanos(1)),
            missed: MissedTicks::default(),
        }
    }

    /// Sets what happens after a tick that was too late.
    pub fn missed_ticks(mut self, missed: MissedTicks) -> Self {
        self.missed = missed;
        self
    }

    /// Sets how the interval sleeps.
    pub fn sleeper(mut self, sleeper: Sleeper) -> Self {
        self.sleeper = sleeper;
        self
    }

    /// Returns the distance of two ticks.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Returns when the next tick is due. A program with its own loop can wait until then, and calls
    /// [`tick`](Self::tick), which then returns at once.
    pub fn next_tick(&self) -> Instant {
        self.next
    }

    /// Sleeps until the next tick is due, and returns it. It is never early.
    ///
    /// # Panics
    /// The clock cannot represent the time of the tick after it.
    pub fn tick(&mut self) -> Tick {
        let late = self.sleeper.sleep_until(self.next);
        self.advance(late)
    }

    /// Reports the tick that is due, and computes the next one.
    fn advance(&mut self, late: Duration) -> Tick {
        let due = self.next;
        let mut skipped = 0;
        self.next = match self.missed {
            MissedTicks::Postpone if late >= self.period => due + late + self.period,
            MissedTicks::Skip if late >= self.period => {
                let missed = late.as_nanos() / self.period.as_nanos();
                skipped = u64::try_from(missed).unwrap_or(u64::MAX);
                // The rest of the lateness is less than a period.
                let rest = u64::try_from(late.as_nanos() % self.period.as_nanos()).unwrap_or(0);
                due + late + (self.period - Duration::from_nanos(rest))
            }
            _ => due + self.period,
        };
        Tick { due, late, skipped }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(1);

    /// Reports ticks with these latenesses in milliseconds, and returns when each was due, in
    /// milliseconds, and how many were skipped.
    fn dues(missed: MissedTicks, late: &[u64]) -> (Vec<u128>, Vec<u64>) {
        let begin = Instant::now();
        let mut interval = Interval::starting_at(begin, PERIOD).missed_ticks(missed);
        late.iter()
            .map(|late| {
                let tick = interval.advance(Duration::from_micros(late * 1_000));
                ((tick.due - begin).as_millis(), tick.skipped)
            })
            .unzip()
    }

    #[test]
    fn policies_decide_what_follows_a_late_tick() {
        let late = [0, 3, 2, 1, 0];
        assert_eq!(dues(MissedTicks::CatchUp, &late).0, [0, 1, 2, 3, 4]);
        let late = [0, 3, 0, 0];
        assert_eq!(dues(MissedTicks::Postpone, &late).0, [0, 1, 5, 6]);
        assert_eq!(dues(MissedTicks::Skip, &late), (vec![0, 1, 5, 6], vec![0, 3, 0, 0]));
    }

    #[test]
    fn lateness_below_the_period_moves_no_tick() {
        for missed in [MissedTicks::CatchUp, MissedTicks::Postpone, MissedTicks::Skip] {
            let begin = Instant::now();
            let mut interval = Interval::starting_at(begin, PERIOD).missed_ticks(missed);
            for number in 0..10_000 {
                let tick = interval.advance(PERIOD - Duration::from_nanos(1));
                assert_eq!((tick.due, tick.skipped), (begin + PERIOD * number, 0));
            }
        }
    }

    #[test]
    fn skip_keeps_the_schedule_for_any_lateness() {
        let begin = Instant::now();
        let mut interval = Interval::starting_at(begin, PERIOD).missed_ticks(MissedTicks::Skip);
        let mut expected = 0;
        for late in (0..5_000_000).step_by(123_457) {
            let tick = interval.advance(Duration::from_nanos(late));
            assert_eq!(tick.due, begin + PERIOD * expected);
            expected += u32::try_from(late / 1_000_000).expect("a small number") + 1;
        }
    }
}
