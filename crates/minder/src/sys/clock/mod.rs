//! Clocks and sleeps: what the system states, how to read its clocks, and each way to sleep.
//!
//! To add a way to sleep, write a function that returns a [`SleepCall`], and add a line to `METHODS` of
//! the system and a variant to [`SleepMethod`]. The measurements and the tests read the table.

mod types;
mod thread_sleep;
#[cfg(any(target_vendor = "apple", target_os = "freebsd", target_os = "netbsd", target_os = "openbsd"))]
mod kqueue;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use self::unix as system;
#[cfg(windows)]
use self::windows as system;

pub(crate) use self::system::{
    METHODS, PRECISE, read, stated_resolution, thread_cpu_time, tick_periods, timebase, timer_slack,
};
pub(crate) use self::thread_sleep::thread_sleep;
pub(crate) use self::types::SleepCall;
pub use self::types::{Clock, SleepMethod, TickPeriods, Timebase};
