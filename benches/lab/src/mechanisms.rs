//! `cargo bench-lab wait|exit|spawn|wine`: compares the mechanisms of `minder bench` with
//! programs of other projects.
//!
//! `minder bench` contains each mechanism that is published as a design. The programs here are
//! those that it would have to link: mio, polling, libuv. Each table shows the goals next to the
//! measured values and marks the goals that were missed.

mod wait;
mod exit;
mod spawn;
mod wine;

use crate::peers::Peers;
use crate::programs::minder;
use crate::question::{self, Question};
use crate::samples::Samples;
use crate::table::{grouped, markdown};
use anyhow::{Context, Result};
use minder_bench::Spread;
use minder_ui::rows::CsvTable;
use std::process::Command;
use xtask::run;

/// The processor time of an operation, in nanoseconds, as `minder bench` names it.
const CPU: &str = "cpu_ns";
/// The time that passed.
const WALL: &str = "wall_ns";

/// The verbs and their questions.
const VERBS: [(&str, &[Question<()>]); 4] = [
    ("wait", &wait::QUESTIONS),
    ("exit", &exit::QUESTIONS),
    ("spawn", &spawn::QUESTIONS),
    (wine::VERB, &wine::QUESTIONS),
];

/// Returns the questions of a verb, if it is one of this module.
pub(crate) fn questions(verb: &str) -> Option<&'static [Question<()>]> {
    VERBS.iter().find(|(name, _)| *name == verb).map(|(_, questions)| *questions)
}

/// `cargo bench-lab wait|exit|spawn|wine [--rounds N] [--quick] [--only NAME]...`
pub(crate) fn main(verb: &str, questions: &[Question<()>], words: &[String]) -> Result<()> {
    if verb == wine::VERB {
        let about = (verb, "minder bench NAME under Wine");
        return question::answer(about, questions, words, Peers::none, |_, _| {
            Ok((wine::build()?, Vec::new()))
        });
    }
    let about = format!("minder bench {verb}");
    question::answer((verb, &about), questions, words, Peers::of_minder_alone, |_, _| {
        let version = run::read(run::command(minder()).arg("--version"))?;
        Ok(((), vec![version.trim().into()]))
    })
}

/// Runs a program that prints rows. Adds each line of its standard error to the remarks, once.
fn rows(cmd: &mut Command, remarks: &mut Vec<String>) -> Result<CsvTable> {
    let (out, err) = run::read_both(cmd)?;
    for line in err.lines().map(|line| format!("message: {line}")) {
        if !remarks.contains(&line) {
            remarks.push(line);
        }
    }
    CsvTable::read(&out).with_context(|| format!("the rows of {cmd:?}"))
}

/// Returns `minder bench VERB --csv` for this number of rounds; more options may follow.
fn bench_command(verb: &str, rounds: usize) -> Command {
    let mut cmd = run::command(minder());
    cmd.args(["bench", verb, "--csv", "--rounds", &rounds.to_string()]);
    cmd
}

/// Returns a table of CPU time in microseconds: a line for each name, a column for each size.
fn costs(samples: &Samples, kind: &str, head: &str) -> String {
    by_size(samples, head, |name, size| samples.spread((name, kind, size), CPU).map(|nanos| micros(&nanos)))
}

/// Returns a table with a line for each name that has a cell, and a column for each size.
fn by_size<'a>(samples: &'a Samples, head: &str, cell: impl Fn(&'a str, usize) -> Option<String>) -> String {
    let sizes = samples.sizes();
    let columns: Vec<String> =
        std::iter::once(head.to_string()).chain(sizes.iter().map(|size| grouped(*size))).collect();
    let mut lines = Vec::new();
    for name in samples.names() {
        let cells: Vec<_> = sizes.iter().map(|size| cell(name, *size)).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "–".into()));
            lines.push(std::iter::once(name.to_string()).chain(cells).collect());
        }
    }
    markdown(&columns.iter().map(String::as_str).collect::<Vec<_>>(), &lines)
}

/// Returns nanoseconds as microseconds, with minimum and maximum, in about three digits.
fn micros(nanos: &Spread) -> String {
    let decimals = [1e3, 1e4, 1e6].iter().filter(|limit| nanos.median < **limit).count();
    nanos.scaled(1e-3).show(decimals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_table_has_a_column_for_each_size() {
        let text = "mechanism,objects,round,waits,cpu_ns,wall_ns\n\
                    epoll,64,1,9,250,260\npoll,2,1,9,400,410\npoll,64,1,9,12345678,12345679\n";
        let samples = Samples::read(&CsvTable::read(text).unwrap()).unwrap();
        assert_eq!(
            costs(&samples, "", "us a wait"),
            "| us a wait | 2 | 64 |\n| --- | ---: | ---: |\n| epoll | – | 0.250 [0.250-0.250] |\n\
             | poll | 0.400 [0.400-0.400] | 12346 [12346-12346] |\n"
        );
        assert!(!costs(&samples, "burst", "us").contains("epoll"));
    }
}
