//! Closes handles that a thread of the operating system has waited for.
//!
//! Cancelling such a wait takes effect at once. On Windows the handle may then be closed. Under
//! Wine the thread may already have copied the handle's value and wait for it a moment later,
//! without a lock (`waitqueue_thread_proc` in `dlls/ntdll/threadpool.c`, Wine 8.0). It then waits
//! for any object that has that value by then. It consumes the one signal of an event, or breaks
//! the wait of another thread with an invalid handle. So under Wine a handle's value must not be
//! reused before the thread has read its list again. That moment cannot be observed, so the handle stays
//! open for a fixed time.

use std::collections::VecDeque;
use std::os::windows::io::OwnedHandle;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use minder_os::sync::Mutex;

use crate::sys::dynlib::wine;

/// The time for which a handle stays open under Wine: longer than a runnable thread has to wait for
/// a processor.
const OPEN_TIME: Duration = Duration::from_secs(2);
/// The most handles that stay open; beyond it the oldest is closed early.
const OPEN_MAX: usize = 4096;

type DeferredHandles = VecDeque<(Instant, Arc<OwnedHandle>)>;

static DEFERRED: LazyLock<Mutex<DeferredHandles>> = LazyLock::new(Mutex::default);

/// Closes a handle that a Wine thread may still use, and those that have been kept long enough. A
/// deferred handle is closed by a later call, or when the process exits.
pub(super) fn close(handle: Arc<OwnedHandle>) {
    if wine().is_none() {
        return drop(handle);
    }
    let now = Instant::now();
    let mut deferred = DEFERRED.lock();
    deferred.push_back((now, handle));
    let expired = deferred.iter().take_while(|(since, _)| now.duration_since(*since) >= OPEN_TIME).count();
    let count = expired.max(deferred.len().saturating_sub(OPEN_MAX));
    let closed: Vec<_> = deferred.drain(..count).collect();
    drop(deferred);
    drop(closed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::event::event;

    #[test]
    fn close_is_deferred_under_wine_and_immediate_elsewhere() {
        let handle = Arc::new(event(true).unwrap());
        close(Arc::clone(&handle));
        assert_eq!(Arc::strong_count(&handle) > 1, wine().is_some());
        for _ in 0..=OPEN_MAX {
            close(Arc::clone(&handle));
        }
        assert!(Arc::strong_count(&handle) <= OPEN_MAX + 1, "bounded");
    }
}
