//! `Sleeper`: sleeps until a deadline, with a chosen precision.

use std::fmt;
use std::hint::spin_loop;
use std::io;
use std::time::{Duration, Instant};

use crate::sys::clock::{self, SleepCall, SleepMethod};

/// The longest spin of a [precise](Sleeper::precise) or [thrifty](Sleeper::thrifty) sleeper by
/// default.
pub const SPIN_DEFAULT: Duration = Duration::from_micros(60);

/// The longest spin: practically unlimited, and short enough for the arithmetic.
const SPIN_MAX: Duration = Duration::from_secs(365 * 86_400);

/// The precision of a [`Sleeper`], and its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Precision {
    /// The sleep of the thread, [`std::thread::sleep`]: no descriptor, and as late as slack and tick say.
    Cheap,
    /// The best timer of the system that ignores slack and tick, set earlier by the time that wake-ups take
    /// at least.
    Precise,
    /// The same timer, set earlier by the time that most wake-ups take, and then a spin, which uses the
    /// processor.
    Thrifty,
}

/// Sleeps until a deadline. It is never early.
///
/// | precision | 100 us on Linux | 1 ms | CPU time of a sleep |
/// | --- | --- | --- | --- |
/// | [`cheap`](Self::cheap) | 75 to 100 us late | 80 to 115 us late | 20 to 30 us |
/// | [`precise`](Self::precise) | 5 to 10 us late | 10 to 20 us late | 20 to 30 us |
/// | [`thrifty`](Self::thrifty) | less than 1 us late | the same, up to 10 us if busy | 30 to 50 us |
///
/// The figures are medians on a virtual machine with Linux 6.18, the higher ones with other work.
/// The timer slack of 50 us is most of the difference between the first two rows. The rest is the
/// time to wake up, of which `precise` leaves out the part that nearly every wake-up takes.
///
/// - Linux: `precise` is a timer descriptor. Timer slack does not apply to it (measured), so the slack of
///   the thread, which children inherit, is left as it is.
/// - macOS, FreeBSD: a timer of a kqueue. NetBSD, OpenBSD: the sleep of the thread.
/// - Windows: a high-resolution waitable timer (Windows 10, version 1803; learn.microsoft.com,
///   `CreateWaitableTimerExW`); earlier versions: the sleep of the thread, which ends at a tick. How late
///   either is was not measured: Wine cannot show it.
///
/// If the timer cannot be made, because no descriptor is free or a sandbox refuses it, or if it fails
/// later, the sleeper uses the sleep of the thread from then on. [`method`](Self::method) tells.
///
/// ```
/// use minder::clock::{Precision, Sleeper};
/// use std::time::{Duration, Instant};
///
/// for mut sleeper in [Sleeper::cheap(), Sleeper::precise(), Sleeper::thrifty()] {
///     let begin = Instant::now();
///     let late = sleeper.sleep(Duration::from_micros(300));
///     assert!(begin.elapsed() >= Duration::from_micros(300));
///     let deadline = Instant::now() + Duration::from_millis(1);
///     sleeper.sleep_until(deadline);
///     assert!(Instant::now() >= deadline);
///     println!("{:?} by {}: {late:?} late", sleeper.precision(), sleeper.method());
/// }
/// let mut sleeper = Sleeper::new(Precision::Thrifty).max_spin(Duration::from_micros(20));
/// assert!(sleeper.lead() <= Duration::from_micros(80));
/// ```
#[must_use = "it does nothing by itself"]
pub struct Sleeper {
    precision: Precision,
    method: SleepMethod,
    call: SleepCall,
    lead: Lead,
    max_spin: Duration,
}

/// The time before a deadline at which the timer expires. If the wake-up comes before the deadline,
/// a spin does the rest.
#[derive(Clone, Copy, Debug)]
struct Lead {
    now: Duration,
    min: Duration,
    max: Duration,
    /// The time by which it becomes longer after a wake-up after the deadline, and that by which it
    /// becomes shorter after another.
    up: Duration,
    down: Duration,
}

