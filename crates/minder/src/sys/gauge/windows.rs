//! Windows: memory, and processors beyond the 64 of one group. It keeps no load average, and tells of swapping and of busy
//! disks only by counters that are off by default or for administrators.

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

use super::{Disk, Memory, Swaps};

pub(crate) fn load() -> io::Result<f64> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn memory() -> io::Result<Memory> {
    let mut status =
        MEMORYSTATUSEX { dwLength: size_of::<MEMORYSTATUSEX>() as u32, ..MEMORYSTATUSEX::default() };
    // SAFETY: `status` outlives the call, and says how large it is.
    if unsafe { GlobalMemoryStatusEx(&mut status) } == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Memory { available: status.ullAvailPhys, total: status.ullTotalPhys })
}

pub(crate) fn swaps() -> io::Result<Swaps> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn disks() -> io::Result<Vec<Disk>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Those of all groups, unless this process was given fewer: children of ours are spread over the groups ("Processor
/// Groups"). A job object that is capped leaves a part of them.
pub(crate) fn processors() -> Option<usize> {
    // SAFETY: has no preconditions.
    let all = unsafe { GetActiveProcessorCount(ALL_PROCESSOR_GROUPS) };
    let ours = affinity().unwrap_or(all).min(all);
    let capped = cpu_rate().map_or(ours, |rate| (u64::from(ours) * u64::from(rate)).div_ceil(10_000) as u32);
    usize::try_from(capped).ok().filter(|count| *count > 0)
}

/// How many processors this process is bound to, if it is bound to some of its group.
fn affinity() -> Option<u32> {
    // SAFETY: has no preconditions.
    let us = unsafe { GetCurrentProcess() };
    let (mut ours, mut all) = (0, 0);
    // SAFETY: both outlive the call. Both become 0 for a process whose threads are in several groups.
    let answer = unsafe { GetProcessAffinityMask(us, &mut ours, &mut all) };
    (answer != 0 && ours != 0 && ours != all).then(|| ours.count_ones())
}

/// The most time on processors that our job object leaves, in hundredths of a per cent.
fn cpu_rate() -> Option<u32> {
    let mut control = JOBOBJECT_CPU_RATE_CONTROL_INFORMATION::default();
    let (into, size) = ((&raw mut control).cast(), size_of_val(&control) as u32);
    // SAFETY: no handle means the job that we are in; `into` is a local of this class, as large as it is said to be.
    let answer = unsafe {
        QueryInformationJobObject(null_mut(), JobObjectCpuRateControlInformation, into, size, null_mut())
    };
    let capped = JOB_OBJECT_CPU_RATE_CONTROL_ENABLE | JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP;
    if answer == 0 || control.ControlFlags & capped != capped {
        return None;
    }
    // SAFETY: with these two flags it is this member of the union.
    Some(unsafe { control.Anonymous.CpuRate }).filter(|rate| (1..=10_000).contains(rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_memory_and_a_processor() {
        let memory = memory().expect("memory");
        assert!(memory.available > 1 << 20 && memory.available <= memory.total, "{memory:?}");
        let std = std::thread::available_parallelism().expect("processors").get();
        assert!(processors().is_some_and(|count| count >= 1 && (count >= std || cpu_rate().is_some())));
    }
}
