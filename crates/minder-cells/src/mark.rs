//! Marking: finds all cells that can be reached, with a stack in memory.
//!
//! A word waits in a short queue between the stack and its visit. When it enters the queue, the processor is
//! asked to prefetch its cell, so that the visit does not wait for memory.

use crate::blocks::Blocks;
use crate::error::Result;
use crate::space::words;
use crate::word::{Kind, Word, cells_of};

/// The words in the queue. Longer queues gain little.
const QUEUE: usize = 16;
/// The pairs that are visited one after the other before the caller may look at the time.
const CHAIN: u64 = 2_000;
/// The words of a vector or a map that are looked at before something else is visited.
const SLICE: usize = 32;

/// Words of a vector or a map that were not looked at yet.
#[derive(Clone, Copy, Debug)]
struct Rest {
    at: usize,
    end: usize,
}

/// A collection in progress.
#[derive(Default)]
pub(crate) struct Marker {
    stack: Vec<Word>,
    rests: Vec<Rest>,
    queue: [Option<Word>; QUEUE],
    /// The place of the oldest word in the queue.
    oldest: usize,
    visited: u64,
}

impl Marker {
    /// Returns the number of values that were visited.
    pub(crate) fn visited(&self) -> u64 {
        self.visited
    }

    /// Forgets everything.
    pub(crate) fn reset(&mut self) {
        self.stack.clear();
        self.rests.clear();
        self.queue = [None; QUEUE];
        self.visited = 0;
    }

    /// Gives the memory of a large stack back.
    pub(crate) fn shrink(&mut self) {
        self.stack.shrink_to(1 << 12);
        self.rests.shrink_to(1 << 12);
    }

    /// Notes that this value is reachable.
    ///
    /// # Errors
    /// The system has no memory for the stack.
    #[inline]
    pub(crate) fn push(&mut self, word: Word) -> Result<()> {
        push(&mut self.stack, word)
    }

    /// Visits at most about this many values, where one that was visited before counts as well. Returns
    /// whether all were visited.
    ///
    /// # Errors
    /// The system has no memory for the stack.
    pub(crate) fn run(&mut self, blocks: &mut Blocks, limit: u64) -> Result<bool> {
        let begin = self.visited;
        let mut rounds = 0;
        while rounds + (self.visited - begin) < limit {
            rounds += 1;
            let next = self.stack.pop();
            if let Some(word) = next {
                blocks.prefetch(word.index() as usize);
            }
            let place = self.oldest;
            self.oldest = (place + 1) % QUEUE;
            match std::mem::replace(&mut self.queue[place], next) {
                Some(word) => self.visit(blocks, word)?,
                // The rest of the queue may have words.
                None if next.is_some() || self.queue.iter().any(Option::is_some) => (),
                None => match self.rests.pop() {
                    Some(rest) => self.scan(blocks, rest)?,
                    None => return Ok(true),
                },
            }
        }
        Ok(false)
    }

    #[inline]
    fn visit(&mut self, blocks: &mut Blocks, word: Word) -> Result<()> {
        if word.kind() == Kind::Pair {
            let (count, rest) = blocks.mark_pairs(word, CHAIN, |first| push(&mut self.stack, first))?;
            self.visited += count;
            return rest.map_or(Ok(()), |rest| push(&mut self.stack, rest));
        }
        let index = word.index() as usize;
        if !blocks.mark(index) {
            return Ok(());
        }
        self.visited += 1;
        self.visit_run(blocks, word.kind(), index)
    }

    fn visit_run(&mut self, blocks: &mut Blocks, kind: Kind, index: usize) -> Result<()> {
        let [count, _] = blocks.cells()[index];
        let cells = cells_of(kind, count);
        blocks.mark_run(index + 1..index + cells);
        let at = match kind {
            Kind::Vector => 2 * index + 1,
            Kind::Map => 2 * index + 2,
            _ => return Ok(()),
        };
        let words = if kind == Kind::Map { 2 * count as usize } else { count as usize };
        self.scan(blocks, Rest { at, end: at + words })
    }

    /// Looks at some words of a vector or a map.
    fn scan(&mut self, blocks: &Blocks, rest: Rest) -> Result<()> {
        let end = rest.end.min(rest.at + SLICE);
        if end < rest.end {
            self.rests.try_reserve(1)?;
            self.rests.push(Rest { at: end, ..rest });
        }
        for word in &words(blocks.cells())[rest.at..end] {
            self.push(Word(*word))?;
        }
        Ok(())
    }
}

#[inline]
fn push(stack: &mut Vec<Word>, word: Word) -> Result<()> {
    if word.is_in_cells() {
        if stack.len() == stack.capacity() {
            stack.try_reserve(1)?;
        }
        stack.push(word);
    }
    Ok(())
}