impl Sleeper {
    /// Creates a sleeper, and opens what it needs.
    pub fn new(precision: Precision) -> Self {
        let method = match precision {
            Precision::Cheap => SleepMethod::ThreadSleep,
            Precision::Precise | Precision::Thrifty => clock::PRECISE,
        };
        let max_spin = SPIN_DEFAULT;
        let lead = Lead::new(precision, max_spin);
        match method.open() {
            Ok(call) => Self { precision, method, call, lead, max_spin },
            Err(_) => Self {
                precision,
                method: SleepMethod::ThreadSleep,
                call: clock::thread_sleep(),
                lead,
                max_spin,
            },
        }
    }

    /// Creates a sleeper that uses the sleep of the thread. It needs no descriptor.
    pub fn cheap() -> Self {
        Self::new(Precision::Cheap)
    }

    /// Creates a sleeper that uses the best timer of the system. It has one descriptor or handle.
    ///
    /// The timer is set earlier by what nine of ten wake-ups took at least so far. The tenth comes before the
    /// deadline, and spins for the rest: some microseconds.
    pub fn precise() -> Self {
        Self::new(Precision::Precise)
    }

    /// Creates a sleeper that uses the best timer for most of the time, and then spins for at most
    /// [`SPIN_DEFAULT`], or [`max_spin`](Self::max_spin).
    ///
    /// The timer is set earlier by what four of five wake-ups took at most so far. So four of five come
    /// before the deadline, and spin for the rest. The bound is one of the CPU time, not of the lateness: if
    /// wake-ups take more than four times as long, they end late.
    pub fn thrifty() -> Self {
        Self::new(Precision::Thrifty)
    }

    /// Sets how long the sleeper spins at most for each sleep, unless it is cheap: that one never spins. Its
    /// timer is set earlier than the deadline by at most four times as long: a wake-up takes most of that.
    /// Zero: it never spins, and the timer is set to the deadline itself.
    pub fn max_spin(mut self, max: Duration) -> Self {
        let max = max.min(SPIN_MAX);
        self.lead = Lead::new(self.precision, max);
        self.max_spin = max;
        self
    }

    /// Returns the precision that was chosen.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Returns the mechanism in use.
    pub fn method(&self) -> SleepMethod {
        self.method
    }

    /// Returns how long before its deadline the timer of the next sleep expires; zero if it is cheap.
    pub fn lead(&self) -> Duration {
        self.lead.now
    }

    /// Sleeps for this time. Returns how late it returns.
    pub fn sleep(&mut self, time: Duration) -> Duration {
        // The clock can represent no deadline so far ahead; the thread may as well sleep for a century.
        let now = Instant::now();
        let deadline = now.checked_add(time).unwrap_or_else(|| now + Duration::from_secs(100 * 365 * 86_400));
        self.sleep_until(deadline)
    }

    /// Sleeps until the deadline. Returns how late it returns, and at once if the deadline has passed.
    pub fn sleep_until(&mut self, deadline: Instant) -> Duration {
        let lead = self.lead();
        let mut now = Instant::now();
        // A timer may expire early, and a signal may end it: only the clock decides.
        loop {
            if now >= deadline {
                return now - deadline;
            }
            let left = deadline - now;
            if left > lead {
                self.wait(left - lead);
                now = Instant::now();
                self.lead.adapt(now > deadline);
                continue;
            }
            if left > self.max_spin {
                // An unusually fast wake-up, or a short sleep.
                self.wait(left - self.max_spin);
            } else {
                spin_loop();
            }
            now = Instant::now();
        }
    }

    /// Waits once, by a mechanism that may fail.
    fn wait(&mut self, time: Duration) {
        match (self.call)(time) {
            Ok(()) => (),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(_) => {
                self.method = SleepMethod::ThreadSleep;
                self.call = clock::thread_sleep();
            }
        }
    }
}

impl Lead {
    /// Returns the first lead of a sleeper that spins for at most `max`.
    fn new(precision: Precision, max: Duration) -> Self {
        match precision {
            Precision::Cheap => Self {
                now: Duration::ZERO,
                min: Duration::ZERO,
                max: Duration::ZERO,
                up: Duration::ZERO,
                down: Duration::ZERO,
            },
            // Nine steps up are one step down: one wake-up of ten is before the deadline.
            Precision::Precise => {
                Self { now: max / 8, min: Duration::ZERO, max: 4 * max, up: max / 144, down: max / 16 }
            }
            // A step up is four steps down: four wake-ups of five are before the deadline.
            Precision::Thrifty => Self { now: max, min: max / 8, max: 4 * max, up: max / 16, down: max / 64 },
        }
    }

