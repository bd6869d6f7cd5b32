//! Regions: the cells of one message, which are dropped as one.

use std::sync::{Arc, Mutex, PoisonError};

use crate::build::{self, Cells};
use crate::error::{Error, Result};
use crate::space::{CELL_BYTES, Cell};
use crate::symbols::Symbols;
use crate::view::View;
use crate::word::{Kind, Word};

/// The regions whose memory a pool keeps.
const KEPT_REGIONS: usize = 16;
/// The bytes of memory that a pool keeps, of all regions together.
const KEPT_BYTES: usize = 64 << 20;

/// Makes regions, and keeps the memory of those that were dropped for the next ones. Clones share it.
///
/// A pool keeps the memory of up to 16 regions, together at most 64 MiB.
///
/// ```
/// use minder_cells::RegionPool;
///
/// let pool = RegionPool::new();
/// for message in ["[1]", "[1, 2]"] {
///     let region = pool.parse_json(message.as_bytes())?;
///     println!("{} elements", region.view().elements().len());
/// } // The memory of a region is used for the next one.
/// # Ok::<(), minder_cells::JsonError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct RegionPool(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    memory: Vec<Memory>,
    bytes: usize,
}

/// The cells and the table of a region.
#[derive(Default)]
pub(crate) struct Memory {
    cells: Vec<Cell>,
    symbols: Symbols,
}

impl Memory {
    fn bytes(&self) -> usize {
        self.cells.capacity() * CELL_BYTES + self.symbols.table_bytes()
    }

    /// Returns the symbol of this text, which the region has once.
    pub(crate) fn intern(&mut self, text: &str) -> Result<Word> {
        let Self { cells, symbols } = self;
        let make = |cells: &mut Vec<Cell>| build::text(&mut Bump(cells), Kind::Symbol, text);
        symbols.intern(text, cells, |cells| cells.as_slice(), make)
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.bytes())
    }
}

impl Cells for Memory {
    #[inline]
    fn allocate(&mut self, count: usize) -> Result<usize> {
        Bump(&mut self.cells).allocate(count)
    }

    #[inline]
    fn cells_mut(&mut self) -> &mut [Cell] {
        &mut self.cells
    }
}

/// Cells one after another.
struct Bump<'a>(&'a mut Vec<Cell>);

impl Cells for Bump<'_> {
    #[inline]
    fn allocate(&mut self, count: usize) -> Result<usize> {
        let index = self.0.len();
        if count > self.0.capacity() - index {
            self.0.try_reserve(count)?;
        }
        if index + count > u32::MAX as usize {
            return Err(Error::HeapFull { limit_bytes: u32::MAX as usize * CELL_BYTES });
        }
        self.0.resize(index + count, [0, 0]);
        Ok(index)
    }

    #[inline]
    fn cells_mut(&mut self) -> &mut [Cell] {
        self.0
    }
}

impl RegionPool {
    /// Makes a pool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns empty memory.
    pub(crate) fn take(&self) -> Memory {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let memory = kept.memory.pop().unwrap_or_default();
        kept.bytes -= memory.bytes().min(kept.bytes);
        memory
    }

    /// Makes a region of a value.
    pub(crate) fn region(&self, memory: Memory, word: Word) -> Region {
        Region { memory, word, pool: self.clone() }
    }

    /// Keeps memory for the next region, if there is not too much.
    pub(crate) fn keep(&self, mut memory: Memory) {
        memory.cells.clear();
        memory.symbols.clear();
        let bytes = memory.bytes();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.memory.len() < KEPT_REGIONS && kept.bytes + bytes <= KEPT_BYTES {
            kept.bytes += bytes;
            kept.memory.push(memory);
        }
    }
}

/// The cells of one message. Dropping it frees them all at once: no cell is looked at, and the memory is
/// kept by the pool for the next message.
///
/// ```
/// use minder_cells::{Region, RegionPool};
///
/// let region: Region = RegionPool::new().parse_json(b"{\"a\": [1, 2]}")?;
/// assert_eq!(region.view().to_lisp(), "((a . [1 2]))");
/// assert!(region.bytes() > 0);
/// # Ok::<(), minder_cells::JsonError>(())
/// ```
#[derive(Debug)]
pub struct Region {
    memory: Memory,
    word: Word,
    pool: RegionPool,
}

impl Region {
    /// Returns the message.
    pub fn view(&self) -> View<'_> {
        View::new(&self.memory.cells, self.word)
    }

    /// Returns the bytes of its cells.
    pub fn bytes(&self) -> usize {
        self.memory.cells.len() * CELL_BYTES
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.pool.keep(std::mem::take(&mut self.memory));
    }
}
