//! Numbers of threads.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns a number that belongs to the calling thread alone, for the lifetime of the process. It is
/// never 0.
pub(crate) fn here() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    thread_local!(static HERE: usize = NEXT.fetch_add(1, Ordering::Relaxed));
    HERE.with(|here| *here)
}
