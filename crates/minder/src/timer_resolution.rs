//! `TimerResolution`: a faster tick of the system, for those who need it.

use std::time::Duration;

use crate::sys::timer_resolution;
use crate::{Error, ErrorKind, Result};

/// A faster tick of the system's clock, for as long as this lives.
///
/// Windows lets threads that wait for a time go on at a tick: every 15.6 ms by default, so that a
/// time-out of 1 ms may last
/// 16. Waits of this library do not need a faster one where there are high-resolution timers
///     (Windows 10, version 1803, and
/// later); nothing of this library asks for one by itself. It is for the rest of a program: sleeps,
/// time-outs of other libraries.
///
/// It costs power, since the processor wakes at each tick. Before Windows 10, version 2004, the
/// fastest tick that any process asks for is everybody's; since then each has its own
/// (learn.microsoft.com, `timeBeginPeriod`). Several may live at the same time; the fastest counts.
///
/// - Other systems: `Unsupported`; their timers know no tick.
///
/// ```
/// use minder::{ErrorKind, TickPeriod};
/// use std::time::Duration;
/// match TickPeriod::request(Duration::from_millis(1)) {
///     Ok(period) => drop(period),
///     Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported),
/// }
/// ```
#[derive(Debug)]
#[must_use = "it lasts as long as it is kept"]
pub struct TimerResolution {
    millis: u32,
}

impl TimerResolution {
    /// Asks for a tick that comes this often, in whole milliseconds, rounded down; less than one is
    /// one.
    ///
    /// # Errors
    /// `InvalidInput` for what the system does not offer; `Unsupported` where there is no tick to
    /// ask for.
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

    /// How often the tick comes at least.
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
    fn a_period_is_whole_milliseconds_and_several_may_live() {
        let (first, second) = match TimerResolution::request(Duration::from_micros(1_900)) {
            Ok(first) => (first, TimerResolution::request(Duration::ZERO).expect("another one")),
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
