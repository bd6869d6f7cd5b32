//! Processes on Unix.

use std::io;
use std::time::{Duration, Instant};

use minder::ExitStatus;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};

use crate::sys::exit::types::{EXIT_TIMEOUT, ObservedExit};

/// A program that does nothing until it is killed, and its arguments.
pub(crate) const IDLE_COMMAND: Option<(&str, &[&str])> = Some(("sleep", &["1000000"]));

/// Kills these children of this process and reaps them. Gives up on a child that does not exit in
/// time.
pub(crate) fn end_all(pids: &[u32]) {
    // A pid that is not our child may belong to another process by now: it is not killed.
    let mut left: Vec<u32> = pids.iter().copied().filter(|&pid| is_running(pid)).collect();
    for &pid in &left {
        // The child is ours and not reaped, so the pid is still its own. If it cannot be killed, the
        // loop below gives up on it.
        let _ = kill(pid);
    }
    let deadline = Instant::now() + EXIT_TIMEOUT;
    loop {
        left.retain(|&pid| is_running(pid));
        if left.is_empty() || Instant::now() >= deadline {
            return;
        }
        nap();
    }
}

/// Waits until these children, which were just started, are idle, for at most 200 ms: killing a
/// child that still loads its libraries costs more.
pub(crate) fn settle(pids: &[u32]) {
    const TIMEOUT: Duration = Duration::from_millis(200);
    if !cfg!(any(target_os = "linux", target_os = "android")) {
        return;
    }
    let deadline = Instant::now() + TIMEOUT;
    for pid in pids {
        while is_busy(*pid) && Instant::now() < deadline {
            nap();
        }
    }
}

/// Returns whether a process is runnable or in an uninterruptible sleep, as `/proc` reports it.
fn is_busy(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state follows the name, which ends with the last parenthesis.
    stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with(['R', 'D']))
}

/// Returns whether a child ended as [`kill`] ends it.
pub(crate) fn was_killed(status: ExitStatus) -> bool {
    matches!(status, ExitStatus::Signaled { signal: libc::SIGKILL, .. })
}

pub(in crate::sys::exit) fn kill(pid: u32) -> io::Result<()> {
    Ok(kill_process(to_pid(pid)?, Signal::KILL)?)
}

/// Converts a pid.
pub(in crate::sys::exit) fn to_pid(pid: u32) -> io::Result<Pid> {
    Pid::from_raw(pid.cast_signed()).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// Calls waitpid(2) for one child or, with `None`, for any. Returns `None` if none has exited and
/// `options` contain `WNOHANG`.
pub(in crate::sys::exit) fn wait(
    pid: Option<Pid>,
    options: WaitOptions,
) -> rustix::io::Result<Option<ObservedExit>> {
    let reaped = rustix::io::retry_on_intr(|| match pid {
        Some(pid) => waitpid(Some(pid), options),
        None => rustix::process::wait(options),
    })?;
    Ok(reaped.map(|(pid, status)| ObservedExit {
        pid: pid.as_raw_nonzero().get().unsigned_abs(),
        killed: is_killed(status),
    }))
}

fn is_killed(status: WaitStatus) -> bool {
    status.terminating_signal() == Some(Signal::KILL.as_raw())
}

/// Returns whether a pid is a child of this process that has not exited. Reaps a child that has.
fn is_running(pid: u32) -> bool {
    to_pid(pid).is_ok_and(|pid| matches!(wait(Some(pid), WaitOptions::NOHANG), Ok(None)))
}

fn nap() {
    let nap = rustix::thread::Timespec { tv_sec: 0, tv_nsec: 500_000 };
    let _ = rustix::thread::nanosleep(&nap);
}

/// Returns whether this process has a child.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(in crate::sys::exit) fn has_children() -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, options), Err(rustix::io::Errno::CHILD))
}

/// Returns `false`: whether this process has a child is checked on Linux only.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(in crate::sys::exit) fn has_children() -> bool {
    false
}
