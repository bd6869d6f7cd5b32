//! The phases of `minder bench sweep`, one after another, without a clock: for programs that count.

use anyhow::{Result, bail};
use minder_bench::CellBench;

/// Runs the phases that come before `phase`, prepares it, and then runs it if `through` says so.
pub(crate) fn run(heap: &str, block_kib: u64, cells: usize, phase: &str, through: bool) -> Result<()> {
    let mut bench = CellBench::new(heap, cells, block_kib)?;
    bench.grow(cells)?;
    while let Some(next) = bench.next_phase() {
        if next.name() == phase {
            bench.prepare()?;
            if through {
                bench.run_unmeasured()?;
            }
            return Ok(());
        }
        bench.run_unmeasured()?;
    }
    bail!("unknown phase `{phase}`")
}
