//! Other Unix: the load average is all that can be had by one call everywhere.

#![expect(unsafe_code, reason = "getloadavg")]

use std::io;

use super::{Disk, Memory, Swaps};

/// The load average of the last minute.
pub(crate) fn load() -> io::Result<f64> {
    let mut averages = [0.0; 1];
    // SAFETY: the array has room for the one average that is asked for.
    if unsafe { libc::getloadavg(averages.as_mut_ptr(), 1) } == 1 {
        return Ok(averages[0]);
    }
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn memory() -> io::Result<Memory> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn swaps() -> io::Result<Swaps> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn disks() -> io::Result<Vec<Disk>> {
    Err(io::ErrorKind::Unsupported.into())
}
