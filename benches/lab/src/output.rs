//! `cargo bench-lab output`: what it costs to see output, and whether every byte of it came.
//!
//! Bytes are checked by programs of `benches/peers` that know what must come; they are checked
//! first, on streams that were spoilt on purpose. Nothing here fails because a machine was slow.

mod tools;
mod fixtures;
mod parallel_output;
mod single;
mod record;

use crate::peers::Peers;
use crate::question::{self, Question};
use anyhow::Result;

const QUESTIONS: [Question<()>; 6] = [
    Question {
        name: "grouped",
        what: "64 concurrent jobs of 16 MiB of lines, each shown after its exit",
        rounds: 5,
        ask: parallel_output::grouped,
    },
    Question {
        name: "keep",
        what: "64 concurrent jobs of 16 MiB of lines, in the order of the input",
        rounds: 5,
        ask: parallel_output::keep,
    },
    Question {
        name: "lb",
        what: "64 concurrent jobs of 16 MiB of lines, whole lines as they arrive",
        rounds: 5,
        ask: parallel_output::lb,
    },
    Question {
        name: "spool",
        what: "64 concurrent jobs of 16 MiB of lines, a file as standard output",
        rounds: 5,
        ask: parallel_output::spool,
    },
    Question { name: "one", what: "one job of 2 GiB into a pipe", rounds: 7, ask: single::one },
    Question {
        name: "record",
        what: "cost per tiny job, with and without a record",
        rounds: 5,
        ask: record::record,
    },
];

/// `cargo bench-lab output [--rounds N] [--quick] [--only NAME]...`
pub(crate) fn main(words: &[String]) -> Result<()> {
    question::answer(("output", "minder run"), &QUESTIONS, words, Peers::ready, |_, _| {
        tools::ready()?;
        Ok(((), Vec::new()))
    })
}
