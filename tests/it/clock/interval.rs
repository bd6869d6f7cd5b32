//! `Interval`: no drift, no early tick, and each policy after a stall.

use std::time::{Duration, Instant};

use minder::clock::{Interval, MissedTicks, Precision, Sleeper};

use super::{median, micros};
use crate::support::nap;

const POLICIES: [MissedTicks; 3] = [MissedTicks::CatchUp, MissedTicks::Postpone, MissedTicks::Skip];
const STALL: Duration = Duration::from_millis(3);

/// Runs an interval with a stall in its middle. Checks each tick against the schedule, and returns how
/// late the ticks were.
fn run(policy: MissedTicks, sleeper: Sleeper, ticks: usize) -> Vec<Duration> {
    let period = micros(500);
    let begin = Instant::now() + period;
    let mut interval = Interval::starting_at(begin, period).missed_ticks(policy).sleeper(sleeper);
    let mut expected = begin;
    let mut late = Vec::new();
    for number in 0..ticks {
        if number == ticks / 2 {
            nap(STALL);
        }
        let tick = interval.tick();
        let now = Instant::now();
        assert!(now >= tick.due + tick.late, "early");
        // The schedule is exact: a multiple of the period after the first tick, moved by Postpone only.
        assert_eq!(tick.due, expected, "{policy:?}, tick {number}");
        expected = match policy {
            MissedTicks::Postpone if tick.late >= period => tick.due + tick.late + period,
            _ => tick.due + period * (u32::try_from(tick.skipped).expect("a small number") + 1),
        };
        assert_eq!(interval.next_tick(), expected);
        assert!(policy == MissedTicks::Skip || tick.skipped == 0);
        if policy == MissedTicks::Skip {
            assert!(expected > tick.due + tick.late, "a missed tick is left out");
        }
        late.push(tick.late);
    }
    assert!(late.iter().any(|late| *late >= STALL - period), "the stall was too short");
    late
}

#[test]
fn schedule_does_not_drift_after_a_stall() {
    for policy in POLICIES {
        for precision in [Precision::Cheap, Precision::Precise, Precision::Thrifty] {
            run(policy, Sleeper::new(precision), 200);
        }
    }
}

#[test]
fn catch_up_reports_each_missed_tick_at_once() {
    let period = micros(500);
    let mut interval = Interval::new(period);
    interval.tick();
    nap(STALL);
    let begin = Instant::now();
    let mut count = 0;
    while interval.next_tick() <= begin {
        let tick = interval.tick();
        assert!(tick.due <= begin);
        count += 1;
    }
    assert!(count >= 5, "{count} ticks in {STALL:?}");
}

/// Compares the lateness of the last 1,000 ticks with that of the first 1,000, in the best of five tries:
/// what else the machine does may change meanwhile.
#[test]
#[ignore = "a measurement of a minute, for a quiet machine"]
fn lateness_does_not_grow_over_ten_thousand_ticks() {
    for policy in POLICIES {
        for precision in [Precision::Precise, Precision::Thrifty] {
            let is_constant = (0..5).any(|_| {
                let late = run(policy, Sleeper::new(precision), 10_000);
                let first = median(late[..1_000].to_vec());
                let last = median(late[9_000..].to_vec());
                eprintln!("{policy:?} {precision:?}: median {first:?} late at first, {last:?} at last");
                first.abs_diff(last) <= micros(10)
            });
            assert!(is_constant, "{policy:?} {precision:?}");
        }
    }
}
