//! Ticks of 1 ms with a stall in the middle: drift, and growth of the lateness.

use super::Program;
use crate::bench::{Answer, Bench};
use crate::goals::{Aim, Goal};
use crate::samples::{Contestant, Samples};
use crate::table::grouped;
use anyhow::Result;

const TICKS: usize = 10_000;
const PERIOD_US: usize = 1_000;
/// The samples have no further size.
const SIZE: usize = 0;

const OURS: [Contestant; 3] = [
    Contestant { name: "catch-up", title: "minder, `Interval`, `CatchUp`" },
    Contestant { name: "postpone", title: "minder, `Interval`, `Postpone`" },
    Contestant { name: "skip", title: "minder, `Interval`, `Skip`" },
];
const TOKIO: Contestant = Contestant { name: "tokio", title: "tokio::time::interval, current thread" };
const SLEEP: Contestant = Contestant { name: "sleep", title: "std, a loop of sleeps" };
const ALL: [Contestant; 5] = [OURS[0], OURS[1], OURS[2], TOKIO, SLEEP];

pub(super) fn interval(bench: &Bench, program: &Program) -> Result<Answer> {
    let count = bench.scaled(TICKS);
    let numbers = |_| vec![("--count", count), ("--time-us", PERIOD_US)];
    let samples = program.rounds(bench, "interval", (&ALL, &[SIZE]), numbers)?;
    let remarks = vec![
        format!(
            "{} ticks of 1 ms. The program stalls once, for 3 ms, in the middle. Drift: the difference \
             between when the last tick was due and the schedule that the program computes itself, in \
             either direction. Growth: the difference between the median latenesses of the first and of the \
             last tenth of the ticks.",
            grouped(count)
        ),
        "Ticks are expected at multiples of the period after the first one. `Skip` leaves ticks out. \
         `Postpone` moves the later ticks by the lateness of each tick that was a period late. In the loop \
         of sleeps, a tick is due when a sleep ends."
            .into(),
        "tokio treats a tick as missed when it is more than 5 ms late, so a stall of 3 ms is the same with \
         each of its policies. Its timers count milliseconds."
            .into(),
    ];
    Ok(Answer::with_goals(&samples, &goals_of(&samples), &costs(&samples), remarks))
}

fn goals_of(samples: &Samples) -> Vec<Goal> {
    let value = |who: Contestant, number| samples.spread((&who, SIZE), number);
    let mut goals = Vec::new();
    for who in OURS {
        let name = who.name;
        goals.push(Goal::of(format!("{name}: drift"), " us", value(who, "drift_us"), Aim::AtMost(1.0)));
        goals.push(Goal::of(format!("{name}: growth"), " us", value(who, "growth_us"), Aim::AtMost(10.0)));
        let early = samples.total((&who, SIZE), "early");
        goals.push(Goal::of(format!("{name}: early, all rounds"), "", early, Aim::AtMost(0.0)));
    }
    for who in [TOKIO, SLEEP] {
        let name = who.name;
        goals.push(Goal::of(format!("{name}: drift"), " us", value(who, "drift_us"), Aim::None));
        goals.push(Goal::of(format!("{name}: growth"), " us", value(who, "growth_us"), Aim::None));
    }
    for (what, name) in [("p50", "p50_us"), ("CPU", "cpu_percent")] {
        let ratio = samples.ratio((&OURS[0], SIZE), (&TOKIO, SIZE), name);
        goals.push(Goal::ratio(format!("{what}: catch-up over tokio"), ratio, Aim::None));
    }
    goals
}

fn costs(samples: &Samples) -> String {
    let columns = [
        ("drift us", ("drift_us", 1.0, 1)),
        ("p50 us late, first tenth", ("first_us", 1.0, 1)),
        ("last tenth", ("last_us", 1.0, 1)),
        ("p99 us late", ("p99_us", 1.0, 1)),
        ("early", ("early", 1.0, 0)),
        ("skipped", ("skipped", 1.0, 0)),
        ("CPU %", ("cpu_percent", 1.0, 1)),
    ];
    samples.table("contestant", (&ALL, Contestant::title), SIZE, &columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::assert_measured;

    #[test]
    fn goals_take_numbers_that_the_rows_have() {
        assert_measured("clock-interval", goals_of);
    }
}
