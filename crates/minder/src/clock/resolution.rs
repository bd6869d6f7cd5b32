//! The properties of clocks and timers that the operating system states.

use std::time::Duration;

use crate::sys::clock::{self, Clock, TickPeriods, Timebase};

/// The properties of clocks and timers that the operating system states: see [`resolution`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolution {
    /// The unit of [`Clock::Monotonic`], and of deadlines. It says nothing about how late a sleep ends.
    pub monotonic: Option<Duration>,
    /// The step of [`Clock::MonotonicCoarse`].
    pub monotonic_coarse: Option<Duration>,
    /// The unit of [`Clock::Realtime`].
    pub realtime: Option<Duration>,
    /// The timer slack of the calling thread, in addition to which most of its sleeps are late. Linux.
    pub timer_slack: Option<Duration>,
    /// The periods of the timer tick. Windows.
    pub tick: Option<TickPeriods>,
    /// The unit of the clock of the kernel. macOS.
    pub timebase: Option<Timebase>,
}

/// Returns what the operating system states. A field is `None` where a system states nothing.
///
/// - Unix: clock_getres(2) for the clocks.
/// - Linux: prctl(2) with `PR_GET_TIMERSLACK`. It is zero for a thread with a real-time or deadline
///   scheduling policy, whose sleeps have no slack (measured on 6.18).
/// - macOS: `mach_timebase_info`.
/// - Windows: `QueryPerformanceFrequency` for the monotonic clock; 100 ns is the unit of
///   `GetSystemTimePreciseAsFileTime` (learn.microsoft.com). `NtQueryTimerResolution`, which Microsoft
///   does not document, for the tick. Wine answers with constants.
///
/// ```
/// use minder::clock::{Resolution, resolution};
/// use std::time::Duration;
///
/// let stated: Resolution = resolution();
/// assert!(stated.monotonic.is_none_or(|unit| unit < Duration::from_millis(20)));
/// assert_eq!(stated.timer_slack.is_some(), cfg!(target_os = "linux"));
/// if let Some(tick) = stated.tick {
///     assert!(tick.shortest <= tick.current && tick.current <= tick.longest);
/// }
/// assert!(stated.timebase.is_none_or(|base| base.numer > 0 && base.denom > 0));
/// ```
#[must_use]
pub fn resolution() -> Resolution {
    Resolution {
        monotonic: clock::stated_resolution(Clock::Monotonic),
        monotonic_coarse: clock::stated_resolution(Clock::MonotonicCoarse),
        realtime: clock::stated_resolution(Clock::Realtime),
        timer_slack: clock::timer_slack(),
        tick: clock::tick_periods(),
        timebase: clock::timebase(),
    }
}
