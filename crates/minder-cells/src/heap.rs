//! `Heap`: cells that a collection keeps if a root reaches them.

use std::time::{Duration, Instant};

use crate::blocks::{BLOCK_CELLS, Blocks};
use crate::build::{self, Cells};
use crate::error::Result;
use crate::mark::Marker;
use crate::roots::{Root, Roots};
use crate::space::{CELL_BYTES, Cell};
use crate::stats::HeapStats;
use crate::symbols::Symbols;
use crate::verify;
use crate::view::View;
use crate::word::{Kind, Word};

/// The largest heap: cells have numbers of 32 bits. Where addresses have 32 bits, it is half of them.
pub const LIMIT_BYTES_MAX: usize =
    if usize::BITS > 32 { (u32::MAX as usize).saturating_add(1).saturating_mul(CELL_BYTES) } else { 1 << 31 };
/// The values that are visited between two looks at the time.
const STEP_VALUES: u64 = 2_000;
/// The number of values that the barrier visits for each value that it adds to the stack: more than
/// that one.
const BARRIER_VISITS: u64 = 4;
/// The blocks whose bits are cleared between two looks at the time.
const CLEAR_BLOCKS: usize = 256;
/// The blocks whose memory is given back between two looks at the time.
const RELEASE_BLOCKS: usize = 16;

/// The limits and options of a heap.
///
/// ```
/// use minder_cells::{Heap, HeapConfig};
///
/// let heap = Heap::new(HeapConfig::new().limit_bytes(1 << 30).huge_pages(false).verify(true))?;
/// assert_eq!(heap.stats().used_bytes, 0);
/// # Ok::<(), minder_cells::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct HeapConfig {
    limit_bytes: usize,
    huge_pages: bool,
    verify: bool,
}

impl Default for HeapConfig {
    fn default() -> Self {
        let limit_bytes = if cfg!(miri) { 1 << 22 } else { LIMIT_BYTES_MAX / 8 };
        Self { limit_bytes, huge_pages: false, verify: false }
    }
}

impl HeapConfig {
    /// Returns the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the most bytes of cells, which are rounded up to blocks of 64 KiB. Default: 8 GiB. The address
    /// space is reserved at once, memory when it is used. [`LIMIT_BYTES_MAX`] is the greatest limit.
    pub fn limit_bytes(mut self, bytes: usize) -> Self {
        self.limit_bytes = bytes.min(LIMIT_BYTES_MAX);
        self
    }

    /// Asks for pages of 2 MiB (Linux, madvise(2), `MADV_HUGEPAGE`). Default: no.
    ///
    /// A heap of gigabytes is faster with them. But the first use of memory that the host of a virtual
    /// machine has not backed yet may take seconds.
    pub fn huge_pages(mut self, yes: bool) -> Self {
        self.huge_pages = yes;
        self
    }

    /// Compares each collection with a simple one, and panics if they
    /// differ. For tests: it takes many times as long. Default: no.
    pub fn verify(mut self, yes: bool) -> Self {
        self.verify = yes;
        self
    }
}

/// The result of a step: it tells whether the collection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// The next step continues it.
    Unfinished,
    /// It has ended.
    Finished,
}

/// A heap of cells, with a collector that marks and sweeps.
///
/// Values are made and changed in [`mutate`](Self::mutate), and read there or by [`get`](Self::get). No
/// collection happens meanwhile: the owner of the heap collects, by [`collect`](Self::collect) at once, or
/// by [`step`](Self::step) in parts. What no [`Root`] reaches is then free.
///
/// A collection marks what is reachable. The sweep that follows reads one byte for each block of 4,096
/// cells, and touches no cell, dead or alive.
///
/// ```
/// use minder_cells::{Heap, HeapConfig};
///
/// let mut heap = Heap::new(HeapConfig::new())?;
/// let list = heap.mutate(|cells| {
///     let mut list = cells.nil();
///     for number in (1..=3).rev() {
///         let number = cells.int(number)?;
///         list = cells.cons(number, list)?;
///     }
///     cells.root(list)
/// })?;
/// heap.collect()?;
/// assert_eq!(heap.get(list).expect("it is kept").to_lisp(), "(1 2 3)");
/// heap.release(list);
/// heap.collect()?;
/// assert_eq!(heap.stats().allocated_cells, 0);
/// # Ok::<(), minder_cells::Error>(())
/// ```
pub struct Heap {
    blocks: Blocks,
    roots: Roots,
    symbols: Symbols,
    marker: Marker,
    stats: HeapStats,
    config: HeapConfig,
}

