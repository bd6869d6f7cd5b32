//! `cargo bench-lab cells`: the heap of cells and the parser of messages, compared with the heaps
//! of Emacs, SBCL, Boehm's collector and Go, and with `serde_json` and `sonic_rs`.
//!
//! `benches/peers/cells` has the contestants. Each sample is a separate process. The goals stand
//! next to the measured values, and those that were missed are marked.

mod chain;
mod json;
mod branches;

use crate::bench::Bench;
use crate::peers::Peers;
use crate::programs::{build_workspace, built, compile, locked_versions};
use crate::question::{self, Question};
use crate::samples::{self, Contestant, Numbers, Samples, pairs};
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::install::{self, Missing};
use xtask::{run, tree};

/// The directory below `benches/peers` with the programs.
const WORKSPACE: &str = "cells";
/// Seconds after which a sample is killed: many times what it takes.
const SAMPLE_TIMEOUT: &str = "900";

const QUESTIONS: [Question<Lab>; 3] = [
    Question {
        name: "chain",
        what: "a chain of cells: made, collected alive, half dead and dead, made again",
        rounds: 5,
        ask: chain::chain,
    },
    Question {
        name: "json",
        what: "a message of 2.4 MB with completions: parsed and dropped",
        rounds: 7,
        ask: json::json,
    },
    Question {
        name: "branches",
        what: "instructions, cache misses and mispredicted branches of each phase, by cachegrind",
        rounds: 1,
        ask: branches::branches,
    },
];

/// The programs, and what the caller has asked for.
struct Lab {
    /// The program in Rust.
    program: PathBuf,
    /// Why other programs cannot be measured.
    emacs: Result<(), Missing>,
    sbcl: Result<(), Missing>,
    boehm: Result<PathBuf, Missing>,
    go: Result<PathBuf, Missing>,
    /// The number of cells, if the caller has one.
    cells: Option<usize>,
}

/// `cargo bench-lab cells [--cells N] [--rounds N] [--quick] [--only NAME]...`
pub(crate) fn main(words: &[String]) -> Result<()> {
    question::answer(("cells", "minder-cells"), &QUESTIONS, words, Peers::none, |_, asked| {
        let lab = Lab::ready(asked.cells)?;
        let versions = lab.versions()?;
        Ok((lab, versions))
    })
}

impl Lab {
    fn ready(cells: Option<usize>) -> Result<Self> {
        let program = |name, package| install::programs(&[install::Program { name, package }]);
        let boehm = install::apt(&["libgc-dev"]).and_then(|()| {
            compile("cells/boehm", &["-Wall", "-Wextra"], &["-lgc"])
                .map(PathBuf::from)
                .map_err(|why| format!("{why:#}"))
        });
        let go = program("go", "golang-go").and_then(|()| {
            let built = PathBuf::from(built("cells/chain"));
            let mut cmd = run::command("go");
            cmd.args(["build", "-o"]).arg(&built).arg(source("chain.go"));
            run::read(&mut cmd).map_err(|why| format!("{why:#}"))?;
            Ok(built)
        });
        Ok(Self {
            program: build_workspace(WORKSPACE)?,
            emacs: program("emacs", "emacs-nox"),
            sbcl: program("sbcl", "sbcl"),
            boehm,
            go,
            cells,
        })
    }

    /// Returns the versions of what minder is compared with.
    fn versions(&self) -> Result<Vec<String>> {
        let mut versions = vec![run::read(run::command("rustc").arg("--version"))?.trim().to_string()];
        versions.push(locked_versions(WORKSPACE, &["serde_json", "sonic-rs"])?);
        let first = |cmd: &mut Command| {
            let text = run::read(cmd).unwrap_or_default();
            text.lines().next().unwrap_or("unknown").trim().to_string()
        };
        if self.emacs.is_ok() {
            versions.push(first(run::command("emacs").arg("--version")));
        }
        if self.sbcl.is_ok() {
            versions.push(first(run::command("sbcl").arg("--version")));
        }
        if self.boehm.is_ok() {
            let version = run::command("dpkg-query").args(["-W", "libgc-dev"]).output();
            let text = version.map(|out| String::from_utf8_lossy(&out.stdout).into_owned());
            versions.push(text.unwrap_or_default().replace('\t', " ").trim().to_string());
        }
        if self.go.is_ok() {
            versions.push(first(run::command("go").arg("version")));
        }
        Ok(versions)
    }

    /// Returns the program in Rust with these arguments.
    fn ours(&self, words: &[&str]) -> Command {
        timed(&self.program, words)
    }

    /// Returns Emacs, which calls a function of `chain.el` with these arguments.
    fn emacs(function: &str, words: &[&str]) -> Command {
        let source = source("chain.el").display().to_string();
        let mut cmd = timed(Path::new("emacs"), &["-Q", "--batch", "-l", &source, "-f", function]);
        cmd.args(words);
        cmd
    }
}

/// Returns the path of a program in other languages.
fn source(name: &str) -> PathBuf {
    tree::root().join("benches/peers").join(WORKSPACE).join(name)
}

/// Returns a command that is killed when it takes too long.
fn timed(program: &Path, words: &[&str]) -> Command {
    let mut cmd = run::bounded(SAMPLE_TIMEOUT, program);
    cmd.args(words);
    cmd
}

/// Runs a command, and reads the rows that it printed.
fn sample(cmd: &mut Command) -> Result<Numbers> {
    samples::numbers(&run::read(cmd)?)
}

/// Samples all contestants in turn, round after round. A contestant of another project that fails is left
/// out.
fn rounds(
    bench: &Bench,
    all: &[Contestant],
    size: usize,
    missing: impl Fn(&Contestant) -> Option<Missing>,
    one: impl Fn(&Contestant) -> Result<Numbers>,
) -> Result<Samples> {
    let mut samples = Samples::default();
    for who in all {
        if let Some(why) = missing(who) {
            samples.leave_out(who, why);
        }
    }
    let forgive = |(who, _): (&Contestant, usize), why: anyhow::Error| {
        if who.name.starts_with("minder") {
            return Err(why);
        }
        let text = format!("{why:#}").replace('\n', " ");
        Ok(text.replace(&format!("{}/", tree::root().display()), ""))
    };
    samples.add_rounds(bench, &pairs(all, &[size]), |(who, _)| one(who), forgive)?;
    Ok(samples)
}
