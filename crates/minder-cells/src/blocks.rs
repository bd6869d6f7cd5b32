//! Blocks of cells, their bits, and where the next cells are allocated.
//!
//! Two bitmaps have a bit for each cell. In `allocated` it is 1 for cells that may be in use: those that the
//! last collection found, and every run that was given out since. In `marked` it is 1 for cells that the
//! collection in progress has found. The sweep swaps the two, and reads one byte for each block.
//!
//! Cells are given out many at a time: single ones from the free cells of a word of the bitmap, several ones
//! from a run of free cells between two that are in use, or from an empty block. So the bits are set once
//! for all of them, not once for a cell. What is left of them at a collection is free again.

use std::ops::Range;

use crate::bitmap::Bitmap;
use crate::error::{Error, Result};
use crate::space::{CELL_BYTES, Cell, Space, prefetch};
use crate::word::Word;

/// The cells of a block: 64 KiB. Miri, which interprets, has smaller ones.
pub(crate) const BLOCK_CELLS: usize = if cfg!(miri) { 256 } else { 4096 };
/// The blocks that are committed at once: 4 MiB.
const COMMIT_BLOCKS: usize = 64;
/// The cells before or after a pair within which its second word is visited at once.
const NEAR: u32 = 64;
/// The pairs that are compared at once, when pairs may be in order: two lines of most caches.
const PART: usize = 8;
/// The cells before or after pairs in order that the processor prefetches.
const AHEAD: usize = 128;
/// The number of runs that are tried for several cells, before they get a block.
const TRIES: usize = 16;

/// The use of a block since the last sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockState {
    /// No cell of it is in use.
    Empty,
    /// Some cells are in use, and the others were not given out yet.
    Partial,
    /// All its cells were given out, or they are in use.
    Taken,
}

/// Free cells for values that need one: 64 at a time, in one word of the bitmap.
#[derive(Clone, Copy, Debug, Default)]
struct Single {
    /// The index of the first cell that the word stands for.
    base: usize,
    /// The free cells among the 64.
    free: u64,
    /// The words of the same block that come next: the first cell, and the end.
    next: usize,
    end: usize,
}

/// The cells of a heap.
pub(crate) struct Blocks {
    space: Space,
    allocated: Bitmap,
    marked: Bitmap,
    /// For each block, whether the collection in progress has found a cell of it.
    is_live: Vec<bool>,
    states: Vec<BlockState>,
    /// For each block, whether its memory may be in use by this process.
    is_resident: Vec<bool>,
    limit_blocks: usize,
    huge_pages: bool,
    /// `true` if new cells count as found.
    is_marking: bool,
    /// The free cells for values that need one, and the run for values that need several.
    single: Single,
    several: Range<usize>,
    /// All blocks before are not empty.
    empty_from: usize,
    /// The cells before were given out or are in use, as far as they are in blocks with free cells.
    partial_from: usize,
    /// The bits of `marked` before are 0. All others may be those of an earlier collection.
    cleared: usize,
    /// The blocks that were given out since the last sweep, as whole ones or in parts.
    given_out: usize,
    /// Those that were given out between the last two sweeps.
    given_out_before: usize,
}

impl Blocks {
    /// Reserves address space for this many bytes, rounded up to whole blocks.
    pub(crate) fn reserve(limit_bytes: usize, huge_pages: bool) -> Result<Self> {
        let limit_blocks = limit_bytes.div_ceil(BLOCK_CELLS * CELL_BYTES).max(1);
        let space = Space::reserve(limit_blocks * BLOCK_CELLS).map_err(Error::Memory)?;
        Ok(Self {
            space,
            allocated: Bitmap::default(),
            marked: Bitmap::default(),
            is_live: Vec::new(),
            states: Vec::new(),
            is_resident: Vec::new(),
            limit_blocks,
            huge_pages,
            is_marking: false,
            single: Single::default(),
            several: 0..0,
            empty_from: 0,
            partial_from: 0,
            cleared: 0,
            given_out: 0,
            given_out_before: 0,
        })
    }

