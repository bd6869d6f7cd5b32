//! A handoff by a mutex and a condition variable.

use std::io;

use minder_os::sync::{Condvar, Mutex};

/// Blocks one thread until another calls [`release`](Self::release). Calls before the thread waits
/// are merged into one.
#[derive(Debug, Default)]
pub(crate) struct Handoff {
    is_released: Mutex<bool>,
    released: Condvar,
}

impl Handoff {
    #[expect(clippy::unnecessary_wraps, reason = "the signature of the other systems")]
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self::default())
    }

    /// Releases the thread that waits, or the next one that does.
    pub(crate) fn release(&self) {
        *self.is_released.lock() = true;
        self.released.notify_one();
    }

    /// Blocks until [`release`](Self::release) is called.
    pub(crate) fn wait(&self) {
        let is_released = self.is_released.lock();
        *self.released.wait_while(is_released, |is_released| !*is_released) = false;
    }
}
