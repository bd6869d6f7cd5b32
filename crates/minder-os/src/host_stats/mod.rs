//! The load of this machine: runnable processes, memory, swapping, disks and processors.
//!
//! A value that a system does not report is `Unsupported`.

mod types;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod cgroup;
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

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use cgroup::second_cgroup;
pub use types::{DiskStats, Memory, ProcessorTimes, SwapCounters};

use std::io;
use std::sync::OnceLock;

/// Returns the number of processors that children of this process can use at once, or 1 if it is
/// not known. The first call counts them; later ones, also in a forked process, return the same number.
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
    // Linux: reads three files of the control group.
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| {
        let std = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        #[cfg(windows)]
        return windows::processors().unwrap_or_else(std);
        #[cfg(unix)]
        std()
    })
}

/// Returns the number of processes that run or are ready to run, without the calling one.
///
/// - Linux: the number at this moment, for the whole machine.
/// - Other Unix systems: the load average of the last minute.
/// - Windows: `Unsupported`.
///
/// # Errors
/// `Unsupported`, or the error of the operating system.
pub fn load() -> io::Result<f64> {
    system::load()
}

/// Returns the memory of the whole machine. Limits of a container are not considered.
///
/// - Linux and Windows; elsewhere `Unsupported`.
///
/// # Errors
/// `Unsupported`, or the error of the operating system.
pub fn memory() -> io::Result<Memory> {
    system::memory()
}

/// Returns the memory that this process and its children can have: that of the machine, or less where
/// a control group limits it.
///
/// - Linux: also reads the limits of the groups, of both versions (cgroups(7)).
/// - Elsewhere as [`memory`].
///
/// # Errors
/// `Unsupported`, or the error of the operating system.
pub fn usable_memory() -> io::Result<Memory> {
    let memory = memory()?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let memory = cgroup::limited(memory);
    Ok(memory)
}

/// Returns how long the processors of the machine have been busy and idle. A container sees those
/// of its host.
///
/// - Linux only (proc_stat(5)); elsewhere `Unsupported`.
///
/// # Errors
/// `Unsupported`, or the error of the operating system.
pub fn processor_times() -> io::Result<ProcessorTimes> {
    system::processor_times()
}

/// Returns the largest resident set that this process has had, in bytes.
///
/// - Linux only (`VmHWM`, proc_pid_status(5)); elsewhere `Unsupported`. `ru_maxrss` (getrusage(2)) also
///   counts the memory of the process that started this one.
///
/// # Errors
/// `Unsupported`, or the error of the operating system.
pub fn own_peak_memory() -> io::Result<u64> {
    system::own_peak_memory()
}

/// Returns a bound of [`own_peak_memory`], in bytes, by one system call: `ru_maxrss` (getrusage(2)).
///
/// - Linux only; elsewhere `Unsupported`. The kernel counts pages for each processor, and adds them up in
///   batches of 32 pages or more (`percpu_counter_batch`). This value does not have what is in the batches,
///   so it may be that much less.
///
/// # Errors
/// `Unsupported`, or the error of the operating system.
pub fn own_peak_memory_bound() -> io::Result<u64> {
    system::own_peak_memory_bound()
}

/// Returns the number of pages swapped since the machine started.
///
/// - Linux only; elsewhere `Unsupported`.
///
/// # Errors
/// `Unsupported`, or the error of the operating system.
pub fn swap_counters() -> io::Result<SwapCounters> {
    system::swap_counters()
}

/// Returns all disks with the time that they have been busy. Partitions are listed too.
///
/// - Linux only; elsewhere `Unsupported`.
///
/// # Errors
/// `Unsupported`, or the error of the operating system.
pub fn disks() -> io::Result<Vec<DiskStats>> {
    system::disks()
}
