//! The decision whether a maximum resident set is that of a job.
//!
//! A child begins in the memory of this process, until it executes its program. The kernel keeps the
//! maximum of both (`exec_mmap` in fs/exec.c calls `setmax_mm_hiwater_rss` with the old memory), so a job
//! that needs less than this process has no known maximum.

use std::sync::atomic::{AtomicU64, Ordering};

use minder_os::host_stats;

/// The memory that a job needs beyond this process before its maximum counts as its own. The kernel
/// counts pages for each processor, and adds them up in batches of 32 pages
/// (`percpu_counter_batch`): two readings of the same memory differ.
const MARGIN: u64 = 1 << 20;

/// The peak memory of this process, as far as it was read.
#[derive(Debug, Default)]
pub(crate) struct OwnPeak {
    bytes: AtomicU64,
}

impl OwnPeak {
    /// Returns the maximum resident set of a job that has exited, if it is the job's. Zero means that the
    /// system does not count, and stays zero.
    pub(crate) fn of_job(&self, max_rss: u64) -> Option<u64> {
        if max_rss == 0 {
            return Some(0);
        }
        let is_more_than = |own: u64| max_rss > own.saturating_add(MARGIN);
        if !is_more_than(self.bytes.load(Ordering::Relaxed)) {
            return None;
        }
        // The peak never falls: what it is now, it was at most when the job started.
        if let Ok(now) = host_stats::own_peak_memory_bound() {
            self.bytes.fetch_max(now, Ordering::Relaxed);
            return is_more_than(now).then_some(max_rss);
        }
        Some(max_rss)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_more_than_the_own_peak_is_of_a_job() {
        let peak = OwnPeak::default();
        assert_eq!(peak.of_job(1 << 40), Some(1 << 40));
        assert_eq!(peak.of_job(host_stats::own_peak_memory().unwrap()), None);
        assert_eq!(peak.of_job(4096), None);
        assert_eq!(peak.of_job(0), Some(0));
    }
}
