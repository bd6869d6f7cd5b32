//! The clocks of POSIX, and the ways to sleep that every Unix has.

#![expect(unsafe_code, reason = "clock_gettime, clock_getres, poll and ppoll")]

use std::io;
use std::time::Duration;

#[cfg(any(target_vendor = "apple", target_os = "freebsd", target_os = "netbsd", target_os = "openbsd"))]
use super::kqueue;
#[cfg(any(target_os = "linux", target_os = "android"))]
use super::linux;
use super::thread_sleep::open_thread_sleep;
use super::types::{Clock, SleepCall, SleepEntry, SleepMethod, TickPeriods, Timebase, ceil_millis};

/// The ways to sleep of this system.
pub(crate) const METHODS: &[SleepEntry] = &[
    (SleepMethod::ThreadSleep, open_thread_sleep),
    #[cfg(not(any(target_vendor = "apple", target_os = "openbsd")))]
    (SleepMethod::ClockNanosleep, clock_nanosleep),
    (SleepMethod::Poll, poll),
    #[cfg(not(target_vendor = "apple"))]
    (SleepMethod::Ppoll, ppoll),
    #[cfg(any(target_os = "linux", target_os = "android"))]
    (SleepMethod::EpollMillis, linux::epoll_millis),
    #[cfg(any(target_os = "linux", target_os = "android"))]
    (SleepMethod::EpollNanos, linux::epoll_nanos),
    #[cfg(any(target_os = "linux", target_os = "android"))]
    (SleepMethod::Timerfd, linux::timerfd),
    #[cfg(any(target_os = "linux", target_os = "android"))]
    (SleepMethod::IoUring, linux::io_uring),
    #[cfg(any(target_vendor = "apple", target_os = "freebsd", target_os = "netbsd", target_os = "openbsd"))]
    (SleepMethod::Kqueue, kqueue::time_out),
    #[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
    (SleepMethod::KqueueTimer, kqueue::timer),
];

/// The way that is least late without a change to the thread.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) const PRECISE: SleepMethod = SleepMethod::Timerfd;
/// See above.
#[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
pub(crate) const PRECISE: SleepMethod = SleepMethod::KqueueTimer;
/// See above.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple", target_os = "freebsd")))]
pub(crate) const PRECISE: SleepMethod = SleepMethod::ThreadSleep;

#[cfg(not(target_os = "netbsd"))]
const THREAD_CPU_TIME: libc::clockid_t = libc::CLOCK_THREAD_CPUTIME_ID;
/// The libc crate lacks it (`CLOCK_THREAD_CPUTIME_ID` of NetBSD's `sys/time.h`).
#[cfg(target_os = "netbsd")]
const THREAD_CPU_TIME: libc::clockid_t = 0x2000_0000;

/// Reads a clock, in nanoseconds since a moment that does not change.
///
/// # Errors
/// This system has no such clock.
pub(crate) fn read(clock: Clock) -> io::Result<u64> {
    let time = gettime(id_of(clock).ok_or(io::ErrorKind::Unsupported)?)?;
    Ok(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// Returns what clock_getres(2) says about a clock.
pub(crate) fn stated_resolution(clock: Clock) -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills in the structure, and refuses a clock that it does not have.
    let answer = unsafe { libc::clock_getres(id_of(clock)?, &mut time) };
    (answer == 0).then(|| duration(time))
}

/// Returns the CPU time of the calling thread.
///
/// # Errors
/// The kernel does not count it.
pub(crate) fn thread_cpu_time() -> io::Result<Duration> {
    gettime(THREAD_CPU_TIME)
}

/// Returns the timer slack of the calling thread; zero under real-time scheduling (prctl(2),
/// `PR_GET_TIMERSLACK`).
pub(crate) fn timer_slack() -> Option<Duration> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let slack = rustix::thread::current_timer_slack().ok().map(Duration::from_nanos);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let slack = None;
    slack
}

/// Only Windows has a tick.
pub(crate) const fn tick_periods() -> Option<TickPeriods> {
    None
}

