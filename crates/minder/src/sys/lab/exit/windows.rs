//! What surrounds a measurement on Windows: killing, waiting, clearing away.

#![expect(unsafe_code, reason = "processes by their numbers")]

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::{FILETIME, WAIT_FAILED, WAIT_OBJECT_0, WAIT_TIMEOUT};
use windows_sys::Win32::System::Threading::{
    GetProcessTimes, OpenProcess, PROCESS_ACCESS_RIGHTS, PROCESS_QUERY_LIMITED_INFORMATION,
    PROCESS_SYNCHRONIZE, PROCESS_TERMINATE, TerminateProcess, WaitForSingleObject,
};

use super::{Hear, PATIENCE};
use crate::event::ExitStatus;
use crate::sys::last_error::done;
use crate::sys::wait::millis;

/// The names of the baselines that this system has.
pub(crate) const BASELINES: &[&str] = &["floor", "scan", "thread-each"];

/// With how many living children it is worth while to look: starting one is dear here.
pub(crate) const SIZES: &[u64] = &[10, 100, 1000];

/// A program that does nothing until it is killed, and its arguments: what comes with the system
/// ends without a console, or wakes every now and then.
pub(crate) const IDLE: Option<(&str, &[&str])> = None;

/// The exit code of those that are killed here, which no program gives itself.
pub(super) const KILLED: u32 = 0x6b69_6c6c;

/// Makes a baseline.
pub(crate) fn open(name: &str) -> io::Result<Box<dyn Hear>> {
    match name {
        "floor" => Ok(Box::new(super::known::Known::default())),
        "scan" => Ok(Box::new(super::scan::Scan::default())),
        "thread-each" => Ok(Box::new(super::thread_each::ThreadEach::new())),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Whether a child ended because it was killed, as [`kill`] does it.
pub(crate) fn was_killed(status: ExitStatus) -> bool {
    status == ExitStatus::Exited(KILLED.cast_signed())
}

/// Kills a process by its number, which is its own for as long as somebody has a handle of it.
pub(super) fn kill(pid: u32) -> io::Result<()> {
    let process = process(pid, PROCESS_TERMINATE | PROCESS_SYNCHRONIZE)?;
    terminate(&process).or_else(|error| {
        // One that is over refuses ("TerminateProcess"); that it ended by itself is told by its exit code.
        if is_over(&process, Duration::ZERO)? { Ok(()) } else { Err(error) }
    })
}

/// Ends these children of ours, by force; gives up on one that does not die.
pub(crate) fn end_all(pids: &[u32]) {
    let rights = PROCESS_TERMINATE | PROCESS_SYNCHRONIZE;
    let processes: Vec<OwnedHandle> = pids.iter().filter_map(|pid| process(*pid, rights).ok()).collect();
    for process in &processes {
        // One that is over refuses, and what cannot be killed is waited for below, no longer than that.
        let _ = terminate(process);
    }
    let until = Instant::now() + PATIENCE;
    for process in &processes {
        let _ = is_over(process, until.saturating_duration_since(Instant::now()));
    }
}

/// Waits until these children, which were started just now, have come to rest, for at most a
/// moment: until they use no processor from one look to the next, as far as the system's clock
/// tells.
pub(crate) fn settle(pids: &[u32]) {
    const LOOK: Duration = Duration::from_millis(16);
    const MOMENT: Duration = Duration::from_millis(200);
    let rights = PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE;
    let processes: Vec<OwnedHandle> = pids.iter().filter_map(|pid| process(*pid, rights).ok()).collect();
    let Some(last) = processes.last() else { return };
    let used = || processes.iter().map(used).sum::<u64>();
    let (until, mut before) = (Instant::now() + MOMENT, used());
    // They do not end; whoever waits for one is back a moment later.
    while is_over(last, LOOK).is_ok() && Instant::now() < until {
        let now = used();
        if now == before {
            return;
        }
        before = now;
    }
}

/// Waits until the process has ended, for at most `left`.
pub(super) fn is_over(process: &impl AsRawHandle, left: Duration) -> io::Result<bool> {
    // SAFETY: whoever lends the handle keeps it open.
    match unsafe { WaitForSingleObject(process.as_raw_handle(), millis(Some(left))) } {
        WAIT_OBJECT_0 => Ok(true),
        WAIT_TIMEOUT => Ok(false),
        WAIT_FAILED => Err(io::Error::last_os_error()),
        answer => Err(io::Error::other(format!("WaitForSingleObject answered {answer:#x}"))),
    }
}

fn process(pid: u32, rights: PROCESS_ACCESS_RIGHTS) -> io::Result<OwnedHandle> {
    // SAFETY: takes numbers only.
    let raw = unsafe { OpenProcess(rights, 0, pid) };
    if raw.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above made this handle, and nobody else has it.
    Ok(unsafe { OwnedHandle::from_raw_handle(raw) })
}

fn terminate(process: &OwnedHandle) -> io::Result<()> {
    // SAFETY: the handle is open, and has the right to do this.
    let answer = unsafe { TerminateProcess(process.as_raw_handle(), KILLED) };
    done(answer)
}

/// The CPU time of a process, in units of 100 ns.
fn used(process: &OwnedHandle) -> u64 {
    let [mut start, mut end, mut system, mut user] = [FILETIME::default(); 4];
    let process = process.as_raw_handle();
    // SAFETY: the handle is open and has the right to do this; the four locals outlive the call.
    unsafe { GetProcessTimes(process, &mut start, &mut end, &mut system, &mut user) };
    let time = |time: FILETIME| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    time(system) + time(user)
}