    /// Makes the lead longer after a wake-up after the deadline, and shorter after another.
    fn adapt(&mut self, is_too_late: bool) {
        self.now = if is_too_late {
            self.now.saturating_add(self.up).min(self.max)
        } else {
            self.now.saturating_sub(self.down).max(self.min)
        };
    }
}

impl fmt::Debug for Sleeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleeper")
            .field("precision", &self.precision)
            .field("method", &self.method)
            .field("lead", &self.lead)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing() -> SleepCall {
        Box::new(|_| Err(io::ErrorKind::InvalidInput.into()))
    }

    #[test]
    fn sleeper_uses_thread_sleep_after_a_failure_and_is_not_early() {
        for precision in [Precision::Precise, Precision::Thrifty] {
            let lead = Lead::new(precision, SPIN_DEFAULT);
            let max_spin = SPIN_DEFAULT;
            let mut sleeper = Sleeper { precision, method: clock::PRECISE, call: failing(), lead, max_spin };
            let deadline = Instant::now() + Duration::from_millis(3);
            sleeper.sleep_until(deadline);
            assert!(Instant::now() >= deadline);
            assert_eq!(sleeper.method(), SleepMethod::ThreadSleep);
        }
    }

    #[test]
    fn sleeper_waits_again_when_its_mechanism_ends_early() {
        let lead = Lead::new(Precision::Precise, Duration::ZERO);
        let mut calls = 0;
        let early: SleepCall = Box::new(move |_| {
            calls += 1;
            if calls % 2 == 0 { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
        });
        let mut sleeper = Sleeper {
            precision: Precision::Precise,
            method: clock::PRECISE,
            call: early,
            lead,
            max_spin: Duration::ZERO,
        };
        let deadline = Instant::now() + Duration::from_millis(2);
        sleeper.sleep_until(deadline);
        assert!(Instant::now() >= deadline);
        assert_eq!(sleeper.method(), clock::PRECISE);
    }

    #[test]
    fn lead_stays_within_its_limits() {
        let max = Duration::from_micros(64);
        for (precision, min) in [(Precision::Precise, Duration::ZERO), (Precision::Thrifty, max / 8)] {
            let mut lead = Lead::new(precision, max);
            for _ in 0..1_000 {
                lead.adapt(false);
            }
            assert_eq!(lead.now, min);
            for _ in 0..1_000 {
                lead.adapt(true);
            }
            assert_eq!(lead.now, 4 * max);
        }
        let mut cheap = Lead::new(Precision::Cheap, max);
        cheap.adapt(false);
        cheap.adapt(true);
        assert_eq!(cheap.now, Duration::ZERO);
    }

    #[test]
    fn spin_of_any_length_is_accepted() {
        for sleeper in [Sleeper::cheap(), Sleeper::precise(), Sleeper::thrifty()] {
            let mut sleeper = sleeper.max_spin(Duration::MAX);
            for _ in 0..2 {
                let begun = Instant::now();
                sleeper.sleep(Duration::from_millis(1));
                assert!(begun.elapsed() >= Duration::from_millis(1));
            }
        }
    }

    /// The share of early wake-ups decides the length of the lead in the end.
    #[test]
    fn lead_balances_at_its_share_of_early_wake_ups() {
        for (precision, share) in [(Precision::Precise, 0.1), (Precision::Thrifty, 0.8)] {
            let mut lead = Lead::new(precision, SPIN_DEFAULT);
            let mut seed: u64 = 1;
            let mut early = 0;
            for round in 0..20_000 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let late = Duration::from_nanos((seed >> 33) % 50_000);
                if round >= 10_000 {
                    early += u32::from(late <= lead.now);
                }
                lead.adapt(late > lead.now);
            }
            let found = f64::from(early) / 10_000.0;
            assert!((found - share).abs() < 0.05, "{precision:?}: {found}");
        }
    }
}
