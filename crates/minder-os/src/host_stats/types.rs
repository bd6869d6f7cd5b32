//! Values of the whole machine.

use std::time::Duration;

/// Memory of the machine, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Memory that can be allocated without swapping.
    pub available: u64,
    /// All memory.
    pub total: u64,
}

/// The time of all processors since the machine started, summed over them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorTimes {
    /// The time in which they ran programs or the kernel, or another virtual machine ran in place
    /// of this one.
    pub busy: Duration,
    /// The time in which they were idle, also while a program waited for a disk.
    pub idle: Duration,
}

/// Pages swapped since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwapCounters {
    /// Pages read from swap.
    pub pages_in: u64,
    /// Pages written to swap.
    pub pages_out: u64,
}

/// The time for which a disk has been busy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskStats {
    /// The name of the disk.
    pub name: String,
    /// The time during which at least one request was in progress, since the machine started.
    pub busy: Duration,
}
