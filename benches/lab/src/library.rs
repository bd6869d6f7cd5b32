//! `cargo bench-lab library`: what the library costs a program, compared with the standard library,
//! tokio and `posix_spawn`.
//!
//! `benches/peers/library` has the contestants. Each sample is a separate process, so no contestant
//! finds the threads, the signal handlers or the memory of another. The goals stand next to the
//! measured values, and those that were missed are marked.

mod lone;
mod many;
mod latency;
mod threads;

use crate::bench::Bench;
use crate::goals::{Aim, Goal};
use crate::peers::Peers;
use crate::programs::{build_workspace, calls_of, compile, locked_versions};
use crate::question::{self, Question};
use crate::samples::{self, Contestant, Numbers, Point, Sample, Samples, pairs};
use crate::table::markdown;
use anyhow::Result;
use std::path::PathBuf;
use xtask::run;

/// The directory below `benches/peers` with the program.
const WORKSPACE: &str = "library";
/// Seconds after which a sample is killed: many times what it takes.
const SAMPLE_TIMEOUT: &str = "100";

const QUESTIONS: [Question<Program>; 6] = [
    Question {
        name: "lone",
        what: "one child after the other: `output()`, and a start with the wait",
        rounds: 15,
        ask: lone::lone,
    },
    Question {
        name: "host",
        what: "one child after the other, from a parent of 2 GiB",
        rounds: 5,
        ask: lone::host,
    },
    Question {
        name: "captured",
        what: "2,000 captured children, 64 at once",
        rounds: 9,
        ask: many::captured,
    },
    Question {
        name: "driven",
        what: "1,000 captured children in a program on tokio, 64 at once",
        rounds: 11,
        ask: many::driven,
    },
    Question {
        name: "latency",
        what: "from a child's exit to the event, while others live",
        rounds: 3,
        ask: latency::latency,
    },
    Question {
        name: "threads",
        what: "items processed by two threads and finished by the caller's",
        rounds: 15,
        ask: threads::threads,
    },
];

/// The program that measures one contestant, and the children that it starts.
struct Program {
    path: PathBuf,
    tiny: String,
    sleeper: String,
    stamp: String,
}

/// What the program does in a sample. Zero leaves an option at its default.
#[derive(Clone, Copy, Debug, Default)]
struct Setting {
    question: &'static str,
    children: usize,
    at_once: usize,
    live: usize,
    host_mib: usize,
}

/// Processor time of the program, with all its threads.
const PARENT: &str = "self_ns";

/// Returns processor time of the program and of its children.
fn tree(sample: &Sample) -> Option<f64> {
    Some(sample.number(PARENT)? + sample.number("children_ns")?)
}

/// `cargo bench-lab library [--rounds N] [--quick] [--only NAME]...`
pub(crate) fn main(words: &[String]) -> Result<()> {
    question::answer(("library", "the library minder"), &QUESTIONS, words, Peers::none, |_, _| {
        Ok((Program::ready()?, vec![versions()?]))
    })
}

/// Returns the versions of what minder is compared with.
fn versions() -> Result<String> {
    let rustc = run::read(run::command("rustc").arg("--version"))?;
    let libc = run::read(run::command("getconf").arg("GNU_LIBC_VERSION")).unwrap_or_default();
    let tokio = locked_versions(WORKSPACE, &["tokio"])?;
    let libc = if libc.trim().is_empty() { "another C library than glibc" } else { libc.trim() };
    Ok(format!("{}, {libc}, {tokio}", rustc.trim()))
}

impl Program {
    fn ready() -> Result<Self> {
        let child = |name| compile(name, &["-static", "-nostdlib"], &[]);
        let [tiny, sleeper, stamp] = ["tiny", "child", "stamp"].map(child);
        Ok(Self { path: build_workspace(WORKSPACE)?, tiny: tiny?, sleeper: sleeper?, stamp: stamp? })
    }

