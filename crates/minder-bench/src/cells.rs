//! Marking, sweeping and allocating cells, by the heap of `minder` and by one as Emacs 28 has it.

mod subject;
mod bench;
mod suite;

pub use self::bench::{CellBench, CellPhase, OWN_BLOCK_KIB, cell_heaps};
pub use self::suite::CellSuite;
