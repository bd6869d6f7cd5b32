//! Measures the real duration of a sleep, for each way to sleep.

use std::io;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::sleeper::Sleeper;
use crate::sys::clock::{self, SleepCall, SleepMethod};
use crate::{Error, ErrorKind, Result};

/// The longest sleep that [`measure_sleep`] measures: a sleep in progress cannot be cancelled.
pub const SLEEP_MAX: Duration = Duration::from_secs(60);

/// One measured sleep.
///
/// ```
/// use minder::clock::{SleepMethod, SleepSample, measure_sleep};
/// use std::sync::atomic::AtomicBool;
/// use std::time::Duration;
///
/// let time = Duration::from_micros(200);
/// let sample: SleepSample = measure_sleep(SleepMethod::ThreadSleep, time, 1, &AtomicBool::new(false))?[0];
/// assert_eq!(sample.asked, time);
/// // Windows may end a sleep a little early.
/// assert!(sample.is_early() || sample.slept == time + sample.late());
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SleepSample {
    /// The time that was asked for.
    pub asked: Duration,
    /// The time that passed, by [`Instant`].
    pub slept: Duration,
    /// The CPU time that the thread used for it.
    ///
    /// - Windows: counted by ticks of the timer, so that one sample is 0 or a whole tick, and only the
    ///   sum of many is useful.
    pub cpu_time: Duration,
}

impl SleepSample {
    /// Returns how much longer the sleep was than asked for; zero if it was shorter.
    pub fn late(&self) -> Duration {
        self.slept.saturating_sub(self.asked)
    }

    /// Returns whether the sleep was shorter than asked for.
    ///
    /// A [`Sleeper`](super::Sleeper) never is. The mechanisms of Windows that count ticks may be.
    pub fn is_early(&self) -> bool {
        self.slept < self.asked
    }
}

impl SleepMethod {
    /// Returns the ways to sleep of this system. The kernel may refuse one: see [`measure_sleep`].
    pub fn available() -> impl Iterator<Item = Self> {
        clock::METHODS.iter().map(|(method, _)| *method)
    }

    /// Returns the mechanism of [`Sleeper::precise`], if the kernel does not refuse it. On NetBSD and
    /// OpenBSD it is the sleep of the thread.
    ///
    /// ```
    /// use minder::clock::{SleepMethod, Sleeper};
    ///
    /// let sleeper = Sleeper::precise();
    /// if sleeper.method() != SleepMethod::most_exact() {
    ///     println!("{} is refused: {} is used", SleepMethod::most_exact(), sleeper.method());
    /// }
    /// ```
    #[must_use]
    pub const fn most_exact() -> Self {
        clock::PRECISE
    }

    /// Prepares a sleep of this kind.
    pub(super) fn open(self) -> io::Result<SleepCall> {
        match clock::METHODS.iter().find(|(method, _)| *method == self) {
            Some((_, open)) => open(),
            None => Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no such mechanism")),
        }
    }
}

impl FromStr for SleepMethod {
    type Err = Error;

    /// Returns the way with this name.
    ///
    /// # Errors
    /// `InvalidInput`: there is no such way on any system.
    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name).ok_or_else(|| {
            Error::of_kind(ErrorKind::InvalidInput, "find the way to sleep", "no system has it")
                .with_subject(name)
        })
    }
}

/// Sleeps `count` times for `time`, and returns what each sleep was.
///
/// Each sleep is one call of the mechanism. A sleep that a signal ended is made again. The measurement
/// ends early, with the samples so far, when another thread sets `cancel`; a sleep in progress is not cut
/// short. No clock, slack or tick is changed.
///
/// Mechanisms in milliseconds get the time rounded up.
///
/// ```
/// use minder::clock::{SleepMethod, measure_sleep};
/// use std::sync::atomic::AtomicBool;
/// use std::time::Duration;
///
/// let cancel = AtomicBool::new(false);
/// for method in SleepMethod::available() {
///     match measure_sleep(method, Duration::from_micros(100), 3, &cancel) {
///         Ok(samples) => {
///             let late: Duration = samples.iter().map(|sample| sample.late()).sum();
///             println!("{method:22} {:?} late, {:?} CPU", late / 3, samples[0].cpu_time);
///             assert!(samples.iter().all(|sample| !sample.is_early() || cfg!(windows)));
///         }
///         Err(error) => println!("{method:22} {error}"), // says why
///     }
/// }
/// ```
///
/// # Errors
/// - `InvalidInput`: the time is longer than [`SLEEP_MAX`].
/// - `Unsupported`: this system has no such mechanism.
/// - `Exhausted`: no descriptor is free for it.
/// - Others: the kernel or a sandbox refuses it, as many containers refuse `io_uring`.
pub fn measure_sleep(
    method: SleepMethod,
    time: Duration,
    count: usize,
    cancel: &AtomicBool,
) -> Result<Vec<SleepSample>> {
    let fail = |error| Error::new("sleep by", error).with_subject(method.name());
    check_time(time)?;
    let mut call = method.open().map_err(fail)?;
    sample(&mut *call, time, count, cancel).map_err(fail)
}

/// Sleeps `count` times for `time` by a [`Sleeper`], and returns what each sleep was, as [`measure_sleep`]
/// does. A thrifty sleeper needs some sleeps until it has adapted.
///
/// ```
/// use minder::clock::{Sleeper, measure_sleeper};
/// use std::sync::atomic::AtomicBool;
/// use std::time::Duration;
///
/// let time = Duration::from_micros(100);
/// let samples = measure_sleeper(&mut Sleeper::thrifty(), time, 5, &AtomicBool::new(false))?;
/// assert!(samples.iter().all(|sample| !sample.is_early()));
/// # Ok::<(), minder::Error>(())
/// ```
///
/// # Errors
/// `InvalidInput`: the time is longer than [`SLEEP_MAX`].
pub fn measure_sleeper(
    sleeper: &mut Sleeper,
    time: Duration,
    count: usize,
    cancel: &AtomicBool,
) -> Result<Vec<SleepSample>> {
    check_time(time)?;
    let method = sleeper.method();
    let call = &mut |time| {
        sleeper.sleep(time);
        Ok(())
    };
    sample(call, time, count, cancel)
        .map_err(|error| Error::new("sleep by", error).with_subject(method.name()))
}

fn check_time(time: Duration) -> Result<()> {
    if time > SLEEP_MAX {
        return Err(Error::of_kind(ErrorKind::InvalidInput, "measure a sleep", "longer than a minute"));
    }
    Ok(())
}

/// Calls `sleep` until there are `count` samples.
fn sample(
    sleep: &mut dyn FnMut(Duration) -> io::Result<()>,
    time: Duration,
    count: usize,
    cancel: &AtomicBool,
) -> io::Result<Vec<SleepSample>> {
    let mut samples = Vec::with_capacity(count.min(1 << 16));
    while samples.len() < count && !cancel.load(Ordering::Relaxed) {
        let cpu_before = clock::thread_cpu_time()?;
        let begin = Instant::now();
        let result = sleep(time);
        let slept = begin.elapsed();
        let cpu_after = clock::thread_cpu_time()?;
        match result {
            Ok(()) => {
                let cpu_time = cpu_after.saturating_sub(cpu_before);
                samples.push(SleepSample { asked: time, slept, cpu_time });
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    Ok(samples)
}
