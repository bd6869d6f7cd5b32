//! `minder bench sweep`: marking, sweeping and allocating cells.

use std::process::ExitCode;

use anyhow::Result;
use minder_bench::{CellBench, CellSuite, cell_heaps};

use super::errors::to_anyhow;
use super::report::measure_and_report;
use super::selection::select_mechanisms;
use super::spec::{BenchSpec, note};
use crate::flags::CellSweepFlags;
use crate::measuring::Session;

/// Returns the words for tables, rows and charts.
pub(super) fn spec() -> BenchSpec {
    BenchSpec {
        operation: "cell",
        size: "block_kib",
        sizes: "KiB of a block",
        kinds: true,
        is_tiny: true,
        whose: "all threads",
        title: "Marking, sweeping and allocating cells",
        axis: "KiB of a block",
        published: Vec::new(),
        note: note(),
    }
}

/// Measures what the flags ask for, and shows it.
pub(super) fn run(flags: &CellSweepFlags) -> Result<ExitCode> {
    let mechanisms = select_mechanisms(&cell_heaps().collect::<Vec<_>>(), &flags.measure)?;
    let sizes = flags.block.as_ref().map_or(CellSuite::SIZES, |sizes| &sizes.0);
    let cases = CellSuite::cases(sizes, &mechanisms);
    let cells = usize::try_from(flags.cells).unwrap_or(usize::MAX);
    CellBench::check(cells).map_err(to_anyhow)?;
    let session = Session::start()?;
    let mut suite = CellSuite::new(cells);
    measure_and_report(&spec(), &flags.measure, session, &cases, &mut suite)
}
