//! The clocks and the ways to sleep of Windows.

#![expect(unsafe_code, reason = "clocks, waitable timers and a completion port")]

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::{null, null_mut};
use std::time::Duration;

use windows_sys::Win32::Foundation::{FILETIME, INVALID_HANDLE_VALUE, WAIT_FAILED, WAIT_TIMEOUT};
use windows_sys::Win32::System::IO::{CreateIoCompletionPort, GetQueuedCompletionStatus};
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};
use windows_sys::Win32::System::SystemInformation::GetSystemTimePreciseAsFileTime;
use windows_sys::Win32::System::Threading::{
    CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, CreateWaitableTimerExW, GetCurrentThread, GetThreadTimes,
    INFINITE, SetWaitableTimer, Sleep, TIMER_ALL_ACCESS, WaitForSingleObject,
};
use windows_sys::Win32::System::WindowsProgramming::QueryUnbiasedInterruptTime;

use super::thread_sleep::open_thread_sleep;
use super::types::{Clock, SleepCall, SleepEntry, SleepMethod, TickPeriods, Timebase, ceil_millis};
use crate::sys::last_error::done;
use crate::sys::timer_resolution;

/// The ways to sleep of this system.
pub(crate) const METHODS: &[SleepEntry] = &[
    (SleepMethod::ThreadSleep, open_thread_sleep),
    (SleepMethod::Sleep, sleep),
    (SleepMethod::WaitableTimer, waitable_timer),
    (SleepMethod::HighResolutionTimer, high_resolution_timer),
    (SleepMethod::CompletionPort, completion_port),
];

/// The way that is least late without a change to the process.
pub(crate) const PRECISE: SleepMethod = SleepMethod::HighResolutionTimer;

/// Reads a clock, in nanoseconds since a moment that does not change.
#[expect(clippy::unnecessary_wraps, reason = "the contract's form")]
pub(crate) fn read(clock: Clock) -> io::Result<u64> {
    let nanos = match clock {
        Clock::Monotonic => {
            let mut count = 0;
            // SAFETY: the call fills in a number; it cannot fail since Windows XP (learn.microsoft.com).
            unsafe { QueryPerformanceCounter(&mut count) };
            i128::from(count) * 1_000_000_000 / i128::from(frequency())
        }
        Clock::MonotonicCoarse => {
            let mut units = 0;
            // SAFETY: the call fills in a number, and fails only without a place for it.
            unsafe { QueryUnbiasedInterruptTime(&mut units) };
            i128::from(units) * 100
        }
        Clock::Realtime => {
            let mut time = FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 };
            // SAFETY: the call fills in the structure.
            unsafe { GetSystemTimePreciseAsFileTime(&mut time) };
            // Since 1970: the units since 1601 exceed 64 bits of nanoseconds.
            i128::from(units(time)) * 100 - 11_644_473_600_000_000_000
        }
    };
    Ok(u64::try_from(nanos).unwrap_or(0))
}

/// Returns the unit of a clock. Windows states none for the coarse clock.
pub(crate) fn stated_resolution(clock: Clock) -> Option<Duration> {
    match clock {
        Clock::Monotonic => {
            Some(Duration::from_nanos(1_000_000_000u64.div_ceil(frequency().unsigned_abs().max(1))))
        }
        Clock::MonotonicCoarse => None,
        Clock::Realtime => Some(Duration::from_nanos(100)),
    }
}

/// Returns the CPU time of the calling thread, which Windows counts by ticks of the timer.
///
/// # Errors
/// The system does not answer.
pub(crate) fn thread_cpu_time() -> io::Result<Duration> {
    let zero = FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 };
    let [mut created, mut exited, mut kernel, mut user] = [zero; 4];
    // SAFETY: no arguments; a constant that stands for the calling thread.
    let thread = unsafe { GetCurrentThread() };
    // SAFETY: the call fills in four structures.
    done(unsafe { GetThreadTimes(thread, &mut created, &mut exited, &mut kernel, &mut user) })?;
    Ok(Duration::from_nanos((units(kernel) + units(user)) * 100))
}

