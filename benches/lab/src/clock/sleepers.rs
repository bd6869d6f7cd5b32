//! Sleeps of 100 us and of 1 ms: how late they are, and what they cost.

use super::Program;
use crate::bench::{Answer, Bench};
use crate::goals::{Aim, Goal};
use crate::samples::{Contestant, Samples};
use anyhow::Result;

const SLEEPS: usize = 1_000;
const SLEEPS_QUICK: usize = 300;
/// Microseconds of a sleep.
const SHORT: usize = 100;
const LONG: usize = 1_000;

const STD: Contestant = Contestant { name: "std", title: "std::thread::sleep" };
const PRECISE: Contestant = Contestant { name: "precise", title: "minder, `Sleeper::precise()`" };
const THRIFTY: Contestant = Contestant { name: "thrifty", title: "minder, `Sleeper::thrifty()`" };
const SPIN: Contestant = Contestant { name: "spin_sleep", title: "spin_sleep, `SpinSleeper::default()`" };
const TOKIO: Contestant = Contestant { name: "tokio", title: "tokio::time::sleep, current thread" };
const ALL: [Contestant; 5] = [STD, PRECISE, THRIFTY, SPIN, TOKIO];

pub(super) fn sleepers(bench: &Bench, program: &Program) -> Result<Answer> {
    let count = if bench.quick { SLEEPS_QUICK } else { SLEEPS };
    let numbers = |size| vec![("--count", count), ("--time-us", size)];
    let samples = program.rounds(bench, "sleepers", (&ALL, &[SHORT, LONG]), numbers)?;
    let tables = format!(
        "Sleeps of 100 us:\n\n{}\nSleeps of 1 ms:\n\n{}",
        costs(&samples, SHORT),
        costs(&samples, LONG)
    );
    let remarks = vec![
        format!(
            "{count} sleeps in a sample, one after the other, after 100 that are not measured. Lateness is \
             the time from before the call to its return, by `Instant`, minus the time that was asked for."
        ),
        "CPU is the CPU time of the process, divided by the time that passed. A thrifty sleeper spins for at \
         most 60 us, spin_sleep for the last 125 us of each sleep. tokio's timers count milliseconds."
            .into(),
    ];
    Ok(Answer::with_goals(&samples, &goals_of(&samples), &tables, remarks))
}

fn goals_of(samples: &Samples) -> Vec<Goal> {
    let value = |who: Contestant, size, number| samples.spread((&who, size), number);
    let mut goals = vec![
        Goal::of("precise, 100 us: p50", " us", value(PRECISE, SHORT, "p50_us"), Aim::AtMost(25.0)),
        Goal::of("thrifty, 1 ms: p50", " us", value(THRIFTY, LONG, "p50_us"), Aim::AtMost(2.0)),
        Goal::of("thrifty, 1 ms: CPU", " %", value(THRIFTY, LONG, "cpu_percent"), Aim::AtMost(8.0)),
    ];
    for who in [PRECISE, THRIFTY] {
        for (time, size) in [("100 us", SHORT), ("1 ms", LONG)] {
            let early = samples.total((&who, size), "early");
            goals.push(Goal::of(
                format!("{}, {time}: early, all rounds", who.name),
                "",
                early,
                Aim::AtMost(0.0),
            ));
        }
    }
    for (time, size) in [("100 us", SHORT), ("1 ms", LONG)] {
        for (ours, other) in [(PRECISE, STD), (THRIFTY, SPIN)] {
            for (what, name) in [("p50", "p50_us"), ("p99", "p99_us"), ("CPU", "cpu_percent")] {
                let what = format!("{time}, {what}: {} over {}", ours.name, other.name);
                goals.push(Goal::ratio(what, samples.ratio((&ours, size), (&other, size), name), Aim::None));
            }
        }
    }
    goals
}

fn costs(samples: &Samples, size: usize) -> String {
    let columns = [
        ("p50 us late", ("p50_us", 1.0, 1)),
        ("p99 us late", ("p99_us", 1.0, 1)),
        ("max us late", ("max_us", 1.0, 0)),
        ("early", ("early", 1.0, 0)),
        ("CPU %", ("cpu_percent", 1.0, 1)),
    ];
    samples.table("contestant", (&ALL, Contestant::title), size, &columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::assert_measured;

    #[test]
    fn goals_take_numbers_that_the_rows_have() {
        assert_measured("clock-sleepers", goals_of);
    }

    #[test]
    fn early_sleeps_of_all_rounds_are_counted() {
        let mut samples = Samples::default();
        for round in 0..3 {
            let early = if round == 1 { 1.0 } else { 0.0 };
            samples.add(round, (&PRECISE, LONG), vec![("early".into(), early)]);
        }
        let goals = goals_of(&samples);
        let early = goals.iter().find(|goal| goal.what == "precise, 1 ms: early, all rounds").unwrap();
        assert_eq!(early.figure.as_ref().unwrap().show(0), "1 [1-1]");
    }
}
