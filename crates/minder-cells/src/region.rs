//! Regions: the cells of one message, which are dropped as one.

use std::sync::{Arc, Mutex, PoisonError};

use crate::build::{self, Cells};
use crate::error::{Error, Result};
use crate::space::{CELL_BYTES, Cell};
use crate::symbols::Symbols;
use crate::view::View;
use crate::word::{Kind, Word, cells_of};

/// The regions whose memory a pool keeps.
const KEPT_REGIONS: usize = 16;
/// The bytes of memory that a pool keeps, of all regions together.
const KEPT_BYTES: usize = 64 << 20;
/// The cells of the smallest region: 4 KiB.
const CELLS_MIN: usize = 256;
/// The cells of the largest region: they have numbers of 32 bits.
const CELLS_MAX: usize = u32::MAX as usize;

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
    run: Run,
    symbols: Symbols,
}

impl Memory {
    fn bytes(&self) -> usize {
        self.run.cells.capacity() * CELL_BYTES + self.symbols.table_bytes()
    }

    /// Returns the symbol of this text, which the region has once.
    pub(crate) fn intern(&mut self, text: &str) -> Result<Word> {
        let Self { run, symbols } = self;
        let make = |run: &mut Run| build::text(run, Kind::Symbol, text);
        symbols.intern(text, run, |run| &run.cells, make)
    }

    /// Returns the symbol that this JSON probably begins with: see [`Symbols::predict`].
    #[inline]
    pub(crate) fn predict(&mut self, json: &[u8]) -> Option<(Word, usize)> {
        self.symbols.predict(json, &self.run.cells)
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
        self.run.allocate(count)
    }

    #[inline]
    fn cells_mut(&mut self) -> &mut [Cell] {
        self.run.cells_mut()
    }

    #[inline]
    fn refer_all(&mut self, words: &[u64]) -> Result<()> {
        self.run.refer_all(words)
    }
}

/// Cells one after another. Those from `used` on have contents of earlier messages, so that they are not
/// cleared for each message.
#[derive(Default)]
struct Run {
    cells: Vec<Cell>,
    used: usize,
}

impl Run {
    /// Makes room for this many cells.
    #[cold]
    fn grow(&mut self, count: usize) -> Result<()> {
        let wanted = self.used.saturating_add(count);
        if wanted > CELLS_MAX {
            return Err(Error::HeapFull { limit_bytes: CELLS_MAX.saturating_mul(CELL_BYTES) });
        }
        let len = wanted.max(self.used + self.used / 2).clamp(CELLS_MIN, CELLS_MAX);
        self.cells.try_reserve_exact(len - self.cells.len())?;
        self.cells.resize(len, [0, 0]);
        Ok(())
    }
}

impl Cells for Run {
    #[inline]
    fn allocate(&mut self, count: usize) -> Result<usize> {
        let index = self.used;
        if count > self.cells.len() - index {
            self.grow(count)?;
        }
        self.used += count;
        Ok(index)
    }

    #[inline]
    fn cells_mut(&mut self) -> &mut [Cell] {
        &mut self.cells
    }

    /// No collection looks at a region.
    #[inline]
    fn refer_all(&mut self, _words: &[u64]) -> Result<()> {
        Ok(())
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
        memory.run.used = 0;
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
        View::new(&self.memory.run.cells[..self.memory.run.used], self.word)
    }

    /// Returns the value that had this number in [`View::to_bits`]; `None` for a number that no value has.
    ///
    /// ```
    /// use minder_cells::RegionPool;
    ///
    /// let region = RegionPool::new().parse_json(br#"{"items": ["push", "pop"]}"#)?;
    /// let bits = region.view().get("items").map(|items| items.to_bits());
    /// // The number can be passed through code in another language.
    /// let items = bits.and_then(|bits| region.view_of_bits(bits)).expect("it is a number of this region");
    /// assert_eq!(items.to_json(), r#"["push","pop"]"#);
    /// assert!(region.view_of_bits(u64::MAX).is_none());
    /// # Ok::<(), minder_cells::JsonError>(())
    /// ```
    ///
    /// # Panics
    /// The number of another region may name any value of this one, or a view of which `get` and `to_json`
    /// panic.
    pub fn view_of_bits(&self, bits: u64) -> Option<View<'_>> {
        let word = Word(bits);
        let cells = &self.memory.run.cells[..self.memory.run.used];
        let is_value = match word.kind() {
            Kind::Integer => true,
            Kind::Constant => bits <= Word::TRUE.0,
            kind => {
                let index = usize::try_from(word.place()).ok();
                let rest = index.and_then(|index| cells.get(index..)).unwrap_or_default();
                rest.first().is_some_and(|first| cells_of(kind, first[0]) <= rest.len())
            }
        };
        is_value.then(|| self.view().with(word))
    }

    /// Returns the bytes of its cells.
    pub fn bytes(&self) -> usize {
        self.memory.run.used * CELL_BYTES
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.pool.keep(std::mem::take(&mut self.memory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(pool: &RegionPool) -> (usize, usize, usize) {
        let kept = pool.0.lock().expect("no thread panicked");
        (kept.memory.len(), kept.bytes, kept.memory.iter().map(Memory::bytes).sum())
    }

    #[test]
    fn a_pool_keeps_sixteen_regions() {
        let pool = RegionPool::new();
        for _ in 0..2 {
            let regions: Vec<Region> =
                (0..20).map(|_| pool.parse_json(br#"{"a": [1.5]}"#).expect("it is JSON")).collect();
            assert_eq!(kept(&pool), (0, 0, 0));
            drop(regions);
            let (regions, bytes, bytes_of_all) = kept(&pool);
            assert_eq!((regions, bytes), (KEPT_REGIONS, bytes_of_all));
        }
        assert!(pool.parse_json(b"[").is_err());
        assert_eq!(kept(&pool).0, KEPT_REGIONS);
    }

    #[test]
    #[cfg_attr(miri, ignore = "hundreds of megabytes")]
    fn a_pool_keeps_sixty_four_mebibytes() {
        let pool = RegionPool::new();
        let message = |bytes: usize| format!("\"{}\"", "x".repeat(bytes));
        // One that is larger than all that is kept.
        drop(pool.parse_json(message(KEPT_BYTES).as_bytes()).expect("it is JSON"));
        assert_eq!(kept(&pool), (0, 0, 0));
        let regions: Vec<Region> = (0..5)
            .map(|_| pool.parse_json(message(KEPT_BYTES / 4).as_bytes()).expect("it is JSON"))
            .collect();
        drop(regions);
        let (regions, bytes, bytes_of_all) = kept(&pool);
        assert_eq!(bytes, bytes_of_all);
        assert!((2..=4).contains(&regions) && bytes <= KEPT_BYTES, "{regions} regions, {bytes} bytes");
    }
}
