//! waitid(2) and its relatives: exit statuses and stops of children, and whether a pid is in use.

#![expect(unsafe_code, reason = "waitid with resource usage, kill with signal 0, getpgid")]

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::exit_status::{ExitInfo, ExitStatus, ResourceUsage};
use crate::sys::error::is_no_such_process;

/// Opens a pidfd of the process with this pid. Returns `None` where the operating system has no
/// pidfds.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn open_pidfd(pid: libc::pid_t) -> io::Result<Option<OwnedFd>> {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    match Pid::from_raw(pid) {
        Some(pid) if super::pidfd::available() => Ok(Some(pidfd_open(pid, PidfdFlags::empty())?)),
        _ => Ok(None),
    }
}

/// A descriptor that names the process with this pid, where the operating system has such.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn open_pidfd(_pid: libc::pid_t) -> io::Result<Option<OwnedFd>> {
    Ok(None)
}

/// Returns whether a process has this pid. A zombie still has its pid.
pub(crate) fn exists(pid: libc::pid_t) -> bool {
    // SAFETY: kill takes two numbers; signal 0 only asks.
    let answer = unsafe { libc::kill(pid, 0) };
    answer == 0 || !is_no_such_process(&io::Error::last_os_error())
}

/// Returns the current process group of a process, or `None` if the process does not exist.
pub(crate) fn group_now(pid: libc::pid_t) -> Option<libc::pid_t> {
    // SAFETY: getpgid takes a number.
    match unsafe { libc::getpgid(pid) } {
        -1 => None,
        group => Some(group),
    }
}

/// Returns whether the process is a child of ours that has not been reaped.
pub(crate) fn is_unreaped_child(pid: libc::pid_t) -> bool {
    wait_id(pid, None, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT, None).is_ok()
}

/// Calls waitid(2) once for a child that has exited. The caller adds `WNOHANG`, `WNOWAIT` or
/// neither.
///
/// A child that other code reaped counts as exited: its status is `Unknown`, or the one that the
/// kernel keeps with the pidfd.
pub(crate) fn wait_for_exit(
    pid: libc::pid_t,
    pidfd: Option<&OwnedFd>,
    options: i32,
) -> io::Result<Option<ExitInfo>> {
    // SAFETY: rusage is plain numbers; all zero is a value of it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let info = match wait_id(pid, pidfd, options | libc::WEXITED, Some(&mut usage)) {
        Ok(info) => info,
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(Some(stolen(pidfd))),
        Err(error) => return Err(error),
    };
    let (found, status) = of_child(&info);
    if found == 0 {
        return Ok(None);
    }
    let status = match info.si_code {
        libc::CLD_EXITED => ExitStatus::Exited(status),
        code => ExitStatus::Signaled { signal: status, core_dumped: code == libc::CLD_DUMPED },
    };
    Ok(Some(ExitInfo { status, usage: Some(convert(&usage)) }))
}

/// Returns the signal that has stopped the child (job control) since the last call for it.
pub(crate) fn stop_signal(pid: libc::pid_t, pidfd: Option<&OwnedFd>) -> Option<i32> {
    let info = wait_id(pid, pidfd, libc::WSTOPPED | libc::WNOHANG, None).ok()?;
    let (pid, signal) = of_child(&info);
    (pid != 0).then_some(signal)
}

/// The child that waitid found (0: none) and its exit code or signal.
fn of_child(info: &libc::siginfo_t) -> (libc::pid_t, i32) {
    // SAFETY: waitid filled in the fields of a child, or left them zero.
    let pid = unsafe { info.si_pid() };
    // SAFETY: as above.
    (pid, unsafe { info.si_status() })
}

/// waitid(2); on Linux with the resource usage that the kernel hands out and the C library's
/// function leaves away.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn wait_id(
    pid: libc::pid_t,
    pidfd: Option<&OwnedFd>,
    options: i32,
    usage: Option<&mut libc::rusage>,
) -> io::Result<libc::siginfo_t> {
    use std::os::fd::AsRawFd;
    let (kind, id) = match pidfd {
        Some(pidfd) => (libc::P_PIDFD, pidfd.as_raw_fd()),
        None => (libc::P_PID, pid),
    };
    let usage = usage.map_or(std::ptr::null_mut(), std::ptr::from_mut);
    // SAFETY: siginfo is plain numbers and pointers that may be null.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are null or point to locals that outlive the call.
        let result = unsafe { libc::syscall(libc::SYS_waitid, kind, id, &mut info, options, usage) };
        match result {
            0 => return Ok(info),
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => (),
                error => return Err(error),
            },
        }
    }
}

/// waitid(2). Usage comes from `getrusage` of all children, which would mix them up, so it stays
/// zero here.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn wait_id(
    pid: libc::pid_t,
    _pidfd: Option<&OwnedFd>,
    options: i32,
    _usage: Option<&mut libc::rusage>,
) -> io::Result<libc::siginfo_t> {
    // SAFETY: siginfo is plain numbers and pointers that may be null.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: the pointer is to a local that outlives the call.
        let result = unsafe { libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, options) };
        match result {
            0 => return Ok(info),
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => (),
                error => return Err(error),
            },
        }
    }
}

/// The end of a child that other code reaped. Newer kernels keep the status with the pidfd.
fn stolen(pidfd: Option<&OwnedFd>) -> ExitInfo {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Some(pidfd) = pidfd
        && let Some(status) = super::pidfd::kept_status(std::os::fd::AsFd::as_fd(pidfd))
    {
        return ExitInfo { status, usage: None };
    }
    let _ = pidfd;
    ExitInfo { status: ExitStatus::Unknown, usage: None }
}

fn convert(usage: &libc::rusage) -> ResourceUsage {
    let time = |time: libc::timeval| {
        Duration::new(time.tv_sec.unsigned_abs(), 0)
            + Duration::from_micros(u64::from(time.tv_usec.unsigned_abs() as u32))
    };
    // Kibibytes, but bytes on Apple's systems (getrusage(2) of each).
    let unit = if cfg!(target_vendor = "apple") { 1 } else { 1024 };
    ResourceUsage {
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
        max_rss: u64::try_from(usage.ru_maxrss).ok().map(|rss| rss * unit),
        main_thread: None,
    }
}
