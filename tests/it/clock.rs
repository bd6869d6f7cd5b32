//! `minder::clock`: never early on any way, no drift, and nothing that a child would inherit.

mod interval;
#[cfg(target_os = "linux")]
mod slack;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use minder::ErrorKind;
use minder::clock::{
    Clock, Precision, SLEEP_MAX, SPIN_DEFAULT, SleepMethod, SleepSample, Sleeper, measure_clock,
    measure_sleep, resolution,
};

const PRECISIONS: [Precision; 3] = [Precision::Cheap, Precision::Precise, Precision::Thrifty];

fn micros(count: u64) -> Duration {
    Duration::from_micros(count)
}

/// Measures a way to sleep; returns nothing if the system refuses it.
fn measured(method: SleepMethod, time: Duration, count: usize) -> Option<Vec<SleepSample>> {
    match measure_sleep(method, time, count, &AtomicBool::new(false)) {
        Ok(samples) => Some(samples),
        Err(error) => {
            // A sandbox forbids io_uring, and Wine 8 has no high-resolution timers.
            assert!([SleepMethod::IoUring, SleepMethod::HighResolutionTimer].contains(&method), "{error}");
            assert!(error.to_string().contains(method.name()), "{error}");
            None
        }
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    let middle = times.len() / 2;
    *times.select_nth_unstable(middle).1
}

#[test]
fn resolution_has_the_fields_of_this_system() {
    let stated = resolution();
    assert!(stated.monotonic.is_some_and(|unit| unit <= micros(1)), "{stated:?}");
    assert_eq!(stated.monotonic_coarse.is_some(), cfg!(not(windows)), "{stated:?}");
    assert!(stated.realtime.is_some(), "{stated:?}");
    assert_eq!(stated.timer_slack.is_some(), cfg!(target_os = "linux"), "{stated:?}");
    assert_eq!(stated.timebase.is_some(), cfg!(target_vendor = "apple"), "{stated:?}");
    assert_eq!(stated.tick.is_some(), cfg!(windows), "{stated:?}");
}

#[test]
fn clock_is_read_many_times_and_changes_by_its_step() {
    for clock in Clock::ALL {
        let cost = measure_clock(clock, Duration::from_millis(60)).expect("measure clock");
        assert!(cost.reads > 100 && cost.read_nanos < 1e6, "{clock}: {cost:?}");
        let step = cost.step.expect("clock changes within 60 ms");
        if cfg!(target_os = "linux") {
            let stated = resolution().monotonic_coarse.expect("every Linux has the clock");
            // The kernel corrects the rate of its clocks, so a step may differ a little.
            assert_eq!(step >= stated / 2, clock == Clock::MonotonicCoarse, "{clock}: {cost:?}");
        }
    }
}

#[test]
fn every_way_to_sleep_lasts_as_long_as_asked_or_says_why_it_cannot() {
    for method in SleepMethod::available() {
        for time in [Duration::ZERO, micros(100), micros(2_300)] {
            let Some(samples) = measured(method, time, 20) else { continue };
            assert_eq!(samples.len(), 20, "{method}");
            for sample in samples {
                assert_eq!(sample.asked, time);
                assert_eq!(sample.late(), sample.slept.saturating_sub(time));
                // Windows compares with a clock of ticks, which may end before the exact one.
                assert!(!sample.is_early() || cfg!(windows), "{method}: {sample:?}");
                assert!(cfg!(windows) || sample.cpu_time <= sample.slept + micros(1_000), "{sample:?}");
            }
        }
    }
}

#[test]
fn measurement_is_bounded_and_ends_when_it_is_cancelled() {
    let cancel = AtomicBool::new(true);
    let samples = measure_sleep(SleepMethod::ThreadSleep, SLEEP_MAX, 5, &cancel).expect("measure nothing");
    assert_eq!(samples, []);
    let error =
        measure_sleep(SleepMethod::ThreadSleep, SLEEP_MAX + micros(1), 5, &cancel).expect_err("too long");
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");

    cancel.store(false, Ordering::Relaxed);
    let begin = Instant::now();
    let samples = std::thread::scope(|scope| {
        let thread =
            scope.spawn(|| measure_sleep(SleepMethod::ThreadSleep, micros(500), usize::MAX, &cancel));
        while begin.elapsed() < Duration::from_millis(20) {
            std::thread::yield_now();
        }
        cancel.store(true, Ordering::Relaxed);
        thread.join().expect("join thread").expect("measure until cancelled")
    });
    assert!(!samples.is_empty() && samples.len() < 1_000, "{}", samples.len());
}

#[test]
fn unknown_and_foreign_ways_are_errors() {
    let error = "nap".parse::<SleepMethod>().expect_err("no such way");
    assert_eq!((error.kind(), error.subject()), (ErrorKind::InvalidInput, Some("nap")));
    let foreign = if cfg!(windows) { SleepMethod::Timerfd } else { SleepMethod::CompletionPort };
    let error = measure_sleep(foreign, micros(1), 1, &AtomicBool::new(false)).expect_err("foreign way");
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

#[test]
fn sleeper_is_never_early() {
    for precision in PRECISIONS {
        let mut sleeper = Sleeper::new(precision);
        for round in 0..200 {
            let deadline = Instant::now() + Duration::from_nanos(round * 4_801);
            let late = sleeper.sleep_until(deadline);
            let now = Instant::now();
            assert!(now >= deadline + late, "{sleeper:?}: {:?} early", deadline - now);
            let begin = Instant::now();
            sleeper.sleep(micros(150));
            assert!(begin.elapsed() >= micros(150), "{sleeper:?}");
        }
    }
}

#[test]
fn sleeper_returns_at_once_when_the_deadline_has_passed() {
    for precision in PRECISIONS {
        let deadline = Instant::now();
        let late = Sleeper::new(precision).sleep_until(deadline);
        assert!(late <= deadline.elapsed());
    }
}

#[test]
fn lead_is_bounded_and_zero_without_a_spin() {
    assert_eq!(Sleeper::thrifty().lead(), SPIN_DEFAULT);
    assert!(Sleeper::precise().lead() < SPIN_DEFAULT / 4);
    for precision in PRECISIONS {
        let mut sleeper = Sleeper::new(precision).max_spin(micros(16));
        for _ in 0..100 {
            sleeper.sleep(micros(200));
            assert!(sleeper.lead() <= micros(64), "{sleeper:?}");
        }
        assert_eq!(Sleeper::new(precision).max_spin(Duration::ZERO).lead(), Duration::ZERO);
    }
    assert_eq!(Sleeper::cheap().lead(), Duration::ZERO);
}

/// Run from `seccomp`, where the call is missing.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "needs a system without timerfd_create"]
fn sleeper_without_a_timer_uses_the_sleep_of_the_thread() {
    let error =
        measure_sleep(SleepMethod::Timerfd, micros(1), 1, &AtomicBool::new(false)).expect_err("refused");
    assert!(error.to_string().starts_with("failed to sleep by `timerfd`: "), "{error}");
    for precision in PRECISIONS {
        let mut sleeper = Sleeper::new(precision);
        let deadline = Instant::now() + micros(300);
        sleeper.sleep_until(deadline);
        assert!(Instant::now() >= deadline);
        assert_eq!((sleeper.method(), sleeper.precision()), (SleepMethod::ThreadSleep, precision));
    }
}

/// The figures that the documentation states. Prints them: `--ignored --nocapture`.
#[test]
#[ignore = "a measurement of several seconds, for a quiet machine"]
fn precise_and_thrifty_sleeps_are_as_exact_as_documented() {
    for round in 0..5 {
        for (precision, time, count) in [
            (Precision::Cheap, micros(100), 1_000),
            (Precision::Precise, micros(100), 1_000),
            (Precision::Thrifty, micros(100), 1_000),
            (Precision::Cheap, micros(1_000), 1_000),
            (Precision::Precise, micros(1_000), 1_000),
            (Precision::Thrifty, micros(1_000), 1_000),
        ] {
            let mut sleeper = Sleeper::new(precision);
            let before = cpu_time();
            let begin = Instant::now();
            let mut late: Vec<Duration> = (0..count)
                .map(|_| {
                    let start = Instant::now();
                    sleeper.sleep(time);
                    let slept = start.elapsed();
                    assert!(slept >= time, "early: {slept:?}");
                    slept.saturating_sub(time)
                })
                .collect();
            let wall = begin.elapsed();
            let cpu = cpu_time().saturating_sub(before);
            late.sort_unstable();
            eprintln!(
                "{round}: {precision:?} {time:?} by {}: p50 {:?} p99 {:?} late, {:.1} % of a core, lead {:?}",
                sleeper.method(),
                late[late.len() / 2],
                late[late.len() * 99 / 100],
                cpu.as_secs_f64() / wall.as_secs_f64() * 100.0,
                sleeper.lead(),
            );
        }
    }
}

/// The CPU time of this thread.
#[cfg(unix)]
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Windows counts it by ticks; the figures are for Linux.
#[cfg(windows)]
fn cpu_time() -> Duration {
    Duration::ZERO
}

#[cfg(not(target_os = "linux"))]
#[test]
fn timer_slack_is_rejected_rather_than_ignored() {
    let mut command = crate::support::test_child("exit 0");
    let error = command.timer_slack(Duration::from_micros(1)).spawn().expect_err("spawn with a slack");
    assert_eq!(error.kind(), minder::ErrorKind::Unsupported, "{error}");
}
