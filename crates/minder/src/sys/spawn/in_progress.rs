//! Which children of this process are being started. Until its program is loaded, a new child has copies of
//! descriptors of this process, also of the pipes of children that other threads start.

use std::sync::atomic::{AtomicUsize, Ordering};

static IN_PROGRESS: AtomicUsize = AtomicUsize::new(0);

/// A start, from before its process exists until its program is loaded.
#[derive(Debug)]
#[cfg_attr(windows, expect(dead_code, reason = "a child gets the handles of a list"))]
pub(crate) struct StartInProgress(());

#[cfg_attr(windows, expect(dead_code, reason = "as above"))]
impl StartInProgress {
    pub(crate) fn new() -> Self {
        IN_PROGRESS.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for StartInProgress {
    fn drop(&mut self) {
        IN_PROGRESS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Returns whether a thread of this process is starting a child.
pub(crate) fn is_start_in_progress() -> bool {
    IN_PROGRESS.load(Ordering::SeqCst) > 0
}