    #[inline]
    pub(crate) fn cells(&self) -> &[Cell] {
        self.space.cells()
    }

    #[inline]
    pub(crate) fn cells_mut(&mut self) -> &mut [Cell] {
        self.space.cells_mut()
    }

    /// Returns the number of blocks that were ever used.
    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    pub(crate) fn limit_bytes(&self) -> usize {
        self.limit_blocks * BLOCK_CELLS * CELL_BYTES
    }

    /// Returns the blocks that will probably be used until the next sweep: as many as between two sweeps.
    pub(crate) fn needed(&self) -> usize {
        self.given_out.max(self.given_out_before)
    }

    /// Returns the blocks that were given out since the last sweep.
    pub(crate) fn given_out(&self) -> usize {
        self.given_out
    }

    /// Returns the blocks whose memory may be in use by this process.
    pub(crate) fn resident(&self) -> usize {
        self.is_resident.iter().filter(|is_resident| **is_resident).count()
    }

    /// Counts the cells that the last collection has found, and those that were given out since.
    pub(crate) fn count_allocated(&self) -> u64 {
        crate::space::count_ones(self.allocated.words(0..self.len() * BLOCK_CELLS))
    }

    /// Allocates a cell. Returns its index.
    #[inline]
    pub(crate) fn allocate_one(&mut self) -> Result<usize> {
        if self.single.free == 0 {
            self.next_word()?;
        }
        let index = self.single.base + self.single.free.trailing_zeros() as usize;
        self.single.free &= self.single.free - 1;
        Ok(index)
    }

    /// Allocates cells with successive indices. Returns the first index.
    #[inline]
    pub(crate) fn allocate(&mut self, count: usize) -> Result<usize> {
        match count {
            1 => self.allocate_one(),
            _ if count <= self.several.len() => {
                let index = self.several.start;
                self.several.start += count;
                Ok(index)
            }
            _ => self.allocate_several(count),
        }
    }

    /// Finds the next 64 cells of which some are free.
    #[cold]
    fn next_word(&mut self) -> Result<()> {
        loop {
            while self.single.next < self.single.end {
                let base = self.single.next;
                self.single.next += 64;
                let free = self.allocated.fill_word(base);
                if free != 0 {
                    if self.is_marking {
                        self.marked.insert_word(base, free);
                        self.is_live[base / BLOCK_CELLS] = true;
                    }
                    self.single.base = base;
                    self.single.free = free;
                    return Ok(());
                }
            }
            let block = match self.find_empty().or_else(|| self.next_partial()) {
                Some(block) => block,
                None => {
                    self.add_blocks(1)?;
                    self.len() - 1
                }
            };
            self.take(block);
            self.single.next = block * BLOCK_CELLS;
            self.single.end = self.single.next + BLOCK_CELLS;
        }
    }

    #[cold]
    fn allocate_several(&mut self, count: usize) -> Result<usize> {
        if count > BLOCK_CELLS {
            return self.allocate_blocks(count);
        }
        for attempt in 0.. {
            if self.several.len() >= count {
                break;
            }
            // What is left of the run stays free, and can be used after the next sweep.
            let wants_block = attempt >= TRIES || count > BLOCK_CELLS / 16;
            let block = if wants_block { self.take_block()? } else { None };
            self.several = match block {
                Some(block) => block,
                None => self.next_run()?,
            };
        }
        let index = self.several.start;
        self.several.start += count;
        Ok(index)
    }

