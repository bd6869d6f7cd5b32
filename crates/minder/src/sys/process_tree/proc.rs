//! The process table of Linux in `/proc` (proc(5)).
//!
//! After `unshare --pid --fork` without a mount, and in some containers, `/proc` belongs to another
//! PID namespace. The same pid names another process there. Such a table counts as not mounted, so
//! no unrelated process is signalled.

#![expect(unsafe_code, reason = "kill and pidfd_send_signal of a process that was just identified")]

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use minder_os::sync::Mutex;

use crate::sys::error::is_exhausted;

/// Returns why `/proc` cannot be used to find processes, or `None` if it can.
pub(in crate::sys) fn why_no_table() -> Option<&'static str> {
    static LAST: Mutex<Option<TableAnswer>> = Mutex::new(None);
    let Ok(proc) = fs::metadata("/proc") else { return Some(NO_PROC) };
    let device = proc.dev();
    let me = std::process::id();
    let mut last = LAST.lock();
    if let Some(answer) = last.as_mut().filter(|answer| answer.device == device) {
        // After a fork the namespace is the same, unless the parent asked for another one. The link of
        // the namespace is read without the thousand bytes of the status.
        if answer.pid == me || (answer.namespace.is_some() && answer.namespace == own_namespace()) {
            answer.pid = me;
            return answer.why;
        }
    }
    match fs::read("/proc/self/status") {
        Ok(status) => {
            let ours = is_of(&String::from_utf8_lossy(&status), me);
            let why = (!ours).then_some(FOREIGN_PROC);
            last.insert(TableAnswer { device, namespace: own_namespace(), pid: me, why }).why
        }
        // A shortage of resources is temporary: the answer is not stored.
        Err(error) if is_exhausted(&error) => None,
        Err(_) => Some(NO_PROC),
    }
}

/// The last answer of [`why_no_table`], and for what it holds.
struct TableAnswer {
    /// The device of `/proc`.
    device: u64,
    /// The PID namespace, if it is known.
    namespace: Option<(u64, u64)>,
    /// A process in that namespace.
    pid: u32,
    why: Option<&'static str>,
}

/// Returns what identifies the PID namespace of this process: namespaces(7), device and inode of the link.
fn own_namespace() -> Option<(u64, u64)> {
    let namespace = fs::metadata("/proc/self/ns/pid").ok()?;
    Some((namespace.dev(), namespace.ino()))
}

const NO_PROC: &str = "`/proc` is not mounted";
const FOREIGN_PROC: &str = "`/proc` belongs to another PID namespace";

/// Returns whether the status of this process names it by the number that it has itself. `NSpid`
/// has one number for each PID namespace from that of the mount to that of the process
/// (proc_pid_status(5)); kernels before 4.1 do not have it.
fn is_of(status: &str, me: u32) -> bool {
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name));
    let numbers = field("NSpid:").or_else(|| field("Pid:")).unwrap_or_default();
    let mut numbers = numbers.split_ascii_whitespace().map(|number| number.parse::<u32>().ok());
    numbers.next() == Some(Some(me)) && numbers.next().is_none()
}

/// One process that is neither a zombie nor dead.
#[derive(Clone, Copy, Debug)]
pub(in crate::sys) struct Entry {
    pub(in crate::sys) pid: libc::pid_t,
    pub(in crate::sys) parent: libc::pid_t,
    pub(in crate::sys) group: libc::pid_t,
    /// Start time in clock ticks since boot. Together with the pid it identifies a process for
    /// ever.
    pub(in crate::sys) started: u64,
    /// `true` if it is exiting. Its files are closed already, and it disappears within
    /// microseconds.
    pub(in crate::sys) exiting: bool,
    /// The state of the main thread: the letter of proc_pid_stat(5).
    state: u8,
    has_threads: bool,
}

impl Entry {
    /// The same, with what its other threads do if its main thread is exiting or has exited.
    fn with_threads(self) -> Self {
        Self { exiting: self.exiting && (!self.has_threads || all_threads_exit(self.pid)), ..self }
    }
}

