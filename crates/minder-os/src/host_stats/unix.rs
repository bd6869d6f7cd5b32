//! Other Unix systems: the load average is the only value that one call returns on all of them.

#![expect(unsafe_code, reason = "getloadavg")]

use std::io;

use super::types::{DiskStats, Memory, ProcessorTimes, SwapCounters};

/// Returns the load average of the last minute.
pub(super) fn load() -> io::Result<f64> {
    let mut averages = [0.0; 1];
    // SAFETY: the array has room for one average.
    if unsafe { libc::getloadavg(averages.as_mut_ptr(), 1) } == 1 {
        return Ok(averages[0]);
    }
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn memory() -> io::Result<Memory> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn processor_times() -> io::Result<ProcessorTimes> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn own_peak_memory() -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn own_peak_memory_bound() -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn swap_counters() -> io::Result<SwapCounters> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn disks() -> io::Result<Vec<DiskStats>> {
    Err(io::ErrorKind::Unsupported.into())
}
