//! Whether this machine has the memory that a measurement needs.

use std::ffi::OsStr;

use minder::ErrorKind;
use minder_os::host_stats;

use crate::error::{Error, Result};

/// The memory that a measurement leaves to others.
const SPARE: u64 = 256 << 20;

/// Checks that this many bytes and 256 MiB more are free, where the machine reports its memory. The limit
/// of a container is not checked.
///
/// # Errors
/// `Exhausted` if not; the error names the operation and its subject.
pub(crate) fn check(bytes: u64, operation: &str, subject: &str) -> Result<()> {
    match host_stats::memory() {
        Ok(memory) if memory.available < bytes.saturating_add(SPARE) => {
            let reason = "this machine has not that much free memory and 256 MiB besides";
            Err(Error::new(ErrorKind::Exhausted, operation, Some(OsStr::new(subject)), reason))
        }
        _ => Ok(()),
    }
}
