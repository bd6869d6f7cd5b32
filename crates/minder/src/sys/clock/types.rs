//! The clocks, the ways to sleep, and what a system states about its timers: plain data.

use std::fmt;
use std::io;
use std::time::Duration;

/// One way to sleep that is ready for use. It makes one sleep of the mechanism. A signal may end that
/// early, with or without an error.
pub(crate) type SleepCall = Box<dyn FnMut(Duration) -> io::Result<()> + Send + Sync>;

/// A way to sleep of this system, and the function that prepares it.
pub(crate) type SleepEntry = (SleepMethod, fn() -> io::Result<SleepCall>);

/// A clock of the operating system.
///
/// ```
/// use minder::clock::Clock;
///
/// assert_eq!(Clock::ALL.map(Clock::name), ["monotonic", "monotonic-coarse", "realtime"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Clock {
    /// `monotonic`: the clock of [`Instant`](std::time::Instant). Unix: `CLOCK_MONOTONIC`, on Apple's
    /// systems `CLOCK_UPTIME_RAW`. Windows: `QueryPerformanceCounter`.
    Monotonic,
    /// `monotonic-coarse`: a clock that is read cheaply and changes at a tick. Linux:
    /// `CLOCK_MONOTONIC_COARSE`. FreeBSD: `CLOCK_MONOTONIC_FAST`. macOS: `CLOCK_MONOTONIC_RAW_APPROX`.
    /// Windows: `QueryUnbiasedInterruptTime`, which does not count the sleep of the machine; a request for
    /// a faster tick makes its step shorter (learn.microsoft.com). NetBSD and OpenBSD have none.
    MonotonicCoarse,
    /// `realtime`: the date. Unix: `CLOCK_REALTIME`. Windows: `GetSystemTimePreciseAsFileTime`. It may
    /// be set, and may run backwards.
    Realtime,
}

impl Clock {
    /// All clocks, of all operating systems.
    pub const ALL: [Self; 3] = [Self::Monotonic, Self::MonotonicCoarse, Self::Realtime];

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Monotonic => "monotonic",
            Self::MonotonicCoarse => "monotonic-coarse",
            Self::Realtime => "realtime",
        }
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A way to sleep: one mechanism of one operating system.
///
/// [`available`](Self::available) lists those of this system.
///
/// ```
/// use minder::clock::SleepMethod;
///
/// assert!(SleepMethod::available().any(|method| method == SleepMethod::ThreadSleep));
/// for method in SleepMethod::available() {
///     assert_eq!(method.name().parse::<SleepMethod>()?, method);
/// }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SleepMethod {
    /// `thread-sleep`: [`std::thread::sleep`]. Every system. On Windows the standard library uses a
    /// high-resolution timer where there is one.
    ThreadSleep,
    /// `clock-nanosleep`: clock_nanosleep(2) until an absolute time. Linux, FreeBSD, NetBSD.
    ClockNanosleep,
    /// `poll`: poll(2) without descriptors, in milliseconds. Every Unix.
    Poll,
    /// `ppoll`: ppoll(2) without descriptors, in nanoseconds. Unix other than macOS.
    Ppoll,
    /// `epoll-ms`: epoll_wait(2), in milliseconds. Linux.
    EpollMillis,
    /// `epoll-ns`: epoll_pwait2(2), in nanoseconds. Linux 5.11.
    EpollNanos,
    /// `timerfd`: a read of a timer descriptor, timerfd_create(2). Linux. It ignores timer slack.
    Timerfd,
    /// `io_uring`: a time-out on an io_uring(7). Linux 5.4; often forbidden in containers. It ignores
    /// timer slack.
    IoUring,
    /// `kqueue`: the time-out of kevent(2). macOS, FreeBSD, NetBSD, OpenBSD.
    Kqueue,
    /// `kqueue-timer`: a one-shot `EVFILT_TIMER` in nanoseconds. macOS, FreeBSD. On macOS it is
    /// critical, which asks for no leeway (kqueue(2), `NOTE_CRITICAL`).
    KqueueTimer,
    /// `sleep`: `Sleep`, in milliseconds. Windows. It ends at a tick.
    Sleep,
    /// `waitable-timer`: a waitable timer, `CreateWaitableTimerExW`. Windows. It ends at a tick.
    WaitableTimer,
    /// `high-resolution-timer`: the same with `CREATE_WAITABLE_TIMER_HIGH_RESOLUTION`. Windows 10,
    /// version 1803. It does not depend on the tick.
    HighResolutionTimer,
    /// `completion-port`: the time-out of `GetQueuedCompletionStatus`, in milliseconds. Windows. It
    /// ends at a tick.
    CompletionPort,
}

impl SleepMethod {
    /// All ways, of all operating systems.
    pub(crate) const ALL: [Self; 14] = [
        Self::ThreadSleep,
        Self::ClockNanosleep,
        Self::Poll,
        Self::Ppoll,
        Self::EpollMillis,
        Self::EpollNanos,
        Self::Timerfd,
        Self::IoUring,
        Self::Kqueue,
        Self::KqueueTimer,
        Self::Sleep,
        Self::WaitableTimer,
        Self::HighResolutionTimer,
        Self::CompletionPort,
    ];

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ThreadSleep => "thread-sleep",
            Self::ClockNanosleep => "clock-nanosleep",
            Self::Poll => "poll",
            Self::Ppoll => "ppoll",
            Self::EpollMillis => "epoll-ms",
            Self::EpollNanos => "epoll-ns",
            Self::Timerfd => "timerfd",
            Self::IoUring => "io_uring",
            Self::Kqueue => "kqueue",
            Self::KqueueTimer => "kqueue-timer",
            Self::Sleep => "sleep",
            Self::WaitableTimer => "waitable-timer",
            Self::HighResolutionTimer => "high-resolution-timer",
            Self::CompletionPort => "completion-port",
        }
    }
}

impl fmt::Display for SleepMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The periods of the timer tick of Windows (`NtQueryTimerResolution`).
///
/// The longest is the tick without requests, 15.625 ms on most machines, and the shortest the fastest
/// that can be requested, 0.5 ms on most. They are multiples of 100 ns.
///
/// ```
/// use minder::clock::{TickPeriods, resolution};
///
/// if let Some(TickPeriods { longest, shortest, current, .. }) = resolution().tick {
///     println!("a tick every {current:?}, between {shortest:?} and {longest:?}");
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TickPeriods {
    /// The period without any request.
    pub longest: Duration,
    /// The shortest period that can be requested.
    pub shortest: Duration,
    /// The period now. Since Windows 10, version 2004, another process may see another one.
    pub current: Duration,
}

/// The Mach time base: one unit of `mach_absolute_time` is `numer / denom` ns.
///
/// ```
/// use minder::clock::{Timebase, resolution};
///
/// if let Some(Timebase { numer, denom, .. }) = resolution().timebase {
///     println!("the clock of the kernel counts units of {numer}/{denom} ns");
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timebase {
    /// The numerator.
    pub numer: u32,
    /// The denominator.
    pub denom: u32,
}

/// Rounds up to whole milliseconds, for calls that take them.
pub(super) fn ceil_millis(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
