//! What a thread of ours must be to a host: a place where none of its signals arrive.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(unix)]
pub(crate) use self::unix::{start_small, without_signals};
#[cfg(windows)]
pub(crate) use self::windows::{start_small, without_signals};

/// The stack of a thread that does next to nothing, in bytes.
pub(crate) const SMALL_STACK: usize = 64 << 10;

/// Names the calling thread, and no other before or after it; never 0.
pub(crate) fn here() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    thread_local!(static HERE: usize = NEXT.fetch_add(1, Ordering::Relaxed));
    HERE.with(|here| *here)
}
