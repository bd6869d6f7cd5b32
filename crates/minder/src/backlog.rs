//! The output that waits in files. Several sets may share it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Above this many times the bound, only streaming children are read.
const CROWDED_FACTOR: u64 = 4;

/// Counts the output that waits in files, and holds the bound above which a
/// [`ChildSet`](crate::ChildSet) reads some children before others.
///
/// The output of a child that is kept until its exit and does not fit into memory goes to a file. If
/// all children were read evenly, the output of all of them would be in files at the same time. Above
/// the bound a set therefore reads few children at a time, those with the lowest
/// [`SpawnOptions::rank`](crate::SpawnOptions::rank), until they exit. The others block when their
/// pipes are full.
///
/// - At least [`ChildSetOptions::min_readers`](crate::ChildSetOptions::min_readers) children are read,
///   and more if that brings more bytes. While one of them is silent for 50 ms, the next is read,
///   too.
/// - These children are never paused: one whose output fits into memory, one that writes less than
///   64 KiB a second, one that exited or is being killed, and one whose output is handed over as it
///   arrives.
/// - Paused children are read a little, each in turn, so that none waits for ever: one byte for every
///   16 of the others, and 64 KiB every 50 ms.
/// - Above four times the bound, and while output of a streaming child
///   ([`OutputMode::Stream`](crate::OutputMode::Stream)) arrives, or the caller's own reader takes nothing
///   ([`set_stalled`](Self::set_stalled)), all other children are read only this much.
///
/// Sets whose output goes to the same place share one backlog. Bytes count from when they are written
/// to a file until the file, or the [`SpillFile`](crate::SpillFile) that the caller took, is dropped.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{Backlog, ChildSet, ChildSetOptions, Command, Event, OutputMode, OverflowPolicy};
/// use minder::{SpawnOptions, Stdio};
/// use std::sync::Arc;
///
/// let backlog = Backlog::new(64 << 20); // up to 64 MiB in files, all children are read
/// let config = ChildSetOptions::new().max_buffered_bytes(64 << 10).backlog(Arc::clone(&backlog));
/// let mut set = ChildSet::new(config.min_readers(4))?;
/// let mut command = Command::new("head");
/// command.args(["-c", "300000", "/dev/zero"]).stdout(Stdio::piped());
/// let options = SpawnOptions::new().output_mode(OutputMode::AtExit).overflow(OverflowPolicy::Spill);
/// let options = options.spill_as_file(true);
/// for rank in 0..2 {
///     set.spawn(&command, options.rank(rank))?;
/// }
/// let mut files = Vec::new();
/// set.wait_all(None, |event| {
///     if let Event::Spilled { file, .. } = event {
///         files.push(file);
///     }
/// })?;
/// assert_eq!(backlog.bytes(), files.iter().map(|file| file.len).sum());
/// drop(files);
/// assert_eq!(backlog.bytes(), 0);
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Debug)]
pub struct Backlog {
    /// Up to this many bytes, all children are read evenly.
    even_max: u64,
    bytes: AtomicU64,
    /// The time at which output of a streaming child last arrived, in milliseconds since `created`,
    /// plus one. Zero before the first time.
    shown_at: AtomicU64,
    is_stalled: AtomicBool,
    created: Instant,
}

// All of them guide a heuristic and guard no other memory, so relaxed ordering is enough.
impl Backlog {
    /// Creates an empty backlog. Up to `even_max` bytes in files, all children are read.
    pub fn new(even_max: u64) -> Arc<Self> {
        Arc::new(Self {
            even_max,
            bytes: AtomicU64::new(0),
            shown_at: AtomicU64::new(0),
            is_stalled: AtomicBool::new(false),
            created: Instant::now(),
        })
    }

    /// Returns how many bytes wait in files.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Notes whether the reader of the output takes nothing, so that what is read can only wait in files.
    ///
    /// ```
    /// let backlog = minder::Backlog::new(64 << 20);
    /// backlog.set_stalled(true); // above 256 MiB, children that are kept until their exit now block
    /// backlog.set_stalled(false);
    /// ```
    pub fn set_stalled(&self, is_stalled: bool) {
        self.is_stalled.store(is_stalled, Ordering::Relaxed);
    }

    /// Returns how many bytes more may be written while all children are read.
    pub(crate) fn room(&self) -> u64 {
        self.even_max.saturating_sub(self.bytes())
    }

    /// Returns whether children are read in turn.
    pub(crate) fn is_long(&self) -> bool {
        self.bytes() > self.even_max
    }

    /// Returns whether the backlog is so long that only streaming children should be read, and output of one
    /// arrived less than `within` ago.
    pub(crate) fn is_crowded(&self, within: Duration) -> bool {
        let shown_at = self.shown_at.load(Ordering::Relaxed);
        let within = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        let is_shown = || shown_at > 0 && self.now().saturating_sub(shown_at) <= within;
        self.bytes() / CROWDED_FACTOR > self.even_max
            && (self.is_stalled.load(Ordering::Relaxed) || is_shown())
    }

    /// Notes that output of a streaming child arrived, or would have if the file that it is forwarded
    /// to were not full.
    pub(crate) fn note_shown(&self) {
        self.shown_at.store(self.now(), Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.created.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }
}

/// Bytes in a file. They count in a backlog until this is dropped.
///
/// ```
/// use minder::{Charge, SpillFile};
/// use std::fs::File;
///
/// /// Keeps the file and its place in the backlog, without the rest of the event.
/// struct Kept(File, Charge);
///
/// fn keep(spilled: SpillFile) -> Kept {
///     Kept(spilled.file, spilled.charge)
/// }
/// # let _ = (keep, |kept: Kept| drop((kept.0, kept.1)));
/// ```
#[derive(Debug, Default)]
pub struct Charge {
    backlog: Option<Arc<Backlog>>,
    bytes: u64,
}

impl Charge {
    pub(crate) fn new(backlog: Option<Arc<Backlog>>) -> Self {
        Self { backlog, bytes: 0 }
    }

    /// Sets the number of bytes.
    pub(crate) fn set(&mut self, bytes: u64) {
        if let Some(backlog) = &self.backlog {
            // A decrease is the addition of a difference that wraps around, as `fetch_add` does.
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
    fn charges_count_until_they_are_dropped() {
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
    fn backlog_is_crowded_only_after_output_was_shown() {
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
