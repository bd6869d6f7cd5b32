//! Threads on Windows, which has no signals to block.

use std::io;
use std::thread::{Builder, JoinHandle};

/// The stack of a thread that does little, in bytes.
pub(crate) const SMALL_STACK: usize = 64 << 10;

/// Starts a thread with a small stack.
pub(crate) fn spawn_small(run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name("bench".to_owned()).stack_size(SMALL_STACK).spawn(run)
}
