//! Probes on Linux: calls whose error distinguishes "not available" from "wrong argument".

#![expect(unsafe_code, reason = "system calls with arguments that make them do nothing")]

use crate::backend::Backend;
use std::{fs, io};

use minder_os::grouped;
use rustix::process::{PidfdFlags, Resource, getpid, getrlimit, pidfd_open};

use super::cgroup;
use super::kernel_version::kernel_version;
use super::types::{Availability, Capability, limit};
use super::unix::{descriptors, terminal, user_processes};
use crate::sys::pid::pidfd_available;
use crate::sys::process_tree::why_no_table;

/// Returns why a wait backend could not be opened.
pub(crate) fn refusal(backend: Backend, error: &io::Error) -> String {
    if backend == Backend::IoUring && error.raw_os_error() == Some(libc::EPERM) {
        // 1: for users without a privilege, 2: for all (sysctl kernel, since Linux 6.6).
        if let Some(value) = number("/proc/sys/kernel/io_uring_disabled").filter(|&value| value > 0) {
            return format!("kernel.io_uring_disabled={value}");
        }
    }
    error.raw_os_error().map_or_else(|| error.to_string(), reason)
}

/// Returns the mechanisms that start, watch and kill children.
pub(crate) fn children() -> Vec<Capability> {
    let clone3 = clone3();
    let by_clone3 = clone3.state == Availability::Available;
    vec![
        pidfd(),
        kept_status(),
        clone3.chosen(by_clone3),
        Capability::available("children", "clone").chosen(!by_clone3),
        close_range(),
        subreaper(),
        children_file(),
        cgroup::delegated(),
        terminal(),
    ]
}

fn pidfd() -> Capability {
    let mechanism = Capability::available("children", "pidfd");
    match pidfd_open(getpid(), PidfdFlags::empty()) {
        Ok(_) if pidfd_available() => mechanism,
        Ok(_) => mechanism.refused("waitid does not take one (before Linux 5.4)"),
        Err(error) => answer(mechanism, error.raw_os_error()),
    }
}

/// Returns whether the pidfd still gives the status after other code has reaped the process.
fn kept_status() -> Capability {
    let mechanism = Capability::available("children", "kept status");
    if kernel_version() >= Some((6, 15)) { mechanism } else { mechanism.absent("before Linux 6.15") }
}

/// Calls clone3 with a structure of no size: the kernel returns EINVAL, a sandbox or an old kernel
/// another error.
fn clone3() -> Capability {
    let mechanism = Capability::available("children", "clone3");
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return mechanism.absent("not built in on this processor");
    }
    // SAFETY: a size of zero is refused before the pointer, which is null, is looked at.
    let result = unsafe { libc::syscall(libc::SYS_clone3, std::ptr::null_mut::<u8>(), 0_usize) };
    match failed(result) {
        libc::EINVAL => mechanism,
        errno => answer(mechanism, errno),
    }
}

/// Calls close_range with an empty range: its first descriptor is greater than its last.
fn close_range() -> Capability {
    let mechanism = Capability::available("children", "close_range");
    // SAFETY: the kernel refuses a range whose first descriptor is greater than the last; none is
    // closed.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 1, 0, 0) };
    match failed(result) {
        libc::EINVAL => mechanism,
        errno => answer(mechanism, errno),
    }
}

fn subreaper() -> Capability {
    let mechanism = Capability::available("children", "subreaper");
    let mut own: libc::c_int = 0;
    // SAFETY: the call writes one int, to a local that outlives it.
    let result = unsafe { libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut own) };
    match failed(result.into()) {
        0 => mechanism,
        errno => answer(mechanism, errno),
    }
}

/// Returns whether the kernel lists a thread's children, so that the whole process table need not
/// be read.
fn children_file() -> Capability {
    let mechanism = Capability::available("children", "children file");
    match (why_no_table(), fs::read("/proc/thread-self/children")) {
        (Some(why), _) => mechanism.refused(why.replace('`', "")),
        (None, Ok(_)) => mechanism,
        (None, Err(_)) => mechanism.absent("kernel without CONFIG_PROC_CHILDREN"),
    }
}

