//! One heap of cells, and the phases of its life that are measured.

use minder::ErrorKind;
use std::ffi::OsStr;
use std::io;

use super::subject::{OwnHeap, Subject};
use crate::error::{Error, Result};
use crate::free_memory;
use crate::random::Random;
use crate::stopwatch::{CpuAndWall, Stopwatch};
use crate::sys::cells::InlineHeap;

/// The size of the blocks of `minder_cells::Heap`, in KiB.
pub const OWN_BLOCK_KIB: u64 = 64;

const INLINE: &str = "inline";
const SHUFFLED: &str = "inline-shuffled";
const OWN: &str = "minder";
const MAINTAINED: &str = "minder-maintained";

/// Returns the names that [`CellBench::new`] takes.
///
/// | name | how |
/// | --- | --- |
/// | `inline` | marks and a link to the next block at the end of each block, as in Emacs 28 |
/// | `inline-shuffled` | the same, with the blocks in random order |
/// | `minder` | [`minder_cells::Heap`], whose marks are beside its blocks |
/// | `minder-maintained` | the same, after `Heap::maintain` has cleared the marks of the last collection |
///
/// ```
/// assert!(minder_bench::cell_heaps().any(|name| name == "inline"));
/// ```
pub fn cell_heaps() -> impl Iterator<Item = &'static str> {
    [INLINE, SHUFFLED, OWN, MAINTAINED].into_iter()
}

/// What is measured: a part of a collection, or allocating again as many cells as have died.
///
/// The phases follow each other in this order, on one heap: a chain of cells lives, then half of its cells
/// are dropped at random, then all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CellPhase {
    /// Marks a chain of which all cells live.
    MarkLive,
    /// Sweeps it.
    SweepLive,
    /// Marks what is left after half of the cells were dropped.
    MarkHalf,
    /// Sweeps it.
    SweepHalf,
    /// Allocates as many cells as were free.
    RefillHalf,
    /// Sweeps the heap after all cells were dropped.
    SweepDead,
    /// Allocates all cells again.
    RefillDead,
}

impl CellPhase {
    /// All phases, in their order.
    pub const ALL: [Self; 7] = [
        Self::MarkLive,
        Self::SweepLive,
        Self::MarkHalf,
        Self::SweepHalf,
        Self::RefillHalf,
        Self::SweepDead,
        Self::RefillDead,
    ];

    /// Returns its name: `sweep-dead`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MarkLive => "mark-live",
            Self::SweepLive => "sweep-live",
            Self::MarkHalf => "mark-half",
            Self::SweepHalf => "sweep-half",
            Self::RefillHalf => "refill-half",
            Self::SweepDead => "sweep-dead",
            Self::RefillDead => "refill-dead",
        }
    }
}

/// A heap with a chain of cells, which is measured in one [`CellPhase`] after another.
///
/// ```
/// use minder_bench::{CellBench, CellPhase};
///
/// let mut bench = CellBench::new("inline", 1_000, 32)?;
/// bench.grow(1_000)?;
/// while let Some(phase) = bench.next_phase() {
///     let (cells, time) = bench.run()?;
///     println!("{}: {cells} cells in {:?}", phase.name(), time.cpu);
/// }
/// # Ok::<(), minder_bench::Error>(())
/// ```
#[derive(Debug)]
pub struct CellBench {
    subject: Box<dyn Subject>,
    random: Random,
    /// The cells of the chain.
    live: usize,
    /// The cells that were dropped, and not allocated again.
    dead: usize,
    next: usize,
    is_prepared: bool,
}

impl CellBench {
    /// Makes a heap that has room for this many cells. `block_kib` is a power of two; it is the size of
    /// blocks, which `minder` has chosen itself.
    ///
    /// # Errors
    /// `Unsupported` for a name that is not in [`cell_heaps`]; `Exhausted` without memory.
    pub fn new(mechanism: &str, cells: usize, block_kib: u64) -> Result<Self> {
        Self::check(cells)?;
        let failed = |error| Error::from_io("make a heap of blocks of", Some(&subject_of(block_kib)), &error);
        let mut random = Random::new(1);
        let inline = |shuffle: Option<&mut Random>| {
            let bytes = block_kib.checked_mul(1 << 10).and_then(|bytes| usize::try_from(bytes).ok());
            let bytes = bytes.ok_or_else(|| io::ErrorKind::InvalidInput.into()).map_err(failed)?;
            let heap = InlineHeap::new(cells, bytes, shuffle).map_err(failed)?;
            Ok::<Box<dyn Subject>, Error>(Box::new(heap))
        };
        let subject: Box<dyn Subject> = match mechanism {
            INLINE => inline(None)?,
            SHUFFLED => inline(Some(&mut random))?,
            OWN => Box::new(OwnHeap::new(cells, false)?),
            MAINTAINED => Box::new(OwnHeap::new(cells, true)?),
            _ => {
                let error = io::ErrorKind::Unsupported.into();
                return Err(Error::from_io("make the heap", Some(OsStr::new(mechanism)), &error));
            }
        };
        Ok(Self { subject, random, live: 0, dead: 0, next: 0, is_prepared: false })
    }

