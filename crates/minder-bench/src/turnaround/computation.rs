//! One computation of a given length: CPU time, a number of loops, or a wait.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use minder::ErrorKind;

use crate::error::{Error, Result};
use crate::median::median;
use crate::spread::Spread;
use crate::sys;

/// Loops between two readings of the CPU clock: about 10 us, by which a computation is too long at most.
const CLOCK_LOOPS: u64 = 5_000;
/// Loops between two looks at the cancellation: about a millisecond.
const CANCEL_LOOPS: u64 = 1_000_000;
/// The longest sleep between two looks at the cancellation.
const CANCEL_INTERVAL: Duration = Duration::from_millis(100);
/// The length of a slice of the calibration, and the number of slices.
const SLICE: Duration = Duration::from_millis(10);
const SLICES: usize = 9;
/// The coarsest CPU clock that can end a computation.
const CLOCK_RESOLUTION_MAX: Duration = Duration::from_micros(100);

/// What a computation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Computes until the CPU clock of its thread has advanced by this time.
    Cpu(Duration),
    /// Computes this many loops.
    Loops(u64),
    /// Sleeps until this time has passed.
    Wait(Duration),
}

const CPU: &str = "cpu";
const LOOPS: &str = "loops";
const WAIT: &str = "wait";

impl Work {
    /// Does it. Returns early if it is cancelled.
    pub(super) fn run(self, is_cancelled: &AtomicBool) {
        match self {
            Self::Cpu(time) => {
                let end = sys::thread_cpu_time() + time;
                while sys::thread_cpu_time() < end && !is_cancelled.load(Ordering::Relaxed) {
                    spin(CLOCK_LOOPS);
                }
            }
            Self::Loops(mut loops) => {
                while loops > 0 && !is_cancelled.load(Ordering::Relaxed) {
                    let now = loops.min(CANCEL_LOOPS);
                    spin(now);
                    loops -= now;
                }
            }
            Self::Wait(time) => {
                let end = Instant::now() + time;
                while Instant::now() < end && !is_cancelled.load(Ordering::Relaxed) {
                    minder_os::time::pause(CANCEL_INTERVAL, Some(end));
                }
            }
        }
    }

