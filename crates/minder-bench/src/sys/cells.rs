//! A heap of cells as Emacs 28 has it: the marks of a block and the link to the next block are at the end
//! of the block, and the sweep writes every dead cell.
//!
//! It is written from a description of `alloc.c`, with what its cells of two words need and nothing else:
//! no other types, no roots on a stack. Blocks are allocated 16 at a time, aligned to their size. The sweep
//! follows the links from block to block. It skips a word of marks if all its cells are alive; otherwise it
//! looks at each mark, and links each dead cell into the list of free cells. Emacs also gives blocks without
//! a live cell back to the C library, which is left out.

#![expect(unsafe_code, reason = "blocks of memory, in which cells and blocks are linked by their addresses")]

use std::alloc::{Layout, alloc, dealloc};
use std::io;
use std::ptr;

use crate::random::Random;

/// The bytes of a cell: two words. In a free cell the second word is the address of the next one.
const CELL: usize = 16;
const WORD: usize = 8;
/// The blocks that are allocated at once.
const CHUNK_BLOCKS: usize = 16;
/// The first word of a cell that is alive, and of one that is dead.
const ALIVE: u64 = 2;
const DEAD: u64 = 6;

/// The address of a word in a block of the heap that is borrowed. 0 is the end of a chain.
type Address = usize;

/// Where the parts of a block are.
#[derive(Clone, Copy, Debug)]
struct BlockLayout {
    /// A power of two, to which blocks are also aligned.
    bytes: usize,
    cells: usize,
    /// The offset of the marks, which follow the cells.
    marks: usize,
    /// The offset of the link to the next block, which follows the marks.
    next: usize,
}

impl BlockLayout {
    fn new(bytes: usize) -> Self {
        // The last word leads to the allocation in Emacs; it is not used here. A cell needs a bit for its
        // mark, and the last word of marks may have some bits too many.
        let room = bytes - 2 * WORD;
        let mut cells = room * 8 / (CELL * 8 + 1);
        while cells * CELL + cells.div_ceil(64) * WORD > room {
            cells -= 1;
        }
        let marks = cells * CELL;
        Self { bytes, cells, marks, next: marks + cells.div_ceil(64) * WORD }
    }

    /// Returns the address of the block of a cell.
    #[inline]
    fn block_of(self, cell: Address) -> Address {
        cell & !(self.bytes - 1)
    }
}

/// A heap of cells with one root: a chain of cells.
#[derive(Debug)]
pub(crate) struct InlineHeap {
    layout: BlockLayout,
    chunk: Layout,
    /// The addresses of the allocations.
    chunks: Vec<*mut u8>,
    /// Blocks that were not used yet; the next one is the last.
    unused: Vec<Address>,
    /// The block that was used last, from which links lead to all others.
    newest: Address,
    /// The cells of the newest block that were used.
    used: usize,
    free: Address,
    root: Address,
}

impl InlineHeap {
    /// Allocates blocks of this size for this many cells. The first one to be used has the lowest address,
    /// unless `shuffle` draws another order.
    pub(crate) fn new(cells: usize, block_bytes: usize, shuffle: Option<&mut Random>) -> io::Result<Self> {
        let exhausted = || io::Error::from(io::ErrorKind::OutOfMemory);
        if !block_bytes.is_power_of_two() || block_bytes < 256 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let layout = BlockLayout::new(block_bytes);
        let chunk_bytes = block_bytes.checked_mul(CHUNK_BLOCKS).ok_or_else(exhausted)?;
        let chunk = Layout::from_size_align(chunk_bytes, block_bytes).map_err(|_| exhausted())?;
        let mut heap = Self {
            layout,
            chunk,
            chunks: Vec::new(),
            unused: Vec::new(),
            newest: 0,
            used: layout.cells,
            free: 0,
            root: 0,
        };
        let blocks = cells.div_ceil(layout.cells).max(1);
        for _ in 0..blocks.div_ceil(CHUNK_BLOCKS) {
            // SAFETY: the size is not zero.
            let start = unsafe { alloc(chunk) };
            if start.is_null() {
                return Err(exhausted());
            }
            heap.chunks.push(start);
            let addresses = (0..CHUNK_BLOCKS).map(|block| start.expose_provenance() + block * block_bytes);
            heap.unused.extend(addresses);
        }
        heap.unused.sort_unstable();
        heap.unused.reverse();
        if let Some(random) = shuffle {
            for index in (1..heap.unused.len()).rev() {
                heap.unused.swap(index, random.below(index + 1));
            }
        }
        Ok(heap)
    }

    #[inline]
    fn load(&self, address: Address) -> u64 {
        // SAFETY: an `Address` is that of a word in a block of this heap, all of whose words were written
        // when the block was first used, or were written as a cell.
        unsafe { *ptr::with_exposed_provenance::<u64>(address) }
    }

    #[inline]
    fn store(&mut self, address: Address, value: u64) {
        // SAFETY: an `Address` is that of a word in a block of this heap, which is borrowed exclusively.
        unsafe { *ptr::with_exposed_provenance_mut::<u64>(address) = value }
    }

    /// Returns the second word of a cell, or the link of a block, as an address.
    #[inline]
    fn follow(&self, address: Address) -> Address {
        self.load(address) as Address
    }

