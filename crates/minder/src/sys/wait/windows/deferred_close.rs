//! Closes handles that a thread of the operating system waited for until now.
//!
//! Who ends such a wait is told so at once. On Windows the handle may then be closed. Under Wine
//! the thread may have copied its number already and wait for it a moment later, without a lock
//! (`waitqueue_thread_proc` in `dlls/ntdll/threadpool.c`, Wine 8.0): for whatever has that number
//! by then. It takes the one signal of an event, or the handle by which somebody else waits for an
//! operation, who hears of an invalid one. So there a number is not free before the thread has
//! looked again, which nobody can see: it is given time.

use std::collections::VecDeque;
use std::os::windows::io::OwnedHandle;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::sys::dynlib::wine;

/// How long a handle stays open under Wine: longer than a thread that could run is kept from it.
const OPEN: Duration = Duration::from_secs(2);
/// How many handles stay open at most; beyond it the oldest is closed early.
const OPEN_MAX: usize = 4096;

type DeferredHandles = VecDeque<(Instant, Arc<OwnedHandle>)>;

static LATE: LazyLock<Mutex<DeferredHandles>> = LazyLock::new(Mutex::default);

/// Closes a handle that may still be looked at, and those whose time is over. What is closed late
/// is closed by the next call, or with the process.
pub(super) fn close(handle: Arc<OwnedHandle>) {
    if wine().is_none() {
        return drop(handle);
    }
    let now = Instant::now();
    let mut late = LATE.lock().unwrap_or_else(PoisonError::into_inner);
    late.push_back((now, handle));
    let over = late.iter().take_while(|(since, _)| now.duration_since(*since) >= OPEN).count();
    let over = over.max(late.len().saturating_sub(OPEN_MAX));
    let over: Vec<_> = late.drain(..over).collect();
    drop(late);
    drop(over);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::event::event;

    #[test]
    fn a_handle_that_was_waited_for_is_closed_late_under_wine_and_at_once_elsewhere() {
        let handle = Arc::new(event(true).unwrap());
        close(Arc::clone(&handle));
        assert_eq!(Arc::strong_count(&handle) > 1, wine().is_some());
        for _ in 0..=OPEN_MAX {
            close(Arc::clone(&handle));
        }
        assert!(Arc::strong_count(&handle) <= OPEN_MAX + 1, "bounded");
    }
}
