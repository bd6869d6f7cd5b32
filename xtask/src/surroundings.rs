//! `cargo xtask surroundings`: the tests under many circumstances that they must not depend on.
//!
//! The test programs are built once. Each surrounding is a shell line that runs one of them. The
//! counts of passed and failed tests are read from the output of the programs; without output, a
//! program counts as one test.

mod table;

use crate::artifacts::{self, Program};
use crate::{install, run, tree};
use anyhow::{Context, Result, bail};
use lexopt::prelude::*;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use table::{SURROUNDINGS, Surrounding};

/// The longest time for which a test program may run.
const PROGRAM_SECONDS: &str = "2400";

/// The options of the command line.
#[derive(Debug, Default)]
struct Options {
    only: Vec<String>,
    times: Option<usize>,
    /// Names of tests, or parts of names; all if there are none.
    tests: Vec<String>,
}

impl Options {
    fn parse(words: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut words = lexopt::Parser::from_args(words);
        while let Some(word) = words.next()? {
            match word {
                Long("only") => options.only.push(words.value()?.string()?),
                Long("times") => options.times = Some(words.value()?.parse()?),
                // After `--`.
                Value(test) => options.tests.push(test.string()?),
                other => return Err(other.unexpected().into()),
            }
        }
        if let Some(unknown) = options.only.iter().find(|name| !SURROUNDINGS.iter().any(|s| s.name == **name))
        {
            bail!("unknown surrounding `{unknown}` (hint: cargo xtask surroundings --list)");
        }
        Ok(options)
    }
}

/// `cargo xtask surroundings [--list] [--only NAME]... [--times N] [-- TEST...]`
pub(crate) fn main(words: &[String]) -> Result<()> {
    if words.iter().any(|word| word == "--list") {
        for surrounding in &SURROUNDINGS {
            println!("{:<12} {}", surrounding.name, surrounding.what);
        }
        return Ok(());
    }
    let options = Options::parse(words)?;
    let home = tree::target_dir().join("surroundings");
    fs::create_dir_all(&home)?;
    let here = programs(&tree::root(), &tree::target_dir())?;
    let mut rows = Vec::new();
    for surrounding in
        SURROUNDINGS.iter().filter(|s| options.only.is_empty() || options.only.iter().any(|o| o == s.name))
    {
        let mut row = Row::new(surrounding.name);
        match surrounding.ready() {
            Ok(()) => {
                for time in 0..options.times.unwrap_or(2) {
                    let log = home.join(format!("{}-{}", surrounding.name, time + 1));
                    eprintln!("surroundings: {}, run {} ({})", surrounding.name, time + 1, surrounding.what);
                    let programs = if surrounding.elsewhere { elsewhere(&home)? } else { here.clone() };
                    row.add(once(surrounding, &programs, &options.tests, &log)?);
                }
            }
            Err(why) => row.left_out = Some(why),
        }
        println!("{}", row.text());
        rows.push(row);
    }
    report(&rows)
}

fn report(rows: &[Row]) -> Result<()> {
    println!("\n{}", Row::HEAD);
    for row in rows {
        println!("{}", row.text());
    }
    for row in rows {
        for failure in &row.failures {
            println!("{}: {failure}", row.name);
        }
    }
    if rows.iter().any(|row| row.failed > 0) {
        bail!("tests failed in some surroundings (logs: target/surroundings)");
    }
    Ok(())
}

/// Builds the test programs of a checkout.
fn programs(root: &Path, target: &Path) -> Result<Vec<Program>> {
    let mut cmd = run::cargo();
    cmd.args(["test", "--workspace", "--no-run"]).current_dir(root).env("CARGO_TARGET_DIR", target);
    let mut found = artifacts::programs(&mut cmd)?;
    found.retain(|program| program.is_test);
    if found.is_empty() {
        bail!("cargo names no test program");
    }
    Ok(found)
}

/// Clones HEAD into a directory with an unusual name; returns its test programs.
fn elsewhere(home: &Path) -> Result<Vec<Program>> {
    let root = home.join("a b \u{fc}").join("minder");
    if root.exists() {
        let mut pull = run::command("git");
        pull.arg("-C").arg(&root).args(["fetch", "-q"]).arg(tree::root()).arg("HEAD");
        run::run(&mut pull)?;
        let mut reset = run::command("git");
        run::run(reset.arg("-C").arg(&root).args(["reset", "-q", "--hard", "FETCH_HEAD"]))?;
    } else {
        run::run(run::command("git").args(["clone", "-q"]).arg(tree::root()).arg(&root))?;
    }
    programs(&root, &root.join("target"))
}