    /// Adds this many cells to the front of the chain: free ones, then those of new blocks.
    ///
    /// # Errors
    /// All cells are used.
    #[inline(never)]
    pub(crate) fn grow(&mut self, cells: usize) -> io::Result<()> {
        for _ in 0..cells {
            let cell = if self.free == 0 {
                if self.used == self.layout.cells {
                    self.use_block()?;
                }
                self.used += 1;
                self.newest + (self.used - 1) * CELL
            } else {
                let cell = self.free;
                self.free = self.follow(cell + WORD);
                cell
            };
            self.store(cell, ALIVE);
            self.store(cell + WORD, self.root as u64);
            self.root = cell;
        }
        Ok(())
    }

    /// Puts an unused block before the others.
    fn use_block(&mut self) -> io::Result<()> {
        let block = self.unused.pop().ok_or(io::ErrorKind::OutOfMemory)?;
        for word in (self.layout.marks..self.layout.next).step_by(WORD) {
            self.store(block + word, 0);
        }
        self.store(block + self.layout.next, self.newest as u64);
        self.newest = block;
        self.used = 0;
        Ok(())
    }

    /// Takes about half of the cells out of the chain, at random. Returns the number of those that are left.
    pub(crate) fn thin(&mut self, random: &mut Random) -> usize {
        let mut left = 0;
        let mut last = 0;
        let mut cell = std::mem::take(&mut self.root);
        while cell != 0 {
            let next = self.follow(cell + WORD);
            if random.below(2) == 0 {
                left += 1;
                if last == 0 {
                    self.root = cell;
                } else {
                    self.store(last + WORD, cell as u64);
                }
                last = cell;
            }
            cell = next;
        }
        if last != 0 {
            self.store(last + WORD, 0);
        }
        left
    }

    /// Forgets the chain.
    pub(crate) fn drop_root(&mut self) {
        self.root = 0;
    }

    /// Marks the cells of the chain. Returns their number.
    #[inline(never)]
    pub(crate) fn mark(&mut self) -> usize {
        let mut count = 0;
        let mut cell = self.root;
        while cell != 0 {
            let block = self.layout.block_of(cell);
            let index = (cell - block) / CELL;
            let word = block + self.layout.marks + index / 64 * WORD;
            let marks = self.load(word);
            let mark = 1 << (index % 64);
            if marks & mark != 0 {
                break;
            }
            self.store(word, marks | mark);
            count += 1;
            // The first word is looked at, since it may refer to a cell.
            if self.load(cell) != ALIVE {
                break;
            }
            cell = self.follow(cell + WORD);
        }
        count
    }

    /// Links all cells without a mark into the list of free cells, and clears the marks. Returns the number
    /// of free cells.
    #[inline(never)]
    pub(crate) fn sweep(&mut self) -> usize {
        let mut free = 0;
        self.free = 0;
        let mut block = self.newest;
        let mut limit = self.used;
        while block != 0 {
            for word in 0..limit.div_ceil(64) {
                let at = block + self.layout.marks + word * WORD;
                let marks = self.load(at);
                if marks == u64::MAX {
                    self.store(at, 0);
                    continue;
                }
                for index in word * 64..limit.min(word * 64 + 64) {
                    let mark = 1 << (index % 64);
                    let marks = self.load(at);
                    if marks & mark != 0 {
                        self.store(at, marks & !mark);
                        continue;
                    }
                    let cell = block + index * CELL;
                    self.store(cell + WORD, self.free as u64);
                    self.free = cell;
                    self.store(cell, DEAD);
                    free += 1;
                }
            }
            limit = self.layout.cells;
            block = self.follow(block + self.layout.next);
        }
        free
    }
}

impl Drop for InlineHeap {
    fn drop(&mut self) {
        for chunk in &self.chunks {
            // SAFETY: it was allocated with this layout, and nothing refers to it any more.
            unsafe { dealloc(*chunk, self.chunk) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_block_fit_into_it() {
        for kib in [1, 2, 32, 1024] {
            let layout = BlockLayout::new(kib << 10);
            assert!(layout.next + 2 * WORD <= layout.bytes, "{layout:?}");
            assert!(layout.bytes - layout.next < 2 * WORD + 3 * CELL, "{layout:?}");
        }
        // As in Emacs on a machine of 64 bits.
        assert_eq!(BlockLayout::new(1 << 10).cells, 62);
    }

    #[test]
    fn dead_cells_are_free_after_a_sweep_and_live_ones_are_not() {
        const CELLS: usize = 1_000;
        let mut random = Random::new(1);
        for is_shuffled in [false, true] {
            let shuffle = is_shuffled.then_some(&mut random);
            let mut heap = InlineHeap::new(CELLS, 1 << 10, shuffle).expect("allocate blocks");
            heap.grow(CELLS).expect("make a chain");
            assert_eq!((heap.mark(), heap.sweep()), (CELLS, 0));
            let left = heap.thin(&mut Random::new(2));
            assert!((400..600).contains(&left), "{left}");
            assert_eq!((heap.mark(), heap.sweep()), (left, CELLS - left));
            // Free cells are used before others, and a second chain keeps no other cell.
            heap.grow(CELLS - left).expect("use free cells");
            assert_eq!(heap.free, 0);
            assert_eq!((heap.mark(), heap.sweep()), (CELLS, 0));
            heap.drop_root();
            assert_eq!((heap.mark(), heap.sweep()), (0, CELLS));
            heap.grow(CELLS).expect("use free cells");
            assert_eq!((heap.mark(), heap.sweep()), (CELLS, 0));
        }
    }

    #[test]
    fn heap_that_is_full_reports_it() {
        let mut heap = InlineHeap::new(10, 1 << 10, None).expect("allocate blocks");
        let error = heap.grow(CHUNK_BLOCKS * 62 + 1).expect_err("use more cells than there are");
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        assert!(InlineHeap::new(10, 1000, None).is_err());
    }
}
