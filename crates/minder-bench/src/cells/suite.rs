//! Measures the phases of heaps at many sizes of blocks.

use super::bench::{CellBench, CellPhase, OWN_BLOCK_KIB};
use crate::case::{Case, Measurement};
use crate::error::{Error, Result};
use crate::rounds::Suite;

/// The cells that are allocated between two checks for cancellation.
const BATCH: usize = 1 << 20;

/// Measures the phases of a heap with a chain of cells: [`Case::kind`] is the name of a [`CellPhase`], and
/// [`Case::size`] the size of a block in KiB. An operation is about one cell.
///
/// The cases of one heap follow each other in the order of [`CellPhase::ALL`]; each continues with the heap
/// of the case before.
///
/// ```
/// use minder_bench::{CellSuite, NoObserver, Results, run_rounds};
///
/// let cases = CellSuite::cases(&[32], &["inline", "minder"]);
/// let mut results = Results::new(&cases);
/// run_rounds(&mut CellSuite::new(10_000), &mut results, 1, &mut NoObserver)?;
/// assert!(results.unmeasured().is_empty());
/// # Ok::<(), minder_bench::Error>(())
/// ```
#[derive(Debug)]
pub struct CellSuite {
    cells: usize,
    /// The heap of the case before, with its mechanism and size.
    heap: Option<(&'static str, u64, CellBench)>,
}

impl CellSuite {
    /// The sizes of blocks that are measured by default, in KiB.
    pub const SIZES: &[u64] = &[1, 4, 16, 32, 64, 256, 1024];

    /// Makes a suite with chains of this many cells.
    #[must_use]
    pub fn new(cells: usize) -> Self {
        Self { cells, heap: None }
    }

    /// Returns the cases: every phase of every mechanism with blocks of these sizes. The heaps of `minder`
    /// have blocks of [`OWN_BLOCK_KIB`].
    #[must_use]
    pub fn cases(sizes: &[u64], mechanisms: &[&'static str]) -> Vec<Case> {
        let is_own = |mechanism: &str| mechanism.starts_with("minder");
        let inline: Vec<_> = mechanisms.iter().copied().filter(|name| !is_own(name)).collect();
        let own: Vec<_> = mechanisms.iter().copied().filter(|name| is_own(name)).collect();
        let heaps = [Case::grid(sizes, &inline), Case::grid(&[OWN_BLOCK_KIB], &own)].concat();
        let phases = |case: Case| CellPhase::ALL.map(|phase| Case { kind: Some(phase.name()), ..case });
        heaps.into_iter().flat_map(phases).collect()
    }

    /// Makes the heap of a case; `None` if it is cancelled before the chain is complete.
    fn make(&self, case: &Case, is_cancelled: &mut dyn FnMut() -> bool) -> Result<Option<CellBench>> {
        let mut bench = CellBench::new(case.mechanism, self.cells, case.size)?;
        while bench.live() < self.cells {
            if is_cancelled() {
                return Ok(None);
            }
            bench.grow(BATCH.min(self.cells - bench.live()))?;
        }
        Ok(Some(bench))
    }
}

impl Suite for CellSuite {
    fn measure(
        &mut self,
        case: &Case,
        is_cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Measurement>> {
        let wanted = CellPhase::ALL.iter().position(|phase| case.kind == Some(phase.name()));
        let wanted = wanted.ok_or_else(|| unknown(case))?;
        let is_before = |bench: &CellBench| {
            bench.next_phase().is_some_and(|next| CellPhase::ALL[..=wanted].contains(&next))
        };
        let mut bench = match self.heap.take() {
            Some((mechanism, size, bench))
                if mechanism == case.mechanism && size == case.size && is_before(&bench) =>
            {
                bench
            }
            other => {
                // Two heaps may not fit into memory.
                drop(other);
                let Some(bench) = self.make(case, is_cancelled)? else { return Ok(None) };
                bench
            }
        };
        loop {
            let is_wanted = bench.next_phase() == Some(CellPhase::ALL[wanted]);
            let (cells, time) = bench.run()?;
            if is_wanted {
                self.heap = Some((case.mechanism, case.size, bench));
                return Ok(Some(Measurement::of(cells as u64, time)));
            }
            if is_cancelled() {
                return Ok(None);
            }
        }
    }
}

fn unknown(case: &Case) -> Error {
    let error = std::io::ErrorKind::Unsupported.into();
    Error::from_io("measure the phase", case.kind.map(std::ffi::OsStr::new), &error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_phase_can_be_measured_without_the_others() {
        let cases = CellSuite::cases(&[1], &["inline"]);
        let mut suite = CellSuite::new(5_000);
        for case in [&cases[6], &cases[2], &cases[0]] {
            let measured = suite.measure(case, &mut || false).expect("measure").expect("not cancelled");
            assert!(measured.operations > 2_000, "{case:?}");
        }
        let kind = Some("magic");
        assert!(suite.measure(&Case { kind, ..cases[0] }, &mut || false).is_err());
    }

    #[test]
    fn cancelled_chain_has_no_measurement() {
        let cases = CellSuite::cases(&[1], &["minder"]);
        let measured = CellSuite::new(5_000).measure(&cases[0], &mut || true);
        assert!(matches!(measured, Ok(None)));
    }
}