/// Returns the unit of `mach_absolute_time`.
pub(crate) fn timebase() -> Option<Timebase> {
    #[cfg(target_vendor = "apple")]
    {
        let mut base = MachTimebase { numer: 0, denom: 0 };
        // SAFETY: the call fills in the structure.
        let answer = unsafe { mach_timebase_info(&mut base) };
        (answer == 0).then_some(Timebase { numer: base.numer, denom: base.denom })
    }
    #[cfg(not(target_vendor = "apple"))]
    {
        None
    }
}

/// `mach_timebase_info_data_t` of `mach/mach_time.h`; the libc crate sends its users elsewhere for it.
#[cfg(target_vendor = "apple")]
#[repr(C)]
struct MachTimebase {
    numer: u32,
    denom: u32,
}

#[cfg(target_vendor = "apple")]
unsafe extern "C" {
    fn mach_timebase_info(base: *mut MachTimebase) -> libc::c_int;
}

/// Returns the number of a clock, if this system has it.
fn id_of(clock: Clock) -> Option<libc::clockid_t> {
    match clock {
        // The clock of `Instant`.
        #[cfg(target_vendor = "apple")]
        Clock::Monotonic => Some(libc::CLOCK_UPTIME_RAW),
        #[cfg(not(target_vendor = "apple"))]
        Clock::Monotonic => Some(libc::CLOCK_MONOTONIC),
        #[cfg(any(target_os = "linux", target_os = "android"))]
        Clock::MonotonicCoarse => Some(libc::CLOCK_MONOTONIC_COARSE),
        #[cfg(target_os = "freebsd")]
        Clock::MonotonicCoarse => Some(libc::CLOCK_MONOTONIC_FAST),
        #[cfg(target_vendor = "apple")]
        Clock::MonotonicCoarse => Some(libc::CLOCK_MONOTONIC_RAW_APPROX),
        #[cfg(not(any(
            target_os = "linux",
            target_os = "android",
            target_os = "freebsd",
            target_vendor = "apple"
        )))]
        Clock::MonotonicCoarse => None,
        Clock::Realtime => Some(libc::CLOCK_REALTIME),
    }
}

fn gettime(id: libc::clockid_t) -> io::Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills in the structure, and refuses a clock that it does not have.
    match unsafe { libc::clock_gettime(id, &mut time) } {
        0 => Ok(duration(time)),
        _ => Err(io::Error::last_os_error()),
    }
}

fn duration(time: libc::timespec) -> Duration {
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// Prepares clock_nanosleep(2) with an absolute time.
#[cfg(not(any(target_vendor = "apple", target_os = "openbsd")))]
#[expect(clippy::unnecessary_wraps, reason = "the form of the table")]
fn clock_nanosleep() -> io::Result<SleepCall> {
    use rustix::thread::{ClockId, clock_nanosleep_absolute};

    Ok(Box::new(|time| {
        let until = gettime(libc::CLOCK_MONOTONIC)?.saturating_add(time);
        Ok(clock_nanosleep_absolute(ClockId::Monotonic, &crate::sys::time::timespec(until))?)
    }))
}

/// Prepares poll(2), whose time is in milliseconds.
#[expect(clippy::unnecessary_wraps, reason = "the form of the table")]
fn poll() -> io::Result<SleepCall> {
    Ok(Box::new(|time| {
        let millis = ceil_millis(time).try_into().unwrap_or(i32::MAX);
        // SAFETY: the list is empty.
        checked(unsafe { libc::poll(std::ptr::null_mut(), 0, millis) })
    }))
}

/// Prepares ppoll(2).
#[cfg(not(target_vendor = "apple"))]
#[expect(clippy::unnecessary_wraps, reason = "the form of the table")]
fn ppoll() -> io::Result<SleepCall> {
    Ok(Box::new(|time| {
        let time = libc::timespec {
            tv_sec: time.as_secs().try_into().unwrap_or(i32::MAX.into()),
            tv_nsec: time.subsec_nanos() as _,
        };
        // SAFETY: the list is empty, the time outlives the call, and there is no mask.
        checked(unsafe { libc::ppoll(std::ptr::null_mut(), 0, &time, std::ptr::null()) })
    }))
}

/// Turns the result of a call that returns a negative number after a failure.
fn checked(answer: i32) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
