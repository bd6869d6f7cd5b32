//! `cargo bench-lab output`: what it costs to see output, and whether every byte of it came.
//!
//! Bytes are checked by programs of `benches/peers` that know what must come; they are checked
//! first, on streams that were spoilt on purpose. Nothing here fails because a machine was slow.

mod tools;
mod fixtures;
mod parallel_output;
mod single;
mod record;

use super::{Answer, Asked, Bench, machine, peers::Peers, report};
use anyhow::{Context, Result};
use fixtures::Fixtures;

/// One question, and how it is answered.
struct Question {
    name: &'static str,
    what: &'static str,
    /// How many rounds tell enough, unless the caller says.
    rounds: usize,
    ask: fn(&Bench, &Fixtures<'_>) -> Result<Answer>,
}

const QUESTIONS: [Question; 6] = [
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
pub(super) fn main(words: &[String]) -> Result<()> {
    let asked = Asked::parse("output", &QUESTIONS.map(|q| q.name), words)?;
    let peers = Peers::ready()?;
    tools::ready(&peers)?;
    let rounds = asked.rounds.unwrap_or(0);
    let mut bench = Bench { peers, rounds, quick: asked.quick };
    for question in
        QUESTIONS.iter().filter(|q| asked.only.is_empty() || asked.only.iter().any(|o| o == q.name))
    {
        if asked.rounds.is_none() {
            bench.rounds = if asked.quick { question.rounds.min(3) } else { question.rounds };
        }
        eprintln!("bench: {}: {}", question.name, question.what);
        let before = machine::load();
        let fixtures = Fixtures::new(&bench.peers)?;
        let answer = (question.ask)(&bench, &fixtures).with_context(|| format!("bench {}", question.name))?;
        let scale = if bench.quick { ", a tenth of it" } else { "" };
        let what = format!("{}{scale}", question.what);
        report("output", (question.name, &what), &bench, &answer, &before)?;
    }
    Ok(())
}
