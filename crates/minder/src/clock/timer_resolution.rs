//! `TimerResolution`: a faster timer tick on Windows.

use std::time::Duration;

use crate::sys::timer_resolution::TickRequest;
use crate::{Error, ErrorKind, Result};

/// A request for a faster timer tick of Windows. It ends when this is dropped.
///
/// Windows ends timed waits at a tick, every 15.6 ms by default: a time-out of 1 ms may last 16 ms.
/// Waits of this library do not depend on the tick where the operating system has high-resolution
/// timers (Windows 10, version 1803, and later), and this library never requests a faster one by
/// itself. It is for the rest of a program: sleeps, and time-outs of other libraries.
///
/// A faster tick costs power, because the processor wakes at each tick. Before Windows 10, version
/// 2004, the fastest tick that any process requests applies to all processes; since then each process
/// has its own. On Windows 11 a process whose windows are all hidden may get none
/// (learn.microsoft.com, `timeBeginPeriod`). Several requests may exist at the same time; the fastest
/// applies. Wine has no tick, so the tests cannot show the effect of a request.
///
/// Whole milliseconds are requested by `timeBeginPeriod`. A shorter period is requested by
/// `NtSetTimerResolution`, which Microsoft does not document: when the last such request ends, a request
/// that other code of the process made by `timeBeginPeriod` may end with it.
///
/// - Other systems: `Unsupported`; their timers have no tick.
///
/// ```
/// use minder::ErrorKind;
/// use minder::clock::TimerResolution;
/// use std::time::Duration;
/// match TimerResolution::request(Duration::from_millis(1)) {
///     Ok(resolution) => assert_eq!(resolution.period(), Duration::from_millis(1)),
///     Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported),
/// }
/// ```
#[derive(Debug)]
#[must_use = "it lasts as long as it is kept"]
pub struct TimerResolution(TickRequest);

impl TimerResolution {
    /// Requests a tick with this period in whole milliseconds, rounded down. A period below 1 ms requests
    /// that period, or the fastest tick of the system if that is slower; 0.5 ms on most machines.
    ///
    /// # Errors
    /// - `InvalidInput`: the operating system does not offer this period.
    /// - `Unsupported`: the timers of the operating system have no tick.
    pub fn request(period: Duration) -> Result<Self> {
        match TickRequest::new(period) {
            Ok(request) => Ok(Self(request)),
            Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
                let cause = "the system offers no tick of this length";
                Err(Error::of_kind(ErrorKind::InvalidInput, "ask for a tick every", cause)
                    .with_subject(format!("{period:?}")))
            }
            Err(error) => Err(Error::new("ask for a faster tick", error)),
        }
    }

    /// Returns the longest time between two ticks.
    pub fn period(&self) -> Duration {
        self.0.period()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_rounds_down_and_may_be_repeated() {
        let first = match TimerResolution::request(Duration::from_micros(1_900)) {
            Ok(first) => first,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
                return;
            }
        };
        let second = TimerResolution::request(Duration::from_millis(1)).expect("request a second resolution");
        assert_eq!((first.period(), second.period()), (Duration::from_millis(1), Duration::from_millis(1)));
        drop(first);
        assert_eq!(second.period(), Duration::from_millis(1));
    }

    #[test]
    fn request_below_a_millisecond_is_the_fastest_tick_or_refused() {
        let whole = TimerResolution::request(Duration::from_millis(2));
        match TimerResolution::request(Duration::ZERO) {
            Ok(fastest) => assert!(fastest.period() <= Duration::from_millis(1), "{fastest:?}"),
            Err(error) => {
                let expected = [ErrorKind::Unsupported, ErrorKind::InvalidInput];
                assert!(expected.contains(&error.kind()), "{error}");
            }
        }
        // The shorter request has ended before the longer one.
        drop(whole);
    }
}
