//! `cargo bench-lab wait|exit|spawn|wine`: compares the mechanisms of `minder bench` with
//! programs of other projects.
//!
//! `minder bench` contains each mechanism that is published as a design. The programs here are
//! those that it would have to link: mio, polling, libuv. Each table shows the goals beside the
//! measured values and marks the goals that were missed.

mod rows;
mod goals;
mod wait;
mod exit;
mod spawn;
mod wine;

use super::peers::Peers;
use super::{Answer, Asked, Bench, backends, machine, report};
use anyhow::{Context, Result};
use minder_bench::Spread;
use std::path::PathBuf;
use std::process::Command;
use xtask::{run, tree};

pub(super) use goals::{Aim, Goal, table as goals_table};
pub(super) use rows::{Point, Rows};

/// A question, and the function that measures the answer.
pub(super) struct Question {
    name: &'static str,
    what: &'static str,
    /// The number of rounds without `--rounds`.
    rounds: usize,
    ask: fn(&Bench) -> Result<Answer>,
}

/// The verbs and their questions.
const VERBS: [(&str, &[Question]); 4] = [
    ("wait", &wait::QUESTIONS),
    ("exit", &exit::QUESTIONS),
    ("spawn", &spawn::QUESTIONS),
    (wine::VERB, &wine::QUESTIONS),
];

/// Returns the questions of a verb, if it is one of this module.
pub(super) fn questions(verb: &str) -> Option<&'static [Question]> {
    VERBS.iter().find(|(name, _)| *name == verb).map(|(_, questions)| *questions)
}

/// `cargo bench-lab wait|exit|spawn|wine [--rounds N] [--quick] [--only NAME]...`
pub(super) fn main(verb: &str, questions: &[Question], words: &[String]) -> Result<()> {
    let names: Vec<&str> = questions.iter().map(|q| q.name).collect();
    let asked = Asked::parse(verb, &names, words)?;
    let foreign = verb == wine::VERB;
    let peers = if foreign { wine::build().and_then(|()| Peers::none())? } else { Peers::of_minder_alone()? };
    let mut bench = Bench { peers, rounds: 0, quick: asked.quick };
    for question in
        questions.iter().filter(|q| asked.only.is_empty() || asked.only.iter().any(|o| o == q.name))
    {
        let usual = if asked.quick { question.rounds.min(3) } else { question.rounds };
        bench.rounds = asked.rounds.unwrap_or(usual);
        eprintln!("bench: {}: {}", question.name, question.what);
        let before = machine::load();
        let mut answer = (question.ask)(&bench).with_context(|| format!("bench {verb} {}", question.name))?;
        if !foreign {
            let version = run::read(run::command(bench.peers.minder()).arg("--version"))?;
            answer.remarks.push(version.trim().into());
        }
        report(verb, (question.name, question.what), &bench, &answer, &before)?;
    }
    if asked.quick || foreign { Ok(()) } else { backends::write() }
}

/// Runs a program that prints rows. Adds each line of its standard error to the remarks, once.
fn rows(cmd: &mut Command, remarks: &mut Vec<String>) -> Result<Rows> {
    let (out, err) = run::read_both(cmd)?;
    for line in err.lines().map(|line| format!("message: {line}")) {
        if !remarks.contains(&line) {
            remarks.push(line);
        }
    }
    Rows::read(&out)
}

/// Returns `minder bench VERB --csv` for this number of rounds; more options may follow.
fn minder(bench: &Bench, verb: &str, rounds: usize, chart: Option<&PathBuf>) -> Command {
    let mut cmd = run::command(bench.peers.minder());
    cmd.args(["bench", verb, "--csv", "--rounds", &rounds.to_string()]);
    if let Some(file) = chart {
        cmd.arg("--svg").arg(file);
    }
    cmd
}

/// Returns the path of the chart of a question, beside its table.
fn chart(bench: &Bench, verb: &str, name: &str) -> Result<PathBuf> {
    let dir = bench.results();
    std::fs::create_dir_all(&dir)?;
    Ok(dir.join(format!("{verb}-{name}.svg")))
}

