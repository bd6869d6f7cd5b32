//! Asking the system how busy it is: runnable processes, memory, swapping, disks.
//!
//! Each system supplies `load`, `memory`, `swaps` and `disks`; what it does not tell is `Unsupported`. Windows also counts its
//! processors, which elsewhere the standard library does.

use std::time::Duration;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(any(target_os = "linux", target_os = "android"))]
use linux as system;
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
mod unix;
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
use unix as system;
#[cfg(windows)]
mod windows;
#[cfg(windows)]
use windows as system;

#[cfg(windows)]
pub(crate) use system::processors;
pub(crate) use system::{disks, load, memory, swaps};

/// `None`: the standard library knows.
#[cfg(not(windows))]
pub(crate) fn processors() -> Option<usize> {
    None
}

/// Memory of the machine, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What can be had without swapping.
    pub available: u64,
    /// All that there is.
    pub total: u64,
}

/// Pages swapped since the machine was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swaps {
    /// Read back from swap.
    pub ins: u64,
    /// Written to swap.
    pub outs: u64,
}

/// How long a disk has been busy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Its name.
    pub name: String,
    /// The time during which at least one request was being served, since the machine was started.
    pub busy: Duration,
}
