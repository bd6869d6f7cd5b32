//! `cargo bench-compat`: compares minder with GNU parallel and findutils' xargs, on scripts from a
//! seed.
//!
//! Each script runs twice with the other program and once with minder, in the same paths. A script
//! to which the other program gives two answers is counted as unstable and not compared. The rows
//! go to `target/compat/compat.csv`, and the page beside them is made from all rows there.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its results")]

mod random;
mod recipe;
mod parallel;
mod xargs;
mod generator;
mod sandbox;
mod normalisations;
mod reasons;
mod rows;
mod comparison;
mod report;

use anyhow::{Context, Result, bail};
use comparison::{Comparison, Players};
use generator::{SEED, Script, Tool};
use lexopt::prelude::*;
use rows::Row;
use sandbox::Player;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use xtask::{install, run, tree};

/// The options of the command line.
#[derive(Debug)]
struct Asked {
    seed: u64,
    /// The number of scripts of each tool, if not all.
    count: Option<usize>,
    only: Option<Tool>,
    jobs: usize,
    minder: Option<PathBuf>,
    /// What the build is called in the rows.
    build: String,
    commit: Option<String>,
    xargs_words: Option<String>,
    /// The scripts to print with both answers, instead of writing rows.
    show: Vec<usize>,
    /// The only scripts to run, if not all.
    numbers: Vec<usize>,
}

impl Asked {
    fn parse(words: &[String]) -> Result<Self> {
        let mut asked = Self {
            seed: SEED,
            count: None,
            only: None,
            jobs: 2,
            minder: None,
            build: "after".into(),
            commit: None,
            xargs_words: None,
            show: Vec::new(),
            numbers: Vec::new(),
        };
        let mut words = lexopt::Parser::from_args(words);
        while let Some(word) = words.next()? {
            match word {
                Long("seed") => asked.seed = words.value()?.parse()?,
                Long("count") => asked.count = Some(words.value()?.parse()?),
                Long("only") => asked.only = Some(words.value()?.parse_with(tool)?),
                Long("jobs") => asked.jobs = words.value()?.parse::<usize>()?.max(1),
                Long("minder") => asked.minder = Some(std::path::absolute(words.value()?)?),
                Long("as") => asked.build = words.value()?.parse_with(build)?,
                Long("commit") => asked.commit = Some(words.value()?.string()?),
                Long("xargs-words") => asked.xargs_words = Some(words.value()?.string()?),
                Long("numbers") => asked.numbers = words.value()?.parse_with(numbers)?,
                Long("show") => asked.show = words.value()?.parse_with(numbers)?,
                other => return Err(other.unexpected().into()),
            }
        }
        Ok(asked)
    }

    fn scripts(&self) -> Vec<Script> {
        let mut scripts = generator::scripts(self.seed);
        scripts.retain(|script| self.only.is_none_or(|tool| tool == script.tool));
        let numbers = if self.show.is_empty() { &self.numbers } else { &self.show };
        scripts.retain(|script| numbers.is_empty() || numbers.contains(&script.number));
        let mut counts = [0, 0];
        scripts.retain(|script| {
            let count = &mut counts[usize::from(script.tool == Tool::Xargs)];
            *count += 1;
            self.count.is_none_or(|limit| *count <= limit)
        });
        scripts
    }
}

fn tool(name: &str) -> Result<Tool> {
    let found = Tool::ALL.into_iter().find(|tool| tool.name() == name);
    found.with_context(|| format!("unknown name `{name}`: expected parallel or xargs"))
}

fn numbers(list: &str) -> Result<Vec<usize>> {
    let number = |text: &str| text.parse().with_context(|| format!("invalid number `{text}`"));
    list.split(',').map(number).collect()
}

fn build(name: &str) -> Result<String> {
    if name != "before" && name != "after" {
        bail!("unknown build `{name}`: expected before or after");
    }
    Ok(name.into())
}

const HELP: &str = "\
cargo bench-compat [--only parallel|xargs] [--seed N] [--count N] [--jobs N] [--minder PATH]
                   [--as before|after] [--commit ID] [--xargs-words WORDS] [--numbers N,N...] | --show N,N...

