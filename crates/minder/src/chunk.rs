//! Chunks of output, and the budget for the memory that they hold.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use minder_os::sync::Mutex;

/// The number of buffers of the full size that are kept for later reads.
const POOL_MAX: usize = 16;

/// Bytes that a child wrote.
///
/// Its memory counts in
/// [`ChildSetOptions::max_buffered_bytes`](crate::ChildSetOptions::max_buffered_bytes) and in
/// [`max_child_bytes`](crate::ChildSetOptions::max_child_bytes) until the chunk is dropped. A caller that
/// keeps chunks keeps memory that children wait for. If no output of any child can be read for that
/// reason, [`ChildSet::next_event`](crate::ChildSet::next_event),
/// [`BackgroundSet::wait`](crate::BackgroundSet::wait) and the calls `wait_all` of both fail with
/// [`Limit`](crate::ErrorKind::Limit) if they have no time limit. A host that watches a handle, and a
/// [`JobPool`](crate::jobs::JobPool), get no error. Another thread may still drop chunks: a caller that
/// sends them to one waits with a time limit, or by
/// [`next_event_deadline`](crate::ChildSet::next_event_deadline). To keep the bytes, take them by
/// [`into_vec`](Self::into_vec), which copies nothing:
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{ChildSet, ChildSetOptions, Command, Event, SpawnOptions, Stdio};
///
/// let mut set = ChildSet::new(ChildSetOptions::new())?;
/// let mut command = Command::new("echo");
/// command.arg("text").stdout(Stdio::piped());
/// set.spawn(&command, SpawnOptions::new())?;
/// let mut parts: Vec<Vec<u8>> = Vec::new();
/// set.wait_all(None, |event| {
///     if let Event::Output { chunk, .. } = event {
///         parts.push(chunk.into_vec());
///     }
/// })?;
/// assert!(parts.concat() == b"text\n" && set.buffered_bytes() == 0);
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
pub struct Chunk {
    bytes: Vec<u8>,
    /// The capacity of `bytes` that was charged.
    charged: usize,
    /// `true` if it counts in its child's quota. It always counts in the budget.
    in_quota: bool,
    quota: Option<Arc<MemoryQuota>>,
}

impl Chunk {
    /// Makes a chunk of bytes and charges them to `quota` until the chunk is dropped.
    pub(crate) fn new(bytes: Vec<u8>, quota: &Arc<MemoryQuota>) -> Self {
        let charged = bytes.capacity();
        quota.charge(charged, true);
        Self { bytes, charged, in_quota: true, quota: Some(Arc::clone(quota)) }
    }

    /// Appends `bytes` if they fit into the capacity of this chunk. Returns whether they did.
    pub(crate) fn extend_within(&mut self, bytes: &[u8]) -> bool {
        let fits = self.bytes.capacity() - self.bytes.len() >= bytes.len();
        if fits {
            self.bytes.extend_from_slice(bytes);
        }
        fits
    }

    /// Appends the bytes of `other`. If they do not fit, the chunk grows to at most `max` bytes, as
    /// far as the quota has room. Returns `other` if it has to stay a separate chunk.
    pub(crate) fn try_append(&mut self, other: Chunk, max: usize) -> Option<Chunk> {
        if self.extend_within(&other) {
            return None;
        }
        let needed = self.bytes.len() + other.len();
        // Handing over a large chunk is cheaper than copying it.
        if needed > max || other.len() * 2 > max {
            return Some(other);
        }
        let Some(quota) = &self.quota else { return Some(other) };
        let target = (self.bytes.capacity() * 2).clamp(needed, max);
        if !quota.has_strict_room(target - self.bytes.capacity()) {
            return Some(other);
        }
        self.bytes.reserve_exact(target - self.bytes.len());
        quota.charge(self.bytes.capacity() - self.charged, self.in_quota);
        self.charged = self.bytes.capacity();
        self.bytes.extend_from_slice(&other);
        None
    }

    /// Adds the chunk to its child's quota or removes it. A caller that removes it must limit the
    /// memory of that child itself.
    pub(crate) fn set_counted(&mut self, counted: bool) {
        let Some(quota) = &self.quota else { return };
        if self.in_quota == counted {
            return;
        }
        if counted {
            quota.used.fetch_add(self.charged, Ordering::SeqCst);
        } else {
            quota.used.fetch_sub(self.charged, Ordering::SeqCst);
        }
        self.in_quota = counted;
    }

    /// Returns the bytes. They no longer count in any limit.
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
        if let Some(quota) = self.quota.take() {
            quota.release(self.charged, self.in_quota, std::mem::take(&mut self.bytes));
        }
    }
}

/// The memory of one set: how much all of its chunks hold together.
///
/// Any thread may drop a chunk, and one thread, that of the set, pauses children when there is no
/// room. Two sequentially consistent variables, `used` and `wakeup_requested`, ensure that no paused
/// child is forgotten:
///
/// - The set stores `wakeup_requested`, and then loads `used`.
/// - A thread that drops a chunk decreases `used`, and then swaps `wakeup_requested`.
///
/// In every interleaving the set sees the room, or the other thread sees the request and calls
/// `on_room`, which wakes the set.
pub(crate) struct MemoryBudget {
    used: AtomicUsize,
    max: usize,
    buffer_size: usize,
    /// Empty buffers of the size `buffer_size`.
    pool: Mutex<Vec<Vec<u8>>>,
    wakeup_requested: AtomicBool,
    on_room: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBudget")
            .field("used", &self.used)
            .field("max", &self.max)
            .finish_non_exhaustive()
    }
}

