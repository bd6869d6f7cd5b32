//! `cargo xtask cluster`: everything about runs on several machines, with the cases that take long.

use std::time::Instant;

use anyhow::{Result, bail};

use crate::{install, run};

/// The tests, with the long ones that `cargo xtask test` leaves out.
const FILTERS: [&str; 4] = ["cli::agents", "cli::attach", "cli::ssh", "guard::watchdog"];

/// Runs the tests, and those of the crates below.
///
/// # Errors
/// One fails, or an argument is given.
pub(crate) fn main(args: &[String]) -> Result<()> {
    if let Some(arg) = args.first() {
        bail!("cargo xtask cluster takes no argument: `{arg}`");
    }
    let start = Instant::now();
    if let Err(missing) = install::ssh() {
        println!("skipped: {missing}");
    }
    let mut crates = run::cargo();
    crates.args([
        "test",
        "--workspace",
        "--features",
        "minder-cells/serde",
        "--lib",
        "--",
        "--include-ignored",
    ]);
    crates.args([
        "agents::",
        "merge::",
        "claim::",
        "spool::",
        "round::",
        "holder::",
        "protocol::",
        "transfer::",
    ]);
    crates.args(["ssh::", "link::"]);
    run::run(&mut crates)?;
    let mut it = run::cargo();
    it.args([
        "test",
        "--workspace",
        "--features",
        "minder-cells/serde",
        "--test",
        "it",
        "--",
        "--include-ignored",
    ]);
    run::run(it.args(FILTERS))?;
    println!("xtask cluster: passed, {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}
