//! Why a value could not be made, or a collection not be finished.

use std::fmt;
use std::io;

/// Why an operation of a heap failed. The heap is as usable as before.
///
/// ```
/// use minder_cells::{Error, Heap, HeapConfig};
///
/// let mut heap = Heap::new(HeapConfig::new().limit_bytes(64 << 10))?;
/// let text = "x".repeat(1 << 20);
/// let error = heap.mutate(|cells| cells.string(&text).map(|_| ())).unwrap_err();
/// assert!(matches!(error, Error::HeapFull { limit_bytes: 65_536 }), "{error}");
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The heap has no place left below its limit. A collection may make room.
    HeapFull {
        /// The limit, in bytes.
        limit_bytes: usize,
    },
    /// The system has no memory, or no address space.
    Memory(io::Error),
    /// An index beyond the end of a vector, or a value of another kind than the operation needs.
    Invalid {
        /// The expected kind of value: `a pair`.
        expected: &'static str,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HeapFull { limit_bytes } => {
                write!(f, "the heap is full: its limit is {limit_bytes} bytes (collect, or raise the limit)")
            }
            Self::Memory(error) => write!(f, "failed to get memory for cells: {error}"),
            Self::Invalid { expected } => write!(f, "expected {expected}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Memory(error) => Some(error),
            _ => None,
        }
    }
}

impl From<std::collections::TryReserveError> for Error {
    fn from(_: std::collections::TryReserveError) -> Self {
        Self::Memory(io::ErrorKind::OutOfMemory.into())
    }
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
