//! The results that are kept: a heap, which collects in steps.

use std::collections::VecDeque;
use std::time::Duration;

use minder_cells::{Error, Heap, HeapConfig, HeapStats, Root, Step, View};

/// The results that are kept of each server.
const KEPT: usize = 3;

/// A collection begins when this much was kept since the last one.
const COLLECT_BYTES: usize = 4 << 20;

/// The time of one step of a collection.
const STEP: Duration = Duration::from_micros(500);

/// A heap with the last results of each server.
pub(crate) struct Results {
    heap: Heap,
    /// The bytes that were kept since the last collection.
    recent_bytes: usize,
    is_collecting: bool,
}

impl Results {
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self { heap: Heap::new(HeapConfig::new())?, recent_bytes: 0, is_collecting: false })
    }

    /// Copies a result into the heap. The oldest result of the same server is released.
    pub(crate) fn keep(
        &mut self,
        result: View<'_>,
        bytes: usize,
        kept: &mut VecDeque<Root>,
    ) -> Result<(), Error> {
        kept.push_back(self.heap.mutate(|cells| {
            let copy = cells.copy(result)?;
            cells.root(copy)
        })?);
        if kept.len() > KEPT {
            kept.pop_front().map(|oldest| self.heap.release(oldest));
        }
        self.recent_bytes += bytes;
        Ok(())
    }

    /// Does one step of a collection, if one is due. Returns whether there is more to do.
    pub(crate) fn collect_some(&mut self) -> Result<bool, Error> {
        if !self.is_collecting && self.recent_bytes < COLLECT_BYTES {
            return self.heap.maintain(STEP);
        }
        if !self.is_collecting {
            self.recent_bytes = 0;
        }
        self.is_collecting = self.heap.step(STEP)? == Step::Unfinished;
        Ok(true)
    }

    pub(crate) fn stats(&self) -> HeapStats {
        self.heap.stats()
    }
}
