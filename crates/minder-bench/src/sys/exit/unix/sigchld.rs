//! `SIGCHLD`, by a signalfd. One pending signal stands for any number of exits, so each signal makes
//! the baseline look for all children that have exited: by waitpid(-1), or by waitpid(2) for each
//! live child, as libuv does to leave the children of others alone.

#![expect(unsafe_code, reason = "signalfd and the signal mask of this thread")]

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Instant;

use minder::Child;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, WaitOptions};

use crate::sys::exit::process::{has_children, to_pid, wait};
use crate::sys::exit::types::ObservedExit;
use crate::sys::exit::watcher::ExitWatcher;

/// Which children are checked after a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sweep {
    /// waitpid(-1) until no more child has exited.
    Any,
    /// waitpid(2) for every live child.
    Each,
}

/// Receives `SIGCHLD` by a descriptor.
#[derive(Debug)]
pub(super) struct Sigchld {
    sweep: Sweep,
    /// Used by [`Sweep::Each`] only.
    live: Vec<Pid>,
    /// Exits that were observed and not yet returned.
    observed: VecDeque<ObservedExit>,
    // Closed before the mask is restored.
    signals: OwnedFd,
    _blocked: BlockedSigchld,
}

impl Sigchld {
    pub(super) fn open(sweep: Sweep) -> io::Result<Self> {
        if sweep == Sweep::Any && has_children() {
            return Err(io::Error::other("this process has other children, whose ends it would take"));
        }
        let blocked = BlockedSigchld::new()?;
        if !is_blocked_everywhere() {
            return Err(io::Error::other("another thread of this process takes SIGCHLD"));
        }
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: the set is initialised and outlives the call.
        let fd = unsafe { libc::signalfd(-1, &raw const blocked.set, flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call above made this descriptor, and nothing else owns it.
        let signals = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { sweep, live: Vec::new(), observed: VecDeque::new(), signals, _blocked: blocked })
    }

    /// Reaps the children that have exited.
    fn reap(&mut self) -> io::Result<()> {
        match self.sweep {
            Sweep::Any => {
                // Without children waitpid fails, which ends the loop as well.
                while let Ok(Some(exit)) = wait(None, WaitOptions::NOHANG) {
                    self.observed.push_back(exit);
                }
                Ok(())
            }
            Sweep::Each => {
                let mut result = Ok(());
                let observed = &mut self.observed;
                self.live.retain(|&pid| match wait(Some(pid), WaitOptions::NOHANG) {
                    Ok(None) => true,
                    Ok(Some(exit)) => {
                        observed.push_back(exit);
                        false
                    }
                    Err(error) => {
                        result = Err(error.into());
                        false
                    }
                });
                result
            }
        }
    }
}

impl ExitWatcher for Sigchld {
    fn add(&mut self, child: Child) -> io::Result<()> {
        let pid = child.into_pid();
        if self.sweep == Sweep::Each {
            self.live.push(to_pid(pid)?);
        }
        Ok(())
    }

    fn next(&mut self, _awaited: u32, deadline: Instant) -> io::Result<Option<ObservedExit>> {
        // Room for one signal is enough: a signal is pending at most once.
        let mut buffer = [0u8; size_of::<libc::signalfd_siginfo>()];
        loop {
            if let Some(exit) = self.observed.pop_front() {
                return Ok(Some(exit));
            }
            let timeout = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(timeout).unwrap_or(Timespec { tv_sec: 0, tv_nsec: 0 });
            match poll(&mut [PollFd::new(&self.signals, PollFlags::IN)], Some(&timeout)) {
                Ok(0) => return Ok(None),
                Ok(_) | Err(rustix::io::Errno::INTR) => (),
                Err(error) => return Err(error.into()),
            }
            match rustix::io::read(&self.signals, &mut buffer) {
                Ok(_) => self.reap()?,
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => (),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Blocks `SIGCHLD` on this thread until it is dropped there.
struct BlockedSigchld {
    set: libc::sigset_t,
    before: libc::sigset_t,
}

impl BlockedSigchld {
    fn new() -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigemptyset initialises the set.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        // SAFETY: the line above initialised the set.
        unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD) };
        // SAFETY: `set` is initialised and `before` outlives the call; only the mask of this thread
        // changes.
        match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr()) } {
            0 => (),
            error => return Err(io::Error::from_raw_os_error(error)),
        }
        // SAFETY: sigemptyset initialised it above.
        let set = unsafe { set.assume_init() };
        // SAFETY: the call that succeeded filled it.
        Ok(Self { set, before: unsafe { before.assume_init() } })
    }
}

impl Drop for BlockedSigchld {
    fn drop(&mut self) {
        // The default action discards a signal that is still pending.
        // SAFETY: this is the mask that the thread had before; a null pointer asks for no previous
        // mask.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }
}

impl std::fmt::Debug for BlockedSigchld {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BlockedSigchld")
    }
}

/// Returns whether every thread of this process blocks `SIGCHLD`. The kernel would deliver it to a
/// thread that does not, where the default action discards it.
fn is_blocked_everywhere() -> bool {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return true };
    threads.flatten().all(|thread| {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        // A thread that has exited meanwhile has no mask.
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .is_none_or(|mask| mask & 1 << (libc::SIGCHLD - 1) != 0)
    })
}
