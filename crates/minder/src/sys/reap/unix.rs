//! A child process on Unix: by its pidfd where there is one, else by its number.

#![expect(unsafe_code, reason = "waitid and wait4 with resource usage, kill")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::event::{ExitInfo, ExitStatus, Interest, ResourceUsage};
use crate::sys::wait::{Reactor, Report, Source, is_full};

/// A child of ours. It is never waited for by any other way than this one.
#[derive(Debug)]
pub(crate) struct Process {
    pid: libc::pid_t,
    pidfd: Option<OwnedFd>,
    watched: Option<Watched>,
    /// The end, once seen.
    exit: Option<ExitInfo>,
    reaped: bool,
}

/// By what a port watches a process.
#[derive(Clone, Copy, Debug)]
enum Watched {
    Descriptor,
    Number,
}

impl Process {
    pub(crate) fn new(pid: libc::pid_t, pidfd: Option<OwnedFd>) -> Self {
        Self { pid, pidfd, watched: None, exit: None, reaped: false }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Asks for a report with `token` when the process has ended. A port that takes no more
    /// descriptors looks at the number.
    pub(crate) fn watch(&mut self, port: &mut Reactor, token: u64) -> io::Result<()> {
        let by_descriptor = match &self.pidfd {
            Some(pidfd) => match port.add(pidfd, token, Interest::READABLE) {
                Err(error) if is_full(&error) => false,
                added => added.map(|()| true)?,
            },
            None => false,
        };
        if !by_descriptor {
            port.add_process(self.pid, token)?;
        }
        self.watched = Some(if by_descriptor { Watched::Descriptor } else { Watched::Number });
        Ok(())
    }

    /// Takes the report: the end of the process, if it did end.
    pub(crate) fn progress(&mut self, port: &mut Reactor, _report: &Report) -> io::Result<Option<ExitInfo>> {
        let exit = self.peek()?;
        if exit.is_some() {
            self.unwatch(port)?;
        }
        Ok(exit)
    }

    /// Asks for no more reports.
    pub(crate) fn unwatch(&mut self, port: &mut Reactor) -> io::Result<()> {
        match (self.watched.take(), &self.pidfd) {
            (Some(Watched::Descriptor), Some(pidfd)) => port.delete(pidfd),
            (Some(_), _) => port.delete_process(self.pid),
            (None, _) => Ok(()),
        }
    }

    /// Whether it ended, and how; its number stays taken.
    pub(crate) fn peek(&mut self) -> io::Result<Option<ExitInfo>> {
        if self.exit.is_none() {
            self.exit = look(self.pid, self.pidfd.as_ref(), libc::WNOHANG | libc::WNOWAIT)?;
        }
        Ok(self.exit)
    }

    /// Looks whether the number is still the child's own. It is not if somebody else reaped it, or
    /// the kernel did (`SIGCHLD` ignored): then it may name a stranger, and nothing must be
    /// sent to it.
    pub(crate) fn check(&mut self) {
        let looked =
            wait_id(self.pid, self.pidfd.as_ref(), libc::WEXITED | libc::WNOHANG | libc::WNOWAIT, None);
        self.reaped |= looked.is_err_and(|error| error.raw_os_error() == Some(libc::ECHILD));
    }

    /// Waits for the end until the deadline, or for ever. The number stays taken until
    /// [`reap`](Self::reap).
    pub(crate) fn wait(&mut self, deadline: Option<Instant>) -> io::Result<Option<ExitInfo>> {
        loop {
            // The clock is read before the child is looked at: a child that ends in between is not called
            // late.
            let now = Instant::now();
            if let Some(exit) = self.peek()? {
                return Ok(Some(exit));
            }
            let left = match deadline {
                Some(deadline) if now >= deadline => return Ok(None),
                Some(deadline) => Some(deadline - now),
                None => None,
            };
            self.sleep(left)?;
        }
    }

    /// Sleeps until the child may have ended. Without a pidfd and with a deadline that is a short
    /// sleep.
    fn sleep(&mut self, left: Option<Duration>) -> io::Result<()> {
        match (&self.pidfd, left) {
            (Some(pidfd), left) => readable(pidfd.as_fd(), left),
            (None, None) => look(self.pid, None, libc::WNOWAIT).map(drop),
            (None, Some(left)) => {
                let nap = left.min(Duration::from_millis(2));
                let nap = rustix::thread::Timespec { tv_sec: 0, tv_nsec: nap.subsec_nanos().into() };
                let _ = rustix::thread::nanosleep(&nap);
                Ok(())
            }
        }
    }

    /// Lets the number go. Call it after `peek` said that the process ended.
    pub(crate) fn reap(&mut self) {
        if !std::mem::replace(&mut self.reaped, true) {
            // An error means that somebody else was faster, which is as good.
            let _ = look(self.pid, self.pidfd.as_ref(), libc::WNOHANG);
        }
    }

    /// Whether it stopped (job control) since it was asked last, and by which signal.
    pub(crate) fn stopped(&self) -> Option<i32> {
        let info = wait_id(self.pid, self.pidfd.as_ref(), libc::WSTOPPED | libc::WNOHANG, None).ok()?;
        let (pid, status) = of_child(&info);
        (pid != 0).then_some(status)
    }

    /// Sends a signal to the process alone. Without effect when it is over.
    pub(crate) fn signal(&self, signal: i32) -> io::Result<()> {
        if self.reaped {
            return Ok(());
        }
        // Our child is not reaped yet, so its number is still its own.
        // SAFETY: kill takes two numbers.
        match unsafe { libc::kill(self.pid, signal) } {
            0 => Ok(()),
            _ => ignore_gone(io::Error::last_os_error()),
        }
    }

    /// What a poller watches for the end of this process.
    pub(crate) fn source(&self) -> Source<'_> {
        match &self.pidfd {
            Some(pidfd) => Source::descriptor(pidfd),
            None => Source::Process(self.pid()),
        }
    }

