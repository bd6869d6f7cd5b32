//! Objects that a benchmark signals, waits for and resets.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::sys::wait as sys;

/// Objects that can be signalled and reset, and that no mechanism watches yet.
///
/// - Linux: eventfds. Other Unix: pipes. Windows: events that stay signalled until they are reset.
///
/// ```
/// let objects = minder_bench::WaitObjects::open(3)?;
/// assert_eq!(objects.len(), 3);
/// objects.signal_and_reset(2)?;
/// # Ok::<(), minder_bench::Error>(())
/// ```
#[derive(Debug)]
pub struct WaitObjects(pub(super) Arc<sys::Objects>);

impl WaitObjects {
    /// The number of descriptors or handles of one object.
    pub const DESCRIPTORS: usize = sys::Objects::DESCRIPTORS;

    /// The numbers of objects that are measured by default: 0, and those at which the costs of
    /// mechanisms change.
    pub const SIZES: &[u64] = sys::SIZES;

    /// Makes objects.
    ///
    /// # Errors
    /// `Exhausted` if there are too few descriptors.
    pub fn open(count: usize) -> Result<Self> {
        match sys::Objects::open(count) {
            Ok(objects) => Ok(Self(Arc::new(objects))),
            Err(error) => Err(Error::from_io("make objects to wait for", None, &error)),
        }
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Signals an object and resets it while no thread waits. The cost of a
    /// [cycle](crate::WaitBench::cycle) beyond this is the cost of the wait.
    ///
    /// # Errors
    /// Those of system calls that do not fail for an open object.
    ///
    /// # Panics
    /// If there is no such object.
    pub fn signal_and_reset(&self, index: usize) -> Result<()> {
        let result = self.0.signal(index).and_then(|()| self.0.reset(index));
        result.map_err(|error| Error::from_io("signal an object", None, &error))
    }
}
