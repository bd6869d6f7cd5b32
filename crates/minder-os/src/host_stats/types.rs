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
