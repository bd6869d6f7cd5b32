//! The setup of a guardian process: fork, signalfd, inherited descriptors, its name, its core
//! limit.
#![expect(unsafe_code, reason = "fork, signalfd, close_range, and writing over the argument strings")]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Resource, Rlimit};

use super::descendants;
use super::mask::{self, Mask};
use super::signal::SignalSender;

/// The process that returned from [`fork`].
pub(super) enum Fork {
    Parent(Pid),
    Child,
}

/// Forks this process, which has one thread. The child may then call any function.
pub(super) fn fork() -> io::Result<Fork> {
    // SAFETY: `ProcessGuard::install` has refused processes with more than one thread, so no lock is
    // held by a thread that the child lacks.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Pid::from_raw(pid).map(Fork::Parent).ok_or_else(|| io::ErrorKind::Other.into()),
    }
}

/// Returns a descriptor that reads the signals of `set`, which must be blocked.
pub(super) fn signalfd(set: &Mask) -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised and only read.
    let fd = unsafe { libc::signalfd(-1, &raw const set.0, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: new, open, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Reads the next pending signal of a signalfd.
pub(super) fn read_signal(fd: BorrowedFd<'_>) -> Option<i32> {
    read_sent(fd).map(|(number, _)| number)
}

/// Reads the next pending signal of a signalfd. Also returns who sent it.
pub(super) fn read_sent(fd: BorrowedFd<'_>) -> Option<(i32, SignalSender)> {
    let mut record = [0; size_of::<libc::signalfd_siginfo>()];
    loop {
        match rustix::io::read(fd, &mut record) {
            // The fields are `ssi_signo`, `ssi_errno`, `ssi_code` (signalfd(2)).
            Ok(n) if n == record.len() => {
                let field = |at: usize| {
                    i32::from_ne_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
                };
                let by_kernel = field(8) == libc::SI_KERNEL;
                let sender = if by_kernel { SignalSender::Terminal } else { SignalSender::Process };
                return Some((field(0), sender));
            }
            Err(rustix::io::Errno::INTR) => {}
            _ => return None,
        }
    }
}

/// Asks the kernel to send this process SIGCONT when the last writer of the pipe exits, even while
/// this process is stopped. A stopped process cannot watch, and its parent-death signal covers only
/// one of the two other processes.
pub(super) fn wake_at_end_of(pipe: &OwnedFd) -> io::Result<()> {
    /// `F_SETSIG` of fcntl(2): which signal, instead of SIGIO.
    const F_SETSIG: libc::c_int = 10;
    let me = rustix::process::getpid().as_raw_nonzero().get();
    for (what, value) in
        [(libc::F_SETOWN, me), (F_SETSIG, libc::SIGCONT), (libc::F_SETFL, libc::O_ASYNC | libc::O_NONBLOCK)]
    {
        // SAFETY: an open descriptor of ours, and commands that take a number.
        if unsafe { libc::fcntl(pipe.as_raw_fd(), what, value) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Discards a pending signal, so that it has no effect.
pub(super) fn discard(number: i32) {
    let set = Mask::empty().with(number);
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: set and time are initialised and outlive the call; no details are asked for.
    unsafe { libc::sigtimedwait(&raw const set.0, std::ptr::null_mut(), &raw const at_once) };
}

/// Redirects 0, 1 and, unless errors are kept, 2 to `/dev/null`, and closes every other descriptor
/// except `keep`. A descriptor that a guardian holds may be a pipe whose reader waits for the end
/// of file.
pub(super) fn close_inherited(keep: &mut [RawFd], errors_too: bool) {
    let dev_null = rustix::fs::open(c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    let last = if errors_too { 2 } else { 1 };
    for fd in 0..=last {
        match &dev_null {
            // SAFETY: no object owns the standard descriptors in a guardian, which never prints
            // through `std`.
            Ok(null) => unsafe { libc::dup2(null.as_raw_fd(), fd) },
            // SAFETY: as above.
            Err(_) => unsafe { libc::close(fd) },
        };
    }
    drop(dev_null);
    keep.sort_unstable();
    let mut next: RawFd = 3;
    for &fd in keep.iter().filter(|fd| **fd >= 3) {
        close_range(next, fd - 1);
        next = fd + 1;
    }
    close_range(next, RawFd::MAX);
}

/// Closes `first..=last`. Linux before 5.9 has no such call; then it closes one by one up to the
/// limit.
fn close_range(first: RawFd, last: RawFd) {
    if first > last {
        return;
    }
    // SAFETY: a guardian has dropped every object that owns a descriptor, or has listed the
    // descriptor in `keep`.
    if unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0 {
        return;
    }
    let limit = rustix::process::getrlimit(Resource::Nofile).current.unwrap_or(4096).min(65_536);
    for fd in first..=last.min(RawFd::try_from(limit).unwrap_or(RawFd::MAX)) {
        // SAFETY: as above; a number that is not open is refused.
        unsafe { libc::close(fd) };
    }
}

/// Renames this process in `ps`: its short name, and its argument strings, which `pkill -f` looks
/// at.
pub(in crate::sys) fn rename(short: &CStr, title: &str) {
    let _ = rustix::thread::set_name(short);
    let Some((start, end)) = descendants::argument_area() else { return };
    let area = std::ptr::with_exposed_provenance_mut::<u8>(start);
    // The last byte stays 0: the kernel takes anything else for a title that runs on into the
    // environment.
    let room = end.saturating_sub(start).saturating_sub(1);
    let used = title.len().min(room);
    // SAFETY: the kernel reports that this range belongs to this process. It lies on the stack
    // above `main`, and no code in a guardian reads the arguments any more.
    unsafe { std::ptr::write_bytes(area, 0, room) };
    // SAFETY: as above, and `used` does not exceed the range; the title lies elsewhere.
    unsafe { std::ptr::copy_nonoverlapping(title.as_ptr(), area, used) };
}

/// Disables core dumps, for a guardian that exits by a signal that would dump one.
pub(super) fn forbid_core() {
    let _ = rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
}

/// Exits a guardian in the same way as the process with this wait status.
pub(super) fn end_like(raw: i32) -> ! {
    if libc::WIFSIGNALED(raw) {
        // A core pattern that is a pipe ignores the limit; a process that may not be dumped has no core at
        // all.
        let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
        mask::end_by(libc::WTERMSIG(raw));
    }
    mask::exit_now(libc::WEXITSTATUS(raw))
}

/// Aborts when it is dropped while a guardian unwinds. A guardian must never return into the
/// program as if it were the runner.
pub(super) struct AbortOnReturn;

impl Drop for AbortOnReturn {
    fn drop(&mut self) {
        mask::end_by(libc::SIGKILL);
    }
}
