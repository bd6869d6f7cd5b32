//! `TimerResolution`: a faster timer tick on Windows.

use std::time::Duration;

use crate::sys::timer_resolution;
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
/// has its own (learn.microsoft.com, `timeBeginPeriod`). Several requests may exist at the same time;
/// the fastest applies.
///
/// - Other systems: `Unsupported`; their timers have no tick.
///
/// ```
/// use minder::{ErrorKind, TimerResolution};
/// use std::time::Duration;
/// match TimerResolution::request(Duration::from_millis(1)) {
///     Ok(resolution) => assert_eq!(resolution.period(), Duration::from_millis(1)),
///     Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported),
/// }
/// ```
#[derive(Debug)]
#[must_use = "it lasts as long as it is kept"]
pub struct TimerResolution {
    millis: u32,
}

impl TimerResolution {
    /// Requests a tick with this period in whole milliseconds, rounded down, and at least one.
    ///
    /// # Errors
    /// - `InvalidInput`: the operating system does not offer this period.
    /// - `Unsupported`: the timers of the operating system have no tick.
    pub fn request(period: Duration) -> Result<Self> {
        let millis = u32::try_from(period.as_millis()).unwrap_or(u32::MAX).max(1);
        match timer_resolution::begin(millis) {
            Ok(()) => Ok(Self { millis }),
            Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
                let cause = "the system offers no tick of this length";
                Err(Error::of_kind(ErrorKind::InvalidInput, "ask for a tick every", cause)
                    .with_subject(format!("{millis} ms")))
            }
            Err(error) => Err(Error::new("ask for a faster tick", error)),
        }
    }

    /// Returns the longest time between two ticks.
    pub fn period(&self) -> Duration {
        Duration::from_millis(self.millis.into())
    }
}

impl Drop for TimerResolution {
    fn drop(&mut self) {
        timer_resolution::end(self.millis);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_rounds_down_and_may_be_repeated() {
        let (first, second) = match TimerResolution::request(Duration::from_micros(1_900)) {
            Ok(first) => {
                (first, TimerResolution::request(Duration::ZERO).expect("request a second resolution"))
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
                return;
            }
        };
        assert_eq!((first.period(), second.period()), (Duration::from_millis(1), Duration::from_millis(1)));
        drop(first);
        assert_eq!(second.period(), Duration::from_millis(1));
    }
}
