//! A child process on Unix, identified by its pidfd where there is one, else by its pid.

#![expect(unsafe_code, reason = "kill")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::exit_status::ExitInfo;
use crate::interest::Interest;
use crate::sys::error::{is_no_such_process, is_registration_limit};
use crate::sys::guardian::Registration;
use crate::sys::pid::{stop_signal, wait_for_exit, wait_id};
use crate::sys::reactor::Reactor;
use crate::sys::time::timespec;
use crate::sys::wait::{Report, Source};

/// An exit is reported once: a pidfd stays readable.
const ONCE: Interest = Interest::READABLE.oneshot();

/// A child of ours. It is never waited for by any other way than this one.
#[derive(Debug)]
pub(crate) struct Process {
    pid: libc::pid_t,
    pidfd: Option<OwnedFd>,
    watched: Option<Watched>,
    /// The exit, once it was observed.
    exit: Option<ExitInfo>,
    reaped: bool,
    /// Its place on the list of a guardian.
    registration: Option<Registration>,
}

/// The registration by which a port watches a process.
#[derive(Clone, Copy, Debug)]
enum Watched {
    Descriptor,
    Number,
}

impl Process {
    pub(crate) fn new(pid: libc::pid_t, pidfd: Option<OwnedFd>) -> Self {
        Self { pid, pidfd, watched: None, exit: None, reaped: false, registration: None }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Sets the registration with a guardian, which ends right before the process is reaped.
    pub(in crate::sys) fn set_registration(&mut self, registration: Option<Registration>) {
        self.registration = registration;
    }

    /// Ends the registration with a guardian.
    pub(crate) fn unregister(&mut self) {
        if let Some(registration) = self.registration.take() {
            registration.remove();
        }
    }

    /// Asks for a report with `token` when the process has ended. A port that takes no more
    /// descriptors looks at the number.
    pub(crate) fn watch(&mut self, reactor: &mut Reactor, token: u64) -> io::Result<()> {
        let by_descriptor = match &self.pidfd {
            Some(pidfd) => match reactor.add(pidfd, token, ONCE) {
                Err(error) if is_registration_limit(&error) => false,
                added => added.map(|()| true)?,
            },
            None => false,
        };
        if !by_descriptor {
            reactor.add_process(self.pid, token)?;
        }
        self.watched = Some(if by_descriptor { Watched::Descriptor } else { Watched::Number });
        Ok(())
    }

    /// Takes the report: how the process exited, if it did.
    pub(crate) fn progress(
        &mut self,
        reactor: &mut Reactor,
        report: &Report,
    ) -> io::Result<Option<ExitInfo>> {
        let exit = self.peek()?;
        match (self.watched, &self.pidfd) {
            (Some(Watched::Descriptor), Some(pidfd)) if exit.is_none() => {
                reactor.modify(pidfd, report.token, ONCE)?;
            }
            // A copy of the descriptor that a starting sibling may hold is not reported again.
            (Some(Watched::Descriptor), Some(pidfd)) => {
                self.watched = None;
                reactor.delete_reported(pidfd)?;
            }
            _ if exit.is_some() => self.unwatch(reactor)?,
            _ => (),
        }
        Ok(exit)
    }

    /// Ends the reports.
    pub(crate) fn unwatch(&mut self, reactor: &mut Reactor) -> io::Result<()> {
        match (self.watched.take(), &self.pidfd) {
            (Some(Watched::Descriptor), Some(pidfd)) => reactor.delete(pidfd),
            (Some(_), _) => reactor.delete_process(self.pid),
            (None, _) => Ok(()),
        }
    }

    /// Returns what waits for the exit on another thread.
    pub(crate) fn exit_watch(&self) -> io::Result<ExitWatch> {
        Ok(ExitWatch { pidfd: self.pidfd.as_ref().map(OwnedFd::try_clone).transpose()? })
    }

    /// Returns how the process exited, or `None` while it runs. The pid stays in use.
    pub(crate) fn peek(&mut self) -> io::Result<Option<ExitInfo>> {
        if self.exit.is_none() {
            self.exit = wait_for_exit(self.pid, self.pidfd.as_ref(), libc::WNOHANG | libc::WNOWAIT)?;
        }
        Ok(self.exit)
    }

    /// Checks whether the pid still belongs to the child. It does not if other code reaped the
    /// child, or the kernel did (`SIGCHLD` ignored). The pid may then name an unrelated process, so
    /// nothing may be sent to it.
    pub(crate) fn check(&mut self) {
        let looked =
            wait_id(self.pid, self.pidfd.as_ref(), libc::WEXITED | libc::WNOHANG | libc::WNOWAIT, None);
        if looked.is_err_and(|error| error.raw_os_error() == Some(libc::ECHILD)) {
            self.reaped = true;
            self.unregister();
        }
    }

    /// Waits for the exit until the deadline, or without a limit. The pid stays in use until
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

    /// Returns how the process exited, if it has, and releases the pid by the same system call.
    pub(crate) fn try_reap(&mut self) -> io::Result<Option<ExitInfo>> {
        if self.exit.is_none() && self.registration.is_none() {
            self.exit = wait_for_exit(self.pid, self.pidfd.as_ref(), libc::WNOHANG)?;
            self.reaped |= self.exit.is_some();
        } else if self.peek()?.is_some() {
            self.reap();
        }
        Ok(self.exit)
    }

    /// Waits for the exit without a limit, and releases the pid by the same system call.
    pub(crate) fn wait_and_reap(&mut self) -> io::Result<ExitInfo> {
        if self.exit.is_none() && self.registration.is_some() {
            // The registration ends between the exit and the reaping, so these are two calls.
            self.wait(None)?;
        }
        if let Some(exit) = self.exit {
            self.reap();
            return Ok(exit);
        }
        loop {
            if let Some(exit) = wait_for_exit(self.pid, self.pidfd.as_ref(), 0)? {
                self.exit = Some(exit);
                self.reaped = true;
                return Ok(exit);
            }
        }
    }

    /// Sleeps until the child may have ended. Without a pidfd and with a deadline that is a short
    /// sleep.
    fn sleep(&mut self, left: Option<Duration>) -> io::Result<()> {
        match (&self.pidfd, left) {
            (Some(pidfd), left) => readable(pidfd.as_fd(), left),
            (None, None) => wait_for_exit(self.pid, None, libc::WNOWAIT).map(drop),
            (None, Some(left)) => {
                nap(left.min(Duration::from_millis(2)));
                Ok(())
            }
        }
    }

    /// Releases the pid. Call it after `peek` has returned the exit.
    pub(crate) fn reap(&mut self) {
        if !std::mem::replace(&mut self.reaped, true) {
            self.unregister();
            // An error means that other code has reaped the child, which has the same effect.
            let _ = wait_for_exit(self.pid, self.pidfd.as_ref(), libc::WNOHANG);
        }
    }

    /// Gives the process up: reaps it if it has exited, or leaves that to later starts and waits.
    pub(crate) fn leave(&mut self) {
        if self.reaped {
            return;
        }
        if matches!(self.peek(), Ok(None)) {
            self.reaped = true;
            super::orphans::add(self.pid, self.registration.take().as_ref());
        } else {
            self.reap();
        }
    }

    /// Closes the descriptor of a process that was reaped.
    pub(crate) fn release(&mut self) {
        self.pidfd = None;
    }

    /// Returns the signal that stopped the child (job control) since the last call, if one did.
    pub(crate) fn stopped(&self) -> Option<i32> {
        stop_signal(self.pid, self.pidfd.as_ref())
    }

    /// Sends a signal to the process alone. Has no effect after the process has exited.
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

    /// Sends a signal to the processes that are left in the group that this process led, even if it was
    /// reaped: the pidfd names no other group (Linux 6.9). Signal 0 only asks.
    ///
    /// # Errors
    /// The group has no process, or the operating system cannot do that.
    pub(crate) fn signal_left_group(&self, signal: i32) -> io::Result<()> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(pidfd) = &self.pidfd {
            return crate::sys::pid::signal_group_of(pidfd.as_fd(), signal);
        }
        let _ = signal;
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    /// Returns the pidfd, if there is one.
    pub(crate) fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Returns the source that a poller watches for the end of this process.
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

/// Waits for the exit of a process while another thread may reap it.
#[derive(Debug)]
pub(crate) struct ExitWatch {
    pidfd: Option<OwnedFd>,
}

impl ExitWatch {
    /// The longest sleep without a pidfd: the pid must not be waited for, since it may name another
    /// process as soon as the child is reaped.
    const NAP_MAX: Duration = Duration::from_millis(10);

    /// Returns the pidfd, if there is one.
    pub(crate) fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Sleeps until the process may have exited, for at most `left`, or without a limit.
    pub(crate) fn sleep(&self, left: Option<Duration>) -> io::Result<()> {
        match &self.pidfd {
            Some(pidfd) => readable(pidfd.as_fd(), left),
            None => {
                nap(left.map_or(Self::NAP_MAX, |left| left.min(Self::NAP_MAX)));
                Ok(())
            }
        }
    }
}

/// Sleeps for less than a second, or until a signal.
fn nap(time: Duration) {
    let time = rustix::thread::Timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() };
    let _ = rustix::thread::nanosleep(&time);
}

/// No such process is what was wanted.
fn ignore_gone(error: io::Error) -> io::Result<()> {
    if is_no_such_process(&error) { Ok(()) } else { Err(error) }
}

/// Waits until the descriptor is readable.
fn readable(fd: BorrowedFd<'_>, left: Option<Duration>) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    let time = left.map(timespec);
    match poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], time.as_ref()) {
        Err(rustix::io::Errno::INTR) => Ok(()),
        result => Ok(result.map(drop)?),
    }
}