/// Compiles a C program of `benches/peers` with these arguments before and after its name. Returns
/// the path of the program.
pub(super) fn compile(bench: &Bench, name: &str, before: &[&str], after: &[&str]) -> Result<String> {
    let built = bench.peers.built(name);
    let mut cc = run::command("cc");
    cc.arg("-O2").args(before).args(["-o", &built]);
    cc.arg(tree::root().join(format!("benches/peers/{name}.c"))).args(after);
    run::read(&mut cc)?;
    Ok(built)
}

/// Builds the program of `benches/peers/NAME`, a separate workspace, in a separate target directory.
/// Returns the path of the program.
pub(super) fn build_workspace(name: &str) -> Result<PathBuf> {
    let target = tree::target_dir().join("peers").join(name);
    let manifest = format!("benches/peers/{name}/Cargo.toml");
    let mut cmd = run::cargo();
    cmd.args(["build", "--release", "--manifest-path", &manifest]);
    run::run(cmd.arg("--target-dir").arg(&target))
        .with_context(|| format!("the program of benches/peers/{name} does not build"))?;
    Ok(target.join(format!("release/{name}{}", std::env::consts::EXE_SUFFIX)))
}

/// Returns the names and versions of packages in the lock file of `benches/peers/NAME`.
pub(super) fn locked_versions(name: &str, packages: &[&str]) -> Result<String> {
    let lock = std::fs::read_to_string(tree::root().join(format!("benches/peers/{name}/Cargo.lock")))?;
    let named: Vec<_> = packages.iter().map(|name| format!("{name} {}", version(&lock, name))).collect();
    Ok(named.join(", "))
}

/// Returns the version of a package in a lock file.
fn version<'a>(lock: &'a str, name: &str) -> &'a str {
    let mut lines = lock.lines().skip_while(|line| *line != format!("name = \"{name}\""));
    let version = lines.nth(1).and_then(|line| line.strip_prefix("version = "));
    version.map_or("unknown", |version| version.trim_matches('"'))
}

/// Returns a number with commas between its thousands.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a table of CPU time in microseconds: a line for each name, a column for each size.
fn costs(rows: &Rows, kind: Option<&str>, head: &str) -> String {
    let sizes = rows.sizes();
    let columns: Vec<String> =
        std::iter::once(head.to_string()).chain(sizes.iter().map(|s| grouped(*s))).collect();
    let cell = |name, size| rows.cpu(Point { name, kind, size }).map(|nanos| micros(&nanos));
    let mut lines = Vec::new();
    for name in rows.names() {
        let cells: Vec<_> = sizes.iter().map(|size| cell(name, *size)).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(|c| c.unwrap_or_else(|| "–".into()));
            lines.push(std::iter::once(name.to_string()).chain(cells).collect());
        }
    }
    super::table::markdown(&columns.iter().map(String::as_str).collect::<Vec<_>>(), &lines)
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
    fn versions_come_from_the_lock_file() {
        let lock = "[[package]]\nname = \"mio\"\nversion = \"1.2.4\"\n\n\
                    [[package]]\nname = \"polling\"\nversion = \"3.11.0\"\n";
        assert_eq!((version(lock, "polling"), version(lock, "tokio")), ("3.11.0", "unknown"));
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!([2, 999, 2048, 1_234_567].map(grouped), ["2", "999", "2,048", "1,234,567"]);
    }

    #[test]
    fn cost_table_has_a_column_for_each_size() {
        let text = "mechanism,objects,round,waits,cpu_ns,wall_ns\n\
                    epoll,64,1,9,250,260\npoll,2,1,9,400,410\npoll,64,1,9,12345678,12345679\n";
        assert_eq!(
            costs(&Rows::read(text).unwrap(), None, "us a wait"),
            "| us a wait | 2 | 64 |\n| --- | ---: | ---: |\n| epoll | – | 0.250 [0.250-0.250] |\n\
             | poll | 0.400 [0.400-0.400] | 12346 [12346-12346] |\n"
        );
        assert!(!costs(&Rows::read(text).unwrap(), Some("burst"), "us").contains("epoll"));
    }
}
