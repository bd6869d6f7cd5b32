//! The guard on Unix systems without a subreaper: signals through a pipe, and no guardians.
//!
//! Without a subreaper no process inherits descendants that leave the group and session, so a
//! guardian could promise little. FreeBSD has `procctl(PROC_REAP_ACQUIRE)`, which could support the
//! whole design; this is untested.
#![expect(unsafe_code, reason = "a descriptor that a signal handler borrows")]

use crate::sys::signal::Signal;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::SeqCst};
use std::time::Instant;

use super::config::{GuardConfig, Watchdog};
use super::mask::{self, Mask};
use super::signal::{ExitMode, SignalDebouncer, SignalSender};

static INSTALLED: AtomicBool = AtomicBool::new(false);
/// The writing end of the one guard's pipe, which is never closed.
static RELAY: AtomicI32 = AtomicI32::new(-1);

/// The reading end of the pipe.
#[derive(Debug)]
pub(crate) struct Guard {
    signals: OwnedFd,
    repeats: SignalDebouncer,
}

impl Guard {
    pub(crate) fn install(_: &GuardConfig) -> io::Result<Guard> {
        if INSTALLED.swap(true, SeqCst) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the process has a guard already"));
        }
        let (signals, relay) = rustix::pipe::pipe()?;
        for end in [&signals, &relay] {
            rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC)?;
            rustix::fs::fcntl_setfl(end, rustix::fs::OFlags::NONBLOCK)?;
        }
        RELAY.store(relay.as_raw_fd(), SeqCst);
        // The handler borrows it for as long as the process lives.
        std::mem::forget(relay);
        mask::restore_sigchld();
        mask::handle_write_signals();
        for number in Mask::relayed().numbers() {
            mask::handle(number, relay_signal)?;
        }
        Ok(Guard { signals, repeats: SignalDebouncer::default() })
    }

    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn guardians(&self) -> Result<(u32, u32), &'static str> {
        Err("this system has no subreaper")
    }

    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn kills_descendants(&self) -> bool {
        false
    }

    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the contract's form")]
    pub(crate) fn watchdog(&self) -> Option<Watchdog> {
        None
    }

    pub(crate) fn wait_ready(&self) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn signals(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }

    pub(crate) fn next_signal(&mut self) -> Option<(Signal, SignalSender)> {
        let mut byte = [0];
        loop {
            match rustix::io::read(&self.signals, &mut byte) {
                Ok(1) => {
                    if let Some(signal) = Signal::relayed(byte[0].into())
                        && self.repeats.counts(signal, Instant::now())
                    {
                        return Some((signal, SignalSender::Unknown));
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Ok(_) | Err(_) => return None,
            }
        }
    }

    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn suspend_self(&self) {
        if mask::default_action(libc::SIGTSTP).is_ok() {
            // The process stops here, and continues here.
            mask::raise_blocked(libc::SIGTSTP);
            let _ = mask::handle(libc::SIGTSTP, relay_signal);
        }
    }

    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn set_orphaned_flag(&mut self, _flag: Arc<AtomicBool>) {}

    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn stop_self(&self) {
        mask::raise_blocked(libc::SIGSTOP);
    }

    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn orphans(&self) -> Vec<(u32, String)> {
        Vec::new()
    }

    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn exit(self, status: u8) -> ! {
        std::process::exit(status.into())
    }

    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn terminate(self, ending: ExitMode) -> ! {
        match ending {
            ExitMode::Status(status) => mask::exit_now(status.into()),
            ExitMode::Signal(signal) if signal.ends() => mask::end_by(signal.as_raw()),
            ExitMode::Signal(_) => mask::exit_now(1),
        }
    }
}

/// Runs at each relayed signal. `write` changes `errno` only when it fails, that is when the pipe
/// holds 16 Ki signals.
extern "C" fn relay_signal(number: libc::c_int) {
    if let Ok(byte) = u8::try_from(number) {
        // SAFETY: stored before the first handler was set, and never closed.
        let relay = unsafe { BorrowedFd::borrow_raw(RELAY.load(SeqCst)) };
        let _ = rustix::io::write(relay, &[byte]);
    }
}