    /// Returns the arguments of a child that does it: those of [`compute`].
    pub(super) fn args(self) -> [String; 2] {
        let (name, amount) = match self {
            Self::Cpu(time) => (CPU, nanos(time)),
            Self::Loops(loops) => (LOOPS, loops),
            Self::Wait(time) => (WAIT, nanos(time)),
        };
        [name.to_owned(), amount.to_string()]
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Does what a child of [`TurnaroundBench`](super::TurnaroundBench) is started for: `cpu` and a number of
/// nanoseconds, `loops` and their number, or `wait` and a number of nanoseconds.
///
/// ```
/// minder_bench::compute("wait", 1_000_000)?;
/// assert!(minder_bench::compute("dream", 1).is_err());
/// # Ok::<(), minder_bench::Error>(())
/// ```
///
/// # Errors
/// `InvalidInput` for another name.
pub fn compute(name: &str, amount: u64) -> Result<()> {
    let work = match name {
        CPU => Work::Cpu(Duration::from_nanos(amount)),
        LOOPS => Work::Loops(amount),
        WAIT => Work::Wait(Duration::from_nanos(amount)),
        _ => {
            let reason = "expected cpu, loops or wait";
            return Err(Error::new(ErrorKind::InvalidInput, "compute", Some(name.as_ref()), reason));
        }
    };
    work.run(&AtomicBool::new(false));
    Ok(())
}

/// Computes in registers: a step of xorshift each loop, which depends on the one before.
fn spin(loops: u64) {
    let mut state = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..loops {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    black_box(state);
}

/// How many loops take a millisecond of CPU time here, and how exact the computations are.
///
/// A computation of the workload `cpu` ends by the CPU clock of its thread. One of the workload `loops` is
/// a fixed number of loops, as in the publication, so that the form decides what the same work costs.
///
/// Where the CPU clock has coarse steps (Windows: 1/64 s), wall time calibrates the loops, and `cpu` is a
/// number of loops, too.
///
/// ```
/// let calibration = minder_bench::Calibration::measure();
/// println!("median error: {:.2} %", calibration.cpu_error.median * 100.0);
/// assert!(calibration.loops_per_ms > 0.0 && calibration.loops_error.max >= calibration.loops_error.min);
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Calibration {
    /// Loops in a millisecond: the median of nine measurements.
    pub loops_per_ms: f64,
    /// The errors of nine computations of 10 ms that end by the clock, as fractions of their length.
    pub cpu_error: Spread,
    /// The errors of nine computations of 10 ms that are a number of loops.
    pub loops_error: Spread,
}

impl Calibration {
    /// Whether a computation can end by the CPU clock of its thread.
    pub const HAS_CPU_CLOCK: bool = sys::CPU_RESOLUTION.as_nanos() <= CLOCK_RESOLUTION_MAX.as_nanos();

    /// Measures for about a third of a second.
    #[must_use]
    pub fn measure() -> Self {
        let mut rates: Vec<f64> = Vec::new();
        let mut loops = CLOCK_LOOPS;
        while rates.len() < SLICES {
            let taken = time_of(Work::Loops(loops));
            if taken < SLICE / 2 {
                loops *= 2;
                continue;
            }
            rates.push(loops as f64 / millis(taken));
        }
        let loops_per_ms = median(rates).unwrap_or(1.0);
        let mut calibration = Self { loops_per_ms, cpu_error: NO_ERROR, loops_error: NO_ERROR };
        calibration.loops_error = errors(calibration.loops(SLICE));
        calibration.cpu_error = errors(calibration.cpu(SLICE));
        calibration
    }

    /// Returns the work that takes this much CPU time by the clock.
    pub(super) fn cpu(&self, time: Duration) -> Work {
        if Self::HAS_CPU_CLOCK { Work::Cpu(time) } else { self.loops(time) }
    }

    /// Returns the loops that take this much CPU time.
    pub(super) fn loops(&self, time: Duration) -> Work {
        Work::Loops((self.loops_per_ms * millis(time)).round() as u64)
    }
}

/// The errors before they are measured.
const NO_ERROR: Spread = Spread { median: 0.0, min: 0.0, max: 0.0 };

/// Returns how wrong computations are that are to take the length of a slice.
fn errors(work: Work) -> Spread {
    let error = |_| (time_of(work).as_secs_f64() / SLICE.as_secs_f64() - 1.0).abs();
    Spread::of((0..SLICES).map(error)).unwrap_or(NO_ERROR)
}

/// Returns the CPU time of this work, or its wall time where the CPU clock is coarse.
fn time_of(work: Work) -> Duration {
    let clock = || if Calibration::HAS_CPU_CLOCK { Some(sys::thread_cpu_time()) } else { None };
    let cpu = clock();
    let wall = Instant::now();
    work.run(&AtomicBool::new(false));
    match (cpu, clock()) {
        (Some(before), Some(after)) => after.saturating_sub(before),
        _ => wall.elapsed(),
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_lasts_at_least_its_length() {
        let length = Duration::from_millis(3);
        let wall = Instant::now();
        Work::Wait(length).run(&AtomicBool::new(false));
        assert!(wall.elapsed() >= length);
        if Calibration::HAS_CPU_CLOCK {
            assert!(time_of(Work::Cpu(length)) >= length);
        }
    }

    #[test]
    fn cancelled_work_ends_at_once() {
        let hour = Duration::from_secs(3600);
        let cancelled = AtomicBool::new(true);
        for work in [Work::Cpu(hour), Work::Loops(u64::MAX), Work::Wait(hour)] {
            work.run(&cancelled);
        }
    }

    #[test]
    fn arguments_name_the_work() {
        assert_eq!(Work::Cpu(Duration::from_millis(2)).args(), ["cpu", "2000000"]);
        assert_eq!(Work::Loops(7).args(), ["loops", "7"]);
        let error = compute("magic", 1).expect_err("compute an unknown kind");
        assert_eq!(error.to_string(), "failed to compute `magic`: expected cpu, loops or wait");
    }
}
