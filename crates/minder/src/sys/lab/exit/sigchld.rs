//! `SIGCHLD`: one signal stands for any number of ends, so whoever hears it looks for all that
//! ended: by waitpid(-1), or, to leave alone what belongs to others, by asking for each child that
//! lives (as libuv does).

#![expect(unsafe_code, reason = "signalfd and the signal mask of this thread")]

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, WaitOptions};

use super::unix::{has_children, number, wait};
use super::{End, Hear};
use crate::sys::spawn::Spawned;

/// Where it looks when the signal came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sweep {
    /// waitpid(-1) until none is left.
    Any,
    /// waitpid of every child that lives.
    Each,
}

/// Hears `SIGCHLD` by a descriptor.
#[derive(Debug)]
pub(super) struct Sigchld {
    sweep: Sweep,
    live: Vec<Pid>,
    found: VecDeque<End>,
    /// Closed before the signal is let through again.
    signals: OwnedFd,
    _blocked: Blocked,
}

impl Sigchld {
    pub(super) fn open(sweep: Sweep) -> io::Result<Self> {
        if sweep == Sweep::Any && has_children() {
            return Err(io::Error::other("this process has other children, whose ends it would take"));
        }
        let blocked = Blocked::new()?;
        if !blocked_everywhere() {
            return Err(io::Error::other("another thread of this process takes SIGCHLD"));
        }
        // SAFETY: the set is initialised and outlives the call.
        let fd =
            unsafe { libc::signalfd(-1, &raw const blocked.set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel made this descriptor for us, and nobody else knows it.
        let signals = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { sweep, live: Vec::new(), found: VecDeque::new(), signals, _blocked: blocked })
    }

    fn look(&mut self) -> io::Result<()> {
        match self.sweep {
            Sweep::Any => {
                // Without children the answer is an error, which says the same.
                while let Ok(Some(end)) = wait(None, WaitOptions::NOHANG) {
                    self.found.push_back(end);
                }
                Ok(())
            }
            Sweep::Each => {
                let mut result = Ok(());
                let found = &mut self.found;
                self.live.retain(|&pid| match wait(Some(pid), WaitOptions::NOHANG) {
                    Ok(None) => true,
                    Ok(Some(end)) => {
                        found.push_back(end);
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

impl Hear for Sigchld {
    fn add(&mut self, child: Spawned) -> io::Result<()> {
        if self.sweep == Sweep::Each {
            self.live.push(number(child.process.pid())?);
        }
        Ok(())
    }

    fn next(&mut self, _awaited: u32, deadline: Instant) -> io::Result<Option<End>> {
        // A signal-frame's size is what a read gives; one number never waits twice.
        let mut buffer = [0u8; size_of::<libc::signalfd_siginfo>()];
        loop {
            if let Some(end) = self.found.pop_front() {
                return Ok(Some(end));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 0, tv_nsec: 0 });
            match poll(&mut [PollFd::new(&self.signals, PollFlags::IN)], Some(&left)) {
                Ok(0) => return Ok(None),
                Ok(_) | Err(rustix::io::Errno::INTR) => (),
                Err(error) => return Err(error.into()),
            }
            match rustix::io::read(&self.signals, &mut buffer) {
                Ok(_) => self.look()?,
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => (),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// `SIGCHLD` blocked on this thread, until it is dropped there.
struct Blocked {
    set: libc::sigset_t,
    before: libc::sigset_t,
}

impl Blocked {
    fn new() -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigemptyset initialises what it is given.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        // SAFETY: the set was initialised by the line above.
        unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD) };
        // SAFETY: `set` is initialised and `before` ours to be written; only this thread's mask changes.
        match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr()) } {
            0 => (),
            error => return Err(io::Error::from_raw_os_error(error)),
        }
        // SAFETY: initialised above.
        let set = unsafe { set.assume_init() };
        // SAFETY: the call that succeeded filled it.
        Ok(Self { set, before: unsafe { before.assume_init() } })
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // What still waits is thrown away by the default action.
        // SAFETY: the mask is the one that this thread had; the present one is not asked for.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }
}

impl std::fmt::Debug for Blocked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Blocked(SIGCHLD)")
    }
}

/// Whether no thread of this process lets `SIGCHLD` through: one that did would take it, and throw
/// it away.
fn blocked_everywhere() -> bool {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return true };
    threads.flatten().all(|thread| {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        // A thread that is gone by now takes nothing.
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .is_none_or(|mask| mask & 1 << (libc::SIGCHLD - 1) != 0)
    })
}
