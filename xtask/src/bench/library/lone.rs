//! One child after the other: `Command::output` beside that of std, and `Command::spawn` with the
//! wait beside `posix_spawn`, from a small and from a large parent.

use super::super::mechanisms::{Aim, Goal, goals_table};
use super::super::{Answer, Bench};
use super::Program;
use super::samples::{Contestant, PARENT, Point, Samples, Setting, Value};
use anyhow::Result;

const CHILDREN: usize = 1_000;
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

/// All contestants with a small parent.
const ALL: [Contestant; 8] = [OUTPUT, STD_OUTPUT, OURS, POSIX, STD, OURS_BARE, POSIX_BARE, STD_BARE];
/// The contestants that also run with a large parent.
const GROWN: [Contestant; 3] = [OURS, POSIX, STD];

pub(super) fn lone(bench: &Bench, program: &Program) -> Result<Answer> {
    let children = bench.scaled(CHILDREN);
    let setting = |host_mib| Setting { question: "lone", children, host_mib, ..Setting::default() };
    let small = ALL.map(|who| (who, setting(SMALL)));
    let large = GROWN.map(|who| (who, setting(LARGE)));
    let samples = program.rounds(bench, &[&small[..], &large].concat())?;
    let line = |(who, setting): &(Contestant, Setting)| {
        let calls = if setting.host_mib == SMALL { program.calls(*who, setting) } else { None };
        (format!("{}, parent of {} MiB", who.title, setting.host_mib), (who.name, setting.host_mib), calls)
    };
    let lines: Vec<(String, Point, Option<f64>)> = small.iter().chain(&large).map(line).collect();
    let table = format!(
        "Goals are for medians; ratios are formed within a round.\n\n{}\n\
         What one child costs:\n\n{}",
        goals_table(&goals_of(&samples)),
        samples.costs(&lines)
    );
    let remarks = vec![
        format!(
            "{children} children in a sample, one after the other; each sample is a separate process. The \
             child is benches/peers/tiny.c. Each child has a new process group."
        ),
        "posix_spawn: by hand, with an empty signal mask, the default action for SIGPIPE and a new process \
         group; the child opens /dev/null; pidfd_open, and one waitid that reaps. minder also closes the \
         descriptors that are not marked close-on-exec, and reports which step of a start failed."
            .into(),
        "CPU of the parent: getrusage(RUSAGE_SELF). Until its program runs, a child's time is its own, even \
         in the memory of its parent: see the column with the children. A dash: not counted."
            .into(),
    ];
    Ok(Answer { table, remarks, csv: samples.csv()? })
}

fn goals_of(samples: &Samples) -> Vec<Goal> {
    let small = |who: Contestant| (who.name, SMALL);
    let mut goals = Vec::new();
    let pairs = [
        ("`output()`: minder over std", OUTPUT, STD_OUTPUT, Aim::AtMost(1.0)),
        ("start and wait, two pipes: minder over posix_spawn", OURS, POSIX, Aim::AtMost(1.0)),
        (
            "start and wait, inherited streams: minder over posix_spawn",
            OURS_BARE,
            POSIX_BARE,
            Aim::AtMost(1.0),
        ),
        ("start and wait, two pipes: minder over std", OURS, STD, Aim::None),
        ("start and wait, inherited streams: minder over std", OURS_BARE, STD_BARE, Aim::None),
    ];
    for (what, ours, other, aim) in pairs {
        for (whose, value) in [("CPU of the parent", PARENT), ("CPU with the children", Value::Tree)] {
            goals.push(samples.goal(format!("{what}, {whose}"), value, small(ours), small(other), aim));
        }
    }
    for (who, aim) in [(OURS, Aim::AtMost(1.1)), (POSIX, Aim::None), (STD, Aim::None)] {
        let what = format!("{}: parent of {LARGE} MiB over {SMALL}, CPU of the parent", who.name);
        goals.push(samples.goal(what, PARENT, (who.name, LARGE), small(who), aim));
    }
    goals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_take_the_right_samples() {
        let mut samples = Samples::default();
        for (who, host_mib, own) in [(OURS, SMALL, 30), (POSIX, SMALL, 20), (OURS, LARGE, 60)] {
            let setting = Setting { host_mib, ..Setting::default() };
            let printed = format!("self_ns,children_ns\n{own},100\n");
            samples.add(0, who, &setting, &printed).unwrap();
        }
        let goals = goals_of(&samples);
        let median = |n: usize| goals[n].figure.as_ref().map(|figure| figure.median);
        assert_eq!([0, 2, 10].map(median), [None, Some(1.5), Some(2.0)]);
    }
}