/// Runs all programs once.
fn once(surrounding: &Surrounding, programs: &[Program], tests: &[String], log: &Path) -> Result<Tally> {
    let begin = Instant::now();
    let mut tally = Tally::default();
    fs::write(log, "")?;
    for program in programs {
        let out = fs::File::options().append(true).open(log)?;
        let before = fs::metadata(log)?.len();
        let mut cmd = command(surrounding, program, tests);
        cmd.stdout(out.try_clone()?).stderr(out);
        let ended = cmd.status().with_context(|| format!("cannot run `{}`", run::show(&cmd)))?;
        let said = fs::read(log)?.split_off(usize::try_from(before)?);
        tally.read(&String::from_utf8_lossy(&said), ended.success(), surrounding.is_seen, program);
    }
    tally.seconds = begin.elapsed().as_secs_f64();
    Ok(tally)
}

fn command(surrounding: &Surrounding, program: &Program, tests: &[String]) -> Command {
    let mut cmd = run::command("sh");
    cmd.args(["-c", surrounding.line, "sh", "timeout", "-k", "5", PROGRAM_SECONDS])
        .arg(&program.path)
        .args(tests);
    cmd.current_dir(&program.dir).env("PROGRAM", &program.path).env("TESTS", tests.join(" "));
    cmd.env("TARGET_TMP", tree::target_dir().join("tmp"));
    // Snapshots of screens are found without asking cargo, which another user may not run.
    if let Some(root) = program.dir.ancestors().find(|dir| dir.join("Cargo.lock").exists()) {
        cmd.env("INSTA_WORKSPACE_ROOT", root);
    }
    cmd
}

/// The results of a run of all programs.
#[derive(Debug, Default)]
struct Tally {
    passed: usize,
    failed: usize,
    failures: Vec<String>,
    seconds: f64,
}

impl Tally {
    fn read(&mut self, said: &str, succeeded: bool, is_seen: bool, program: &Program) {
        let before = self.failed;
        for line in said.lines().filter_map(|line| line.trim_end().strip_prefix("test result: ")) {
            let count = |what: &str| {
                let words: Vec<&str> = line.split([' ', ';']).filter(|word| !word.is_empty()).collect();
                let at = words.iter().position(|word| *word == what)?;
                words.get(at.checked_sub(1)?)?.parse::<usize>().ok()
            };
            self.passed += count("passed").unwrap_or(0);
            self.failed += count("failed").unwrap_or(0);
        }
        let named = said.lines().filter_map(|line| line.trim_end().strip_suffix(" ... FAILED"));
        self.failures.extend(named.map(|line| line.trim_start_matches("test ").to_owned()));
        let name = program.path.file_name().unwrap_or_default().to_string_lossy();
        if !is_seen {
            // Only the exit status is known.
            self.passed += usize::from(succeeded);
        }
        if !succeeded && self.failed == before {
            self.failed += 1;
            self.failures.push(format!("{name} exited before its tests, or failed without output"));
        }
    }
}

/// A line of the table.
struct Row {
    name: &'static str,
    runs: usize,
    passed: usize,
    failed: usize,
    seconds: f64,
    failures: Vec<String>,
    left_out: Option<install::Missing>,
}

impl Row {
    const HEAD: &str = "surrounding   runs   passed   failed   seconds";

    fn new(name: &'static str) -> Self {
        Self { name, runs: 0, passed: 0, failed: 0, seconds: 0.0, failures: Vec::new(), left_out: None }
    }

    fn add(&mut self, tally: Tally) {
        self.runs += 1;
        self.passed += tally.passed;
        self.failed += tally.failed;
        self.seconds += tally.seconds;
        self.failures.extend(tally.failures);
    }

    fn text(&self) -> String {
        match &self.left_out {
            Some(why) => format!("{:<12}  skipped: {why}", self.name),
            None => {
                let Self { name, runs, passed, failed, seconds, .. } = self;
                format!("{name:<12} {runs:>5} {passed:>8} {failed:>8} {seconds:>9.0}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_counted_and_a_crash_is_a_failure() {
        let program = Program { path: "/it-1".into(), dir: "/".into(), is_test: true };
        let mut tally = Tally::default();
        let said =
            "test a ... ok\r\ntest b::c ... FAILED\ntest result: FAILED. 11 passed; 1 failed; 0 ignored\n";
        tally.read(said, false, true, &program);
        assert_eq!(
            (tally.passed, tally.failed, tally.failures.as_slice()),
            (11, 1, &["b::c".to_owned()][..])
        );
        tally.read("running 2 tests\n", false, true, &program);
        assert_eq!((tally.passed, tally.failed), (11, 2));
        tally.read("", true, false, &program);
        assert_eq!((tally.passed, tally.failed), (12, 2));
    }

    #[test]
    fn names_are_there_once() {
        let mut names: Vec<&str> = SURROUNDINGS.iter().map(|s| s.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SURROUNDINGS.len());
    }
}