    /// Allocates more cells than a block has.
    fn allocate_blocks(&mut self, count: usize) -> Result<usize> {
        let wanted = count.div_ceil(BLOCK_CELLS);
        let mut first = self.empty_from;
        let mut found = 0;
        for block in self.empty_from..self.len() {
            if self.states[block] != BlockState::Empty {
                found = 0;
                first = block + 1;
                continue;
            }
            found += 1;
            if found == wanted {
                break;
            }
        }
        if found < wanted {
            first = self.len() - found;
            self.add_blocks(wanted - found)?;
        }
        for block in first..first + wanted {
            self.take(block);
        }
        self.give_out(first * BLOCK_CELLS..first * BLOCK_CELLS + count);
        Ok(first * BLOCK_CELLS)
    }

    /// Returns a run: an empty block, then free cells between others, then a new block.
    #[cold]
    fn next_run(&mut self) -> Result<Range<usize>> {
        if let Some(block) = self.take_empty() {
            return Ok(block);
        }
        while let Some(block) = self.next_partial() {
            let end = (block + 1) * BLOCK_CELLS;
            let start = self.partial_from.max(block * BLOCK_CELLS);
            match self.allocated.next_zeros(start..end) {
                Some(run) => {
                    self.partial_from = run.end;
                    self.give_out(run.clone());
                    return Ok(run);
                }
                None => {
                    self.take(block);
                    self.partial_from = end;
                }
            }
        }
        self.take_block()?.ok_or(Error::HeapFull { limit_bytes: self.limit_bytes() })
    }

