//! Clocks, sleeps and ticks: what the system states, what it really does, and sleeps that are exact.
//!
//! A sleep never ends at its deadline. On Linux the kernel adds the *timer slack* of the thread, 50 us by
//! default, so that timers can share an interrupt (prctl(2), `PR_SET_TIMERSLACK`). On Windows most waits
//! end at a *tick*, every 15.6 ms by default. macOS adds a *leeway* (kqueue(2), `NOTE_LEEWAY`).
//!
//! - [`resolution`] returns what the system states.
//! - [`measure_clock`], [`measure_sleep`] and [`measure_sleeper`] return what it does.
//! - [`Sleeper`] sleeps until a deadline, and is never early. It changes neither the slack of the thread
//!   nor the tick.
//! - [`Interval`] reports ticks whose schedule does not drift.
//! - [`TimerResolution`] requests a faster tick for the rest of a program, and ends the request.
//!
//! Nothing here changes what a child inherits: timer slack is inherited over fork(2) and execve(2).
//! [`Command::timer_slack`](crate::Command::timer_slack) sets it for a child.
//!
//! ```
//! use minder::clock::{Interval, MissedTicks, Sleeper};
//! use std::time::Duration;
//!
//! let mut interval = Interval::new(Duration::from_millis(2)).missed_ticks(MissedTicks::Skip);
//! for _ in 0..3 {
//!     let tick = interval.tick();
//!     println!("{:?} late", tick.late);
//! }
//! let late = Sleeper::thrifty().sleep(Duration::from_millis(1));
//! println!("{late:?} late");
//! ```

mod resolution;
mod clock_cost;
mod sleeper;
mod sleep_sample;
mod interval;
mod timer_resolution;

pub use self::{
    clock_cost::{ClockCost, measure_clock},
    interval::{Interval, MissedTicks, Tick},
    resolution::{Resolution, resolution},
    sleep_sample::{SLEEP_MAX, SleepSample, measure_sleep, measure_sleeper},
    sleeper::{Precision, SPIN_DEFAULT, Sleeper},
    timer_resolution::TimerResolution,
};
pub use crate::sys::clock::{Clock, SleepMethod, TickPeriods, Timebase};
