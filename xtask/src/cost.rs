//! `cargo xtask cost`: what the release build costs, compared with a budget.
//!
//! The tests `cost::` count and compare; `tests/it/cost/budget.toml` is the budget.

use crate::test::{TEST_THREADS, cargo_test, run_tests};
use crate::{install, run, tree};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The program that counts instructions.
const VALGRIND: [install::Program; 1] = [install::Program { name: "valgrind", package: "valgrind" }];

/// `cargo xtask cost [--print]`
pub(crate) fn main(args: &[String]) -> Result<()> {
    match args {
        [] => {
            for why in check()?.0 {
                println!("skipped: {why}");
            }
            Ok(())
        }
        [print] if print == "--print" => print_counts(),
        _ => bail!("expected cost or cost --print; hint: cargo xtask help"),
    }
}

/// Compares the costs with the budget. Returns what was left out, and the closing lines of the tests.
pub(crate) fn check() -> Result<(Vec<install::Missing>, Vec<String>)> {
    if cfg!(not(all(target_os = "linux", target_arch = "x86_64"))) {
        return Ok((vec!["costs are counted on Linux with x86-64; hint: run it there".into()], Vec::new()));
    }
    let mut left_out: Vec<_> = install::programs(&VALGRIND).err().into_iter().collect();
    build()?;
    let (mut skipped, closing) = run_tests(&mut counting(), "cost")?;
    left_out.append(&mut skipped);
    Ok((left_out, closing))
}

fn build() -> Result<()> {
    run::run(run::cargo().args(["build", "--release", "--package", "minder-cli"]))
}

/// Returns the command of the tests that count. It is that of the step `test`, so that nothing is built
/// again.
fn counting() -> std::process::Command {
    let mut cmd = cargo_test();
    // Fewer events arrive together while other tests run.
    cmd.env_remove(TEST_THREADS);
    cmd.args(["--test", "it", "--", "cost::"]).env("MINDER_COST", tree::target_dir().join("release/minder"));
    cmd
}

/// Prints the budget with the present counts in place of its values.
fn print_counts() -> Result<()> {
    install::programs(&VALGRIND).map_err(|missing| anyhow::anyhow!(missing))?;
    build()?;
    let out = tree::target_dir().join("cost.counts");
    std::fs::write(&out, "")?;
    run::read(counting().env("MINDER_COST_OUT", &out))?;
    let counts = std::fs::read_to_string(&out)?;
    let path = tree::root().join("tests/it/cost/budget.toml");
    let budget = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    print!("{}", with_counts(&budget, &counts));
    Ok(())
}

/// Replaces the values of a budget by counts, which are lines `name = count`. A count that the budget
/// does not have follows at the end, without a reason.
fn with_counts(budget: &str, counts: &str) -> String {
    let mut counts: BTreeMap<&str, &str> = counts.lines().filter_map(|line| line.split_once(" = ")).collect();
    let mut text = String::new();
    let mut count = None;
    for line in budget.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            count = counts.remove(name);
        }
        match count {
            Some(count) if line.starts_with("value = ") => text += &format!("value = {count}\n"),
            _ => text += &format!("{line}\n"),
        }
    }
    for (name, count) in counts {
        write!(text, "\n[{name}]\nvalue = {count}\nreason = \"\"\n").expect("write to a string");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::with_counts;

    #[test]
    fn counts_replace_values_and_leave_reasons_and_tolerances() {
        let budget =
            "# About.\n\n[a]\nvalue = 1\ntolerance = 0.1\nreason = \"x\"\n\n[b]\nvalue = 2\nreason = \"y\"\n";
        let new = with_counts(budget, "a = 3.50\nc = 4\n");
        let expected = budget.replace("value = 1", "value = 3.50") + "\n[c]\nvalue = 4\nreason = \"\"\n";
        assert_eq!(new, expected);
    }
}
