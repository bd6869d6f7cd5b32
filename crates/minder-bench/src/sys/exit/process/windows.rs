//! Processes on Windows.

#![expect(unsafe_code, reason = "processes by their pids and handles")]

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::time::{Duration, Instant};

use minder::ExitStatus;
use windows_sys::Win32::Foundation::{FILETIME, WAIT_FAILED, WAIT_OBJECT_0, WAIT_TIMEOUT};
use windows_sys::Win32::System::Threading::{
    GetProcessTimes, INFINITE, OpenProcess, PROCESS_ACCESS_RIGHTS, PROCESS_QUERY_LIMITED_INFORMATION,
    PROCESS_SYNCHRONIZE, PROCESS_TERMINATE, TerminateProcess, WaitForSingleObject,
};

use crate::sys::exit::types::EXIT_TIMEOUT;
use crate::sys::last_error::check;

/// `None`: the programs that come with Windows exit without a console, or wake now and then.
pub(crate) const IDLE_COMMAND: Option<(&str, &[&str])> = None;

/// The exit code of processes that are killed here. No program uses it itself.
pub(in crate::sys::exit) const KILLED: u32 = 0x6b69_6c6c;

/// Returns whether a child ended as [`kill`] ends it.
pub(crate) fn was_killed(status: ExitStatus) -> bool {
    status == ExitStatus::Exited(KILLED.cast_signed())
}

/// Kills a process by its pid, which stays its own as long as a handle of it is open.
pub(in crate::sys::exit) fn kill(pid: u32) -> io::Result<()> {
    let process = open(pid, PROCESS_TERMINATE | PROCESS_SYNCHRONIZE)?;
    terminate(&process).or_else(|error| {
        // TerminateProcess fails for a process that has exited. Its exit code then shows that it
        // exited by itself.
        if has_exited(&process, Duration::ZERO)? { Ok(()) } else { Err(error) }
    })
}

/// Kills these children of this process. Gives up on a child that does not exit in time.
pub(crate) fn end_all(pids: &[u32]) {
    let rights = PROCESS_TERMINATE | PROCESS_SYNCHRONIZE;
    let processes: Vec<OwnedHandle> = pids.iter().filter_map(|pid| open(*pid, rights).ok()).collect();
    for process in &processes {
        // This fails for a process that has exited. The loop below gives up on one that cannot be
        // killed.
        let _ = terminate(process);
    }
    let deadline = Instant::now() + EXIT_TIMEOUT;
    for process in &processes {
        let _ = has_exited(process, deadline.saturating_duration_since(Instant::now()));
    }
}

/// Waits until these children, which were just started, are idle, for at most 200 ms: until their
/// CPU time, as precise as the system clock, does not change for 16 ms.
pub(crate) fn settle(pids: &[u32]) {
    const INTERVAL: Duration = Duration::from_millis(16);
    const TIMEOUT: Duration = Duration::from_millis(200);
    let rights = PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE;
    let processes: Vec<OwnedHandle> = pids.iter().filter_map(|pid| open(*pid, rights).ok()).collect();
    let Some(last) = processes.last() else { return };
    let total = || processes.iter().map(cpu_time).sum::<u64>();
    let deadline = Instant::now() + TIMEOUT;
    let mut before = total();
    // The children do not exit, so waiting for one is a sleep.
    while has_exited(last, INTERVAL).is_ok() && Instant::now() < deadline {
        let now = total();
        if now == before {
            return;
        }
        before = now;
    }
}

/// Waits for at most `timeout` until the process has exited, and returns whether it has.
pub(crate) fn has_exited(process: &impl AsRawHandle, timeout: Duration) -> io::Result<bool> {
    // SAFETY: the borrowed handle is open.
    match unsafe { WaitForSingleObject(process.as_raw_handle(), to_millis(timeout)) } {
        WAIT_OBJECT_0 => Ok(true),
        WAIT_TIMEOUT => Ok(false),
        WAIT_FAILED => Err(io::Error::last_os_error()),
        result => Err(io::Error::other(format!("WaitForSingleObject returned {result:#x}"))),
    }
}

/// Rounds up, so that no wait ends early.
fn to_millis(timeout: Duration) -> u32 {
    u32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(INFINITE)
}

/// Opens a process.
pub(in crate::sys::exit) fn open(pid: u32, rights: PROCESS_ACCESS_RIGHTS) -> io::Result<OwnedHandle> {
    // SAFETY: the function takes integers only.
    let raw = unsafe { OpenProcess(rights, 0, pid) };
    if raw.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above made this handle, and nothing else owns it.
    Ok(unsafe { OwnedHandle::from_raw_handle(raw) })
}

fn terminate(process: &OwnedHandle) -> io::Result<()> {
    // SAFETY: the handle is open and has the right to terminate the process.
    check(unsafe { TerminateProcess(process.as_raw_handle(), KILLED) })
}

/// Returns the CPU time of a process in units of 100 ns.
fn cpu_time(process: &OwnedHandle) -> u64 {
    let [mut created, mut exited, mut kernel, mut user] = [FILETIME::default(); 4];
    let process = process.as_raw_handle();
    // SAFETY: the handle is open and has the right to query; the four locals outlive the call.
    unsafe { GetProcessTimes(process, &mut created, &mut exited, &mut kernel, &mut user) };
    let ticks = |time: FILETIME| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    ticks(kernel) + ticks(user)
}