    pub(crate) fn reaped(&self) -> bool {
        self.reaped
    }
}

/// A descriptor that names the process with this number, where the system has such.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn open_pidfd(pid: libc::pid_t) -> io::Result<Option<OwnedFd>> {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    match Pid::from_raw(pid).filter(|_| super::pidfd_available()) {
        Some(pid) => Ok(Some(pidfd_open(pid, PidfdFlags::empty())?)),
        None => Ok(None),
    }
}

/// A descriptor that names the process with this number, where the system has such.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn open_pidfd(_pid: libc::pid_t) -> io::Result<Option<OwnedFd>> {
    Ok(None)
}

/// Whether the system says that no process has this number.
pub(crate) fn is_nobody(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}

/// No such process is what was wanted.
fn ignore_gone(error: io::Error) -> io::Result<()> {
    if is_nobody(&error) { Ok(()) } else { Err(error) }
}

/// Waits until the descriptor is readable.
fn readable(fd: BorrowedFd<'_>, left: Option<Duration>) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let time = left.map(|left| Timespec {
        tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: left.subsec_nanos().into(),
    });
    match poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], time.as_ref()) {
        Err(rustix::io::Errno::INTR) => Ok(()),
        result => Ok(result.map(drop)?),
    }
}

/// Whether a process has ended that is not ours: nobody of its number is left. A zombie is still
/// there.
pub(super) fn is_gone(pid: libc::pid_t) -> bool {
    // SAFETY: kill takes two numbers; signal 0 only asks.
    let answer = unsafe { libc::kill(pid, 0) };
    answer != 0 && is_nobody(&io::Error::last_os_error())
}

/// Whether it is a child of ours that nobody has reaped.
pub(super) fn is_child(pid: libc::pid_t) -> bool {
    wait_id(pid, None, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT, None).is_ok()
}

/// One call of waitid for a child that ended.
fn look(pid: libc::pid_t, pidfd: Option<&OwnedFd>, options: i32) -> io::Result<Option<ExitInfo>> {
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
fn wait_id(
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
fn wait_id(
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

/// The end of a child that somebody else reaped. Newer kernels keep the status with the pidfd.
fn stolen(pidfd: Option<&OwnedFd>) -> ExitInfo {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Some(status) = pidfd.and_then(|pidfd| super::pidfd::kept_status(pidfd.as_fd())) {
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
    }
}
