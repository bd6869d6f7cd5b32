//! `minder bench spawn`: one start of a child.

use std::process::ExitCode;

use anyhow::Result;
use minder_bench::{Ballast, Case, SpawnBench, SpawnSuite, short_command, spawns};

use super::errors::{describe, to_anyhow};
use super::report::measure_and_report;
use super::selection::{child_command, select_mechanisms};
use super::spec::{BenchSpec, note};
use crate::flags::SpawnFlags;
use crate::measuring::Session;
use minder_ui::message;

/// Returns the words for tables, rows and charts.
pub(super) fn spec() -> BenchSpec {
    BenchSpec {
        operation: "spawn",
        size: "parent_mib",
        sizes: "MiB of the parent",
        kinds: false,
        is_tiny: false,
        whose: "the parent's",
        title: "Starting a child",
        axis: "MiB of the parent",
        published: Vec::new(),
        note: note(),
    }
}

/// Measures what the flags ask for, and shows it.
pub(super) fn run(flags: &SpawnFlags) -> Result<ExitCode> {
    let mechanisms = select_mechanisms(&spawns().collect::<Vec<_>>(), &flags.measure)?;
    let mut session = Session::start()?;
    let child = flags.child.as_ref().map_or_else(short_command, child_command);
    // The first mechanism is the library's own, whose errors describe best what is wrong with a
    // command.
    if let Some(mechanism) = spawns().next() {
        let trial = child.clone();
        match session.run_interruptibly(move || SpawnBench::new(mechanism, &trial)?.spawn())? {
            Some(started) => drop(started.map_err(to_anyhow)?),
            None => return Ok(session.exit_code()),
        }
    }
    let cases = Case::grid(&fitting_sizes(flags)?, &mechanisms);
    let mut suite = SpawnSuite::new(child);
    measure_and_report(&spec(), &flags.measure, session, &cases, &mut suite)
}

/// Returns the sizes for which this machine has enough memory, and prints a message for each other
/// size.
///
/// # Errors
/// If there is none.
fn fitting_sizes(flags: &SpawnFlags) -> Result<Vec<u64>> {
    let mut fitting = Vec::new();
    let mut refused = Vec::new();
    for &mib in &flags.parent_mib.0 {
        match Ballast::check(mib) {
            Ok(()) => fitting.push(mib),
            Err(error) => refused.push(error),
        }
    }
    if fitting.is_empty()
        && let Some(last) = refused.pop()
    {
        return Err(to_anyhow(last));
    }
    for error in &refused {
        message(&describe(error));
    }
    Ok(fitting)
}
