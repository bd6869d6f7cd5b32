//! `cargo xtask test`: all of CI, and the second command of a newcomer.
//!
//! What is missing is installed where that is allowed; otherwise the step is skipped, and the last
//! lines say so with the reason and the cure. The first step that fails ends the run.

use crate::{install, run, targets, tidy, tree, wine};
use anyhow::{Context, Result, bail};
use std::time::Instant;

/// What a step left out, one line each: nothing if it did all of its work.
type LeftOut = Vec<install::Missing>;

/// One thing that has to hold.
struct Step {
    name: &'static str,
    what: &'static str,
    run: fn() -> Result<LeftOut>,
}

/// All steps, quick ones first. The steps of cargo share one folder and one set of flags, so that
/// each builds upon the last; loom and those for other systems build into folders of their own.
const STEPS: [Step; 9] = [
    Step { name: "fmt", what: "the sources are formatted", run: fmt },
    Step {
        name: "clippy",
        what: "no warning of compiler or clippy in any crate, test, example or benchmark",
        run: clippy,
    },
    Step { name: "tidy", what: "the tree keeps its own rules", run: tidy },
    Step { name: "build", what: "every package builds", run: build },
    Step { name: "test", what: "unit, integration and documentation tests", run: test },
    Step { name: "doc", what: "the documentation builds without a warning", run: doc },
    Step { name: "loom", what: "no ring of a doorbell is lost, in any interleaving", run: loom },
    Step { name: "targets", what: "other systems compile", run: targets::in_test },
    Step { name: "wine", what: "the Windows half runs, under Wine", run: windows },
];

/// `cargo xtask test [--list] [--only STEP]...`
pub(crate) fn main(args: &[String]) -> Result<()> {
    if args.iter().any(|a| a == "--list") {
        for step in &STEPS {
            println!("{:<8} {}", step.name, step.what);
        }
        return Ok(());
    }
    let start = Instant::now();
    let (mut skipped, mut times) = (Vec::new(), Vec::new());
    for step in chosen(args)? {
        let begin = Instant::now();
        println!("\n=== {}: {}", step.name, step.what);
        let again = || format!("step `{}` failed (again: cargo xtask test --only {})", step.name, step.name);
        let left_out = (step.run)().with_context(again)?;
        let did = if left_out.is_empty() { "done" } else { "not all of it, see the end" };
        println!("=== {}: {did}, {:.1} s", step.name, begin.elapsed().as_secs_f64());
        times.push(format!("{} {:.0} s", step.name, begin.elapsed().as_secs_f64()));
        skipped.extend(left_out.into_iter().map(|why| format!("skipped: {}: {why}", step.name)));
    }
    println!("\nxtask test: passed, {:.0} s ({})", start.elapsed().as_secs_f64(), times.join(", "));
    for line in skipped {
        println!("{line}");
    }
    Ok(())
}

/// Checks that a step has this name.
pub(crate) fn step(name: &str) -> Result<()> {
    match STEPS.iter().any(|step| step.name == name) {
        true => Ok(()),
        false => bail!("no step is called `{name}`; cure: cargo xtask test --list"),
    }
}

/// The steps that `--only` names, in the table's order; all of them without it.
fn chosen(args: &[String]) -> Result<Vec<&'static Step>> {
    let mut names = Vec::new();
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match (word.as_str(), word.strip_prefix("--only=")) {
            ("--only", _) => names.push(words.next().context("--only wants the name of a step")?.as_str()),
            (_, Some(name)) => names.push(name),
            (other, _) => bail!("`{other}` is no option of test; cure: cargo xtask help"),
        }
    }
    for name in &names {
        step(name)?;
    }
    Ok(STEPS.iter().filter(|s| names.is_empty() || names.contains(&s.name)).collect())
}

/// The program that is compared with others' loops: a workspace of its own, so that those stay out
/// of our lock file.
const LOOPS: [&str; 2] = ["--manifest-path", "benches/peers/loops/Cargo.toml"];

/// Whether a subcommand of cargo is there, or can be had from rustup.
fn component(subcommand: &str, component: &str) -> Result<(), install::Missing> {
    let there = || run::succeeds(run::cargo().args([subcommand, "--version"]));
    if there() {
        return Ok(());
    }
    install::rustup(&["component", "add", component])?;
    if there() {
        Ok(())
    } else {
        Err(format!("{component} does not run; cure: rustup component add {component}"))
    }
}

fn fmt() -> Result<LeftOut> {
    if let Err(missing) = component("fmt", "rustfmt") {
        return Ok(vec![missing]);
    }
    run::run(run::cargo().args(["fmt", "--all", "--", "--check", "-l"]))?;
    run::run(run::cargo().arg("fmt").args(LOOPS).args(["--", "--check", "-l"])).map(|()| Vec::new())
}

