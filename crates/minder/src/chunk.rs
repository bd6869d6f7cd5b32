//! Pieces of output, and the account of the memory they hold.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How many buffers of the full size are kept for the next read.
const POOL_MAX: usize = 16;

/// Bytes that a child wrote, owned by whoever holds the chunk.
///
/// The memory counts against
/// [`ChildSetConfig::max_buffered_bytes`](crate::ChildSetConfig::max_buffered_bytes) until the
/// chunk is dropped: a caller that keeps chunks keeps the room that children wait for.
pub struct Chunk {
    bytes: Vec<u8>,
    charged: usize,
    /// Whether it counts in its child's share; it counts in the whole anyway.
    in_share: bool,
    account: Option<Arc<MemoryQuota>>,
}

impl Chunk {
    /// Wraps bytes and charges them to `account`, for as long as the chunk lives.
    pub(crate) fn new(bytes: Vec<u8>, account: &Arc<MemoryQuota>) -> Self {
        let charged = bytes.capacity();
        account.charge(charged, true);
        Self { bytes, charged, in_share: true, account: Some(Arc::clone(account)) }
    }

    /// Appends `bytes` if they fit into the memory that this chunk already has.
    pub(crate) fn extend_within(&mut self, bytes: &[u8]) -> bool {
        let fits = self.bytes.capacity() - self.bytes.len() >= bytes.len();
        if fits {
            self.bytes.extend_from_slice(bytes);
        }
        fits
    }

    /// Appends the bytes of `other`: in the memory that is there, else in more of it, up to `max`
    /// bytes, as far as the account has room. Gives `other` back when it must stay a chunk of
    /// its own.
    pub(crate) fn try_append(&mut self, other: Chunk, max: usize) -> Option<Chunk> {
        if self.extend_within(&other) {
            return None;
        }
        let needed = self.bytes.len() + other.len();
        // A big one is cheaper to hand on than to copy.
        let Some(account) = self.account.as_ref().filter(|_| needed <= max && other.len() * 2 <= max) else {
            return Some(other);
        };
        let target = (self.bytes.capacity() * 2).clamp(needed, max);
        if !account.has_strict_room(target - self.bytes.capacity()) {
            return Some(other);
        }
        self.bytes.reserve_exact(target - self.bytes.len());
        account.charge(self.bytes.capacity() - self.charged, self.in_share);
        self.charged = self.bytes.capacity();
        self.bytes.extend_from_slice(&other);
        None
    }

    /// Counts the chunk in its child's share, or no longer: whoever takes it off bounds that
    /// child's chunks himself.
    pub(crate) fn set_counted(&mut self, yes: bool) {
        if let Some(account) = self.account.as_ref().filter(|_| self.in_share != yes) {
            match yes {
                true => account.used.fetch_add(self.charged, Ordering::SeqCst),
                false => account.used.fetch_sub(self.charged, Ordering::SeqCst),
            };
            self.in_share = yes;
        }
    }

    /// Takes the bytes out; they no longer count against any limit.
    pub fn into_vec(mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

impl Deref for Chunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chunk({} bytes)", self.bytes.len())
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Some(account) = self.account.take() {
            account.release(self.charged, self.in_share, std::mem::take(&mut self.bytes));
        }
    }
}

/// The memory of one set: what all chunks together may hold.
pub(crate) struct MemoryBudget {
    used: AtomicUsize,
    max: usize,
    buffer_size: usize,
    pool: Mutex<Vec<Vec<u8>>>,
    /// Whether some child is held until there is room. Whoever makes room then rings.
    starved: AtomicBool,
    on_room: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("used", &self.used).field("max", &self.max).finish_non_exhaustive()
    }
}

impl MemoryBudget {
    pub(crate) fn new(max: usize, buffer_size: usize, on_room: Box<dyn Fn() + Send + Sync>) -> Arc<Self> {
        Arc::new(Self {
            used: AtomicUsize::new(0),
            max,
            buffer_size,
            pool: Mutex::new(Vec::new()),
            starved: AtomicBool::new(false),
            on_room,
        })
    }

    /// An empty buffer of the full size.
    pub(crate) fn buffer(&self) -> Vec<u8> {
        let pooled = self.pool.lock().unwrap_or_else(PoisonError::into_inner).pop();
        pooled.unwrap_or_else(|| Vec::with_capacity(self.buffer_size))
    }

    /// Bytes held by all chunks that live.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Acquire)
    }

    /// Asks to be rung when there is room. Look once more *after* this: room that came before is
    /// not announced.
    pub(crate) fn request_wakeup(&self) {
        self.starved.store(true, Ordering::SeqCst);
    }
}

