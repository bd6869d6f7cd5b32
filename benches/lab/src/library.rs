//! `cargo bench-lab library`: what the library costs a program, beside the standard library, tokio
//! and `posix_spawn`.
//!
//! `benches/peers/library` has the contestants. Each sample is a separate process, so no contestant
//! finds the threads, the signal handlers or the memory of another. The goals stand beside the measured
//! values, and those that were missed are marked.

mod samples;
mod lone;
mod many;
mod latency;
mod threads;

use super::mechanisms::{build_workspace, compile, locked_versions};
use super::question::{self, Question};
use super::{Asked, Bench, peers::Peers, round_order};
use anyhow::{Context, Result};
use samples::{Contestant, Samples, Setting};
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

/// `cargo bench-lab library [--rounds N] [--quick] [--only NAME]...`
pub(super) fn main(words: &[String]) -> Result<()> {
    let asked = Asked::parse("library", &QUESTIONS.map(|q| q.name), words)?;
    let mut bench = Bench { peers: Peers::none()?, rounds: 0, quick: asked.quick };
    let program = Program::ready(&bench)?;
    question::ask("library", &QUESTIONS, &asked, &mut bench, &program, &[versions()?])
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
    fn ready(bench: &Bench) -> Result<Self> {
        let child = |name| {
            compile(bench, name, &["-static", "-nostdlib"], &[])
                .with_context(|| format!("benches/peers/{name}.c does not build; cure: a C compiler"))
        };
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

    /// Measures one contestant once, and returns what the program printed.
    fn sample(&self, contestant: Contestant, setting: &Setting) -> Result<String> {
        run::read(run::bounded(SAMPLE_TIMEOUT, &self.path).args(self.words(contestant, setting)))
    }

    /// Returns how many system calls one more child takes, with those of the child and of all threads;
    /// `None` without strace. It is the difference of two runs, so that what happens once is not in it.
    fn calls(&self, contestant: Contestant, setting: &Setting) -> Option<f64> {
        const FEW: usize = 200;
        const MANY: usize = 600;
        let count = |children| {
            let words = self.words(contestant, &Setting { children, ..setting.clone() });
            let mut cmd = run::bounded(SAMPLE_TIMEOUT, "strace");
            cmd.args(["-f", "-c", "-q"]).arg(&self.path).args(words);
            let (_, table) = run::read_both(&mut cmd).ok()?;
            calls_of(&table)
        };
        let more = count(MANY)? - count(FEW)?;
        #[expect(clippy::cast_precision_loss, reason = "a number of children")]
        Some(more / (MANY - FEW) as f64)
    }

    /// Measures these contestants in turn, round after round.
    fn rounds(&self, bench: &Bench, contestants: &[(Contestant, Setting)]) -> Result<Samples> {
        let mut samples = Samples::default();
        let places: Vec<usize> = (0..contestants.len()).collect();
        for round in 0..bench.rounds {
            bench.round(round);
            for place in round_order(round, &places) {
                let (contestant, setting) = &contestants[place];
                samples.add(round, *contestant, setting, &self.sample(*contestant, setting)?)?;
            }
        }
        Ok(samples)
    }
}

/// Returns the total of the column `calls` in a table of `strace -c`.
fn calls_of(table: &str) -> Option<f64> {
    let total = table.lines().find(|line| line.ends_with(" total"))?;
    // % time, seconds, usecs/call, calls, errors (if there are any), syscall.
    total.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_come_from_the_last_line_of_strace() {
        let table = "% time     seconds  usecs/call     calls    errors syscall\n\
                     ------ ----------- ----------- --------- --------- ----------------\n\
                     90.00    0.001000          10       100           read\n\
                     100.00    0.001100          10       104         4 total\n";
        assert_eq!((calls_of(table), calls_of("strace: no such program\n")), (Some(104.0), None));
    }
}
