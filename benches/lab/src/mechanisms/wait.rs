//! One wait for one of many objects: `Poller`, the bare system call and other event loops,
//! and all mechanisms of `minder bench`.

use super::{CPU, bench_command, costs, rows};
use crate::bench::{Answer, Bench};
use crate::goals::{self, Aim, Goal};
use crate::programs::{build_workspace, locked_versions};
use crate::question::Question;
use crate::samples::Samples;
use crate::table::grouped;
use anyhow::Result;
use xtask::run;

/// The directory below `benches/peers` with the program that compares event loops.
const WORKSPACE: &str = "loops";

/// The sizes that goals are set for.
const SIZES: [usize; 4] = [2, 64, 2048, 8192];
const BARE: &str = "bare-epoll";
const OURS: &str = "minder epoll";
const EDGE: &str = "minder epoll edge";
/// The goal for a wait by it, in microseconds.
const OURS_MOST: f64 = 0.30;

pub(super) const QUESTIONS: [Question<()>; 2] = [
    Question {
        name: "peers",
        what: "one wait for one of N descriptors, compared with other event loops",
        rounds: 15,
        ask: peers,
    },
    Question {
        name: "mechanisms",
        what: "one wait for one of N objects, by mechanism",
        rounds: 7,
        ask: mechanisms,
    },
];

fn peers(bench: &Bench, (): &()) -> Result<Answer> {
    let program = build_workspace(WORKSPACE)?;
    let mut remarks = vec![
        "One process; contestants take turns in every round, each with a fresh set of the same eventfds. \
         An iteration signals a pseudo-random one, waits until it is reported, and resets it. \
         `signal+reset` is the cost without the wait, and is subtracted from the others. The work of the \
         kernel for watchers at the signal counts as part of the wait. The same thread signals before it \
         waits, so the cost contains no sleep and no wake-up."
            .into(),
        "mio is edge-triggered by design; compare it with `minder epoll edge`. The others are \
         level-triggered: the kernel checks a reported descriptor once more, so mio may cost less than \
         the bare call. `polling oneshot` is polling's default mode, in which the caller rearms the \
         descriptor after each event."
            .into(),
        format!(
            "CPU of the process, per wait; contestants: {}",
            locked_versions(WORKSPACE, &["mio", "polling", "rustix"])?
        ),
    ];
    let mut cmd = run::command(program);
    let budget = if bench.quick { "10" } else { "40" };
    cmd.args(["--rounds", &bench.rounds.to_string(), "--budget-ms", budget]);
    let rows = rows(&mut cmd, &mut remarks)?;
    let samples = Samples::read(&rows)?;
    remarks.extend(out_of_reach(&samples));
    let costs = costs(&samples, "", "contestant");
    let tables = format!("Microseconds of CPU per wait, by number of objects:\n\n{costs}");
    Ok(Answer { table: goals::above(&goals_of_peers(&samples), &tables), remarks, rows })
}

fn goals_of_peers(samples: &Samples) -> Vec<Goal> {
    let mut goals = Vec::new();
    for size in SIZES {
        let figure = samples.ratio((OURS, size), (BARE, size), CPU);
        goals.push(Goal::ratio(format!("{OURS} over {BARE}, {}", grouped(size)), figure, Aim::AtMost(1.15)));
    }
    for (ours, other) in [(EDGE, "mio"), (OURS, "mio"), (OURS, "polling"), (OURS, "polling oneshot")] {
        for size in [SIZES[0], SIZES[3]] {
            let figure = samples.ratio((ours, size), (other, size), CPU);
            goals.push(Goal::ratio(
                format!("{ours} over {other}, {}", grouped(size)),
                figure,
                Aim::AtMost(1.0),
            ));
        }
    }
    let flat = samples.unevenness(OURS, &SIZES, CPU);
    goals.push(Goal::ratio(format!("{OURS}, dearest size over cheapest"), flat, Aim::AtMost(1.3)));
    for (name, most) in [(OURS, OURS_MOST), ("minder io_uring", 0.45)] {
        // One line is enough for a backend that is not built in.
        let sizes = if samples.names().contains(&name) { &SIZES[..] } else { &SIZES[..1] };
        for &size in sizes {
            let what = format!("{name}, {} objects", grouped(size));
            goals.push(Goal::micros(what, samples.spread((name, size), CPU), Aim::AtMost(most)));
        }
    }
    goals
}

/// Returns a remark if the bare system call alone costs more than the goal allows.
fn out_of_reach(samples: &Samples) -> Option<String> {
    let bare = samples.spread((BARE, SIZES[0]), CPU)?.median / 1e3;
    let remark = format!(
        "On this machine the bare call costs {bare:.2} us, more than the {OURS_MOST} us of the goal: no \
         wrapper of the call can meet that goal here."
    );
    (bare > OURS_MOST).then_some(remark)
}

fn mechanisms(bench: &Bench, (): &()) -> Result<Answer> {
    let mut remarks = vec![
        "minder's backends have their own names; the others are published baselines \
         (`minder bench wait --help`)."
            .into(),
    ];
    let rows = rows(&mut bench_command("wait", bench.rounds), &mut remarks)?;
    let samples = Samples::read(&rows)?;
    remarks.push("0 objects: a poll without blocking, with nothing to wait for.".into());
    let costs = costs(&samples, "", "mechanism");
    let tables = format!("Microseconds of CPU per wait, by number of objects:\n\n{costs}");
    let table = format!("![Chart](wait-mechanisms.svg)\n\n{}", goals::above(&[look(&samples)], &tables));
    Ok(Answer { table, remarks, rows })
}

/// What our front adds to the system call where nothing is waited for.
fn look(samples: &Samples) -> Goal {
    let figure = samples.ratio(("epoll", 0), (BARE, 0), CPU);
    Goal::ratio("epoll over bare-epoll, a poll without an object", figure, Aim::AtMost(1.2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::assert_measured;

    #[test]
    fn goals_take_numbers_that_the_rows_have() {
        assert_measured("wait-peers", goals_of_peers);
    }
}