/// One child's share of the budget.
#[derive(Debug)]
pub(crate) struct MemoryQuota {
    used: AtomicUsize,
    max: usize,
    budget: Arc<MemoryBudget>,
}

impl MemoryQuota {
    pub(crate) fn new(budget: &Arc<MemoryBudget>, max: usize) -> Arc<Self> {
        Arc::new(Self { used: AtomicUsize::new(0), max, budget: Arc::clone(budget) })
    }

    /// Whether `more` bytes fit into this child's share and into the whole. A share that is empty
    /// always fits one piece: otherwise a piece larger than the bound would wait for ever.
    pub(crate) fn has_room(&self, more: usize) -> bool {
        let used = self.used.load(Ordering::SeqCst);
        used == 0
            || (used + more <= self.max && self.budget.used.load(Ordering::SeqCst) + more <= self.budget.max)
    }

    /// Whether `more` bytes fit into this child's share and into the whole, without that exception.
    pub(crate) fn has_strict_room(&self, more: usize) -> bool {
        let (used, all) = (self.used.load(Ordering::SeqCst), self.budget.used.load(Ordering::SeqCst));
        used + more <= self.max && all + more <= self.budget.max
    }

    fn charge(&self, bytes: usize, in_share: bool) {
        self.used.fetch_add(if in_share { bytes } else { 0 }, Ordering::SeqCst);
        self.budget.used.fetch_add(bytes, Ordering::SeqCst);
    }

    fn release(&self, bytes: usize, in_share: bool, mut buffer: Vec<u8>) {
        // 1. The room is given back before `starved` is read, and whoever sets `starved` looks for room
        //    afterwards: one of the two sees the other, so that no held child is forgotten.
        self.used.fetch_sub(if in_share { bytes } else { 0 }, Ordering::SeqCst);
        self.budget.used.fetch_sub(bytes, Ordering::SeqCst);
        if self.budget.starved.swap(false, Ordering::SeqCst) {
            (self.budget.on_room)();
        }
        // 2. Full-size buffers serve the next read.
        if buffer.capacity() == self.budget.buffer_size {
            buffer.clear();
            let mut pool = self.budget.pool.lock().unwrap_or_else(PoisonError::into_inner);
            if pool.len() < POOL_MAX {
                pool.push(buffer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_a_chunk_gives_back_its_room_and_rings_once() {
        let rings = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&rings);
        let budget = MemoryBudget::new(100, 64, Box::new(move || _ = seen.fetch_add(1, Ordering::SeqCst)));
        let account = MemoryQuota::new(&budget, 80);
        let chunk = Chunk::new(Vec::with_capacity(64), &account);
        assert_eq!(budget.used(), 64);
        assert!(!account.has_room(64));
        budget.request_wakeup();
        drop(chunk);
        assert!(account.has_room(64));
        assert_eq!((budget.used(), rings.load(Ordering::SeqCst)), (0, 1));
        assert_eq!(budget.buffer().capacity(), 64, "the buffer came from the pool");
    }

    #[test]
    fn small_chunks_become_one_and_are_charged_for_what_they_hold() {
        let budget = MemoryBudget::new(1000, 64, Box::new(|| ()));
        let account = MemoryQuota::new(&budget, 1000);
        let mut first = Chunk::new(b"ab".to_vec(), &account);
        for _ in 0..15 {
            assert!(first.try_append(Chunk::new(b"cd".to_vec(), &account), 64).is_none());
        }
        assert_eq!((first.len(), budget.used()), (32, 32));
        let big = first.try_append(Chunk::new(vec![0; 40], &account), 64);
        assert_eq!(big.map(|big| big.len()), Some(40));
        drop(first);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_chunk_outside_of_its_share_counts_in_the_whole() {
        let budget = MemoryBudget::new(1000, 64, Box::new(|| ()));
        let account = MemoryQuota::new(&budget, 100);
        let mut chunk = Chunk::new(vec![0; 90], &account);
        assert!(!account.has_strict_room(20));
        chunk.set_counted(false);
        assert!(account.has_strict_room(20));
        assert_eq!((account.used.load(Ordering::SeqCst), budget.used()), (0, 90));
        let mut other = Chunk::new(vec![0; 10], &account);
        other.set_counted(false);
        other.set_counted(true);
        drop(chunk);
        assert_eq!((account.used.load(Ordering::SeqCst), budget.used()), (10, 10));
        drop(other);
        assert_eq!((account.used.load(Ordering::SeqCst), budget.used()), (0, 0));
    }

    #[test]
    fn an_empty_share_takes_one_piece_of_any_size() {
        let budget = MemoryBudget::new(10, 64, Box::new(|| ()));
        assert!(MemoryQuota::new(&budget, 10).has_room(1000));
    }
}
