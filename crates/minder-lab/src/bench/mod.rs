//! `minder bench`: measures mechanisms on this machine.
//!
//! The crate `minder-bench` measures. This module has what people see: `spec.rs` names what is
//! measured, `report.rs` runs the rounds and shows their results as `results.rs` (tables, charts) and
//! `rows.rs` (CSV, JSON) write them. `wait.rs`, `exit.rs`, `spawn.rs` and `sweep.rs` are one subcommand
//! each; so is `turnaround.rs`, which measures in other terms.

mod errors;
mod selection;
mod spec;
mod results;
mod rows;
mod report;
mod exit;
mod spawn;
mod sweep;
mod turnaround;
mod wait;

use std::process::ExitCode;

use anyhow::Result;
use minder_ui::rows::CsvTable;

use crate::chart::Chart;
use crate::flags::{Bench, BenchFlags, ComputeFlags};
use crate::measuring;

/// Measures what the flags ask for, and shows it.
pub fn run(flags: &BenchFlags) -> Result<ExitCode> {
    measuring::exit_code(match &flags.what {
        Bench::Wait(flags) => wait::run(flags),
        Bench::Exit(flags) => exit::run(flags),
        Bench::Spawn(flags) => spawn::run(flags),
        Bench::Sweep(flags) => sweep::run(flags),
        Bench::Turnaround(flags) => turnaround::run(flags),
        Bench::Compute(ComputeFlags { name, amount }) => {
            minder_bench::compute(name, *amount).map_err(errors::to_anyhow)?;
            Ok(ExitCode::SUCCESS)
        }
        Bench::Idle => loop {
            std::thread::park();
        },
    })
}

/// Returns the chart of rows that a subcommand printed; `None` if no subcommand prints such
/// columns.
pub(crate) fn redraw(rows: &CsvTable, machine: &str) -> Option<Result<Chart>> {
    if rows.index("model_turnaround").is_some() {
        return Some(turnaround::redraw(rows, machine));
    }
    let all = [wait::spec(), exit::spec(), spawn::spec(), sweep::spec()];
    let spec = all.into_iter().find(|spec| rows.index(&spec.operations()).is_some())?;
    Some(results::chart(&spec, rows, machine))
}