fn clippy() -> Result<LeftOut> {
    if let Err(missing) = component("clippy", "clippy") {
        return Ok(vec![missing]);
    }
    let mut cmd = run::cargo();
    cmd.args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    run::run(&mut cmd)?;
    let mut cmd = run::cargo();
    cmd.arg("clippy").args(LOOPS).arg("--target-dir").arg(tree::target_dir().join("peers/loops"));
    run::run(cmd.args(["--", "-D", "warnings"])).map(|()| Vec::new())
}

fn tidy() -> Result<LeftOut> {
    tidy::run().map(|()| Vec::new())
}

fn build() -> Result<LeftOut> {
    run::run(run::cargo().args(["build", "--workspace"])).map(|()| Vec::new())
}

/// What tests use beside our own programs, and skip without: GNU parallel, with which our
/// compatible face is compared; a terminal; what reads our manual pages, completions and databases;
/// the shells whose quoting is followed.
const PEERS: [install::Program; 11] = [
    install::Program { name: "parallel", package: "parallel" },
    install::Program { name: "make", package: "make" },
    install::Program { name: "python3", package: "python3" },
    install::Program { name: "tmux", package: "tmux" },
    install::Program { name: "man", package: "man-db" },
    install::Program { name: "bash", package: "bash" },
    install::Program { name: "zsh", package: "zsh" },
    install::Program { name: "fish", package: "fish" },
    install::Program { name: "mksh", package: "mksh" },
    install::Program { name: "ksh93", package: "ksh93u+m" },
    install::Program { name: "busybox", package: "busybox" },
];

fn test() -> Result<LeftOut> {
    // A shell ignores Ctrl-C for what it starts in the background, and that is inherited: the tests
    // send it.
    const DEFAULT: &str = "--default-signal=INT,QUIT";
    let mut left_out: LeftOut = install::programs(&PEERS).err().into_iter().collect();
    // For `--csv` of GNU parallel.
    if !run::succeeds(run::command("perl").args(["-MText::CSV", "-e1"])) {
        left_out.extend(install::apt(&["libtext-csv-perl"]).err());
    }
    let mut cmd = run::cargo();
    if run::succeeds(run::command("env").args([DEFAULT, "true"])) {
        let cargo = cmd.get_program().to_owned();
        cmd = run::command("env");
        cmd.arg(DEFAULT).arg(cargo);
    }
    // Tests write down what they skip.
    let skipped = tree::target_dir().join("skipped");
    std::fs::create_dir_all(tree::target_dir())?;
    std::fs::write(&skipped, "")?;
    run::run(cmd.args(["test", "--workspace"]).env("MINDER_SKIPPED", &skipped))?;
    let told = std::fs::read_to_string(&skipped)?;
    let mut lines: Vec<&str> = told.lines().map(|line| line.trim_start_matches("skipped: ")).collect();
    lines.sort_unstable();
    lines.dedup();
    left_out.extend(lines.into_iter().map(str::to_owned));
    Ok(left_out)
}

/// Libraries only: the program and the library share the name `minder`, and would overwrite each
/// other's pages.
fn doc() -> Result<LeftOut> {
    let mut cmd = run::cargo();
    cmd.args(["doc", "--workspace", "--no-deps", "--lib"]).env("RUSTDOCFLAGS", "-D warnings");
    run::run(&mut cmd).map(|()| Vec::new())
}

/// Everything is built anew with the flag, and quickly rather than small. More than four
/// preemptions of a run find nothing more in a model of three threads, and take 20 s instead of
/// one.
fn loom() -> Result<LeftOut> {
    let mut cmd = run::cargo();
    cmd.args(["test", "-p", "minder", "--lib", "--release", "--target-dir"])
        .arg(tree::target_dir().join("loom"));
    cmd.arg("sys::wait::wake_flag").env("RUSTFLAGS", "--cfg loom").env("LOOM_MAX_PREEMPTIONS", "4");
    cmd.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    run::run(&mut cmd).map(|()| Vec::new())
}

fn windows() -> Result<LeftOut> {
    if let Err(missing) = wine::ready() {
        return Ok(vec![missing]);
    }
    wine::everything().map(|()| Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(args: &[&str]) -> Result<Vec<&'static str>> {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        Ok(chosen(&args)?.iter().map(|s| s.name).collect())
    }

    #[test]
    fn only_chooses_steps_in_the_order_of_the_table() {
        assert_eq!(names(&["--only", "doc", "--only=fmt"]).unwrap(), ["fmt", "doc"]);
        assert_eq!(names(&[]).unwrap().len(), STEPS.len());
        assert!(names(&["--only", "nothing"]).is_err());
        assert!(names(&["doc"]).is_err());
    }
}
