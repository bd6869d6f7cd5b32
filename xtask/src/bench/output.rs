//! `cargo xtask bench output`: what it costs to see output, and whether every byte of it came.
//!
//! Bytes are checked by programs of `benches/peers` that know what must come; they are checked first, on streams that
//! were spoilt on purpose. Nothing here fails because a machine was slow.

mod tools;
mod scene;
mod flood;
mod single;
mod record;

use super::{Answer, Asked, Bench, machine, peers::Peers};
use crate::tree;
use anyhow::{Context, Result, bail};
use scene::Scene;
use std::path::PathBuf;

/// One question, and how it is answered.
struct Question {
    name: &'static str,
    what: &'static str,
    /// How many rounds tell enough, unless the caller says.
    rounds: usize,
    ask: fn(&Bench, &Scene<'_>) -> Result<Answer>,
}

const QUESTIONS: [Question; 6] = [
    Question {
        name: "grouped",
        what: "64 jobs of 16 MiB of lines at once, each job when it ends",
        rounds: 5,
        ask: flood::grouped,
    },
    Question {
        name: "keep",
        what: "64 jobs of 16 MiB of lines at once, in the order of input",
        rounds: 5,
        ask: flood::keep,
    },
    Question {
        name: "lb",
        what: "64 jobs of 16 MiB of lines at once, whole lines as they come",
        rounds: 5,
        ask: flood::lb,
    },
    Question {
        name: "spool",
        what: "64 jobs of 16 MiB of lines at once, a file as standard output",
        rounds: 5,
        ask: flood::spool,
    },
    Question { name: "one", what: "one job of 2 GiB into a pipe", rounds: 7, ask: single::one },
    Question {
        name: "record",
        what: "cost per tiny job, with the record and without",
        rounds: 5,
        ask: record::record,
    },
];

/// `cargo xtask bench output [--rounds N] [--quick] [--only NAME]...`
pub(super) fn main(words: &[String]) -> Result<()> {
    let asked = parse(words)?;
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
        let scene = Scene::new(&bench.peers)?;
        let answer = (question.ask)(&bench, &scene).with_context(|| format!("bench {}", question.name))?;
        report(question, &bench, &answer, &before)?;
    }
    Ok(())
}

/// The options, which are those of `bench run`, but for the names.
fn parse(words: &[String]) -> Result<Asked> {
    let mut asked = Asked::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--quick" => asked.quick = true,
            "--rounds" => {
                let n: usize = words.next().context("--rounds wants a number")?.parse()?;
                asked.rounds = Some(n.max(1));
            }
            "--only" => asked.only.push(words.next().context("--only wants a name")?.clone()),
            other => bail!("`{other}` is no option of bench output; cure: cargo xtask help"),
        }
    }
    let names: Vec<&str> = QUESTIONS.iter().map(|q| q.name).collect();
    if let Some(unknown) = asked.only.iter().find(|o| !names.contains(&o.as_str())) {
        bail!("nothing is called `{unknown}`; cure: one of {}", names.join(", "));
    }
    Ok(asked)
}

/// Prints the table, and keeps it and its rows: quick looks below target, full runs in docs/measurements.
fn report(question: &Question, bench: &Bench, answer: &Answer, load_before: &str) -> Result<()> {
    let Question { name, what, .. } = question;
    let quick = if bench.quick { " --quick" } else { "" };
    let scale = if bench.quick { ", a tenth of it" } else { "" };
    let mut text = format!("# minder run: {what}{scale}\n\n{}\n", answer.table);
    for remark in answer.remarks.iter().chain(&bench.peers.left_out) {
        text.push_str(&format!("- {remark}\n"));
    }
    text.push_str(&machine::describe(&bench.peers, bench.rounds, load_before)?);
    text.push_str(&format!(
        "- drawn by: `cargo xtask bench output --only {name} --rounds {}{quick}`\n- raw rows: `output-{name}.csv`\n",
        bench.rounds
    ));
    let dir: PathBuf =
        if bench.quick { tree::target_dir().join("bench") } else { tree::root().join("docs/measurements") };
    std::fs::create_dir_all(&dir)?;
    std::fs::write(dir.join(format!("output-{name}.csv")), &answer.csv)?;
    std::fs::write(dir.join(format!("output-{name}.md")), &text)?;
    println!("{text}");
    Ok(())
}
