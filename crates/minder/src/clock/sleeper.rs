//! `Sleeper`: sleeps until a deadline, with a chosen precision.

use std::fmt;
use std::hint::spin_loop;
use std::io;
use std::time::{Duration, Instant};

use crate::sys::clock::{self, SleepCall, SleepMethod};

/// How long a [thrifty](Sleeper::thrifty) sleeper spins at most.
pub const SPIN_DEFAULT: Duration = Duration::from_micros(60);

/// How exact a [`Sleeper`] is, and at what cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Precision {
    /// The sleep of the thread, [`std::thread::sleep`]: no descriptor, and as late as slack and tick say.
    Cheap,
    /// The best timer of the system that ignores slack and tick.
    Precise,
    /// The same timer for most of the time, and then a spin, which uses the processor.
    Thrifty,
}

/// Sleeps until a deadline. It is never early.
///
/// | precision | 100 us on Linux | 1 ms | CPU time of a sleep |
/// | --- | --- | --- | --- |
/// | [`cheap`](Self::cheap) | 75 to 100 us late | 80 to 115 us late | 20 to 30 us |
/// | [`precise`](Self::precise) | 20 to 55 us late | 25 to 65 us late | 20 to 40 us |
/// | [`thrifty`](Self::thrifty) | less than 1 us late | the same, up to 10 us if busy | 30 to 50 us |
///
/// The figures are medians on a virtual machine with Linux 6.18, the higher ones beside other work. The
/// timer slack of 50 us is the difference between the first two rows; the rest is the time to wake up.
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
/// let sleeper = Sleeper::new(Precision::Thrifty).max_spin(Duration::from_micros(20));
/// assert!(sleeper.spin() <= Duration::from_micros(20));
/// ```
#[must_use = "it does nothing by itself"]
pub struct Sleeper {
    precision: Precision,
    method: SleepMethod,
    call: SleepCall,
    lead: Lead,
}

/// How long before a deadline the timer expires, so that a spin can do the rest.
#[derive(Clone, Copy, Debug)]
struct Lead {
    now: Duration,
    max: Duration,
}

impl Sleeper {
    /// Creates a sleeper, and opens what it needs.
    pub fn new(precision: Precision) -> Self {
        let method = match precision {
            Precision::Cheap => SleepMethod::ThreadSleep,
            Precision::Precise | Precision::Thrifty => clock::PRECISE,
        };
        let lead = Lead { now: SPIN_DEFAULT, max: SPIN_DEFAULT };
        match method.open() {
            Ok(call) => Self { precision, method, call, lead },
            Err(_) => Self { precision, method: SleepMethod::ThreadSleep, call: clock::thread_sleep(), lead },
        }
    }

    /// Creates a sleeper that uses the sleep of the thread. It needs no descriptor.
    pub fn cheap() -> Self {
        Self::new(Precision::Cheap)
    }

    /// Creates a sleeper that uses the best timer of the system. It has one descriptor or handle.
    pub fn precise() -> Self {
        Self::new(Precision::Precise)
    }

    /// Creates a sleeper that uses the best timer for most of the time, and then spins for at most
    /// [`SPIN_DEFAULT`], or [`max_spin`](Self::max_spin).
    ///
    /// The spin is shorter where the timer is: it adapts to the lateness of the sleeps so far, so that
    /// four of five wake-ups come before the deadline. It bounds the CPU time, not the lateness: a wake-up
    /// that comes late by more ends late.
    pub fn thrifty() -> Self {
        Self::new(Precision::Thrifty)
    }

    /// Sets how long a thrifty sleeper spins at most for each sleep. Others never spin.
    pub fn max_spin(mut self, max: Duration) -> Self {
        self.lead = Lead { now: max, max };
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

    /// Returns how long before its deadline the next sleep begins to spin; zero unless it is thrifty.
    pub fn spin(&self) -> Duration {
        match self.precision {
            Precision::Thrifty => self.lead.now,
            Precision::Cheap | Precision::Precise => Duration::ZERO,
        }
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
        let spin = self.spin();
        // A timer may expire early, and a signal may end it: only the clock decides.
        loop {
            let now = Instant::now();
            if now >= deadline {
                return now - deadline;
            }
            let left = deadline - now;
            if left <= spin {
                spin_loop();
                continue;
            }
            self.wait(left - spin);
            if !spin.is_zero() {
                self.lead.adapt(now + (left - spin));
            }
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
    /// Makes the lead longer after a wake-up that was later than it, and shorter otherwise. A step up is
    /// four steps down, which balances where one wake-up of five is too late.
    fn adapt(&mut self, expected: Instant) {
        let is_too_late = Instant::now().saturating_duration_since(expected) > self.now;
        self.now = if is_too_late {
            self.now.saturating_add(self.max / 16).min(self.max)
        } else {
            self.now.saturating_sub(self.max / 64).max(self.max / 8)
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
        let lead = Lead { now: SPIN_DEFAULT, max: SPIN_DEFAULT };
        for precision in [Precision::Precise, Precision::Thrifty] {
            let mut sleeper = Sleeper { precision, method: clock::PRECISE, call: failing(), lead };
            let deadline = Instant::now() + Duration::from_millis(3);
            sleeper.sleep_until(deadline);
            assert!(Instant::now() >= deadline);
            assert_eq!(sleeper.method(), SleepMethod::ThreadSleep);
        }
    }

    #[test]
    fn sleeper_waits_again_when_its_mechanism_ends_early() {
        let lead = Lead { now: Duration::ZERO, max: Duration::ZERO };
        let mut calls = 0;
        let early: SleepCall = Box::new(move |_| {
            calls += 1;
            if calls % 2 == 0 { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
        });
        let mut sleeper =
            Sleeper { precision: Precision::Precise, method: clock::PRECISE, call: early, lead };
        let deadline = Instant::now() + Duration::from_millis(2);
        sleeper.sleep_until(deadline);
        assert!(Instant::now() >= deadline);
        assert_eq!(sleeper.method(), clock::PRECISE);
    }

    #[test]
    fn lead_stays_between_an_eighth_and_the_whole_spin() {
        let max = Duration::from_micros(64);
        let mut lead = Lead { now: max, max };
        for _ in 0..1_000 {
            lead.adapt(Instant::now() + Duration::from_secs(1));
        }
        assert_eq!(lead.now, max / 8);
        let long_ago = Instant::now().checked_sub(Duration::from_millis(1)).expect("a clock that runs");
        for _ in 0..1_000 {
            lead.adapt(long_ago);
        }
        assert_eq!(lead.now, max);
    }
}
