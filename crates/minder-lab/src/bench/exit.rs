//! `minder bench exit`: the exit of one of many children.

use std::process::ExitCode;

use anyhow::{Context, Result};
use minder::Command;
use minder_bench::{Case, ExitBench, ExitSuite, exits};

use super::errors::to_anyhow;
use super::report::measure_and_report;
use super::selection::{child_command, select_mechanisms};
use super::spec::{BenchSpec, note};
use crate::flags::ExitFlags;
use crate::measuring::Session;

/// Returns the words for tables, rows and charts.
pub(super) fn spec() -> BenchSpec {
    BenchSpec {
        operation: "exit",
        size: "live",
        sizes: "live children",
        kinds: true,
        is_tiny: false,
        whose: "all threads",
        title: "Hearing that a child has ended",
        axis: "children that live",
        published: Vec::new(),
        note: note(),
    }
}

/// Measures what the flags ask for, and shows it.
pub(super) fn run(flags: &ExitFlags) -> Result<ExitCode> {
    let mechanisms = select_mechanisms(&exits().collect::<Vec<_>>(), &flags.measure)?;
    let sizes = flags.live.as_ref().map_or(ExitBench::SIZES, |sizes| &sizes.0);
    let cases = ExitSuite::with_kinds(&Case::grid(sizes, &mechanisms));
    let session = Session::start()?;
    let child = match &flags.child {
        Some(line) => child_command(line),
        None => idle_command()?,
    };
    ExitBench::check(&child).map_err(to_anyhow)?;
    let mut suite = ExitSuite::new(child);
    measure_and_report(&spec(), &flags.measure, session, &cases, &mut suite)
}

/// Returns a command that does nothing until it is killed: one of the operating system, or this
/// program.
fn idle_command() -> Result<Command> {
    if let Some(command) = minder_bench::idle_command() {
        return Ok(command);
    }
    let program = std::env::current_exe().context("cannot find this program, which is to be started")?;
    let mut command = Command::new(program);
    command.args(["bench", "idle"]);
    Ok(command)
}
