//! Items on threads: the executor, scoped threads and bounded channels.

use super::{PARENT, Program, Setting};
use crate::bench::{Answer, Bench};
use crate::goals::{Aim, Goal};
use crate::samples::{Contestant, Samples};
use crate::table::markdown;
use anyhow::Result;

const ITEMS: usize = 1_000_000;
const DEGREE: usize = 2;
/// Items that sleep, each 200 us.
const SLEEPS: usize = 2_000;
/// The samples have no further size.
const SIZE: usize = 0;

const WALL: &str = "wall_ns";
const DELAY: &str = "delay_ns";

/// A contestant with empty items, and the same with items that sleep.
type Pair = (Contestant, Contestant);

const OURS: Pair = (
    Contestant { name: "minder", title: "minder, `Executor`" },
    Contestant { name: "minder-delay", title: "minder, `Executor`" },
);
const CHANNELS: Pair = (
    Contestant { name: "channels", title: "scoped threads, two bounded channels" },
    Contestant { name: "channels-delay", title: "scoped threads, two bounded channels" },
);
const SHARED: Pair = (
    Contestant { name: "shared-iterator", title: "scoped threads, a shared iterator, one bounded channel" },
    Contestant {
        name: "shared-iterator-delay",
        title: "scoped threads, a shared iterator, one bounded channel",
    },
);
const ALL: [Pair; 3] = [OURS, CHANNELS, SHARED];

pub(super) fn threads(bench: &Bench, program: &Program) -> Result<Answer> {
    let empty =
        Setting { question: "threads", children: bench.scaled(ITEMS), at_once: DEGREE, ..Setting::default() };
    let all: Vec<Contestant> = ALL.into_iter().flat_map(|(empty, sleeps)| [empty, sleeps]).collect();
    let setting = |who: &Contestant, _| {
        let is_empty = ALL.iter().any(|(empty, _)| empty == who);
        if is_empty { empty } else { Setting { children: SLEEPS, ..empty } }
    };
    let samples = program.rounds(bench, (&all, &[SIZE]), setting)?;
    let remarks = vec![
        format!(
            "{} empty items, and {SLEEPS} items that sleep for 200 us, each with degree {DEGREE}. The \
             finisher adds the numbers of the items on the caller's thread. Channels are those of \
             crossbeam-channel and hold 1,024 values. With two channels a third thread feeds the items. \
             minder catches panics, the others do not.",
            empty.children
        ),
        "Wall times swing with what else runs on the two processors: three threads share them.".into(),
    ];
    let tables = format!(
        "Nanoseconds for an empty item, and from the end of a processor to its finisher:\n\n{}",
        costs(&samples)
    );
    Ok(Answer::with_goals(&samples, &goals_of(&samples), &tables, remarks))
}

fn goals_of(samples: &Samples) -> Vec<Goal> {
    let wall = samples.spread((&OURS.0, SIZE), WALL);
    let delay = samples.spread((&OURS.1, SIZE), DELAY);
    let mut goals = vec![
        Goal::micros("an empty item, wall", wall, Aim::AtMost(1.0)),
        Goal::micros("from the end of a processor to its finisher", delay, Aim::AtMost(50.0)),
    ];
    for (other, aim) in [(CHANNELS.0, Aim::AtMost(1.0)), (SHARED.0, Aim::None)] {
        for (whose, value) in [("wall", WALL), ("CPU", PARENT)] {
            let what = format!("minder over {}, {whose}", other.title);
            goals.push(Goal::ratio(what, samples.ratio((&OURS.0, SIZE), (&other, SIZE), value), aim));
        }
    }
    goals
}

fn costs(samples: &Samples) -> String {
    let line = |(empty, sleeps): Pair| {
        let cell = |number, who: Contestant| samples.cell((&who, SIZE), (number, 1.0, 0));
        vec![empty.title.into(), cell(WALL, empty), cell(PARENT, empty), cell(DELAY, sleeps)]
    };
    markdown(&["contestant", "wall", "CPU", "delay"], &ALL.map(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::assert_measured;

    #[test]
    fn goals_take_numbers_that_the_rows_have() {
        assert_measured("library-threads", goals_of);
    }
}