impl MemoryBudget {
    pub(crate) fn new(max: usize, buffer_size: usize, on_room: Box<dyn Fn() + Send + Sync>) -> Arc<Self> {
        Arc::new(Self {
            used: AtomicUsize::new(0),
            max,
            buffer_size,
            pool: Mutex::new(Vec::new()),
            wakeup_requested: AtomicBool::new(false),
            on_room,
        })
    }

    /// Returns an empty buffer of the full size.
    pub(crate) fn buffer(&self) -> Vec<u8> {
        let pooled = self.pool.lock().pop();
        pooled.unwrap_or_else(|| Vec::with_capacity(self.buffer_size))
    }

    /// Returns how many bytes all chunks hold.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Acquire)
    }

    /// Requests a call of `on_room` when a chunk is dropped. The caller checks the room *after* this
    /// call, because room that became free before causes no wake-up.
    pub(crate) fn request_wakeup(&self) {
        self.wakeup_requested.store(true, Ordering::SeqCst);
    }
}

/// One child's part of the budget.
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

    /// Returns whether `more` bytes fit into this quota and into the budget. An empty quota has room for one
    /// chunk of any size. Otherwise a chunk larger than the limit would wait for ever.
    pub(crate) fn has_room(&self, more: usize) -> bool {
        self.used.load(Ordering::SeqCst) == 0 || self.has_strict_room(more)
    }

    /// Returns whether `more` bytes fit into this quota and into the budget, without that exception.
    pub(crate) fn has_strict_room(&self, more: usize) -> bool {
        self.used.load(Ordering::SeqCst) + more <= self.max
            && self.budget.used.load(Ordering::SeqCst) + more <= self.budget.max
    }

    fn charge(&self, bytes: usize, in_quota: bool) {
        if in_quota {
            self.used.fetch_add(bytes, Ordering::SeqCst);
        }
        self.budget.used.fetch_add(bytes, Ordering::SeqCst);
    }

    fn release(&self, bytes: usize, in_quota: bool, mut buffer: Vec<u8>) {
        // Both counters are decreased before `wakeup_requested` is read: see `MemoryBudget`.
        if in_quota {
            self.used.fetch_sub(bytes, Ordering::SeqCst);
        }
        self.budget.used.fetch_sub(bytes, Ordering::SeqCst);
        if self.budget.wakeup_requested.swap(false, Ordering::SeqCst) {
            (self.budget.on_room)();
        }
        // A buffer of the full size is used again for a later read.
        if buffer.capacity() == self.budget.buffer_size {
            buffer.clear();
            let mut pool = self.budget.pool.lock();
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
    fn drop_returns_memory_and_wakes_the_set_once() {
        let wakeups = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&wakeups);
        let budget = MemoryBudget::new(100, 64, Box::new(move || _ = seen.fetch_add(1, Ordering::SeqCst)));
        let quota = MemoryQuota::new(&budget, 80);
        let chunk = Chunk::new(Vec::with_capacity(64), &quota);
        assert_eq!(budget.used(), 64);
        assert!(!quota.has_room(64));
        budget.request_wakeup();
        drop(chunk);
        assert!(quota.has_room(64));
        assert_eq!((budget.used(), wakeups.load(Ordering::SeqCst)), (0, 1));
        assert_eq!(budget.buffer().capacity(), 64, "the buffer came from the pool");
    }

    #[test]
    fn try_append_joins_small_chunks_and_charges_their_capacity() {
        let budget = MemoryBudget::new(1000, 64, Box::new(|| ()));
        let quota = MemoryQuota::new(&budget, 1000);
        let mut first = Chunk::new(b"ab".to_vec(), &quota);
        for _ in 0..15 {
            assert!(first.try_append(Chunk::new(b"cd".to_vec(), &quota), 64).is_none());
        }
        assert_eq!((first.len(), budget.used()), (32, 32));
        let big = first.try_append(Chunk::new(vec![0; 40], &quota), 64);
        assert_eq!(big.map(|big| big.len()), Some(40));
        drop(first);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn uncounted_chunk_still_counts_in_the_budget() {
        let budget = MemoryBudget::new(1000, 64, Box::new(|| ()));
        let quota = MemoryQuota::new(&budget, 100);
        let mut chunk = Chunk::new(vec![0; 90], &quota);
        assert!(!quota.has_strict_room(20));
        chunk.set_counted(false);
        assert!(quota.has_strict_room(20));
        assert_eq!((quota.used.load(Ordering::SeqCst), budget.used()), (0, 90));
        let mut other = Chunk::new(vec![0; 10], &quota);
        other.set_counted(false);
        other.set_counted(true);
        drop(chunk);
        assert_eq!((quota.used.load(Ordering::SeqCst), budget.used()), (10, 10));
        drop(other);
        assert_eq!((quota.used.load(Ordering::SeqCst), budget.used()), (0, 0));
    }

    #[test]
    fn empty_quota_has_room_for_one_chunk_of_any_size() {
        let budget = MemoryBudget::new(10, 64, Box::new(|| ()));
        assert!(MemoryQuota::new(&budget, 10).has_room(1000));
    }
}
