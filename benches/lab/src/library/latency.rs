//! From a child's exit to the event, while others live.

use super::{Program, Setting};
use crate::bench::{Answer, Bench};
use crate::goals::{Aim, Goal};
use crate::samples::{Contestant, Samples};
use crate::table::{grouped, markdown};
use anyhow::Result;

/// How many exits are measured in a sample.
const EXITS: usize = 200;
const EXITS_QUICK: usize = 100;
/// How many children live, with the one that exits.
const LIVE: [usize; 3] = [1, 100, 5_000];

const OURS: Contestant = Contestant { name: "minder", title: "minder, one `ChildSet`" };
const TOKIO: Contestant = Contestant { name: "tokio-current", title: "tokio, current thread" };
const TOKIO_MULTI: Contestant = Contestant { name: "tokio-multi", title: "tokio, multi thread" };
const THREADS: Contestant = Contestant { name: "std-threads", title: "std, a thread for each child" };
const ALL: [Contestant; 4] = [OURS, TOKIO, TOKIO_MULTI, THREADS];

const P50: &str = "p50_ns";
const P99: &str = "p99_ns";

pub(super) fn latency(bench: &Bench, program: &Program) -> Result<Answer> {
    let children = if bench.quick { EXITS_QUICK } else { EXITS };
    let setting =
        |_: &Contestant, live| Setting { question: "latency", children, live, ..Setting::default() };
    let samples = program.rounds(bench, (&ALL, &LIVE), setting)?;
    let remarks = vec![
        format!(
            "{children} exits in a sample. The child is benches/peers/stamp.c: it sleeps, reads the \
             monotonic clock, writes it to a file and exits, so each value includes that write and the \
             child's exit. The others only live. All have null devices as their other streams."
        ),
        "minder: `Event::Exited` from `next_event`; tokio: the return of `child.wait()` in a task; std: the \
         return of `child.wait()` in a thread. One task or thread waits for each child. p99 depends on what \
         else runs on the machine."
            .into(),
    ];
    let tables = format!(
        "Microseconds from the last act of a child to the event, by number of living children:\n\n{}",
        times(&samples)
    );
    Ok(Answer::with_goals(&samples, &goals_of(&samples), &tables, remarks))
}

fn goals_of(samples: &Samples) -> Vec<Goal> {
    let mut goals = Vec::new();
    for (rank, value) in [("p50", P50), ("p99", P99)] {
        for live in LIVE {
            for other in [TOKIO, TOKIO_MULTI, THREADS] {
                let what = format!("{rank}, {} alive: minder over {}", grouped(live), other.title);
                goals.push(Goal::ratio(what, samples.ratio((&OURS, live), (&other, live), value), Aim::None));
            }
        }
    }
    goals
}

fn times(samples: &Samples) -> String {
    let mut head = vec!["contestant".to_string()];
    head.extend(
        LIVE.iter().flat_map(|live| ["p50", "p99"].map(|rank| format!("{rank}, {}", grouped(*live)))),
    );
    let line = |who: Contestant| {
        let cell = |(live, value)| samples.cell((&who, live), (value, 1e-3, 0));
        let cells = LIVE.into_iter().flat_map(|live| [(live, P50), (live, P99)]).map(cell);
        std::iter::once(who.title.to_string()).chain(cells).collect()
    };
    markdown(&head.iter().map(String::as_str).collect::<Vec<_>>(), &ALL.map(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::assert_measured;

    #[test]
    fn goals_take_numbers_that_the_rows_have() {
        assert_measured("library-latency", goals_of);
    }
}
