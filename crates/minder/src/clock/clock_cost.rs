//! The measured step of a clock, and the cost of reading it.

use std::hint::black_box;
use std::io;
use std::time::{Duration, Instant};

use crate::sys::clock::{self, Clock};
use crate::{Error, ErrorKind, Result};

/// The number of readings between two looks at the time limit.
const BATCH: u32 = 256;

/// The result of reading a clock again and again: see [`measure_clock`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ClockCost {
    /// The difference between two different readings: a tenth of all differences are at most this. `None`
    /// if the clock did not change.
    ///
    /// Most differences are longer on a busy machine: a reading is late if the thread waits for a
    /// processor. None is shorter than the step, unless the system corrects the rate of the clock.
    /// It is the step of a coarse clock. For a clock with a step shorter than the cost of a reading, it
    /// is about that cost.
    pub step: Option<Duration>,
    /// The mean time of one reading, in nanoseconds.
    pub read_nanos: f64,
    /// The number of readings.
    pub reads: u64,
}

/// Reads a clock for about this time and returns its step and the cost of a reading.
///
/// The thread uses a whole processor meanwhile. Each reading goes to the operating system or to the page
/// that it shares for that purpose, without the standard library.
///
/// - A coarse clock changes every 1 to 10 ms on Linux, and every 10 to 16 ms on Windows. The time should
///   cover several changes.
///
/// ```
/// use minder::clock::{Clock, ClockCost, measure_clock};
/// use std::time::Duration;
///
/// let time = Duration::from_millis(5);
/// let ClockCost { step, read_nanos, reads, .. } = measure_clock(Clock::Monotonic, time)?;
/// assert!(reads > 0 && read_nanos > 0.0 && step.is_some());
/// # Ok::<(), minder::Error>(())
/// ```
///
/// # Errors
/// `Unsupported`: this system has no such clock.
pub fn measure_clock(clock: Clock, time: Duration) -> Result<ClockCost> {
    let fail = |error| failure(clock, error);
    let mut last = clock::read(clock).map_err(fail)?;
    let mut steps = Steps::default();
    let mut reads = 0;
    let begin = Instant::now();
    let elapsed = loop {
        for _ in 0..BATCH {
            let now = clock::read(clock).map_err(fail)?;
            if black_box(now) != last {
                // A clock that was set back has no step.
                steps.push(now.saturating_sub(last));
                last = now;
            }
        }
        reads += u64::from(BATCH);
        let elapsed = begin.elapsed();
        if elapsed >= time {
            break elapsed;
        }
    };
    let read_nanos = elapsed.as_nanos() as f64 / reads as f64;
    Ok(ClockCost { step: steps.first_decile(), read_nanos, reads })
}

impl Clock {
    /// Reads the clock: the time since a moment that does not change while the system runs. For the
    /// date it is 1 January 1970.
    ///
    /// ```
    /// use minder::clock::Clock;
    ///
    /// let earlier = Clock::Monotonic.read()?;
    /// assert!(Clock::Monotonic.read()? >= earlier);
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Unsupported`: this system has no such clock.
    pub fn read(self) -> Result<Duration> {
        clock::read(self).map(Duration::from_nanos).map_err(|error| failure(self, error))
    }
}

/// Describes why a clock could not be read.
fn failure(clock: Clock, error: io::Error) -> Error {
    let failure = Error::new("read the clock", error).with_subject(clock.name());
    match failure.kind() {
        ErrorKind::Unsupported => failure.with_kind(ErrorKind::Unsupported, "this system has no such clock"),
        _ => failure,
    }
}

/// The first differences, up to a limit.
#[derive(Default)]
struct Steps(Vec<u64>);

impl Steps {
    const MAX: usize = 100_000;

    fn push(&mut self, step: u64) {
        if self.0.len() < Self::MAX {
            self.0.push(step);
        }
    }

    fn first_decile(&mut self) -> Option<Duration> {
        self.0.retain(|step| *step > 0);
        let rank = self.0.len().checked_sub(1)? / 10;
        Some(Duration::from_nanos(*self.0.select_nth_unstable(rank).1))
    }
}
