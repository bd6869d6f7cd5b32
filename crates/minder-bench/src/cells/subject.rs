//! Heaps with a chain of cells, whose collections can be measured in parts.

use std::io;
use std::time::Duration;

use minder::ErrorKind;
use minder_cells::{Heap, HeapConfig, Root, Step};

use crate::error::{Error, Result};
use crate::random::Random;
use crate::sys::cells::InlineHeap;

/// A heap with one root: a chain of cells.
pub(super) trait Subject: std::fmt::Debug {
    /// Adds this many cells to the front of the chain.
    fn grow(&mut self, cells: usize) -> Result<()>;

    /// Takes about half of the cells out of the chain, at random. Returns the number of those that are left.
    fn thin(&mut self, random: &mut Random) -> Result<usize>;

    /// Does what has to be done before the root is dropped or a collection begins, and is not measured.
    fn prepare(&mut self) -> Result<()>;

    /// Forgets the chain.
    fn drop_root(&mut self) -> Result<()>;

    /// Begins a collection: marks the cells of the chain.
    fn mark(&mut self) -> Result<()>;

    /// Ends the collection: what has no mark is free.
    fn sweep(&mut self) -> Result<()>;
}

impl Subject for InlineHeap {
    fn grow(&mut self, cells: usize) -> Result<()> {
        self.grow(cells).map_err(|error| Error::from_io("allocate cells", None, &error))
    }

    fn thin(&mut self, random: &mut Random) -> Result<usize> {
        Ok(self.thin(random))
    }

    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    fn drop_root(&mut self) -> Result<()> {
        self.drop_root();
        Ok(())
    }

    fn mark(&mut self) -> Result<()> {
        std::hint::black_box(self.mark());
        Ok(())
    }

    fn sweep(&mut self) -> Result<()> {
        std::hint::black_box(self.sweep());
        Ok(())
    }
}

/// The heap of `minder`.
#[derive(Debug)]
pub(super) struct OwnHeap {
    heap: Heap,
    root: Root,
    /// Whether the marks of the last collection are cleared before the next one begins.
    is_maintained: bool,
    /// The steps of a collection of this chain. The last one sweeps, after up to 2,000 marks.
    steps: usize,
}

impl OwnHeap {
    /// Reserves a heap that has room for this many cells twice.
    pub(super) fn new(cells: usize, is_maintained: bool) -> Result<Self> {
        let bytes = cells.saturating_mul(2 * 16).saturating_add(1 << 20);
        let mut heap = Heap::new(HeapConfig::new().limit_bytes(bytes)).map_err(failed)?;
        let root = heap.mutate(|cells| cells.root(cells.nil())).map_err(failed)?;
        Ok(Self { heap, root, is_maintained, steps: 1 })
    }

    /// Changes the chain: `change` returns the new first cell.
    fn replace(
        &mut self,
        change: impl for<'h> FnOnce(
            &mut minder_cells::Mutator<'_, 'h>,
            minder_cells::Value<'h>,
        ) -> minder_cells::Result<minder_cells::Value<'h>>,
    ) -> Result<()> {
        let root = self.root;
        let changed: minder_cells::Result<()> = self.heap.mutate(|cells| {
            let chain = cells.get(root).unwrap_or_else(|| cells.nil());
            let chain = change(cells, chain)?;
            cells.set_root(root, chain);
            Ok(())
        });
        changed.map_err(failed)
    }
}

impl Subject for OwnHeap {
    #[inline(never)]
    fn grow(&mut self, count: usize) -> Result<()> {
        self.replace(|cells, mut chain| {
            let first = cells.int(0)?;
            for _ in 0..count {
                chain = cells.cons(first, chain)?;
            }
            Ok(chain)
        })
    }

    fn thin(&mut self, random: &mut Random) -> Result<usize> {
        let mut left = 0;
        self.replace(|cells, mut cell| {
            let nil = cells.nil();
            let mut chain = nil;
            let mut last = nil;
            while cell != nil {
                let (_, next) = cells.pair(cell)?;
                if random.below(2) == 0 {
                    left += 1;
                    if last == nil {
                        chain = cell;
                    } else {
                        cells.set_second(last, cell)?;
                    }
                    last = cell;
                }
                cell = next;
            }
            if last != nil {
                cells.set_second(last, nil)?;
            }
            Ok(chain)
        })?;
        Ok(left)
    }

    /// Counts the steps of a collection, so that no clock is read between the steps that are measured.
    fn prepare(&mut self) -> Result<()> {
        self.steps = 1;
        while self.heap.step(Duration::ZERO).map_err(failed)? == Step::Unfinished {
            self.steps += 1;
        }
        if self.is_maintained {
            self.heap.maintain(Duration::MAX).map_err(failed)?;
        }
        Ok(())
    }

    fn drop_root(&mut self) -> Result<()> {
        self.replace(|cells, _| Ok(cells.nil()))?;
        self.steps = 1;
        Ok(())
    }

    #[inline(never)]
    fn mark(&mut self) -> Result<()> {
        for _ in 1..self.steps {
            if self.heap.step(Duration::ZERO).map_err(failed)? == Step::Finished {
                return Err(failed(io::Error::other("the collection has fewer steps than the one before")));
            }
        }
        Ok(())
    }

    #[inline(never)]
    fn sweep(&mut self) -> Result<()> {
        match self.heap.step(Duration::ZERO).map_err(failed)? {
            Step::Finished => Ok(()),
            Step::Unfinished => {
                Err(failed(io::Error::other("the collection has more steps than the one before")))
            }
        }
    }
}

/// Describes an error of the heap.
fn failed(error: impl std::error::Error) -> Error {
    Error::new(ErrorKind::Exhausted, "use the heap of cells", None, &error.to_string())
}
