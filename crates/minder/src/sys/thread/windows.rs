//! Threads on Windows, which has no signals to block.

use std::io;
use std::thread::{Builder, JoinHandle};

use super::stack::SMALL_STACK;

/// Starts a thread: console events run on one of their own.
pub(crate) fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    start()
}

/// Starts a thread that does next to nothing: it has a small stack.
pub(crate) fn start_small(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).stack_size(SMALL_STACK).spawn(run)
}
