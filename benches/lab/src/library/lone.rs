//! One child after the other: `Command::output` and that of std, and `Command::spawn` with the
//! wait and `posix_spawn`, from a small and from a large parent.

use super::{Line, PARENT, Program, Setting, costs, goals_of_pair};
use crate::bench::{Answer, Bench};
use crate::goals::{Aim, Goal};
use crate::samples::{Contestant, Samples};
use anyhow::Result;

/// How many children a sample has: few, so that contestants of a round run close to each other.
const CHILDREN: usize = 300;
const CHILDREN_QUICK: usize = 100;
/// MiB of the parent.
const SMALL: usize = 10;
const LARGE: usize = 2048;

const OUTPUT: Contestant = Contestant { name: "minder-output", title: "minder, `output()`" };
const STD_OUTPUT: Contestant = Contestant { name: "std-output", title: "std, `output()`" };
const OURS: Contestant = Contestant { name: "minder", title: "minder, null and two pipes" };
const STD: Contestant = Contestant { name: "std", title: "std, null and two pipes" };
const POSIX: Contestant = Contestant { name: "posix_spawn", title: "posix_spawn, null and two pipes" };
const OURS_BARE: Contestant = Contestant { name: "minder-inherit", title: "minder, inherited streams" };
const STD_BARE: Contestant = Contestant { name: "std-inherit", title: "std, inherited streams" };
const POSIX_BARE: Contestant =
    Contestant { name: "posix_spawn-inherit", title: "posix_spawn, inherited streams" };

/// The contestants of `lone`.
static ALL: [Contestant; 8] = [OUTPUT, STD_OUTPUT, OURS, POSIX, STD, OURS_BARE, POSIX_BARE, STD_BARE];
/// The contestants of `host`.
static GROWN: [Contestant; 3] = [OURS, POSIX, STD];

pub(super) fn lone(bench: &Bench, program: &Program) -> Result<Answer> {
    let setting = |_: &Contestant, host_mib| setting(bench, host_mib);
    let samples = program.rounds(bench, (&ALL, &[SMALL]), setting)?;
    let calls = |who| program.calls(who, &setting(&who, SMALL));
    let lines = ALL.each_ref().map(|who| (who.title(), (who, SMALL).into(), calls(*who)));
    let mut remarks = remarks(bench);
    remarks.push(
        "posix_spawn: by hand, with an empty signal mask, the default action for SIGPIPE and a new process \
         group; the child opens /dev/null; pidfd_open, and one waitid that reaps. minder also closes the \
         descriptors that are not marked close-on-exec, and reports which step of a start failed. System \
         calls: of the parent and of the child, from separate runs under strace."
            .into(),
    );
    Ok(answer(&samples, &goals_of_lone(&samples), &lines, remarks))
}

/// The same starts with two pipes, from a large parent.
pub(super) fn host(bench: &Bench, program: &Program) -> Result<Answer> {
    let samples = program.rounds(bench, (&GROWN, &[SMALL, LARGE]), |_, mib| setting(bench, mib))?;
    let line = |who: &'static Contestant, mib| {
        (format!("{}, parent of {mib} MiB", who.title), (who, mib).into(), None)
    };
    let lines: Vec<_> =
        [SMALL, LARGE].iter().flat_map(|mib| GROWN.iter().map(|who| line(who, *mib))).collect();
    let mut remarks = remarks(bench);
    remarks.push("Each page of the parent was written to.".into());
    Ok(answer(&samples, &goals_of_host(&samples), &lines, remarks))
}

fn children(bench: &Bench) -> usize {
    if bench.quick { CHILDREN_QUICK } else { CHILDREN }
}

fn setting(bench: &Bench, host_mib: usize) -> Setting {
    Setting { question: "lone", children: children(bench), host_mib, ..Setting::default() }
}

fn answer(samples: &Samples, goals: &[Goal], lines: &[Line<'_>], remarks: Vec<String>) -> Answer {
    Answer::with_goals(
        samples,
        goals,
        &format!("What one child costs:\n\n{}", costs(samples, lines)),
        remarks,
    )
}

fn remarks(bench: &Bench) -> Vec<String> {
    vec![
        format!(
            "{} children in a sample, one after the other; each sample is a separate process. The child is \
             benches/peers/tiny.c. Each child has a new process group.",
            children(bench)
        ),
        "CPU of the parent: getrusage(RUSAGE_SELF). Until its program runs, a child's time is its own, even \
         in the memory of its parent: see the column with the children."
            .into(),
    ]
}

fn goals_of_lone(samples: &Samples) -> Vec<Goal> {
    let none = Aim::None;
    let most = Aim::AtMost(1.0);
    let pairs = [
        ("`output()`: minder over std", OUTPUT, STD_OUTPUT, most),
        ("start and wait, two pipes: minder over posix_spawn", OURS, POSIX, most),
        ("start and wait, inherited streams: minder over posix_spawn", OURS_BARE, POSIX_BARE, most),
        ("start and wait, two pipes: minder over std", OURS, STD, none),
        ("start and wait, inherited streams: minder over std", OURS_BARE, STD_BARE, none),
    ];
    let goals = pairs.iter().flat_map(|(what, ours, other, aim)| {
        goals_of_pair(samples, what, (ours, SMALL), (other, SMALL), [*aim; 2])
    });
    goals.collect()
}

fn goals_of_host(samples: &Samples) -> Vec<Goal> {
    let aims = [(OURS, Aim::AtMost(1.1)), (POSIX, Aim::None), (STD, Aim::None)];
    let growth = aims.map(|(who, aim)| {
        let what = format!("{}: parent of {LARGE} MiB over {SMALL}, CPU of the parent", who.name);
        Goal::ratio(what, samples.ratio((&who, LARGE), (&who, SMALL), PARENT), aim)
    });
    growth.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goals::assert_measured;

    #[test]
    fn goals_take_numbers_that_the_rows_have() {
        assert_measured("library-lone", goals_of_lone);
        assert_measured("library-host", goals_of_host);
    }
}