/// Windows has no slack of a thread.
pub(crate) const fn timer_slack() -> Option<Duration> {
    None
}

/// Returns the periods of the tick.
pub(crate) fn tick_periods() -> Option<TickPeriods> {
    let [longest, shortest, current] = timer_resolution::query()?;
    Some(TickPeriods { longest, shortest, current })
}

/// Only Apple's systems have one.
pub(crate) const fn timebase() -> Option<Timebase> {
    None
}

fn frequency() -> i64 {
    let mut frequency = 0;
    // SAFETY: the call fills in a number; it cannot fail since Windows XP (learn.microsoft.com).
    unsafe { QueryPerformanceFrequency(&mut frequency) };
    frequency.max(1)
}

/// Returns the units of 100 ns of a time.
fn units(time: FILETIME) -> u64 {
    u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime)
}

/// Prepares `Sleep`.
#[expect(clippy::unnecessary_wraps, reason = "the form of the table")]
fn sleep() -> io::Result<SleepCall> {
    Ok(Box::new(|time| {
        // SAFETY: any number is valid. `millis` never returns `INFINITE`.
        unsafe { Sleep(millis(time)) };
        Ok(())
    }))
}

/// Prepares a waitable timer that ends at a tick.
fn waitable_timer() -> io::Result<SleepCall> {
    timer(0)
}

/// Prepares a waitable timer that does not depend on the tick.
fn high_resolution_timer() -> io::Result<SleepCall> {
    timer(CREATE_WAITABLE_TIMER_HIGH_RESOLUTION)
}

fn timer(flags: u32) -> io::Result<SleepCall> {
    // SAFETY: no attributes, no name. Without the flag for manual reset, so that a wait takes the signal.
    let raw = unsafe { CreateWaitableTimerExW(null(), null(), flags, TIMER_ALL_ACCESS) };
    if raw.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above created the handle, and nothing else owns it.
    let timer = unsafe { OwnedHandle::from_raw_handle(raw) };
    Ok(Box::new(move |time| {
        // Negative: from now on, in units of 100 ns.
        let due = -i64::try_from(time.as_nanos().div_ceil(100)).unwrap_or(i64::MAX);
        // SAFETY: the timer is open, and `due` outlives the call; no routine, no argument, no waking from
        // sleep.
        done(unsafe { SetWaitableTimer(timer.as_raw_handle(), &due, 0, None, null(), 0) })?;
        // SAFETY: the timer is open.
        match unsafe { WaitForSingleObject(timer.as_raw_handle(), INFINITE) } {
            WAIT_FAILED => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }))
}

/// Prepares the time-out of an empty completion port.
fn completion_port() -> io::Result<SleepCall> {
    // SAFETY: no file and no port, which creates a new port.
    let raw = unsafe { CreateIoCompletionPort(INVALID_HANDLE_VALUE, null_mut(), 0, 1) };
    if raw.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above created the handle, and nothing else owns it.
    let port = unsafe { OwnedHandle::from_raw_handle(raw) };
    Ok(Box::new(move |time| {
        let mut bytes = 0;
        let mut key = 0;
        let mut overlapped = null_mut();
        // SAFETY: the port is open, and the call fills in three variables.
        let answer = unsafe {
            GetQueuedCompletionStatus(
                port.as_raw_handle(),
                &mut bytes,
                &mut key,
                &mut overlapped,
                millis(time),
            )
        };
        match done(answer) {
            Err(error) if error.raw_os_error() == Some(WAIT_TIMEOUT.cast_signed()) => Ok(()),
            result => result,
        }
    }))
}

/// Rounds up to milliseconds. The largest number would be no time-out.
fn millis(time: Duration) -> u32 {
    u32::try_from(ceil_millis(time)).unwrap_or(INFINITE).min(INFINITE - 1)
}