Compares minder with GNU parallel and xargs on 1,500 generated scripts, and writes target/compat/compat.md.
--count: the first N scripts of each; --numbers: only these scripts; --as: the column of the build;
--xargs-words 'run': `minder run` in place of xargs; --show: prints scripts and both answers.
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if matches!(&words[..], [word] if word == "-h" || word == "--help") {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match compare(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("bench-compat: {e:#}; hint: cargo bench-compat --help");
            ExitCode::FAILURE
        }
    }
}

fn compare(words: &[String]) -> Result<()> {
    let asked = Asked::parse(words)?;
    let players = players(&asked)?;
    let mut scripts = asked.scripts();
    scripts.retain(|script| players.theirs(script.tool).is_some());
    if scripts.is_empty() {
        bail!("no script to compare (hint: --show 1 to 1500, and parallel and xargs in PATH)");
    }
    let jobs = asked.jobs.min(scripts.len());
    let comparisons = comparison::compare(&scripts, &players, jobs)?;
    if !asked.show.is_empty() {
        for comparison in &comparisons {
            print!("{}", report::script_and_answers(comparison));
        }
        return Ok(());
    }
    keep(&asked, &comparisons)
}

/// Writes the rows, the page, and the different answers.
fn keep(asked: &Asked, comparisons: &[Comparison]) -> Result<()> {
    let dir = tree::target_dir().join("compat");
    fs::create_dir_all(&dir)?;
    let commit = match &asked.commit {
        Some(commit) => commit.clone(),
        None => run::read(run::command("git").args(["rev-parse", "--short", "HEAD"]))?.trim().to_string(),
    };
    let new = comparisons
        .iter()
        .map(|comparison| Row::new(&asked.build, &commit, &comparison.script, comparison.outcome.clone()))
        .collect();
    let csv = dir.join("compat.csv");
    let old = rows::read(&csv)?;
    let rows = rows::merge(old, new);
    fs::write(&csv, rows::csv(&rows))?;
    let page = report::page(&rows)?;
    fs::write(dir.join("compat.md"), &page)?;
    let differences = dir.join(format!("differences-{}.md", asked.build));
    fs::write(&differences, report::differences(comparisons))?;
    println!("{page}");
    println!("scripts, and answers that differ: {}", differences.display());
    Ok(())
}

/// Returns the programs to compare; prints what is missing.
fn players(asked: &Asked) -> Result<Players> {
    let needed = [("parallel", "parallel"), ("xargs", "findutils")];
    let theirs = needed.map(|(name, package)| {
        let there = install::programs(&[install::Program { name, package }]);
        if let Err(why) = &there {
            eprintln!("compat: left out: {name}: {why}");
        }
        there.ok().and_then(|()| run::find(name)).and_then(|path| path.parent().map(Path::to_owned))
    });
    let minder = match &asked.minder {
        Some(path) => path.clone(),
        None => built_minder()?,
    };
    if !minder.is_file() {
        bail!("cannot find `{}` (hint: --minder PATH)", minder.display());
    }
    let ours_xargs = match &asked.xargs_words {
        Some(words) => Player::Words(minder.clone(), words.clone()),
        None => Player::Link(minder.clone()),
    };
    let [parallel, xargs] = theirs.map(|dir| dir.map(Player::Link));
    Ok(Players { parallel, xargs, ours_parallel: Player::Link(minder), ours_xargs })
}

fn built_minder() -> Result<PathBuf> {
    run::run(run::cargo().args(["build", "--release", "--package", "minder-cli", "--bin", "minder"]))?;
    Ok(tree::target_dir().join("release/minder"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Asked> {
        Asked::parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn options_choose_scripts() {
        assert_eq!(parse("").unwrap().scripts().len(), 1500);
        let asked = parse("--only xargs --count 3").unwrap();
        assert_eq!(asked.scripts().iter().map(|s| s.number).collect::<Vec<_>>(), [1001, 1002, 1003]);
        assert_eq!(parse("--show 7").unwrap().scripts().len(), 1);
        assert_eq!(parse("--show 52,104").unwrap().scripts().len(), 2);
        assert_eq!(parse("--numbers 7,1100").unwrap().scripts().len(), 2);
        assert!(parse("--only nosuch").is_err());
        assert!(parse("--as nosuch").is_err());
        assert!(parse("--nosuch").is_err());
    }
}
