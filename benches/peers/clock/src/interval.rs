//! Ticks with a stall in the middle: whether the schedule drifts, and whether lateness grows.

use crate::Options;
use crate::numbers::{Numbers, Stopwatch, count, lateness, micros_after, percentile};
use crate::std_sleep::std_sleep;
use anyhow::Result;
use minder::clock::{Interval, MissedTicks};
use std::time::{Duration, Instant};

/// The length of one pause in which the program does something else.
const STALL: Duration = Duration::from_millis(3);

pub(crate) fn measure(options: &Options) -> Result<Numbers> {
    let policy = match options.contestant.as_str() {
        "catch-up" => MissedTicks::CatchUp,
        "postpone" => MissedTicks::Postpone,
        "skip" => MissedTicks::Skip,
        "tokio" => return by_tokio(options),
        "sleep" => return Ok(by_sleep(options)),
        _ => return Err(options.unknown()),
    };
    Ok(by_interval(options, policy))
}

/// The schedule as this program computes it: a multiple of the period after the begin.
struct Schedule {
    expected: Instant,
    period: Duration,
    /// Microseconds from when each tick was expected to when it was reported.
    late: Vec<f64>,
    /// Microseconds from when the last tick was expected to when its contestant says that it was due.
    drift: f64,
    skipped: u64,
    watch: Stopwatch,
}

impl Schedule {
    fn start(options: &Options) -> Self {
        let late = Vec::with_capacity(options.count);
        let expected = Instant::now() + options.time;
        Self { expected, period: options.time, late, drift: 0.0, skipped: 0, watch: Stopwatch::start() }
    }

    /// Notes a tick, and computes when the next one is expected.
    fn note(&mut self, due: Instant) {
        self.late.push(micros_after(self.expected, Instant::now()));
        self.drift = micros_after(self.expected, due);
        self.expected += self.period;
    }

    /// Leaves out ticks.
    fn skip(&mut self, ticks: u64) {
        self.skipped += ticks;
        self.expected += self.period * u32::try_from(ticks).unwrap_or(u32::MAX);
    }

    fn numbers(self) -> Numbers {
        let part = self.late.len() / 10;
        let first = percentile(&self.late[..part], 50);
        let last = percentile(&self.late[self.late.len() - part..], 50);
        let own = vec![
            ("drift_us", self.drift.abs()),
            ("first_us", first),
            ("last_us", last),
            ("growth_us", (last - first).abs()),
            ("skipped", count(usize::try_from(self.skipped).unwrap_or(usize::MAX))),
        ];
        [self.watch.stop(), own, lateness(&self.late)].concat()
    }
}

fn by_interval(options: &Options, policy: MissedTicks) -> Numbers {
    let mut schedule = Schedule::start(options);
    let mut interval = Interval::starting_at(schedule.expected, options.time).missed_ticks(policy);
    for number in 0..options.count {
        if is_stall(options, number) {
            std_sleep(STALL);
        }
        let tick = interval.tick();
        schedule.note(tick.due);
        schedule.skip(tick.skipped);
        if policy == MissedTicks::Postpone && tick.late >= options.time {
            // The policy moves the schedule by the lateness.
            schedule.expected += tick.late;
        }
    }
    schedule.numbers()
}

fn by_tokio(options: &Options) -> Result<Numbers> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    Ok(runtime.block_on(async {
        let mut schedule = Schedule::start(options);
        let mut interval = tokio::time::interval_at(schedule.expected.into(), options.time);
        for number in 0..options.count {
            if is_stall(options, number) {
                std_sleep(STALL);
            }
            schedule.note(interval.tick().await.into_std());
        }
        schedule.numbers()
    }))
}

/// The simplest program: a sleep before each tick, which is due when the sleep ends.
fn by_sleep(options: &Options) -> Numbers {
    let mut schedule = Schedule::start(options);
    for number in 0..options.count {
        if is_stall(options, number) {
            std_sleep(STALL);
        }
        std_sleep(options.time);
        schedule.note(Instant::now());
    }
    schedule.numbers()
}

fn is_stall(options: &Options, number: usize) -> bool {
    number == options.count / 2
}