    /// Checks that this machine has the memory for a heap of this many cells and 256 MiB more, where it
    /// reports its memory. Up to 16 MiB are not checked.
    ///
    /// # Errors
    /// `Exhausted` if it has not.
    pub fn check(cells: usize) -> Result<()> {
        /// A cell, and its share of the smallest block.
        const BYTES: u64 = 17;
        /// Cells have numbers of 32 bits.
        const CELLS_MAX: u64 = 1 << 32;
        const OPERATION: &str = "make a heap of";
        let subject = format!("{cells} cells");
        free_memory::check((cells as u64).saturating_mul(BYTES), OPERATION, &subject)?;
        if cells as u64 > CELLS_MAX / 2 {
            let reason = format!("at most {} can be measured", CELLS_MAX / 2);
            return Err(Error::new(ErrorKind::Exhausted, OPERATION, Some(OsStr::new(&subject)), &reason));
        }
        Ok(())
    }

    /// Adds this many cells to the chain.
    ///
    /// # Errors
    /// `Exhausted`: there is no room.
    pub fn grow(&mut self, cells: usize) -> Result<()> {
        self.subject.grow(cells)?;
        self.live += cells;
        Ok(())
    }

    /// Returns the number of cells in the chain.
    #[must_use]
    pub fn live(&self) -> usize {
        self.live
    }

    /// Returns the phase that [`run`](Self::run) measures; `None` after the last one.
    #[must_use]
    pub fn next_phase(&self) -> Option<CellPhase> {
        CellPhase::ALL.get(self.next).copied()
    }

    /// Does what is not measured and comes before the next phase.
    ///
    /// # Errors
    /// The heap has no memory.
    pub fn prepare(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.is_prepared, true) {
            return Ok(());
        }
        match self.next_phase() {
            Some(CellPhase::MarkLive) => self.subject.prepare()?,
            Some(CellPhase::MarkHalf) => {
                let left = self.subject.thin(&mut self.random)?;
                self.dead += self.live - left;
                self.live = left;
                self.subject.prepare()?;
            }
            Some(CellPhase::SweepDead) => {
                self.subject.prepare()?;
                self.subject.drop_root()?;
                self.dead += std::mem::take(&mut self.live);
                // A collection begins with the marks, of which there are none here.
                self.subject.mark()?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Runs the next phase. Returns the number of cells that it was about, and what it took: the cells of the
    /// chain for marks, all cells for a sweep, and those that were allocated.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare); `InvalidInput` after the last phase.
    pub fn run(&mut self) -> Result<(usize, CpuAndWall)> {
        self.prepare()?;
        let stopwatch = Stopwatch::start();
        let cells = self.run_phase()?;
        let time = stopwatch.elapsed();
        self.finish_phase();
        Ok((cells, time))
    }

    /// Runs the next phase as [`run`](Self::run), but reads no clock: for programs that count instructions.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_unmeasured(&mut self) -> Result<usize> {
        self.prepare()?;
        let cells = self.run_phase()?;
        self.finish_phase();
        Ok(cells)
    }

    fn run_phase(&mut self) -> Result<usize> {
        let Some(phase) = self.next_phase() else {
            let error = io::ErrorKind::InvalidInput.into();
            return Err(Error::from_io("measure a phase after the last one", None, &error));
        };
        match phase {
            CellPhase::MarkLive | CellPhase::MarkHalf => {
                self.subject.mark()?;
                Ok(self.live)
            }
            CellPhase::SweepLive | CellPhase::SweepHalf | CellPhase::SweepDead => {
                self.subject.sweep()?;
                Ok(self.live + self.dead)
            }
            CellPhase::RefillHalf | CellPhase::RefillDead => {
                self.subject.grow(self.dead)?;
                Ok(self.dead)
            }
        }
    }

    fn finish_phase(&mut self) {
        if matches!(self.next_phase(), Some(CellPhase::RefillHalf | CellPhase::RefillDead)) {
            self.live += std::mem::take(&mut self.dead);
        }
        self.next += 1;
        self.is_prepared = false;
    }
}

fn subject_of(block_kib: u64) -> std::ffi::OsString {
    format!("{block_kib} KiB").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_heap_has_every_phase_and_the_same_cells() {
        for mechanism in cell_heaps() {
            let mut bench = CellBench::new(mechanism, 20_000, 4).expect("make heap");
            bench.grow(20_000).expect("make chain");
            let mut counts = Vec::new();
            while let Some(phase) = bench.next_phase() {
                let (cells, _) = bench.run().unwrap_or_else(|error| panic!("{mechanism}: {error}"));
                counts.push((phase.name(), cells));
            }
            assert_eq!(counts.len(), CellPhase::ALL.len());
            let half = counts[2].1;
            assert!((9_000..11_000).contains(&half), "{mechanism}: {half}");
            assert_eq!(counts[4].1, 20_000 - half, "{mechanism}");
            for (phase, cells) in [0, 1, 3, 5, 6].map(|index| counts[index]) {
                assert_eq!(cells, 20_000, "{mechanism} {phase}");
            }
            assert!(bench.run().is_err());
        }
    }

    #[test]
    fn unknown_heaps_and_sizes_are_refused() {
        let error = CellBench::new("magic", 1_000, 1).expect_err("make unknown heap");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(CellBench::new(INLINE, 1_000, 3).is_err());
    }
}
