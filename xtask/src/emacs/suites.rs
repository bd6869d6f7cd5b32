//! The tests of Emacs itself, with its own processes and with those of minder.

use super::{Profile, bounded, directory, emacs, ready, staged};
use crate::{run, source_package, tree};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The suites, below `test` in the sources of Emacs.
const SUITES: [&str; 8] = [
    "src/process-tests",
    "lisp/comint-tests",
    "lisp/shell-tests",
    "lisp/jsonrpc-tests",
    "lisp/eshell/eshell-tests",
    "lisp/eshell/em-hist-tests",
    "lisp/eshell/em-ls-tests",
    "lisp/eshell/esh-opt-tests",
];
/// The number of runs of each suite with each kind of process.
const ROUNDS: usize = 8;
/// The time after which a run counts as one that hangs.
const LIMIT: Duration = Duration::from_secs(300);

/// The results of one suite with one kind of process, over all runs.
#[derive(Debug, Default)]
struct Tally {
    passed: usize,
    /// The number of failures of each test.
    failed: BTreeMap<String, usize>,
    aborted: usize,
    hung: usize,
    /// The number of processes that went through minder, in one run.
    carried: usize,
}

/// Runs the suites by turns with both kinds of process, and writes the report.
pub(super) fn main(rounds: Option<usize>) -> Result<()> {
    if let Err(missing) = ready() {
        bail!("{missing}");
    }
    let rounds = rounds.unwrap_or(ROUNDS);
    let library = staged(Profile::Release, "suites")?;
    let tests = sources()?.join("test");
    let mut table = String::new();
    let mut worse = Vec::new();
    for suite in SUITES {
        let mut tallies = [Tally::default(), Tally::default()];
        for round in 0..rounds {
            eprint!("  {suite}: round {} of {rounds}\r", round + 1);
            let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
            for kind in order {
                let library = (kind == 1).then_some(library.as_path());
                count(&mut tallies[kind], run_suite(&tests, suite, library)?);
            }
        }
        eprintln!("  {suite}: {rounds} rounds   ");
        worse.extend(worse_tests(suite, &tallies));
        write_row(&mut table, suite, &tallies)?;
    }
    report(rounds, &table, &worse)
}

/// Returns the sources of the installed Emacs. Fetches them once.
fn sources() -> Result<PathBuf> {
    let target = directory("source");
    if !target.join("test").is_dir() {
        let version =
            run::read(run::command("emacs").args(["-Q", "--batch", "--eval", "(princ emacs-version)"]))?;
        source_package::fetch("emacs", &version, &["*/test"], &target)?;
    }
    Ok(target)
}

/// The end of a run, and its output.
struct Ended {
    is_success: bool,
    has_hung: bool,
    output: String,
}

