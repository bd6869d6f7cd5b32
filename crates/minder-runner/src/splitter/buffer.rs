//! Input memory: blocks that are read into once, shared without a copy, and reused when their last
//! chunk is dropped.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use minder_os::sync::{Condvar, Mutex};

/// The most unused blocks that are kept for reuse.
const SPARE_MAX: usize = 4;

/// A pool that limits how many blocks exist at once. Its mutex protects the count and the unused
/// blocks; `room` belongs to it.
#[derive(Debug)]
pub(crate) struct Pool {
    state: Mutex<State>,
    /// Notified when a block is returned.
    room: Condvar,
    live_max: usize,
}

#[derive(Debug, Default)]
struct State {
    spare: Vec<Vec<u8>>,
    live: usize,
    closed: bool,
}

impl Pool {
    pub(crate) fn new(live_max: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), room: Condvar::new(), live_max })
    }

    /// Returns a block of `len` bytes with arbitrary content, and waits until there is one. Returns
    /// `None` once the pool is closed.
    pub(crate) fn take(self: &Arc<Self>, len: usize) -> Option<Result<Buffer, TooLarge>> {
        let mut state = self.state.lock();
        while state.live >= self.live_max && !state.closed {
            state = self.room.wait(state);
        }
        if state.closed {
            return None;
        }
        state.live += 1;
        let bytes = state.spare.pop().unwrap_or_default();
        drop(state);
        let mut buffer = Buffer { bytes, home: Some(Arc::clone(self)) };
        Some(buffer.grow(len).map(|()| buffer))
    }

    /// Ends all waits in [`take`](Self::take).
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.room.notify_all();
    }

    /// Returns how many blocks are in use.
    #[cfg(test)]
    pub(crate) fn live(&self) -> usize {
        self.state.lock().live
    }

    fn give_back(&self, bytes: Vec<u8>) {
        let mut state = self.state.lock();
        state.live -= 1;
        if state.spare.len() < SPARE_MAX && !state.closed {
            state.spare.push(bytes);
        }
        drop(state);
        self.room.notify_one();
    }
}

/// There is not enough memory.
#[derive(Debug)]
pub(crate) struct TooLarge;

/// One block. All of it is initialized.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    home: Option<Arc<Pool>>,
}

impl Buffer {
    /// Makes room for at least `len` bytes.
    pub(crate) fn grow(&mut self, len: usize) -> Result<(), TooLarge> {
        if self.bytes.is_empty() {
            // The kernel zeroes pages when they are touched, so a large block costs as much as is
            // read into it.
            self.bytes.try_reserve_exact(len).map_err(|_| TooLarge)?;
            self.bytes = vec![0; len];
        } else if let more @ 1.. = len.saturating_sub(self.bytes.len()) {
            self.bytes.try_reserve_exact(more).map_err(|_| TooLarge)?;
            self.bytes.resize(len, 0);
        }
        Ok(())
    }

    pub(crate) fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(home) = self.home.take() {
            home.give_back(std::mem::take(&mut self.bytes));
        }
    }
}

/// A chunk of a block; cheap to clone and to slice.
#[derive(Clone)]
pub(crate) struct Bytes {
    buffer: Arc<Buffer>,
    range: Range<usize>,
}

impl Bytes {
    pub(crate) fn new(buffer: &Arc<Buffer>, range: Range<usize>) -> Self {
        Self { buffer: Arc::clone(buffer), range }
    }

    /// Returns the chunk from `from` on, with at most `most` bytes.
    pub(crate) fn slice(&self, from: usize, most: usize) -> Self {
        let start = self.range.end.min(self.range.start.saturating_add(from));
        let end = self.range.end.min(start.saturating_add(most));
        Self { buffer: Arc::clone(&self.buffer), range: start..end }
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        let range = 0..bytes.len();
        Self { buffer: Arc::new(Buffer { bytes, home: None }), range }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[self.range.clone()]
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({})", self.len())
    }
}
