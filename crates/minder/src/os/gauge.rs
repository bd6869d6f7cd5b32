//! How busy the machine is, for those who decide whether to start more.

use std::io;

use crate::sys::gauge;

pub use crate::sys::gauge::{Disk, Memory, Swaps};

/// How many processors children of this process can use at once; 1 where nobody knows.
///
/// - As [`std::thread::available_parallelism`], which see. Windows: those of all processor groups, where that function counts
///   one group, at most 64.
///
/// ```
/// assert!(minder::os::processors() >= 1);
/// ```
#[must_use]
pub fn processors() -> usize {
    let std = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    gauge::processors().unwrap_or_else(std)
}

/// How many processes run or could run at this moment, without the one that asks.
///
/// - Linux: the figure of this moment, of the whole machine. Other Unix: the load average of the last minute. Windows:
///   `Unsupported`.
///
/// # Errors
/// `Unsupported`; what the system says.
pub fn load() -> io::Result<f64> {
    gauge::load()
}

/// Memory of the whole machine; limits of a container are not looked at.
///
/// - Linux and Windows; elsewhere `Unsupported`.
///
/// # Errors
/// `Unsupported`; what the system says.
pub fn memory() -> io::Result<Memory> {
    gauge::memory()
}

/// Pages swapped so far.
///
/// - Linux only; elsewhere `Unsupported`.
///
/// # Errors
/// `Unsupported`; what the system says.
pub fn swaps() -> io::Result<Swaps> {
    gauge::swaps()
}

/// All disks, and how long they have been busy.
///
/// - Linux only; elsewhere `Unsupported`.
///
/// # Errors
/// `Unsupported`; what the system says.
pub fn disks() -> io::Result<Vec<Disk>> {
    gauge::disks()
}