    /// Returns an empty block or a new one; `None` if there is none below the limit.
    fn take_block(&mut self) -> Result<Option<Range<usize>>> {
        if let Some(block) = self.take_empty() {
            return Ok(Some(block));
        }
        match self.add_blocks(1) {
            Ok(()) => Ok(self.take_empty()),
            Err(Error::HeapFull { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Finds the first empty block.
    fn find_empty(&mut self) -> Option<usize> {
        let rest = self.states.get(self.empty_from..)?;
        let offset = rest.iter().position(|state| *state == BlockState::Empty);
        self.empty_from += offset.unwrap_or(rest.len());
        offset.map(|_| self.empty_from)
    }

    fn take_empty(&mut self) -> Option<Range<usize>> {
        let block = self.find_empty()?;
        self.take(block);
        let run = block * BLOCK_CELLS..(block + 1) * BLOCK_CELLS;
        self.give_out(run.clone());
        Some(run)
    }

    /// Returns the next block with free cells.
    fn next_partial(&mut self) -> Option<usize> {
        let from = self.partial_from / BLOCK_CELLS;
        let offset = self.states.get(from..)?.iter().position(|state| *state == BlockState::Partial);
        match offset {
            Some(offset) => Some(from + offset),
            None => {
                self.partial_from = self.len() * BLOCK_CELLS;
                None
            }
        }
    }

    fn take(&mut self, block: usize) {
        self.states[block] = BlockState::Taken;
        self.is_resident[block] = true;
        self.given_out += 1;
    }

    /// Notes that these cells may be in use.
    fn give_out(&mut self, run: Range<usize>) {
        if self.is_marking {
            // What is made during a collection outlives it.
            self.mark_run(run.clone());
        }
        self.allocated.insert_range(run);
    }

    /// Adds empty blocks at the end.
    fn add_blocks(&mut self, count: usize) -> Result<()> {
        let len = self.len() + count;
        if len > self.limit_blocks {
            return Err(Error::HeapFull { limit_bytes: self.limit_bytes() });
        }
        self.allocated.grow(len * BLOCK_CELLS)?;
        self.marked.grow(len * BLOCK_CELLS)?;
        for list in [&mut self.is_live, &mut self.is_resident] {
            list.try_reserve(count)?;
        }
        self.states.try_reserve(count)?;
        if len * BLOCK_CELLS > self.space.committed() {
            let blocks = len.next_multiple_of(COMMIT_BLOCKS).min(self.limit_blocks);
            self.space.commit(blocks * BLOCK_CELLS, self.huge_pages).map_err(Error::Memory)?;
        }
        self.is_live.resize(len, false);
        self.is_resident.resize(len, false);
        // The new bits of `marked` are 0.
        if self.cleared == self.states.len() * BLOCK_CELLS {
            self.cleared = len * BLOCK_CELLS;
        }
        self.empty_from = self.empty_from.min(self.states.len());
        self.states.resize(len, BlockState::Empty);
        Ok(())
    }

    /// Clears marks of an earlier collection, at most those of this many blocks. Returns whether all are
    /// cleared.
    pub(crate) fn clear_marks(&mut self, blocks: usize) -> bool {
        let len = self.len() * BLOCK_CELLS;
        let end = self.cleared.saturating_add(blocks.saturating_mul(BLOCK_CELLS)).min(len);
        self.marked.clear(self.cleared..end);
        self.cleared = end;
        self.cleared == len
    }

    /// Begins a collection. The cells of the current runs that were not allocated are free after it.
    pub(crate) fn start_marking(&mut self) {
        while !self.clear_marks(usize::MAX) {}
        self.is_live.fill(false);
        self.single = Single::default();
        self.several = 0..0;
        self.is_marking = true;
    }

    pub(crate) fn is_marking(&self) -> bool {
        self.is_marking
    }

    #[inline]
    pub(crate) fn is_marked(&self, index: usize) -> bool {
        self.marked.get(index)
    }

    /// Marks a cell. Returns whether it was not marked.
    #[inline]
    pub(crate) fn mark(&mut self, index: usize) -> bool {
        let is_new = self.marked.insert(index);
        if is_new {
            self.is_live[index / BLOCK_CELLS] = true;
        }
        is_new
    }

    /// Marks about `most` pairs: this one, and along the second words as long as the next pair is at most
    /// [`NEAR`] cells away and was not marked. Calls `push` with each first word. Returns the number of
    /// pairs, and the second word of the last one if that was not followed.
    ///
    /// The bits of 64 cells stay in a register meanwhile: neighbours are usually in the same word. Pairs that
    /// are [`in_order`] are marked together, so that no load waits for the one before. This is tried for the
    /// first word, and after one that became full: in other chains it would cost more than it gains.
    #[inline]
    pub(crate) fn mark_pairs(
        &mut self,
        first: Word,
        most: u64,
        mut push: impl FnMut(Word) -> Result<()>,
    ) -> Result<(u64, Option<Word>)> {
        let cells = self.space.cells();
        let mut current = first;
        let mut base = current.index() as usize & !63;
        let mut old = self.marked.word(base);
        let mut bits = old;
        let mut is_full = true;
        let mut count = 0;
        let rest = loop {
            let index = current.index() as usize;
            let bit = 1 << (index % 64);
            if bits & bit != 0 {
                break Ok(None);
            }
            let last = if bits == 0 && is_full { in_order(cells, current) } else { None };
            let second = if let Some(second) = last {
                bits = u64::MAX;
                second
            } else {
                bits |= bit;
                let [first, second] = cells[index].map(Word);
                if let Err(error) = push(first) {
                    break Err(error);
                }
                second
            };
            if !second.is_pair_near(current, NEAR) {
                break Ok(Some(second));
            }
            current = second;
            let next = current.index() as usize & !63;
            if next != base {
                self.marked.set_word(base, bits);
                self.is_live[base / BLOCK_CELLS] = true;
                count += u64::from((bits ^ old).count_ones());
                base = next;
                is_full = bits == u64::MAX;
                old = self.marked.word(base);
                bits = old;
                if count >= most {
                    break Ok(Some(current));
                }
            }
        };
        if bits != old {
            self.marked.set_word(base, bits);
            self.is_live[base / BLOCK_CELLS] = true;
            count += u64::from((bits ^ old).count_ones());
        }
        rest.map(|rest| (count, rest))
    }

    /// Marks cells with successive indices.
    pub(crate) fn mark_run(&mut self, run: Range<usize>) {
        if !run.is_empty() {
            self.is_live[run.start / BLOCK_CELLS..=(run.end - 1) / BLOCK_CELLS].fill(true);
            self.marked.insert_range(run);
        }
    }

    /// Tells the processor that a cell and its mark will be read soon.
    #[inline]
    pub(crate) fn prefetch(&self, index: usize) {
        crate::space::prefetch(self.space.cells(), index);
        self.marked.prefetch(index);
    }

    /// Ends a collection: cells without a mark are free. No cell is read or written.
    pub(crate) fn sweep(&mut self) {
        std::mem::swap(&mut self.allocated, &mut self.marked);
        self.cleared = 0;
        for (state, is_live) in self.states.iter_mut().zip(&self.is_live) {
            *state = if *is_live { BlockState::Partial } else { BlockState::Empty };
        }
        self.single = Single::default();
        self.several = 0..0;
        self.empty_from = 0;
        self.partial_from = 0;
        self.given_out_before = self.given_out;
        self.given_out = 0;
        self.is_marking = false;
    }

    /// Gives up a collection, if there is one. Everything stays allocated.
    pub(crate) fn stop_marking(&mut self) {
        if self.is_marking {
            self.is_marking = false;
            self.cleared = 0;
        }
    }

    /// Gives the memory of at most `count` empty blocks back to the system, except that of the first `keep`
    /// ones. Returns how many were given back.
    pub(crate) fn release(&mut self, keep: usize, count: usize) -> Result<usize> {
        let mut kept = 0;
        let mut released = 0;
        let mut block = self.empty_from;
        while block < self.len() && released < count {
            if self.states[block] != BlockState::Empty || !self.is_resident[block] {
                block += 1;
                continue;
            }
            if kept < keep {
                kept += 1;
                block += 1;
                continue;
            }
            // Neighbours go with one system call.
            let is_free = |at: &usize| self.states[*at] == BlockState::Empty && self.is_resident[*at];
            let most = self.len().min(block + (count - released));
            let end = (block..most).find(|at| !is_free(at)).unwrap_or(most);
            self.space.release(block * BLOCK_CELLS..end * BLOCK_CELLS).map_err(Error::Memory)?;
            self.is_resident[block..end].fill(false);
            released += end - block;
            block = end;
        }
        Ok(released)
    }
}

/// Returns the second word of the last of 64 pairs, if this pair is the first one of them: each is the second
/// word of its neighbour, upwards or downwards, they are the cells of one word of a bitmap, and no first
/// word is in cells. Values that were made one after the other often are like this.
#[inline(never)]
fn in_order(cells: &[Cell], pair: Word) -> Option<Word> {
    let index = pair.index() as usize;
    let mut next = pair;
    match index % 64 {
        0 => {
            for at in (index..index + 64).step_by(PART) {
                prefetch_part(cells, at + AHEAD);
                next = part_in_order(cells, at, next.step(1))?;
            }
        }
        63 => {
            for at in (index - 63..index + 1).step_by(PART).rev() {
                prefetch_part(cells, at.wrapping_sub(AHEAD));
                next = next.step(-(PART as i64));
                part_in_order(cells, at, next)?;
            }
        }
        _ => return None,
    }
    Some(next)
}

/// Returns the second word of the last of these pairs, if that of the first is `next` and each other one has
/// the word that follows.
#[inline]
fn part_in_order(cells: &[Cell], at: usize, mut next: Word) -> Option<Word> {
    let mut difference = 0;
    for [first, second] in cells.get(at..at + PART)? {
        difference |= (second ^ next.0) | u64::from(Word(*first).is_in_cells());
        next = next.step(1);
    }
    (difference == 0).then(|| next.step(-1))
}

#[inline]
fn prefetch_part(cells: &[Cell], at: usize) {
    prefetch(cells, at);
    prefetch(cells, at.wrapping_add(PART / 2));
}
