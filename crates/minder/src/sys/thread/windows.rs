//! Threads on Windows, which has no signals to block.

use std::io;
use std::thread::{Builder, JoinHandle};

use super::stack::SMALL_STACK;

/// Runs `start`, which starts a thread. Windows handles console events on a separate thread, so
/// that the new one has no signals to block.
pub(crate) fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    start()
}

/// Starts a thread with a small stack, for a thread that does little.
pub(crate) fn start_small(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).stack_size(SMALL_STACK).spawn(run)
}