/// Returns the limits of descriptors, processes, terminals, pipes and arguments.
pub(crate) fn limits() -> Vec<Capability> {
    [Some(descriptors(3)), processes(), terminals(), Some(pipes()), Some(arguments())]
        .into_iter()
        .flatten()
        .collect()
}

fn processes() -> Option<Capability> {
    let pids = cgroup::processes_max();
    // The user's limit does not bind a user with the privilege to exceed it.
    let user = if privileged() { None } else { user_processes() };
    let all = [
        (number("/proc/sys/kernel/pid_max"), "kernel.pid_max"),
        (number("/proc/sys/kernel/threads-max"), "kernel.threads-max"),
        (pids, "pids.max of this control group"),
        (user, "RLIMIT_NPROC of this user"),
    ];
    let (least, whose) = all.into_iter().filter_map(|(value, whose)| Some((value?, whose))).min()?;
    Some(limit("processes", Some(least), format!("{} processes ({whose})", grouped(least))))
}

fn terminals() -> Option<Capability> {
    let max = number("/proc/sys/kernel/pty/max")?;
    let used = number("/proc/sys/kernel/pty/nr").unwrap_or(0);
    Some(limit("terminals", Some(max), format!("{} terminals, {} in use", grouped(max), grouped(used))))
}

/// A pipe holds 16 pages, until the pipes of one user hold as many as the soft limit says; then one
/// or two pages each (measured: 8 KiB from the 1,025th pipe on, Linux 6.18). A privileged user is
/// not counted.
fn pipes() -> Capability {
    const PAGES_EACH: u64 = 16;
    let page = page_size();
    let full = (page * PAGES_EACH) >> 10;
    match number("/proc/sys/fs/pipe-user-pages-soft").filter(|&pages| pages > 0 && !privileged()) {
        Some(pages) => {
            let count = pages / PAGES_EACH;
            let text = format!(
                "pipes of {full} KiB up to no. {}, then {} KiB (user limit)",
                grouped(count),
                (page * 2) >> 10
            );
            limit("pipes", Some(count), text)
        }
        None => limit("pipes", None, format!("pipes of {full} KiB, any number")),
    }
}

/// execve(2): a quarter of the stack's limit, at most 6 MiB, at least 32 pages; one string at most
/// 32 pages.
fn arguments() -> Capability {
    const PAGES_ONE: u64 = 32;
    let one = page_size() * PAGES_ONE;
    let stack = getrlimit(Resource::Stack).current.unwrap_or(u64::MAX);
    let all = (stack / 4).clamp(one, 6 << 20);
    let text = format!(
        "{} KiB of arguments and environment, {} bytes for one argument",
        grouped(all >> 10),
        grouped(one - 1)
    );
    limit("arguments", Some(all), text)
}

fn page_size() -> u64 {
    // SAFETY: the call takes a number and returns one.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Returns whether we may exceed the limits of a user: CAP_SYS_ADMIN or CAP_SYS_RESOURCE.
fn privileged() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let caps = status.lines().find_map(|line| line.strip_prefix("CapEff:")).map(str::trim);
    let caps = caps.and_then(|caps| u64::from_str_radix(caps, 16).ok()).unwrap_or(0);
    caps & (1 << 21 | 1 << 24) != 0
}

/// Returns the number that a file contains; `None` for `max` and for a missing file.
fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Returns the error number of a call; 0 if it did not fail.
fn failed(result: libc::c_long) -> i32 {
    if result >= 0 { 0 } else { std::io::Error::last_os_error().raw_os_error().unwrap_or(0) }
}

/// Returns what an unexpected error means.
fn answer(mechanism: Capability, errno: i32) -> Capability {
    mechanism.refused(reason(errno))
}

fn reason(errno: i32) -> String {
    match errno {
        libc::EPERM | libc::EACCES => "EPERM (seccomp?)".into(),
        libc::ENOSYS => "ENOSYS (old kernel, or a sandbox)".into(),
        errno => io::Error::from_raw_os_error(errno).to_string(),
    }
}
