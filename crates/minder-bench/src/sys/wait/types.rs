//! The contract of a baseline that waits.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

use super::objects::Objects;

/// A baseline watches the objects that it was opened for, and reports them by their indices. It
/// stays on the thread that waits.
pub(crate) trait WaitBaseline: Debug {
    /// Waits until an object is signalled and returns its index; `None` if the wait ended early,
    /// such as by a signal.
    fn wait(&mut self) -> io::Result<Option<usize>>;

    /// Returns the index of a signalled object, if there is one. Never waits.
    fn poll(&mut self) -> io::Result<Option<usize>>;

    /// Returns whether [`wait`](Self::wait) resets the object that it returns.
    fn resets(&self) -> bool {
        false
    }
}

/// The number of objects that one `WaitForMultipleObjects` takes (`MAXIMUM_WAIT_OBJECTS`). On other
/// systems the pool keeps to it as well, to stay comparable.
pub(super) const CALL_MAX: usize = 64;

/// Opens a baseline for these objects.
pub(super) type Open = fn(Arc<Objects>) -> io::Result<Box<dyn WaitBaseline>>;
