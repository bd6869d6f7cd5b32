//! The account of output that waits in files, which several sets may share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How many times the bound for even reading is so much that only what is seen at once is read.
const CROWDED: u64 = 4;

/// Output that waits in files, and the bound that makes a [`ChildSet`](crate::ChildSet) read some
/// children before others.
///
/// A child's output that is kept until its end and does not fit into memory goes to a file. If all
/// children were read evenly, all of their output would be in files at the same time. Above the
/// bound a set reads few children at a time, those of the lowest
/// [`SpawnOptions::rank`](crate::SpawnOptions::rank), until they end. The others block when their
/// pipes are full. So no more waits in files than has to:
///
/// - How many are read is at least
///   [`ChildSetConfig::min_readers`](crate::ChildSetConfig::min_readers), and more where that
///   brings more bytes. While one is silent for 50 ms, the next is read as well.
/// - A child whose output fits into memory is never held. Nor is one that writes less than 64 KiB a
///   second, that exited, that is being killed, or whose output is handed over as it comes.
/// - Children that are held are read a little all the time, each in turn, so that none waits for
///   ever: a sixteenth of what the others are, and a piece of 64 KiB every 50 ms.
/// - Above four times the bound, while output of a live child
///   ([`OutputMode::Stream`](crate::OutputMode::Stream)) moves, no other child is read more than
///   this.
///
/// Sets whose output goes to one place share one backlog. Bytes count from when they are written to
/// a file until the file, or the [`Spilled`](crate::SpillFile) that the caller was given, is
/// dropped.
#[derive(Debug)]
pub struct Backlog {
    even_max: u64,
    bytes: AtomicU64,
    /// When output of a live child moved last, in milliseconds since `begun`, plus one.
    shown_at: AtomicU64,
    begun: Instant,
}

impl Backlog {
    /// Makes an empty account. Up to `even_max` bytes in files all children are read.
    pub fn new(even_max: u64) -> Arc<Self> {
        let (bytes, shown_at) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { even_max, bytes, shown_at, begun: Instant::now() })
    }

    /// How many bytes wait in files.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How many bytes more all children may write.
    pub(crate) fn room(&self) -> u64 {
        self.even_max.saturating_sub(self.bytes())
    }

    /// Whether children are read in turn.
    pub(crate) fn is_long(&self) -> bool {
        self.bytes() > self.even_max
    }

    /// Whether so much waits that only what is seen at once is worth reading, and that is not
    /// silent: it moved less than `within` ago.
    pub(crate) fn is_crowded(&self, within: Duration) -> bool {
        let shown_at = self.shown_at.load(Ordering::Relaxed);
        let within = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        self.bytes() / CROWDED > self.even_max
            && shown_at > 0
            && self.now().saturating_sub(shown_at) <= within
    }

    /// Notes that output of a live child moved, or would have if its reader read.
    pub(crate) fn note_shown(&self) {
        self.shown_at.store(self.now(), Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }
}

/// Bytes in a file, which count in a backlog until this is dropped.
#[derive(Debug, Default)]
pub struct Charge {
    backlog: Option<Arc<Backlog>>,
    bytes: u64,
}

impl Charge {
    pub(crate) fn new(backlog: Option<Arc<Backlog>>) -> Self {
        Self { backlog, bytes: 0 }
    }

    pub(crate) fn set(&mut self, bytes: u64) {
        if let Some(backlog) = &self.backlog {
            // It wraps around: what is added is less than nothing where bytes were taken back.
            backlog.bytes.fetch_add(bytes.wrapping_sub(self.bytes), Ordering::Relaxed);
        }
        self.bytes = bytes;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_until_their_charges_are_dropped() {
        let backlog = Backlog::new(10);
        let [mut first, mut second] = [(); 2].map(|()| Charge::new(Some(Arc::clone(&backlog))));
        first.set(7);
        second.set(5);
        assert_eq!((backlog.bytes(), backlog.room(), backlog.is_long()), (12, 0, true));
        first.set(3);
        assert_eq!((backlog.bytes(), backlog.room(), backlog.is_long()), (8, 2, false));
        drop(first);
        drop(second);
        assert_eq!(backlog.bytes(), 0);
    }

    #[test]
    fn it_is_crowded_only_while_something_is_shown() {
        let backlog = Backlog::new(10);
        let mut charge = Charge::new(Some(Arc::clone(&backlog)));
        charge.set(50);
        assert!(!backlog.is_crowded(Duration::MAX));
        backlog.note_shown();
        assert!(backlog.is_crowded(Duration::MAX));
        charge.set(40);
        assert!(!backlog.is_crowded(Duration::MAX));
    }
}
