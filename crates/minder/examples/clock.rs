//! Measures how late each way to sleep of this machine is, and runs an interval that does not drift.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use minder::clock::{Interval, Precision, SleepMethod, Sleeper, measure_sleep, resolution};

fn main() {
    let stated = resolution();
    println!("clock: unit {:?}, slack {:?}, tick {:?}", stated.monotonic, stated.timer_slack, stated.tick);

    // Each mechanism by itself, as late as it is here. A sandbox may refuse some.
    let time = Duration::from_micros(500);
    let cancel = AtomicBool::new(false);
    for method in SleepMethod::available() {
        match measure_sleep(method, time, 20, &cancel) {
            Ok(mut samples) => {
                samples.sort_unstable_by_key(|sample| sample.slept);
                println!("clock: {method:22} {:?} late", samples[samples.len() / 2].late());
            }
            Err(error) => println!("clock: {error}"),
        }
    }

    // A sleeper is never early, whatever its mechanism is.
    for precision in [Precision::Cheap, Precision::Precise, Precision::Thrifty] {
        let mut sleeper = Sleeper::new(precision);
        let deadline = Instant::now() + time;
        let late = sleeper.sleep_until(deadline);
        assert!(Instant::now() >= deadline);
        println!("clock: {precision:?} by {}: {late:?} late", sleeper.method());
    }

    // The schedule is the first tick plus a multiple of the period, however late a tick was.
    let mut interval = Interval::new(time).sleeper(Sleeper::thrifty());
    let first = interval.next_tick();
    for number in 0..20 {
        let tick = interval.tick();
        assert_eq!(tick.due, first + time * number);
        assert!(Instant::now() >= tick.due);
    }
    println!("clock: 20 ticks on time, none early");
}
