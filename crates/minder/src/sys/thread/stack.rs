//! The stacks of our threads.

/// The stack of a thread that only waits, in bytes.
pub(crate) const SMALL_STACK: usize = 64 << 10;
