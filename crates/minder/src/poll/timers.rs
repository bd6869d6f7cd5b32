//! The timers of a poller: when to wake up for them, and which are due.
//!
//! A timer may be reported from its deadline on, and should be reported before its tolerance has
//! passed. A wake-up is itself late, by some 20 us on a quiet machine (Linux, measured), so a small part
//! of each tolerance is kept for that: see [`planned`]. The latest wake-up that suits all timers is the
//! earliest end of what remains. Every timer whose deadline has passed by then is reported with it. No
//! other choice needs fewer wake-ups, because each wake-up is such an end that no earlier wake-up could
//! serve.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use crate::interest::Token;

/// The timers that have not been reported.
#[derive(Debug, Default)]
pub(super) struct Timers {
    windows: HashMap<Token, TimerWindow>,
    /// The same timers, ordered by the earliest and by the latest time of their report.
    from: BTreeSet<(Instant, Token)>,
    until: BTreeSet<(Instant, Token)>,
}

/// The time in which a timer should be reported.
#[derive(Clone, Copy, Debug)]
struct TimerWindow {
    from: Instant,
    until: Instant,
}

impl Timers {
    /// Adds a timer. Returns `false` if the token has one already.
    pub(super) fn add(&mut self, token: Token, deadline: Instant, tolerance: Duration) -> bool {
        if self.windows.contains_key(&token) {
            return false;
        }
        // A longer tolerance than a century could exceed the range of `Instant`.
        let until = deadline.checked_add(planned(tolerance.min(TOLERANCE_MAX))).unwrap_or(deadline);
        self.windows.insert(token, TimerWindow { from: deadline, until });
        self.from.insert((deadline, token));
        self.until.insert((until, token));
        true
    }

    /// Deletes a timer. Returns `false` if the token has none.
    pub(super) fn delete(&mut self, token: Token) -> bool {
        let Some(window) = self.windows.remove(&token) else { return false };
        self.from.remove(&(window.from, token));
        self.until.remove(&(window.until, token));
        true
    }

    /// Returns the latest time of the next wake-up.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.until.first().map(|(at, _)| *at)
    }

    /// Takes a timer whose deadline has passed.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Token> {
        let (_, token) = *self.from.first().filter(|(at, _)| *at <= now)?;
        self.delete(token);
        Some(token)
    }
}

const TOLERANCE_MAX: Duration = Duration::from_secs(100 * 365 * 86_400);
/// The most that is kept of a tolerance for the lateness of the wake-up itself.
const MARGIN_MAX: Duration = Duration::from_micros(800);

/// Returns the part of a tolerance that a wake-up may use. The rest, an eighth or less, is for the time
/// between the moment for which the wake-up was planned and the report.
fn planned(tolerance: Duration) -> Duration {
    tolerance - (tolerance / 8).min(MARGIN_MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn after(start: Instant, millis: u64) -> Instant {
        start + Duration::from_millis(millis)
    }

    /// Wakes when it has to, and counts.
    fn run(timers: &mut Timers, mut reported: impl FnMut(Token, Instant)) -> usize {
        let mut wakes = 0;
        while let Some(at) = timers.next_at() {
            wakes += 1;
            while let Some(token) = timers.pop(at) {
                reported(token, at);
            }
        }
        wakes
    }

    #[test]
    fn timers_share_wake_up_within_tolerance() {
        let start = Instant::now();
        let mut timers = Timers::default();
        // A hundred deadlines, one millisecond apart. Each timer may fire 10 ms late.
        for number in 0..100 {
            assert!(timers.add(Token(number), after(start, number), Duration::from_millis(10)));
        }
        // Timers 0 to 9 fire at 9.5 ms, 10 to 19 at 19.5 ms, …
        assert_eq!(run(&mut timers, |_, _| ()), 10);
        for number in 0..100 {
            timers.add(Token(number), after(start, number), Duration::ZERO);
        }
        assert_eq!(run(&mut timers, |_, _| ()), 100);
    }

    #[test]
    fn token_has_at_most_one_timer() {
        let start = Instant::now();
        let mut timers = Timers::default();
        assert!(timers.add(Token(1), start, Duration::MAX));
        assert!(!timers.add(Token(1), start, Duration::ZERO));
        assert!(timers.delete(Token(1)) && !timers.delete(Token(1)));
        assert_eq!((timers.next_at(), timers.pop(start)), (None, None));
    }

    proptest! {
        /// Each timer is reported once, neither early nor after its tolerance, and with the fewest
        /// possible wake-ups.
        #[test]
        fn timers_fire_once_in_time_with_fewest_wake_ups(
            all in prop::collection::vec((0..200u64, 0..50u64), 0..60),
        ) {
            let start = Instant::now();
            let mut timers = Timers::default();
            for (number, &(at, tolerance)) in (0..).zip(&all) {
                timers.add(Token(number), after(start, at), Duration::from_millis(tolerance));
            }
            let mut seen = vec![0; all.len()];
            let wakes = run(&mut timers, |token, now| {
                let (at, tolerance) = all[token.0 as usize];
                assert!(now >= after(start, at) && now <= after(start, at + tolerance));
                seen[token.0 as usize] += 1;
            });
            prop_assert!(seen.iter().all(|&times| times == 1));
            // Timers whose tolerances do not overlap cannot share a wake-up. The largest set of such
            // timers gives the fewest possible wake-ups.
            let in_micros = |(at, tolerance)| {
                (at * 1000 + planned(Duration::from_millis(tolerance)).as_micros(), at * 1000)
            };
            let all: Vec<(u128, u64)> = all.iter().map(|&(at, by)| (at.into(), by)).collect();
            let mut ends: Vec<_> = all.into_iter().map(in_micros).collect();
            ends.sort_unstable();
            let mut apart = Vec::new();
            for (end, at) in ends {
                if apart.last().is_none_or(|&last| at > last) {
                    apart.push(end);
                }
            }
            prop_assert_eq!(wakes, apart.len());
        }
    }
}
