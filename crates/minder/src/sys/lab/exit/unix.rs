//! What surrounds a measurement on Unix: killing, waiting, clearing away.

use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};

use super::{End, Hear, PATIENCE};
use crate::event::ExitStatus;
use crate::sys::reap::Process;

/// The names of the baselines that this system has.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) const BASELINES: &[&str] = &["floor", "sigchld-any", "sigchld-each", "thread-each", "thread-one"];
/// The names of the baselines that this system has.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) const BASELINES: &[&str] = &["floor", "thread-each", "thread-one"];

/// With how many living children it is worth while to look.
pub(crate) const SIZES: &[u64] = &[10, 100, 1000, 5000];

/// A program that does nothing until it is killed, and its arguments.
pub(crate) const IDLE: Option<(&str, &[&str])> = Some(("sleep", &["1000000"]));

/// Makes a baseline, in a process that has no children but those that are measured.
pub(crate) fn open(name: &str) -> io::Result<Box<dyn Hear>> {
    match name {
        "floor" => Ok(Box::new(super::floor::Floor)),
        #[cfg(any(target_os = "linux", target_os = "android"))]
        "sigchld-any" => Ok(Box::new(super::sigchld::Sigchld::open(super::sigchld::Sweep::Any)?)),
        #[cfg(any(target_os = "linux", target_os = "android"))]
        "sigchld-each" => Ok(Box::new(super::sigchld::Sigchld::open(super::sigchld::Sweep::Each)?)),
        "thread-each" => Ok(Box::new(super::threads::Each::new())),
        "thread-one" => Ok(Box::new(super::threads::One::open()?)),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Ends these children of ours, by force, and takes their statuses; gives up on one that does not
/// die.
pub(crate) fn end_all(pids: &[u32]) {
    let mut left: Vec<u32> = pids.iter().copied().filter(|&pid| is_ours(pid)).collect();
    for &pid in &left {
        // It is ours and not reaped; what cannot be killed is waited for below, and no longer than that.
        let _ = kill(pid);
    }
    let until = Instant::now() + PATIENCE;
    loop {
        left.retain(|&pid| is_alive(pid));
        if left.is_empty() || Instant::now() >= until {
            return;
        }
        nap();
    }
}

/// Waits until these children, which were started just now, have come to rest, for at most a
/// moment: a child that still loads its libraries would be killed at another price.
pub(crate) fn settle(pids: &[u32]) {
    const MOMENT: Duration = Duration::from_millis(200);
    if !cfg!(any(target_os = "linux", target_os = "android")) {
        return;
    }
    let until = Instant::now() + MOMENT;
    let mut pids = pids.iter();
    let mut next = pids.next();
    while let Some(pid) = next {
        // After the name, which ends with the last bracket, comes the state.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let runs = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['R', 'D']));
        if !runs || Instant::now() >= until {
            next = pids.next();
        } else {
            nap();
        }
    }
}

/// Whether a child ended because it was killed, as [`kill`] does it.
pub(crate) fn was_killed(status: ExitStatus) -> bool {
    matches!(status, ExitStatus::Signaled { signal: libc::SIGKILL, .. })
}

pub(super) fn kill(pid: u32) -> io::Result<()> {
    Ok(kill_process(number(pid)?, Signal::KILL)?)
}

/// A child's number as the system takes it.
pub(super) fn number(pid: u32) -> io::Result<Pid> {
    Pid::from_raw(pid.cast_signed()).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// waitpid(2) for one child or, without a number, for any; `None` when none ended and `options` say
/// not to wait.
pub(super) fn wait(pid: Option<Pid>, options: WaitOptions) -> rustix::io::Result<Option<End>> {
    let taken = rustix::io::retry_on_intr(|| match pid {
        Some(pid) => waitpid(Some(pid), options),
        None => rustix::process::wait(options),
    });
    Ok(taken?.map(|(pid, status)| End {
        pid: pid.as_raw_nonzero().get().unsigned_abs(),
        killed: is_killed(status),
    }))
}

fn is_killed(status: WaitStatus) -> bool {
    status.terminating_signal() == Some(Signal::KILL.as_raw())
}

/// Whether the number is a child of ours that nobody reaped.
fn is_ours(pid: u32) -> bool {
    let mut process = Process::new(pid.cast_signed(), None);
    process.check();
    !process.reaped()
}

/// Whether it still lives; takes the status of one that does not. Who was reaped by another thread
/// is gone.
fn is_alive(pid: u32) -> bool {
    number(pid).is_ok_and(|pid| matches!(wait(Some(pid), WaitOptions::NOHANG), Ok(None)))
}

fn nap() {
    let nap = rustix::thread::Timespec { tv_sec: 0, tv_nsec: 500_000 };
    let _ = rustix::thread::nanosleep(&nap);
}

/// Whether this process has a child at all.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn has_children() -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, options), Err(rustix::io::Errno::CHILD))
}

/// Whether this process has a child at all; nobody asks here.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn has_children() -> bool {
    false
}