impl Heap {
    /// Reserves address space for a heap.
    ///
    /// # Errors
    /// `Memory`: the system has no address space for the limit.
    pub fn new(config: HeapConfig) -> Result<Self> {
        Ok(Self {
            blocks: Blocks::reserve(config.limit_bytes, config.huge_pages)?,
            roots: Roots::default(),
            symbols: Symbols::default(),
            marker: Marker::default(),
            stats: HeapStats::default(),
            config,
        })
    }

    /// Returns the value of a root; `None` if it was released.
    pub fn get(&self, root: Root) -> Option<View<'_>> {
        Some(View::new(self.blocks.cells(), self.roots.get(root)?))
    }

    /// Releases a root. Returns `false` if it was released before.
    pub fn release(&mut self, root: Root) -> bool {
        self.roots.release(root)
    }

    /// Collects at once: everything that no root reaches is free afterwards. A collection in steps that has
    /// begun is given up, because it would keep what was made and dropped since.
    ///
    /// # Errors
    /// `Memory`: there is no memory for the stack of the collector. Nothing was freed.
    pub fn collect(&mut self) -> Result<()> {
        let begin = Instant::now();
        self.blocks.stop_marking();
        let result = self.start().and_then(|()| {
            while self.mark_some(u64::MAX)? == Step::Unfinished {}
            Ok(())
        });
        self.end_pause(begin, result)
    }

    /// Does a part of a collection that takes about this time, and begins one if there is none. The work
    /// between two looks at the clock takes some 100 us. The last part, which looks at the roots again and
    /// sweeps, is one pause; so is the first one, which looks at the roots.
    ///
    /// Values can be made and changed between the steps: what is made is kept by the collection in progress,
    /// and what is stored in a value or a root is marked when it is stored (a barrier at insertion), with a
    /// few other values. So a step never has to look at a value twice, and a collection ends however much is
    /// stored between its steps.
    ///
    /// The last pause also looks at each symbol, and at the texts of all if some are free. That takes 0.1 to
    /// 0.4 us each.
    ///
    /// ```
    /// use minder_cells::{Heap, HeapConfig, Step};
    /// use std::time::Duration;
    ///
    /// let mut heap = Heap::new(HeapConfig::new())?;
    /// while heap.step(Duration::from_micros(500))? == Step::Unfinished {
    ///     // The host does something else.
    /// }
    /// assert_eq!(heap.stats().collections, 1);
    /// # Ok::<(), minder_cells::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`collect`](Self::collect). The collection is given up.
    pub fn step(&mut self, budget: Duration) -> Result<Step> {
        let begin = Instant::now();
        let result = self.step_until(begin, budget);
        self.end_pause(begin, result)
    }

    /// Does what a collection leaves for later: clears the bits of the last one, and gives the memory of
    /// empty blocks back to the system, except about as many as were used since the last collection, or
    /// between that and the one before. Returns whether there is more to do than fits into this time. Without
    /// it, the next collection clears the bits, and no memory is given back.
    ///
    /// # Errors
    /// The system does not take memory back.
    pub fn maintain(&mut self, budget: Duration) -> Result<bool> {
        let begin = Instant::now();
        if self.blocks.is_marking() {
            return Ok(false);
        }
        while !self.blocks.clear_marks(CLEAR_BLOCKS) {
            if begin.elapsed() >= budget {
                return Ok(true);
            }
        }
        let keep = self.blocks.needed();
        while self.blocks.release(keep, RELEASE_BLOCKS)? > 0 {
            if begin.elapsed() >= budget {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns statistics. Counting the cells reads a bit for each.
    #[must_use]
    pub fn stats(&self) -> HeapStats {
        let block_bytes = BLOCK_CELLS * CELL_BYTES;
        HeapStats {
            allocated_cells: self.blocks.count_allocated(),
            resident_bytes: self.blocks.resident() * block_bytes,
            used_bytes: self.blocks.len() * block_bytes,
            recent_bytes: self.blocks.given_out() * block_bytes,
            roots: self.roots.len(),
            symbols: self.symbols.len(),
            ..self.stats
        }
    }

    fn step_until(&mut self, begin: Instant, budget: Duration) -> Result<Step> {
        self.start()?;
        loop {
            if self.mark_some(STEP_VALUES)? == Step::Finished {
                return Ok(Step::Finished);
            }
            if begin.elapsed() >= budget {
                return Ok(Step::Unfinished);
            }
        }
    }

    /// Begins a collection, unless there is one.
    fn start(&mut self) -> Result<()> {
        if self.blocks.is_marking() {
            return Ok(());
        }
        self.blocks.start_marking();
        self.marker.reset();
        self.push_roots()
    }

    fn push_roots(&mut self) -> Result<()> {
        self.roots.words().try_for_each(|word| self.marker.push(word))
    }

    /// Visits some values, and sweeps if all were visited.
    fn mark_some(&mut self, limit: u64) -> Result<Step> {
        if !self.marker.run(&mut self.blocks, limit)? {
            return Ok(Step::Unfinished);
        }
        // Roots that were made during the collection may refer to values that were not visited.
        self.push_roots()?;
        while !self.marker.run(&mut self.blocks, u64::MAX)? {}
        self.finish();
        Ok(Step::Finished)
    }

    fn finish(&mut self) {
        if self.config.verify {
            verify::check(&self.blocks, self.roots.words());
        }
        let blocks = &self.blocks;
        self.symbols.retain(blocks.cells(), |index| blocks.is_marked(index as usize));
        self.blocks.sweep();
        self.stats.collections += 1;
        self.stats.found_values = self.marker.visited();
        self.marker.shrink();
    }

    /// Counts a pause. A collection that failed is given up.
    fn end_pause<T>(&mut self, begin: Instant, result: Result<T>) -> Result<T> {
        if result.is_err() {
            self.blocks.stop_marking();
            self.marker.reset();
        }
        self.stats.add_pause(begin.elapsed());
        result
    }

    pub(crate) fn roots(&mut self) -> &mut Roots {
        &mut self.roots
    }

    #[inline]
    pub(crate) fn cells(&self) -> &[Cell] {
        self.blocks.cells()
    }

    #[inline]
    pub(crate) fn root_word(&self, root: Root) -> Option<Word> {
        self.roots.get(root)
    }

    /// Returns the symbol of this text.
    #[inline]
    pub(crate) fn intern(&mut self, text: &str) -> Result<Word> {
        let mut store = Store { blocks: &mut self.blocks, marker: &mut self.marker };
        let make = |store: &mut Store<'_>| build::text(store, Kind::Symbol, text);
        let word = self.symbols.intern(text, &mut store, |store| store.blocks.cells(), make)?;
        // It may have been made before the collection in progress, which would otherwise free it.
        store.refer(word)?;
        Ok(word)
    }

    /// Returns the symbol that this JSON probably begins with: see [`Symbols::predict`].
    #[inline]
    pub(crate) fn predict(&mut self, json: &[u8]) -> Result<Option<(Word, usize)>> {
        let symbol = self.symbols.predict(json, self.blocks.cells());
        if let Some((word, _)) = symbol {
            self.store().refer(word)?;
        }
        Ok(symbol)
    }

    #[inline]
    pub(crate) fn store(&mut self) -> Store<'_> {
        Store { blocks: &mut self.blocks, marker: &mut self.marker }
    }
}

impl std::fmt::Debug for Heap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Heap")
            .field("config", &self.config)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

impl Cells for Heap {
    #[inline]
    fn allocate(&mut self, count: usize) -> Result<usize> {
        self.blocks.allocate(count)
    }

    #[inline]
    fn cells_mut(&mut self) -> &mut [Cell] {
        self.blocks.cells_mut()
    }

    #[inline]
    fn refer_all(&mut self, words: &[u64]) -> Result<()> {
        self.store().refer_all(words)
    }
}

/// The part of a heap that makes values.
pub(crate) struct Store<'a> {
    blocks: &'a mut Blocks,
    marker: &'a mut Marker,
}

