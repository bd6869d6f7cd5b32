//! The children of another process, and the files that it has open, as the operating system shows them.

mod types;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod other;

#[cfg(any(target_os = "linux", target_os = "android"))]
use linux as system;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use other as system;

pub use types::ChildProcess;

use std::fs::Metadata;
use std::io;

/// Returns the children of a process that have started their programs and have not exited, in the order
/// of their pids.
///
/// A child that has not replaced the program of its parent yet is left out: it still shows the
/// environment of the parent. Descendants of children are left out, except orphans that the operating
/// system gave to the process.
///
/// - Linux only (proc(5)); elsewhere `Unsupported`.
///
/// # Errors
/// `Unsupported`, or the error of the operating system. A child whose environment this user may not
/// read is in the list without one.
pub fn children(pid: u32) -> io::Result<Vec<ChildProcess>> {
    system::children(pid)
}

/// Returns whether a process has this file open.
///
/// - Linux only (proc(5)); elsewhere `Unsupported`.
///
/// # Errors
/// `Unsupported`, `NotFound` if there is no such process, `PermissionDenied` if it belongs to another
/// user, or another error of the operating system.
pub fn has_open(pid: u32, file: &Metadata) -> io::Result<bool> {
    system::has_open(pid, file)
}
