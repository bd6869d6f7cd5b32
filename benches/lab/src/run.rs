//! `cargo bench-lab run`: compares `minder run` with other runners.

mod cost;
mod many_children;

use crate::peers::Peers;
use crate::question::{self, Question};
use anyhow::Result;

const QUESTIONS: [Question<()>; 6] = [
    Question {
        name: "tiny",
        what: "cost per job, static child that exits immediately, 8 at once",
        rounds: 5,
        ask: cost::tiny,
    },
    Question { name: "true", what: "cost per job, /bin/true, 8 at once", rounds: 5, ask: cost::truth },
    Question { name: "one", what: "one job: wall time over a bare spawn", rounds: 40, ask: cost::one },
    Question {
        name: "version",
        what: "cost of starting and printing `--version`",
        rounds: 20,
        ask: cost::version,
    },
    Question {
        name: "live",
        what: "cost per job while thousands of other children live",
        rounds: 3,
        ask: many_children::live,
    },
    Question {
        name: "many",
        what: "thousands of captured children at once: memory, threads, descriptors",
        rounds: 3,
        ask: many_children::many,
    },
];

/// `cargo bench-lab run [--rounds N] [--quick] [--only NAME]...`
pub(crate) fn main(words: &[String]) -> Result<()> {
    question::answer(("run", "minder run"), &QUESTIONS, words, Peers::ready, |_, _| Ok(((), Vec::new())))
}
