//! Windows: memory, and processors of all groups. Windows has no load average. Its counters for
//! swapping and for busy disks are off by default, or for administrators only.

#![expect(unsafe_code, reason = "memory, processors and the limits of our job")]

use std::io;
use std::ptr::null_mut;

use windows_sys::Win32::System::JobObjects::{
    JOB_OBJECT_CPU_RATE_CONTROL_ENABLE, JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP,
    JOBOBJECT_CPU_RATE_CONTROL_INFORMATION, JobObjectCpuRateControlInformation, QueryInformationJobObject,
};
use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX};
use windows_sys::Win32::System::Threading::{
    ALL_PROCESSOR_GROUPS, GetActiveProcessorCount, GetCurrentProcess, GetProcessAffinityMask,
};

use super::types::{DiskStats, Memory, ProcessorTimes, SwapCounters};

pub(super) fn load() -> io::Result<f64> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn memory() -> io::Result<Memory> {
    let mut status =
        MEMORYSTATUSEX { dwLength: size_of::<MEMORYSTATUSEX>() as u32, ..MEMORYSTATUSEX::default() };
    // SAFETY: `status` outlives the call, and holds its own size.
    if unsafe { GlobalMemoryStatusEx(&mut status) } == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Memory { available: status.ullAvailPhys, total: status.ullTotalPhys })
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

/// Counts the processors of all groups, unless this process may use fewer: Windows spreads
/// children over the groups ("Processor Groups"). A job object with a CPU rate limit leaves a part
/// of them.
pub(super) fn processors() -> Option<usize> {
    // SAFETY: has no preconditions.
    let all = unsafe { GetActiveProcessorCount(ALL_PROCESSOR_GROUPS) };
    let usable = affinity().unwrap_or(all).min(all);
    let capped =
        cpu_rate().map_or(usable, |rate| (u64::from(usable) * u64::from(rate)).div_ceil(10_000) as u32);
    usize::try_from(capped).ok().filter(|count| *count > 0)
}

/// Returns the number of processors that this process is bound to, if it is bound to a part of its
/// group.
fn affinity() -> Option<u32> {
    // SAFETY: has no preconditions.
    let process = unsafe { GetCurrentProcess() };
    let mut mask = 0;
    let mut all = 0;
    // SAFETY: both masks outlive the call. Both become 0 for a process whose threads are in several
    // groups.
    let result = unsafe { GetProcessAffinityMask(process, &mut mask, &mut all) };
    (result != 0 && mask != 0 && mask != all).then(|| mask.count_ones())
}

/// Returns the CPU rate limit of the job object of this process, in hundredths of a per cent.
fn cpu_rate() -> Option<u32> {
    let mut control = JOBOBJECT_CPU_RATE_CONTROL_INFORMATION::default();
    let into = (&raw mut control).cast();
    let size = size_of_val(&control) as u32;
    // SAFETY: a null handle means the job of this process; `into` is a local structure of this class
    // and size.
    let result = unsafe {
        QueryInformationJobObject(null_mut(), JobObjectCpuRateControlInformation, into, size, null_mut())
    };
    let capped = JOB_OBJECT_CPU_RATE_CONTROL_ENABLE | JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP;
    if result == 0 || control.ControlFlags & capped != capped {
        return None;
    }
    // SAFETY: with these two flags the union holds this member.
    Some(unsafe { control.Anonymous.CpuRate }).filter(|rate| (1..=10_000).contains(rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_processors_are_reported() {
        let memory = memory().expect("read the memory");
        assert!(memory.available > 1 << 20 && memory.available <= memory.total, "{memory:?}");
        let std = std::thread::available_parallelism().expect("count the processors").get();
        assert!(processors().is_some_and(|count| count >= 1 && (count >= std || cpu_rate().is_some())));
    }
}