/// Runs one suite. With a library, all its processes are those of minder.
fn run_suite(tests: &Path, suite: &str, library: Option<&Path>) -> Result<Ended> {
    const MODE: &str = "(progn (require 'minder-mode)
        (setq minder-mode-predicates (list #'always))
        (minder-mode 1)
        (add-hook 'kill-emacs-hook
                  (lambda () (princ (format \"carried %d\\n\" minder-mode-carried)))))";
    const RUN: &str = "(ert-run-tests-batch-and-exit '(not (or (tag :expensive-test) (tag :unstable))))";
    let home = directory("suites-home");
    std::fs::create_dir_all(&home)?;
    let mut command = library.map_or_else(
        || {
            let mut stock = run::command("emacs");
            stock.args(["-Q", "--batch"]);
            stock
        },
        |library| {
            let mut ours = emacs(library);
            ours.args(["--eval", MODE]);
            ours
        },
    );
    command.args(["-L", "lisp", "-l", "ert", "-l"]).arg(format!("{suite}.el")).args(["--eval", RUN]);
    let mut bounded = bounded(&command, &["-s", "KILL", &LIMIT.as_secs().to_string()]);
    bounded.current_dir(tests).stdin(Stdio::null());
    bounded.env("HOME", &home).env("EMACS_TEST_DIRECTORY", tests);
    let begin = Instant::now();
    let output = bounded.output().context("cannot run timeout")?;
    Ok(Ended {
        is_success: output.status.success(),
        has_hung: begin.elapsed() >= LIMIT,
        output: String::from_utf8_lossy(&output.stdout).into_owned(),
    })
}

fn count(tally: &mut Tally, ended: Ended) {
    if !ended.output.contains("\nRan ") {
        let counter = if ended.has_hung { &mut tally.hung } else { &mut tally.aborted };
        *counter += 1;
        return;
    }
    tally.passed += usize::from(ended.is_success);
    for test in failed_tests(&ended.output) {
        *tally.failed.entry(test).or_default() += 1;
    }
    let carried = ended.output.lines().find_map(|line| line.strip_prefix("carried "));
    tally.carried = carried.and_then(|number| number.parse().ok()).unwrap_or(0);
}

/// Returns the names of the tests in the list of failures at the end.
fn failed_tests(output: &str) -> Vec<String> {
    let (_, summary) = output.rsplit_once("\nRan ").unwrap_or_default();
    let lines = summary.lines().filter_map(|line| line.trim().strip_prefix("FAILED"));
    lines.map(|name| name.trim().to_string()).collect()
}

/// Returns what failed, aborted or hung more often with minder.
fn worse_tests(suite: &str, [stock, ours]: &[Tally; 2]) -> Vec<String> {
    let mut worse: Vec<String> = ours
        .failed
        .iter()
        .filter(|(test, count)| **count > stock.failed.get(*test).copied().unwrap_or(0))
        .map(|(test, count)| format!("{suite}: {test} failed in {count} runs"))
        .collect();
    if ours.aborted > stock.aborted {
        worse.push(format!("{suite}: {} runs aborted", ours.aborted));
    }
    if ours.hung > 0 {
        worse.push(format!("{suite}: {} runs were ended after {} s", ours.hung, LIMIT.as_secs()));
    }
    worse
}

fn write_row(table: &mut String, suite: &str, [stock, ours]: &[Tally; 2]) -> Result<()> {
    let failures = |tally: &Tally| {
        let tests: Vec<String> =
            tally.failed.iter().map(|(test, count)| format!("{test} ({count})")).collect();
        if tests.is_empty() { "–".to_string() } else { tests.join(", ") }
    };
    let ends = |tally: &Tally| format!("{} / {} / {}", tally.passed, tally.aborted, tally.hung);
    writeln!(
        table,
        "| {suite} | {} | {} | {} | {} | {} |",
        ends(stock),
        ends(ours),
        failures(stock),
        failures(ours),
        ours.carried
    )?;
    Ok(())
}

fn report(rounds: usize, table: &str, worse: &[String]) -> Result<()> {
    let archive = std::fs::read_to_string(directory("source").join("ARCHIVE"))?;
    let text = format!(
        "# The tests of Emacs with processes of minder\n\n\
         {rounds} runs of each suite with each kind of process, by turns: how many passed, aborted and\n\
         hung. With minder, `minder-mode-predicates` chooses every process. Carried: how many processes\n\
         went through minder, in one run; a suite with 0 says nothing about minder.\n\n\
         | suite | Emacs | minder | failed with Emacs | failed with minder | carried |\n\
         | --- | ---: | ---: | --- | --- | ---: |\n{table}\n\
         Worse with minder: {}.\n\n\
         - tests: {}\n- without those with the tags `:expensive-test` and `:unstable`\n\
         - produced by: `cargo xtask emacs --suites`\n",
        if worse.is_empty() { "nothing".to_string() } else { worse.join("; ") },
        archive.trim()
    );
    let path = tree::root().join("docs/measurements/emacs-suites.md");
    std::fs::write(&path, &text)?;
    print!("{text}");
    ensure!(worse.is_empty(), "some tests are worse with minder: {}", worse.join("; "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "   FAILED   1/2  early\n\nRan 2 tests, 1 results as expected, 1 unexpected\n\n\
                          1 unexpected results:\n   FAILED  make-process/stop\n\ncarried 55\n";

    #[test]
    fn failures_are_those_of_the_summary() {
        assert_eq!(failed_tests(OUTPUT), ["make-process/stop"]);
    }

    #[test]
    fn run_without_a_summary_has_aborted_or_hung() {
        let mut tally = Tally::default();
        for (has_hung, output) in [(false, "x"), (true, "x"), (false, OUTPUT)] {
            count(&mut tally, Ended { is_success: false, has_hung, output: output.into() });
        }
        assert_eq!((tally.passed, tally.aborted, tally.hung, tally.carried), (0, 1, 1, 55));
        assert_eq!(worse_tests("s", &[Tally::default(), tally]).len(), 3);
    }
}
