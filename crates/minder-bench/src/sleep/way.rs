//! The ways to sleep that are compared: the mechanisms of the system, and the sleepers of the library.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use minder::clock::{Precision, SleepMethod, SleepSample, Sleeper, measure_sleep, measure_sleeper};

use crate::Result;

/// A way to sleep.
///
/// ```
/// use minder_bench::SleepWay;
///
/// let names: Vec<&str> = SleepWay::available().map(SleepWay::name).collect();
/// assert!(names.contains(&"thread-sleep") && names.ends_with(&["precise", "thrifty"]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SleepWay {
    /// One mechanism of the operating system.
    Method(SleepMethod),
    /// A [`Sleeper`] of the library.
    Sleeper(Precision),
}

impl SleepWay {
    /// Returns the ways of this system. The kernel may refuse one: see [`measure`](Self::measure).
    ///
    /// A cheap [`Sleeper`] is not among them: it is `thread-sleep`.
    pub fn available() -> impl Iterator<Item = Self> {
        let sleepers = [Precision::Precise, Precision::Thrifty].map(Self::Sleeper);
        SleepMethod::available().map(Self::Method).chain(sleepers)
    }

    /// Returns the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Method(method) => method.name(),
            Self::Sleeper(Precision::Thrifty) => "thrifty",
            Self::Sleeper(Precision::Precise) => "precise",
            Self::Sleeper(_) => "cheap",
        }
    }

    /// Sleeps `count` times for `time`, as [`measure_sleep`] and [`measure_sleeper`] do.
    ///
    /// ```
    /// use minder_bench::SleepWay;
    /// use std::sync::atomic::AtomicBool;
    /// use std::time::Duration;
    ///
    /// let way = SleepWay::available().next().expect("every system has a way to sleep");
    /// let samples = way.measure(Duration::from_micros(100), 5, &AtomicBool::new(false))?;
    /// assert_eq!(samples.len(), 5);
    /// # Ok::<(), minder_bench::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`measure_sleep`]: the kernel or a sandbox refuses this way, or no descriptor is free for it.
    pub fn measure(self, time: Duration, count: usize, cancel: &AtomicBool) -> Result<Vec<SleepSample>> {
        let samples = match self {
            Self::Method(method) => measure_sleep(method, time, count, cancel)?,
            Self::Sleeper(precision) => {
                let mut sleeper = Sleeper::new(precision);
                // A thrifty sleeper adapts to the lateness of the sleeps before.
                measure_sleeper(&mut sleeper, time, ADAPTING_SLEEPS.min(count), cancel)?;
                measure_sleeper(&mut sleeper, time, count, cancel)?
            }
        };
        Ok(samples)
    }
}

/// The sleeps of a new sleeper that are not measured.
const ADAPTING_SLEEPS: usize = 10;

impl fmt::Display for SleepWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