    /// Returns the arguments of a sample.
    fn words(&self, contestant: Contestant, setting: &Setting) -> Vec<String> {
        let Setting { question, children, at_once, live, host_mib } = setting;
        let child = if *live > 0 { &self.stamp } else { &self.tiny };
        let mut words = vec![(*question).to_string(), contestant.name.to_string()];
        for (name, value) in [("--child", child), ("--sleeper", &self.sleeper)] {
            words.extend([name.to_string(), value.clone()]);
        }
        let numbers =
            [("--children", children), ("--at-once", at_once), ("--live", live), ("--host-mib", host_mib)];
        for (name, number) in numbers.into_iter().filter(|(_, number)| **number > 0) {
            words.extend([name.to_string(), number.to_string()]);
        }
        words
    }

    /// Measures one contestant once.
    fn sample(&self, contestant: Contestant, setting: &Setting) -> Result<Numbers> {
        let words = self.words(contestant, setting);
        samples::numbers(&run::read(run::bounded(SAMPLE_TIMEOUT, &self.path).args(words))?)
    }

    /// Returns how many system calls one more child takes, with those of the child and of all threads;
    /// `None` without strace. It is the difference of two runs, so that what happens once is not in it.
    fn calls(&self, contestant: Contestant, setting: &Setting) -> Option<f64> {
        const FEW: usize = 200;
        const MANY: usize = 600;
        let count = |children| {
            let words = self.words(contestant, &Setting { children, ..*setting });
            let mut cmd = run::bounded(SAMPLE_TIMEOUT, "strace");
            cmd.args(["-f", "-c", "-q"]).arg(&self.path).args(words);
            let (_, table) = run::read_both(&mut cmd).ok()?;
            calls_of(&table)
        };
        let more = count(MANY)? - count(FEW)?;
        #[expect(clippy::cast_precision_loss, reason = "a number of children")]
        Some(more / (MANY - FEW) as f64)
    }

    /// Measures all contestants in turn, round after round. `setting` returns what one does at a
    /// size.
    fn rounds(
        &self,
        bench: &Bench,
        (all, sizes): (&[Contestant], &[usize]),
        setting: impl Fn(&Contestant, usize) -> Setting,
    ) -> Result<Samples> {
        let mut samples = Samples::default();
        let sample = |(who, size): (&Contestant, usize)| self.sample(*who, &setting(who, size));
        samples.add_rounds(bench, &pairs(all, sizes), sample, samples::fail)?;
        Ok(samples)
    }
}

/// Returns goals for the ratio of processor time: that of the parent, and that with the children.
fn goals_of_pair<'a>(
    samples: &Samples,
    what: &str,
    above: impl Into<Point<'a>>,
    below: impl Into<Point<'a>>,
    [parent, with_children]: [Aim; 2],
) -> [Goal; 2] {
    let above = above.into();
    let below = below.into();
    [
        Goal::ratio(format!("{what}, CPU of the parent"), samples.ratio(above, below, PARENT), parent),
        Goal::ratio(
            format!("{what}, CPU with the children"),
            samples.ratio(above, below, tree),
            with_children,
        ),
    ]
}

/// A line of a table of costs: its title, its samples, and the system calls of a child.
type Line<'a> = (String, Point<'a>, Option<f64>);

/// Returns a table of what a child costs, in microseconds.
fn costs(samples: &Samples, lines: &[Line<'_>]) -> String {
    let line = |(title, point, calls): &Line<'_>| {
        vec![
            title.clone(),
            samples.cell(*point, (PARENT, 1e-3, 1)),
            samples.cell(*point, (tree, 1e-3, 1)),
            samples.cell(*point, ("wall_ns", 1e-3, 1)),
            calls.map_or_else(|| "–".into(), |calls| format!("{calls:.1}")),
            samples.cell(*point, ("threads", 1.0, 0)),
            samples.cell(*point, ("hwm_kib", 1.0 / 1024.0, 1)),
        ]
    };
    let head = [
        "contestant",
        "CPU of the parent us/child",
        "with the children us/child",
        "wall us/child",
        "system calls/child",
        "threads",
        "HWM MiB",
    ];
    markdown(&head, &lines.iter().map(line).collect::<Vec<_>>())
}
