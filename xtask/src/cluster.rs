//! `cargo xtask cluster`: everything about runs on several machines, with the cases that take long.

use std::time::Instant;

use anyhow::{Result, bail};

use crate::test::run_tests;
use crate::{install, run};

/// The crates with unit tests about such runs.
const CRATES: [&str; 4] = ["minder", "minder-record", "minder-cluster", "minder-runner"];
/// Their modules.
const UNITS: [&str; 10] = [
    "agents::",
    "merge::",
    "claim::",
    "spool::",
    "round::",
    "holder::",
    "protocol::",
    "transfer::",
    "ssh::",
    "link::",
];
/// The modules of the other tests.
const FILTERS: [&str; 4] = ["cli::agents", "cli::attach", "cli::ssh", "guard::watchdog"];
/// Most tests wait for time limits: more of them run at the same time than there are processors.
const THREADS: &str = "--test-threads=6";
/// What tests need besides a server of ssh: other networks, another clock, and a file system that fails.
const PACKAGES: [&str; 6] = ["iproute2", "faketime", "gcc", "libfuse3-dev", "pkg-config", "util-linux"];

/// Runs the tests, also those that `cargo xtask test` leaves out, and prints which could not run and why.
///
/// # Errors
/// One fails, or an argument is given.
pub(crate) fn main(args: &[String]) -> Result<()> {
    if let Some(arg) = args.first() {
        bail!("cargo xtask cluster takes no argument: `{arg}`");
    }
    let start = Instant::now();
    let mut left_out: Vec<String> =
        [install::ssh().err(), install::apt(&PACKAGES).err()].into_iter().flatten().collect();
    let mut units = run::cargo();
    units.arg("test");
    for name in CRATES {
        units.args(["-p", name]);
    }
    let (skipped, mut closing) =
        run_tests(units.arg("--lib").arg("--").arg("--include-ignored").args(UNITS), "cluster-units")?;
    left_out.extend(skipped);
    let mut it = run::with_default_signals(run::cargo().get_program());
    run::prepare_for_cargo(&mut it);
    it.args(["test", "-p", "minder-tests", "--test", "it", "--", "--include-ignored", THREADS]);
    let (skipped, more) = run_tests(it.args(FILTERS), "cluster")?;
    left_out.extend(skipped);
    closing.extend(more);
    closing.iter().for_each(|line| println!("{line}"));
    println!("xtask cluster: passed, {:.0} s", start.elapsed().as_secs_f64());
    if left_out.is_empty() {
        println!("every test ran");
    }
    left_out.iter().for_each(|why| println!("did not run: {why}"));
    Ok(())
}