/// Returns whether every thread of a process is exiting. Without a descriptor or memory to find out, they
/// count as running: a process that is known can be killed.
fn all_threads_exit(pid: libc::pid_t) -> bool {
    let threads = match fs::read_dir(format!("/proc/{pid}/task")) {
        Ok(threads) => threads,
        Err(error) => return !is_exhausted(&error),
    };
    threads.flatten().all(|thread| match fs::read(thread.path().join("stat")) {
        Ok(stat) => parse(&String::from_utf8_lossy(&stat)).is_none_or(|thread| thread.exiting),
        Err(error) => !is_exhausted(&error),
    })
}

/// A flag in field 9 of proc_pid_stat(5), from include/linux/sched.h.
pub(in crate::sys) const PF_EXITING: u32 = 4;

/// Reads one process. Returns `None` if it has exited, and an error if there is no descriptor or
/// memory for the read.
pub(super) fn entry(pid: libc::pid_t) -> io::Result<Option<Entry>> {
    use rustix::fs::{Mode, OFlags};
    // The line has 52 numbers and a name of at most 64 bytes. One read returns it whole.
    let mut line = [0; 2048];
    let file = rustix::fs::open(format!("/proc/{pid}/stat"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    match file.and_then(|file| rustix::io::read(file, &mut line)).map_err(io::Error::from) {
        // The name may contain any bytes.
        Ok(len) => Ok(parse(&String::from_utf8_lossy(&line[..len])).map(|process| process.with_threads())),
        Err(error) if is_exhausted(&error) => Err(error),
        // The process has exited, or `/proc` hides it from this user.
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
thread_local! {
    /// The number of times that this thread has read the whole table.
    pub(super) static SCANS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Visits every living process of the machine that this user may see. Returns an error if one may
/// be missing. Visits none if `/proc` cannot be used.
pub(in crate::sys) fn each(visit: impl FnMut(Entry)) -> io::Result<()> {
    each_of(|_| true, visit)
}

/// The same, for the processes whose pids are wanted.
pub(super) fn each_of(
    is_wanted: impl Fn(libc::pid_t) -> bool,
    mut visit: impl FnMut(Entry),
) -> io::Result<()> {
    if why_no_table().is_some() {
        return Ok(());
    }
    #[cfg(test)]
    SCANS.with(|scans| scans.set(scans.get() + 1));
    each_pid(|pid| {
        if is_wanted(pid)
            && let Some(process) = entry(pid)?
        {
            visit(process);
        }
        Ok(())
    })
}

/// Visits the pids of the table. Returns the first error of a visit, or an error if one may be missing.
pub(super) fn each_pid(mut visit: impl FnMut(libc::pid_t) -> io::Result<()>) -> io::Result<()> {
    let items = match fs::read_dir("/proc") {
        Err(error) if !is_exhausted(&error) => return Ok(()),
        items => items?,
    };
    for item in items {
        if let Some(pid) = item?.file_name().to_str().and_then(|name| name.parse().ok()) {
            visit(pid)?;
        }
    }
    Ok(())
}

/// Returns the pid or thread id that the kernel assigned last in this PID namespace: the last field of
/// proc_loadavg(5).
pub(in crate::sys) fn newest_pid() -> Option<libc::pid_t> {
    let line = fs::read_to_string("/proc/loadavg").ok()?;
    line.split_ascii_whitespace().next_back()?.parse().ok()
}

/// Visits the living processes whose pids were assigned after `before`, up to `newest`. Linux assigns pids
/// in ascending order and begins again at the lowest when it has reached the highest (pid_max in
/// proc_sys_kernel(5)).
pub(in crate::sys) fn each_newer(before: libc::pid_t, newest: libc::pid_t, mut visit: impl FnMut(Entry)) {
    /// The most pids that are looked up. More were assigned only if the caller did not run for seconds.
    const NEWER_MAX: libc::pid_t = 1 << 15;
    let mut look_up = |first: libc::pid_t, last: libc::pid_t| {
        for pid in first.max(last.saturating_sub(NEWER_MAX))..=last {
            // The directory of a thread id exists, although the table does not list it.
            if let Ok(Some(process)) = entry(pid)
                && leads_threads(pid)
            {
                visit(process);
            }
        }
    };
    if newest >= before {
        return look_up(before.saturating_add(1), newest);
    }
    let pid_max = fs::read_to_string("/proc/sys/kernel/pid_max").ok().and_then(|max| max.trim().parse().ok());
    look_up(before.saturating_add(1), pid_max.unwrap_or(before));
    look_up(2, newest);
}

/// Returns whether `id` is the pid of a process, and not the id of another of its threads.
fn leads_threads(id: libc::pid_t) -> bool {
    let Ok(status) = fs::read(format!("/proc/{id}/status")) else { return false };
    let status = String::from_utf8_lossy(&status);
    let leader = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    leader.is_some_and(|leader| leader.trim().parse() == Ok(id))
}

/// The longest wait for a process to stop that waits in the kernel (state D) and does not fork: the parent
/// in vfork(2), whose child is stopped, or the reader of a file server. Also for one whose main thread has
/// exited, which does not show that it has stopped.
const IN_KERNEL_MAX: Duration = Duration::from_millis(20);

/// Waits until these processes, which got a stop signal, are stopped or exit, and at most until `until`.
/// Those that do not stop soon are added to `busy`, and are not waited for again.
pub(super) fn wait_stopped(
    processes: impl Iterator<Item = libc::pid_t>,
    until: Instant,
    busy: &mut HashSet<libc::pid_t>,
) {
    for pid in processes {
        let since = Instant::now();
        while !busy.contains(&pid)
            && let Ok(Some(process)) = entry(pid)
            && !process.exiting
            && !matches!(process.state, b'T' | b't')
            && Instant::now() < until
        {
            let is_in_kernel = matches!(process.state, b'D' | b'Z');
            if is_in_kernel && since.elapsed() >= IN_KERNEL_MAX && !is_forking(pid) {
                busy.insert(pid);
            }
            let _ = rustix::thread::nanosleep(&rustix::fs::Timespec { tv_sec: 0, tv_nsec: 50_000 });
        }
    }
}

/// Returns whether a process that waits in the kernel is in fork(2): it waits for locks and memory there, for
/// a tenth of a second and longer on a busy machine, and then starts a process. The name of the function
/// in which it waits (`wchan`, proc(5)) says so: `dup_mmap`, `copy_process`, `anon_vma_fork`,
/// `cgroup_css_set_fork`.
pub(in crate::sys) fn is_forking(pid: libc::pid_t) -> bool {
    let function = fs::read(format!("/proc/{pid}/wchan")).unwrap_or_default();
    let parts: [&[u8]; 4] = [b"dup_", b"copy_", b"anon_vma_", b"cgroup_"];
    parts.iter().any(|part| function.starts_with(part))
}

/// Returns whether this process is alive.
pub(super) fn is_alive((pid, started): (libc::pid_t, u64)) -> io::Result<bool> {
    Ok(entry(pid)?.is_some_and(|process| process.started == started))
}

/// Sends a signal to exactly this process. Returns whether the process may still exist. A process
/// that cannot be identified gets no signal.
pub(in crate::sys) fn signal((pid, started): (libc::pid_t, u64), signal: i32) -> bool {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    // First open a pidfd, then check that the pid still belongs to the process that was found, then
    // signal the pidfd. A process that reuses the pid after the check gets no signal.
    let pidfd = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    match is_alive((pid, started)) {
        Ok(true) => (),
        Ok(false) => return false,
        Err(_) => return true,
    }
    if let Some(pidfd) = pidfd {
        let info: *const libc::siginfo_t = std::ptr::null();
        // SAFETY: the descriptor is open, and the siginfo may be null.
        let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd.as_raw_fd(), signal, info, 0) };
        // A sandbox may refuse this call and not the others.
        if sent == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ENOSYS) {
            return sent == 0;
        }
    }
    // SAFETY: kill takes two numbers.
    unsafe { libc::kill(pid, signal) == 0 }
}

/// Parses `PID (NAME) STATE PPID PGRP … STARTTIME …`. The name may contain any characters, even
/// parentheses.
fn parse(stat: &str) -> Option<Entry> {
    let (head, tail) = stat.rsplit_once(')')?;
    let mut fields = tail.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let pid = head.split_once(' ')?.0.parse().ok()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let flags: u32 = fields.nth(3)?.parse().ok()?;
    // Other threads may run when the main thread has exited.
    let has_threads = fields.nth(10)?.parse::<u32>().ok()? > 1;
    if state == b'X' || (state == b'Z' && !has_threads) {
        return None;
    }
    let started = fields.nth(1)?.parse().ok()?;
    Some(Entry { pid, parent, group, started, exiting: flags & PF_EXITING != 0, state, has_threads })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_accepts_any_process_name() {
        let stat = "7 (a) R) b) S 1 5 5 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        let process = parse(stat).expect("parse stat");
        assert_eq!((process.pid, process.parent, process.group, process.started), (7, 1, 5, 4242));
        let zombie =
            |threads| parse(&format!("7 (a) Z 1 5 5 0 -1 4 1 0 0 0 0 0 0 0 20 0 {threads} 0 4242 0 0"));
        assert!(zombie(1).is_none(), "a zombie does not live");
        assert!(zombie(2).is_some(), "other threads live");
    }

    #[test]
    fn foreign_pid_namespace_table_is_rejected() {
        let status = |ids: &str| format!("Name:\tx\nPid:\t{ids}\n");
        assert!(is_of("Name:\tx\nPid:\t7\nGroups:\t0\nNSpid:\t7\n", 7));
        assert!(!is_of("Name:\tx\nPid:\t812\nNSpid:\t812\t7\n", 7), "seen from outside");
        assert!(!is_of("Name:\tx\nPid:\t7\nNSpid:\t7\t7\n", 7), "the same number by chance");
        assert!(is_of(&status("7"), 7) && !is_of(&status("812"), 7) && !is_of("", 7), "an old kernel");
        assert_eq!(why_no_table(), None);
    }

    #[test]
    fn newer_processes_are_found_and_threads_are_not() {
        let before = newest_pid().expect("read the newest pid");
        let thread = std::thread::spawn(std::thread::park);
        let mut child = crate::Command::new("sleep").arg("60").spawn().expect("start a process");
        let newest = newest_pid().expect("read the newest pid");
        let own = std::process::id().cast_signed();
        let mut found = Vec::new();
        each_newer(before, newest, |process| found.push((process.pid, process.parent)));
        let pid = child.id().cast_signed();
        child.kill(crate::Termination::IMMEDIATE).and_then(|()| child.wait()).expect("end the process");
        thread.thread().unpark();
        thread.join().expect("join the thread");
        assert!(found.contains(&(pid, own)), "{before} to {newest}: {found:?}");
        let own_parent = entry(own).expect("read").expect("own process").parent;
        assert!(found.iter().all(|(_, parent)| *parent != own_parent), "a thread was visited: {found:?}");
    }

    #[test]
    fn newer_processes_are_found_across_the_highest_pid() {
        let own = std::process::id().cast_signed();
        let mut found = Vec::new();
        each_newer(own.saturating_add(1).max(1 << 14), own, |process| found.push(process.pid));
        assert_eq!(found.last(), Some(&own), "{found:?}");
    }

    #[test]
    fn snapshot_contains_own_process() {
        let own = std::process::id().cast_signed();
        let mut seen = false;
        each(|process| seen |= process.pid == own).expect("read /proc");
        assert!(seen && entry(own).is_ok_and(|process| process.is_some()));
    }
}
