//! Timers at random moments: how many wake-ups they need, and how late they are.

use super::Program;
use crate::bench::{Answer, Bench};
use crate::goals::{Aim, Goal};
use crate::samples::{Contestant, Samples};
use crate::table::grouped;
use anyhow::Result;

const TIMERS: usize = 10_000;
/// In the quick form a timer is as far from the next one.
const TIMERS_QUICK: usize = 2_000;
const TOLERANCE_MS: usize = 20;
/// The most wake-ups for each second of timers.
const WAKEUPS_PER_SECOND: usize = 50;
/// The samples have no further size.
const SIZE: usize = 0;

const OURS: Contestant = Contestant { name: "minder", title: "minder, `Poller`, tolerance of 20 ms" };
const EXACT: Contestant = Contestant { name: "minder-exact", title: "minder, `Poller`, no tolerance" };
const TOKIO: Contestant = Contestant { name: "tokio", title: "tokio, a task that sleeps for each timer" };
const HEAP: Contestant = Contestant { name: "heap", title: "std, a heap and a sleep until each deadline" };
const ALL: [Contestant; 4] = [OURS, EXACT, TOKIO, HEAP];

pub(super) fn timers(bench: &Bench, program: &Program) -> Result<Answer> {
    let count = if bench.quick { TIMERS_QUICK } else { TIMERS };
    let numbers = |_| vec![("--count", count), ("--within-ms", count), ("--time-us", TOLERANCE_MS * 1_000)];
    let samples = program.rounds(bench, "timers", (&ALL, &[SIZE]), numbers)?;
    let remarks = vec![
        format!(
            "{} timers at random moments of {} s, the same ones for all contestants. Wake-ups: returns of \
             `Poller::wait`, calls of `on_thread_park` of tokio, sleeps of the heap.",
            grouped(count),
            count / 1_000
        ),
        format!(
            "Lateness is the time from the deadline to when the program knows of it. Too late: by more than \
             {TOLERANCE_MS} ms. CPU: of the whole process, with adding the timers. tokio's timers count \
             milliseconds."
        ),
    ];
    Ok(Answer::with_goals(&samples, &goals_of(&samples, count), &costs(&samples), remarks))
}

fn goals_of(samples: &Samples, count: usize) -> Vec<Goal> {
    #[expect(clippy::cast_precision_loss, reason = "a number of wake-ups")]
    let most = (count / 1_000 * WAKEUPS_PER_SECOND) as f64;
    let wakeups = samples.spread((&OURS, SIZE), "wakeups");
    let early = samples.total((&OURS, SIZE), "early");
    let too_late = samples.total((&OURS, SIZE), "too_late");
    let mut goals = vec![
        Goal::of("wake-ups", "", wakeups, Aim::AtMost(most)),
        Goal::of("early, all rounds", "", early, Aim::AtMost(0.0)),
        Goal::of("later than the tolerance, all rounds", "", too_late, Aim::AtMost(0.0)),
    ];
    for other in [TOKIO, HEAP] {
        for (what, name) in [("wake-ups", "wakeups"), ("CPU", "cpu_ms")] {
            let ratio = samples.ratio((&OURS, SIZE), (&other, SIZE), name);
            goals.push(Goal::ratio(format!("{what}: minder over {}", other.name), ratio, Aim::None));
        }
    }
    for (what, name) in [("CPU", "cpu_ms"), ("p50 late", "p50_us")] {
        let ratio = samples.ratio((&EXACT, SIZE), (&TOKIO, SIZE), name);
        goals.push(Goal::ratio(format!("{what}: minder without tolerance over tokio"), ratio, Aim::None));
    }
    goals
}

fn costs(samples: &Samples) -> String {
    let columns = [
        ("wake-ups", ("wakeups", 1.0, 0)),
        ("CPU ms", ("cpu_ms", 1.0, 1)),
        ("early", ("early", 1.0, 0)),
        ("too late", ("too_late", 1.0, 0)),
        ("p50 ms late", ("p50_us", 1e-3, 2)),
        ("p99 ms late", ("p99_us", 1e-3, 2)),
        ("max ms late", ("max_us", 1e-3, 2)),
    ];
    samples.table("contestant", (&ALL, Contestant::title), SIZE, &columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::assert_measured;

    #[test]
    fn goals_take_numbers_that_the_rows_have() {
        assert_measured("clock-timers", |samples| goals_of(samples, TIMERS));
    }
}
