//! Memory that makes this process large.

use std::ffi::OsStr;
use std::io;

use crate::error::{Error, Result};
use crate::free_memory;
use crate::sys::spawn as sys;

/// Memory that makes this process a large parent: mapped and written to, in pages of the smallest
/// size. It is freed when this is dropped.
///
/// ```
/// let _ballast = minder_bench::Ballast::new(10)?;
/// # Ok::<(), minder_bench::Error>(())
/// ```
#[derive(Debug)]
pub struct Ballast {
    _memory: sys::MappedMemory,
}

impl Ballast {
    /// Allocates `mib` MiB.
    ///
    /// # Errors
    /// As [`check`](Self::check), and if the allocation fails.
    pub fn new(mib: u64) -> Result<Self> {
        let bytes = bytes(mib)?;
        let memory = sys::MappedMemory::new(bytes).map_err(|error| failed(mib, &error))?;
        Ok(Self { _memory: memory })
    }

    /// Checks that the machine has `mib` MiB of free memory and 256 MiB more, where it reports its
    /// memory. Up to 16 MiB are not checked, and neither is the limit of a container.
    ///
    /// # Errors
    /// `Exhausted` if it has not; `InvalidInput` for 0.
    pub fn check(mib: u64) -> Result<()> {
        bytes(mib).map(drop)
    }
}

/// Returns the number of bytes of `mib` MiB if so much memory is free.
fn bytes(mib: u64) -> Result<usize> {
    let bytes = mib.checked_mul(1 << 20).and_then(|bytes| usize::try_from(bytes).ok());
    let bytes = bytes.ok_or_else(|| failed(mib, &io::ErrorKind::OutOfMemory.into()))?;
    if bytes == 0 {
        return Err(failed(mib, &io::ErrorKind::InvalidInput.into()));
    }
    free_memory::check(bytes as u64, OPERATION, &format!("{mib} MiB"))?;
    Ok(bytes)
}

const OPERATION: &str = "make a parent of";

fn failed(mib: u64, error: &io::Error) -> Error {
    let subject = format!("{mib} MiB");
    Error::from_io(OPERATION, Some(OsStr::new(&subject)), error)
}
