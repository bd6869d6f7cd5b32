//! `minder clock`: what clocks and sleeps do on this machine.
//!
//! The crate `minder-bench` measures. `state.rs`, `measure.rs`, `sweep.rs` and `watch.rs` are one
//! subcommand each; `probe.rs` is a process of `sweep.rs`. `sleeps.rs` measures ways to sleep by turns, for
//! two of them, `sleep_chart.rs` draws what it measured, and `unusual.rs` decides what is worth a remark.
//! Nothing here changes a slack, a tick or a priority of this process; only the processes of `sweep` do, and
//! their settings end with them.

mod histogram;
mod output;
mod sleeps;
mod sleep_chart;
mod measure;
mod clock_facts;
mod unusual;
mod state;
mod probe;
mod sweep;
mod watch;

use std::process::ExitCode;

use anyhow::Result;
use minder_ui::rows::CsvTable;

use crate::chart::Chart;
use crate::flags::{Clock, ClockFlags};
use crate::measuring;

/// Measures what the flags ask for, and shows it.
pub fn run(flags: &ClockFlags) -> Result<ExitCode> {
    measuring::exit_code(match &flags.what {
        None => state::run(&flags.output),
        Some(Clock::Measure(flags)) => measure::run(flags),
        Some(Clock::Sweep(flags)) => sweep::run(flags),
        Some(Clock::Watch(flags)) => watch::run(flags),
        Some(Clock::Probe(flags)) => probe::run(&flags.args),
    })
}

/// Returns the chart of rows that a subcommand printed; `None` if no subcommand with a chart prints
/// such columns.
pub(crate) fn redraw(rows: &CsvTable, machine: &str) -> Option<Result<Chart>> {
    let has = |column: &str| rows.index(column).is_some();
    match (has("setting_ns"), has("asked_ns")) {
        (true, _) => Some(Ok(sweep::chart(rows, machine))),
        (_, true) => Some(sleep_chart::chart(rows, machine)),
        _ => None,
    }
}
