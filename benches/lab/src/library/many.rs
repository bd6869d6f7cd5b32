//! Many captured children, some at once: a `ChildSet`, tokio, threads, and a `ChildSet` driven by
//! tokio.

use super::{PARENT, Program, Setting, costs, goals_of_pair};
use crate::bench::{Answer, Bench};
use crate::goals::{Aim, Goal};
use crate::samples::{Contestant, Samples};
use anyhow::Result;

const AT_ONCE: usize = 64;
/// The samples have no further size.
const SIZE: usize = 0;

const OURS: Contestant = Contestant { name: "minder", title: "minder, one `ChildSet`" };
const DELAYED: Contestant = Contestant { name: "minder-delay", title: "minder, `read_delay` of 2 ms" };
const TOKIO: Contestant = Contestant { name: "tokio-current", title: "tokio, current thread" };
const TOKIO_MULTI: Contestant = Contestant { name: "tokio-multi", title: "tokio, multi thread" };
const IN_TOKIO: Contestant =
    Contestant { name: "minder-tokio-current", title: "minder-tokio, current thread" };
const IN_TOKIO_MULTI: Contestant =
    Contestant { name: "minder-tokio-multi", title: "minder-tokio, multi thread" };
const THREADS: Contestant = Contestant { name: "std-threads", title: "std, 64 threads" };

const LOOP: Contestant = Contestant { name: "loop", title: "`ChildSet`, its own loop" };
const SET: Contestant = Contestant { name: "set", title: "`ChildSet` in tokio" };
const BACKGROUND: Contestant = Contestant { name: "background", title: "`BackgroundSet` in tokio" };

pub(super) fn captured(bench: &Bench, program: &Program) -> Result<Answer> {
    let children = bench.scaled(2_000);
    let remark = format!(
        "{children} children in a sample, {AT_ONCE} at once; each is benches/peers/tiny.c with /dev/null as \
         input and two pipes. tokio and minder-tokio: {AT_ONCE} tasks, std: {AT_ONCE} threads, each of \
         which calls `output()` until no child is left. The time includes the set, the runtime and the \
         threads, from their creation to their end. Each sample is a separate process."
    );
    let contestants = [OURS, DELAYED, IN_TOKIO, TOKIO, IN_TOKIO_MULTI, TOKIO_MULTI, THREADS];
    answer(bench, program, "captured", children, &contestants, goals_of_captured, remark)
}

pub(super) fn driven(bench: &Bench, program: &Program) -> Result<Answer> {
    let children = bench.scaled(1_000);
    let remark = format!(
        "{children} children in a sample, {AT_ONCE} at once, as in `library-captured`. In tokio: a program \
         on the current-thread runtime watches the descriptor of `poll_handle` by `AsyncFd`, and takes all \
         events when it is readable. A `BackgroundSet` has a thread, to which each start is handed over."
    );
    answer(bench, program, "driven", children, &[LOOP, SET, BACKGROUND], goals_of_driven, remark)
}

fn answer(
    bench: &Bench,
    program: &Program,
    question: &'static str,
    children: usize,
    contestants: &[Contestant],
    goals: fn(&Samples) -> Vec<Goal>,
    remark: String,
) -> Result<Answer> {
    let setting = Setting { question, children, at_once: AT_ONCE, ..Setting::default() };
    let samples = program.rounds(bench, (contestants, &[SIZE]), |_, _| setting)?;
    let calls = |who: &Contestant| program.calls(*who, &setting);
    let lines = contestants.iter().map(|who| (who.title(), (who, SIZE).into(), calls(who)));
    let costs = costs(&samples, &lines.collect::<Vec<_>>());
    let tables = format!("What one child costs, and the peaks of the parent:\n\n{costs}");
    let threads = "HWM: VmHWM in /proc/self/status. System calls: of all threads and of the child, from \
                   separate runs under strace.";
    Ok(Answer::with_goals(&samples, &goals(&samples), &tables, vec![remark, threads.into()]))
}

fn goals_of_captured(samples: &Samples) -> Vec<Goal> {
    let mut goals = Vec::new();
    let mut pair = |who: Contestant, other: Contestant, aims: [Aim; 2]| {
        let what = format!("{} over {}", who.title, other.title);
        goals.extend(goals_of_pair(samples, &what, (&who, SIZE), (&other, SIZE), aims));
    };
    // Each side in its best setting for children that live for a moment.
    pair(DELAYED, TOKIO, [Aim::AtMost(0.6), Aim::AtMost(0.85)]);
    pair(DELAYED, TOKIO_MULTI, [Aim::AtMost(0.6), Aim::AtMost(0.85)]);
    pair(DELAYED, THREADS, [Aim::AtMost(0.8), Aim::AtMost(1.0)]);
    pair(IN_TOKIO, TOKIO, [Aim::AtMost(1.0); 2]);
    pair(IN_TOKIO_MULTI, TOKIO_MULTI, [Aim::AtMost(1.0); 2]);
    for other in [TOKIO, TOKIO_MULTI, THREADS] {
        for (whose, number) in [("CPU of the parent", PARENT), ("wall time", "wall_ns")] {
            let what = format!("{} with its defaults over {}, {whose}", OURS.title, other.title);
            goals.push(Goal::ratio(what, samples.ratio((&OURS, SIZE), (&other, SIZE), number), Aim::None));
        }
    }
    goals
}

fn goals_of_driven(samples: &Samples) -> Vec<Goal> {
    // A background set hands each start over to its thread, which the loop of a set does not.
    let aims = [(SET, Aim::AtMost(1.1)), (BACKGROUND, Aim::None)];
    let goals = aims.iter().flat_map(|(who, aim)| {
        let what = format!("{} over the loop of the set", who.title);
        goals_of_pair(samples, &what, (who, SIZE), (&LOOP, SIZE), [*aim; 2])
    });
    goals.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::assert_measured;

    #[test]
    fn goals_take_numbers_that_the_rows_have() {
        assert_measured("library-captured", goals_of_captured);
        assert_measured("library-driven", goals_of_driven);
    }
}
