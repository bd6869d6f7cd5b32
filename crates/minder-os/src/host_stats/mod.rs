//! How busy this machine is: runnable processes, memory, swapping, disks and processors.
//!
//! A value that a system does not report is `Unsupported`.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(any(target_os = "linux", target_os = "android"))]
use linux as system;
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
use unix as system;
#[cfg(windows)]
use windows as system;

use std::io;
use std::time::Duration;

/// Memory of the machine, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Memory that can be allocated without swapping.
    pub available: u64,
    /// All memory.
    pub total: u64,
}

/// Pages swapped since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwapCounters {
    /// Pages read from swap.
    pub pages_in: u64,
    /// Pages written to swap.
    pub pages_out: u64,
}

/// How long a disk has been busy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskStats {
    /// The name of the disk.
    pub name: String,
    /// The time during which at least one request was in progress, since the machine started.
    pub busy: Duration,
}

/// Returns the number of processors that children of this process can use at once, or 1 if it is
/// not known.
///
/// - As [`std::thread::available_parallelism`].
/// - Windows: counts all processor groups, where that function counts one group, at most 64
///   processors.
///
/// ```
/// assert!(minder_os::host_stats::processors() >= 1);
/// ```
#[must_use]
pub fn processors() -> usize {
    let std = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    #[cfg(windows)]
    return windows::processors().unwrap_or_else(std);
    #[cfg(unix)]
    std()
}

/// Returns the number of processes that run or are ready to run, without the calling one.
///
/// - Linux: the number at this moment, for the whole machine.
/// - Other Unix systems: the load average of the last minute.
/// - Windows: `Unsupported`.
///
/// # Errors
/// `Unsupported`, or the error of the system.
pub fn load() -> io::Result<f64> {
    system::load()
}

/// Returns the memory of the whole machine. Limits of a container are not considered.
///
/// - Linux and Windows; elsewhere `Unsupported`.
///
/// # Errors
/// `Unsupported`, or the error of the system.
pub fn memory() -> io::Result<Memory> {
    system::memory()
}

/// Returns the number of pages swapped since the machine started.
///
/// - Linux only; elsewhere `Unsupported`.
///
/// # Errors
/// `Unsupported`, or the error of the system.
pub fn swap_counters() -> io::Result<SwapCounters> {
    system::swap_counters()
}

/// Returns all disks with the time that they have been busy. Partitions are listed too.
///
/// - Linux only; elsewhere `Unsupported`.
///
/// # Errors
/// `Unsupported`, or the error of the system.
pub fn disks() -> io::Result<Vec<DiskStats>> {
    system::disks()
}
