//! One child after the other: `Command::output` beside that of std, and `Command::spawn` with the
//! wait beside `posix_spawn`, from a small and from a large parent.

use super::super::mechanisms::{Aim, Goal, goals_table};
use super::super::{Answer, Bench};
use super::Program;
use super::samples::{Contestant, PARENT, Point, Samples, Setting, Value};
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
const ALL: [Contestant; 8] = [OUTPUT, STD_OUTPUT, OURS, POSIX, STD, OURS_BARE, POSIX_BARE, STD_BARE];
/// The contestants of `host`.
const GROWN: [Contestant; 3] = [OURS, POSIX, STD];

pub(super) fn lone(bench: &Bench, program: &Program) -> Result<Answer> {
    let all = ALL.map(|who| (who, setting(bench, SMALL)));
    let samples = program.rounds(bench, &all)?;
    let calls = |(who, setting): &(Contestant, Setting)| {
        (who.title.to_string(), (who.name, SMALL), program.calls(*who, setting))
    };
    let table = table(&goals_of_lone(&samples), &samples, &all.iter().map(calls).collect::<Vec<_>>());
    let mut remarks = remarks(&all[0].1);
    remarks.push(
        "posix_spawn: by hand, with an empty signal mask, the default action for SIGPIPE and a new process \
         group; the child opens /dev/null; pidfd_open, and one waitid that reaps. minder also closes the \
         descriptors that are not marked close-on-exec, and reports which step of a start failed. System \
         calls: of the parent and of the child, from separate runs under strace."
            .into(),
    );
    Ok(Answer { table, remarks, csv: samples.csv()? })
}

/// The same starts with two pipes, from a large parent.
pub(super) fn host(bench: &Bench, program: &Program) -> Result<Answer> {
    let all: Vec<_> =
        [SMALL, LARGE].iter().flat_map(|mib| GROWN.map(|who| (who, setting(bench, *mib)))).collect();
    let samples = program.rounds(bench, &all)?;
    let line = |(who, setting): &(Contestant, Setting)| {
        let title = format!("{}, parent of {} MiB", who.title, setting.host_mib);
        (title, (who.name, setting.host_mib), None)
    };
    let table = table(&goals_of_host(&samples), &samples, &all.iter().map(line).collect::<Vec<_>>());
    let mut remarks = remarks(&all[0].1);
    remarks.push("Each page of the parent was written to.".into());
    Ok(Answer { table, remarks, csv: samples.csv()? })
}

fn setting(bench: &Bench, host_mib: usize) -> Setting {
    let children = if bench.quick { CHILDREN_QUICK } else { CHILDREN };
    Setting { question: "lone", children, host_mib, ..Setting::default() }
}

fn table(goals: &[Goal], samples: &Samples, lines: &[(String, Point, Option<f64>)]) -> String {
    format!(
        "Goals are for medians; ratios are formed within a round.\n\n{}\nWhat one child costs:\n\n{}",
        goals_table(goals),
        samples.costs(lines)
    )
}

fn remarks(setting: &Setting) -> Vec<String> {
    vec![
        format!(
            "{} children in a sample, one after the other; each sample is a separate process. The child is \
             benches/peers/tiny.c. Each child has a new process group.",
            setting.children
        ),
        "CPU of the parent: getrusage(RUSAGE_SELF). Until its program runs, a child's time is its own, even \
         in the memory of its parent: see the column with the children."
            .into(),
    ]
}

fn goals_of_lone(samples: &Samples) -> Vec<Goal> {
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
    let mut goals = Vec::new();
    for (what, ours, other, aim) in pairs {
        for (whose, value) in [("CPU of the parent", PARENT), ("CPU with the children", Value::Tree)] {
            let what = format!("{what}, {whose}");
            goals.push(samples.goal(what, value, (ours.name, SMALL), (other.name, SMALL), aim));
        }
    }
    goals
}

fn goals_of_host(samples: &Samples) -> Vec<Goal> {
    let aims = [(OURS, Aim::AtMost(1.1)), (POSIX, Aim::None), (STD, Aim::None)];
    let growth = aims.map(|(who, aim)| {
        let what = format!("{}: parent of {LARGE} MiB over {SMALL}, CPU of the parent", who.name);
        samples.goal(what, PARENT, (who.name, LARGE), (who.name, SMALL), aim)
    });
    growth.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_take_the_right_samples() {
        let mut samples = Samples::default();
        for (who, host_mib, own) in [(OURS, SMALL, 30), (POSIX, SMALL, 20), (OURS, LARGE, 60)] {
            let setting = Setting { host_mib, ..Setting::default() };
            samples.add(0, who, &setting, &format!("self_ns,children_ns\n{own},100\n")).unwrap();
        }
        let median = |goal: &Goal| goal.figure.as_ref().map(|figure| figure.median);
        let lone = goals_of_lone(&samples);
        assert_eq!([0, 2].map(|n| median(&lone[n])), [None, Some(1.5)]);
        let host: Vec<_> = goals_of_host(&samples).iter().map(median).collect();
        assert_eq!(host, [Some(2.0), None, None]);
    }
}
