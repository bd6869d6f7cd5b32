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
/// system gave to the process. Children of other users are in the list even if `/proc` hides them, as long as
/// the process has pidfds of them.
///
/// - Linux only (proc(5)); elsewhere `Unsupported`.
///
/// # Errors
/// `Unsupported`, or the error of the operating system. A child whose environment this user may not
/// read is in the list without one.
pub fn children(pid: u32) -> io::Result<Vec<ChildProcess>> {
    system::children(pid)
}

/// Returns whether the process with this pid is the one that started at this time, as
/// [`ChildProcess::started`] has it, and has not exited.
///
/// - Linux only; elsewhere `false`.
#[must_use]
pub fn is_running(pid: u32, started: u64) -> bool {
    system::is_running(pid, started)
}

/// Returns when a process started, as [`ChildProcess::started`] has it. `None` if no such process is seen.
///
/// - Linux only; elsewhere `None`.
#[must_use]
pub fn start_time(pid: u32) -> Option<u64> {
    system::start_time(pid)
}

/// Returns whether a signal has stopped a process, and it was not continued. A process that has exited is not
/// stopped.
///
/// - Linux only (proc(5)); elsewhere `Unsupported`.
///
/// # Errors
/// `Unsupported`; `NotFound` if no such process is seen.
pub fn is_stopped(pid: u32) -> io::Result<bool> {
    system::is_stopped(pid)
}

/// Returns whether a process has this file open.
///
/// - Linux only (proc(5)); elsewhere `Unsupported`.
///
/// # Errors
/// `Unsupported`; `Other` if `/proc` is not mounted; `NotFound` if no such process is seen;
/// `PermissionDenied` if it belongs to another user; or another error of the operating system.
pub fn has_open(pid: u32, file: &Metadata) -> io::Result<bool> {
    system::has_open(pid, file)
}
