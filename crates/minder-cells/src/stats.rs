//! Statistics of a heap and of its collections.

use std::time::Duration;

/// The number of pauses that were shorter than 1 us, 2 us, 4 us and so on; the last number is of all that
/// were longer than half a second.
pub type PauseHistogram = [u64; 21];

/// The statistics of a heap and of its collections: see [`Heap::stats`](crate::Heap::stats).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapStats {
    /// The collections that have ended.
    pub collections: u64,
    /// The cells that may be in use: those that the last collection has found, and the runs of cells that
    /// were given out since.
    pub allocated_cells: u64,
    /// The values that the last collection has found.
    pub found_values: u64,
    /// The bytes of cells that the process may have in memory.
    pub resident_bytes: usize,
    /// The bytes of cells that were ever used.
    pub used_bytes: usize,
    /// The bytes of blocks from which cells were given out since the last collection.
    pub recent_bytes: usize,
    /// The roots.
    pub roots: usize,
    /// The symbols of the heap.
    pub symbols: usize,
    /// The pause of the last collection, or of the last step of one.
    pub last_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// All pauses together.
    pub total_pause: Duration,
    /// The number of pauses, by length.
    pub pauses: PauseHistogram,
}

impl HeapStats {
    /// Adds a pause.
    pub(crate) fn add_pause(&mut self, pause: Duration) {
        self.last_pause = pause;
        self.longest_pause = self.longest_pause.max(pause);
        self.total_pause += pause;
        let micros = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
        let bucket = (u64::BITS - micros.leading_zeros()) as usize;
        self.pauses[bucket.min(self.pauses.len() - 1)] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_counted_by_length() {
        let mut stats = HeapStats::default();
        for micros in [0, 1, 2, 3, 4, 1 << 30] {
            stats.add_pause(Duration::from_micros(micros));
        }
        assert_eq!(stats.pauses[..4], [1, 1, 2, 1]);
        assert_eq!((stats.pauses[20], stats.pauses.iter().sum::<u64>()), (1, 6));
        assert_eq!(stats.longest_pause, Duration::from_micros(1 << 30));
    }
}
