//! Whether this machine has the memory that a measurement needs.

use std::ffi::OsStr;

use minder::ErrorKind;
use minder_os::host_stats;

use crate::error::{Error, Result};

/// The memory that a measurement leaves to others.
const SPARE: u64 = 256 << 20;
/// Measurements up to this size are not checked. They cannot exhaust a machine, and some machines report
/// less than they can give: Wine does not count the page cache as available.
const UNCHECKED_MAX: u64 = 16 << 20;

/// Checks that this many bytes and 256 MiB more are free, where the machine reports its memory. Up to
/// 16 MiB are not checked, and neither is the limit of a container.
///
/// # Errors
/// `Exhausted` if not; the error names the operation and its subject.
pub(crate) fn check(bytes: u64, operation: &str, subject: &str) -> Result<()> {
    if bytes <= UNCHECKED_MAX {
        return Ok(());
    }
    match host_stats::memory() {
        Ok(memory) if memory.available < bytes.saturating_add(SPARE) => {
            let reason = "this machine has not that much free memory and 256 MiB besides";
            Err(Error::new(ErrorKind::Exhausted, operation, Some(OsStr::new(subject)), reason))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_exhaust_a_machine_is_refused() {
        assert!(check(UNCHECKED_MAX, "make", "a small one").is_ok());
        if host_stats::memory().is_ok() {
            let error = check(u64::MAX, "make", "a large one").expect_err("check size");
            assert_eq!(error.kind(), ErrorKind::Exhausted);
        }
    }
}
