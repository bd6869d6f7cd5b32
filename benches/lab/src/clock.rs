//! `cargo bench-lab clock`: how exact sleeps, timers and ticks of the library are, compared with
//! the standard library, tokio, `spin_sleep` and cyclictest.
//!
//! `benches/peers/clock` has the contestants, except cyclictest. Each sample is a separate process.
//! The goals stand next to the measured values, and those that were missed are marked.

mod sleepers;
mod timers;
mod interval;
mod cyclictest;

use crate::bench::Bench;
use crate::peers::Peers;
use crate::programs::{build_workspace, locked_versions};
use crate::question::{self, Question};
use crate::samples::{self, Contestant, Numbers, Samples, pairs};
use anyhow::Result;
use std::path::PathBuf;
use xtask::run;

/// The directory below `benches/peers` with the program.
const WORKSPACE: &str = "clock";
/// Seconds after which a sample is killed: many times what it takes.
const SAMPLE_TIMEOUT: &str = "100";

const QUESTIONS: [Question<Program>; 4] = [
    Question {
        name: "sleepers",
        what: "sleeps of 100 us and of 1 ms: lateness and CPU time",
        rounds: 5,
        ask: sleepers::sleepers,
    },
    Question {
        name: "timers",
        what: "10,000 timers in 10 s with a tolerance of 20 ms",
        rounds: 5,
        ask: timers::timers,
    },
    Question {
        name: "interval",
        what: "10,000 ticks of 1 ms with a stall: drift and lateness",
        rounds: 5,
        ask: interval::interval,
    },
    Question {
        name: "cyclictest",
        what: "`minder clock measure` compared with cyclictest",
        rounds: 5,
        ask: cyclictest::cyclictest,
    },
];

/// The program that measures one contestant.
struct Program {
    path: PathBuf,
}

/// `cargo bench-lab clock [--rounds N] [--quick] [--only NAME]...`
pub(crate) fn main(words: &[String]) -> Result<()> {
    question::answer(("clock", "minder::clock"), &QUESTIONS, words, Peers::none, |_, _| {
        Ok((Program { path: build_workspace(WORKSPACE)? }, versions()?))
    })
}

/// Returns the versions of what minder is compared with, and the timer slack that all inherit.
fn versions() -> Result<Vec<String>> {
    let rustc = run::read(run::command("rustc").arg("--version"))?;
    let peers = locked_versions(WORKSPACE, &["tokio", "spin_sleep"])?;
    let slack = std::fs::read_to_string("/proc/self/timerslack_ns").unwrap_or_default();
    let slack = if slack.trim().is_empty() { "unknown" } else { slack.trim() };
    Ok(vec![format!("{}, {peers}; timer slack of every contestant: {slack} ns", rustc.trim())])
}

impl Program {
    /// Measures one contestant once.
    fn sample(&self, question: &str, who: &Contestant, numbers: &[(&str, usize)]) -> Result<Numbers> {
        let mut cmd = run::bounded(SAMPLE_TIMEOUT, &self.path);
        cmd.args([question, who.name]);
        cmd.args(numbers.iter().flat_map(|(name, number)| [(*name).to_string(), number.to_string()]));
        // The poller uses the backend that it chooses itself.
        samples::numbers(&run::read(cmd.env_remove("MINDER_BACKEND"))?)
    }

    /// Measures all contestants in turn, round after round. `numbers` returns the options for a size.
    fn rounds(
        &self,
        bench: &Bench,
        question: &str,
        (all, sizes): (&[Contestant], &[usize]),
        numbers: impl Fn(usize) -> Vec<(&'static str, usize)>,
    ) -> Result<Samples> {
        let mut samples = Samples::default();
        let sample = |(who, size): (&Contestant, usize)| self.sample(question, who, &numbers(size));
        samples.add_rounds(bench, &pairs(all, sizes), sample, samples::fail)?;
        Ok(samples)
    }
}