impl Cells for Store<'_> {
    #[inline]
    fn allocate(&mut self, count: usize) -> Result<usize> {
        self.blocks.allocate(count)
    }

    #[inline]
    fn cells_mut(&mut self) -> &mut [Cell] {
        self.blocks.cells_mut()
    }

    /// The barrier: during a collection, what a value refers to is marked when it is stored.
    #[inline]
    fn refer_all(&mut self, words: &[u64]) -> Result<()> {
        if self.blocks.is_marking() { self.mark_stored(words) } else { Ok(()) }
    }
}

impl Store<'_> {
    /// Visits more than it adds to the stack. Otherwise a program that stores faster than its steps visit
    /// would fill the memory with a stack, and the collection would never end.
    #[cold]
    fn mark_stored(&mut self, words: &[u64]) -> Result<()> {
        for word in words.iter().map(|word| Word(*word)) {
            if word.is_in_cells() && !self.blocks.is_marked(word.index() as usize) {
                self.marker.push(word)?;
                self.marker.run(self.blocks, BARRIER_VISITS)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    const BOXES: usize = 24;
    /// Two blocks for single cells and for several, and as many during a collection.
    const LIMIT: usize = 4 * BLOCK_CELLS * CELL_BYTES;

    /// A pair, and a vector of pairs, each of which has a box with a number.
    fn heap_with_boxes(limit_bytes: usize) -> (Heap, [Root; 2]) {
        let config = HeapConfig::new().limit_bytes(limit_bytes).verify(true);
        let mut heap = Heap::new(config).expect("reserve a heap");
        let roots = heap.mutate(|cells| {
            let pairs = (0..BOXES).map(|number| {
                let text = cells.string(&format!("box {number}"))?;
                let boxed = cells.cons(text, cells.nil())?;
                cells.cons(boxed, cells.nil())
            });
            let pairs = pairs.collect::<Result<Vec<_>>>()?;
            let all = cells.vector(&pairs)?;
            let target = cells.cons(cells.nil(), cells.nil())?;
            Ok::<_, Error>([cells.root(target)?, cells.root(all)?])
        });
        (heap, roots.expect("the heap has room"))
    }

    /// Moves a box out of its pair, to the front of the list in the other root.
    fn move_box(heap: &mut Heap, [target, all]: [Root; 2], number: usize) {
        let moved = heap.mutate(|cells| {
            let [target, all] = [target, all].map(|root| cells.get(root).expect("it is a root"));
            let pair = cells.element(all, number)?;
            let (boxed, _) = cells.pair(pair)?;
            let nil = cells.nil();
            cells.set_first(pair, nil)?;
            let (list, _) = cells.pair(target)?;
            let list = cells.cons(boxed, list)?;
            cells.set_first(target, list)
        });
        moved.expect("the heap has room");
    }

    /// Uses all free cells, and panics unless the list has these boxes.
    fn check_boxes(heap: &mut Heap, [target, _]: [Root; 2], numbers: &[usize]) {
        heap.mutate(|cells| while cells.float(0.5).is_ok() {});
        let expected: Vec<String> =
            numbers.iter().rev().map(|number| format!("(\"box {number}\")")).collect();
        let list = heap.get(target).expect("it is a root").to_lisp();
        assert_eq!(list, format!("(({}))", expected.join(" ")));
    }

    #[test]
    fn a_box_that_moves_is_kept_wherever_the_collection_is_interrupted() {
        let step = if cfg!(miri) { 60 } else { 1 };
        for visits in (0..5 * BOXES).step_by(step) {
            for number in (0..BOXES).step_by(if cfg!(miri) { 20 } else { 5 }) {
                let (mut heap, roots) = heap_with_boxes(LIMIT);
                heap.start().expect("memory for the stack");
                let done =
                    (0..visits).any(|_| heap.mark_some(1).expect("memory for the stack") == Step::Finished);
                move_box(&mut heap, roots, number);
                while !done && heap.mark_some(1).expect("memory for the stack") == Step::Unfinished {}
                assert_eq!(heap.stats().collections, 1);
                check_boxes(&mut heap, roots, &[number]);
            }
        }
    }

    #[test]
    fn boxes_that_move_after_each_visit_are_kept() {
        let (mut heap, roots) = heap_with_boxes(LIMIT);
        heap.start().expect("memory for the stack");
        for number in 0..BOXES {
            assert_eq!(heap.mark_some(1).expect("memory for the stack"), Step::Unfinished);
            move_box(&mut heap, roots, number);
        }
        while heap.mark_some(1).expect("memory for the stack") == Step::Unfinished {}
        check_boxes(&mut heap, roots, &(0..BOXES).collect::<Vec<_>>());
    }

    /// As if there were no memory for the stack.
    fn give_up(heap: &mut Heap) {
        let failed: Result<()> = heap.end_pause(Instant::now(), Err(Error::Invalid { expected: "memory" }));
        assert!(failed.is_err() && !heap.blocks.is_marking());
    }

    #[test]
    fn a_collection_that_is_given_up_frees_nothing_and_the_next_one_is_exact() {
        for visits in (0..2 * BOXES).step_by(if cfg!(miri) { 40 } else { 1 }) {
            let (mut heap, roots) = heap_with_boxes(if cfg!(miri) { LIMIT } else { 1 << 20 });
            let text = "x".repeat(if cfg!(miri) { 1_000 } else { 100_000 });
            heap.collect().expect("collect");
            let before = heap.stats().allocated_cells;
            heap.start().expect("memory for the stack");
            for _ in 0..visits {
                let _ = heap.mark_some(1).expect("memory for the stack");
            }
            // New blocks during the collection, and others after it.
            heap.mutate(|cells| cells.string(&text).map(drop)).expect("the heap has room");
            let allocated = heap.stats().allocated_cells;
            give_up(&mut heap);
            assert_eq!(heap.stats().allocated_cells, allocated);
            heap.mutate(|cells| cells.string(&text).map(drop)).expect("the heap has room");
            move_box(&mut heap, roots, 3);
            if visits % 2 == 0 {
                assert!(!heap.maintain(Duration::MAX).expect("maintain"));
            }
            heap.collect().expect("collect");
            // The list has one pair more.
            assert_eq!(heap.stats().allocated_cells, before + 1);
            check_boxes(&mut heap, roots, &[3]);
        }
    }

    #[test]
    fn table_of_symbols_becomes_smaller_when_most_of_them_are_free() {
        const MANY: usize = if cfg!(miri) { 300 } else { 10_000 };
        let mut heap = Heap::new(HeapConfig::new().verify(true)).expect("reserve a heap");
        let made: Result<Root> = heap.mutate(|cells| {
            for number in 0..MANY {
                cells.symbol(&format!("symbol {number}"))?;
            }
            let kept = cells.symbol("symbol 7")?;
            cells.root(kept)
        });
        let root = made.expect("the heap has room");
        let before = heap.symbols.table_bytes();
        heap.collect().expect("collect");
        assert!(8 * heap.symbols.table_bytes() < before, "{} of {before} bytes", heap.symbols.table_bytes());
        let again: Result<bool> = heap.mutate(|cells| Ok(cells.get(root) == Some(cells.symbol("symbol 7")?)));
        assert!(again.expect("the heap has room"));
    }
}
