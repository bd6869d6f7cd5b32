//! A bell that ends a wait from any thread: an eventfd on Linux, a pipe elsewhere.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::types::Ready;
use super::wake_flag::{RECHECK, WOKEN, WakeFlag, report_wakes};

/// Rings are merged: many rings before one wait end it once.
#[derive(Debug)]
pub(crate) struct Waker {
    flag: WakeFlag,
    read_end: OwnedFd,
    /// The other end, where hearing and ringing need two descriptors.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    write_end: OwnedFd,
}

impl Waker {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn new() -> io::Result<Self> {
        use rustix::event::{EventfdFlags, eventfd};
        let read_end = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { flag: WakeFlag::new(), read_end })
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(crate) fn new() -> io::Result<Self> {
        let (read_end, write_end) = crate::sys::fd::pipe()?;
        rustix::io::ioctl_fionbio(&read_end, true)?;
        rustix::io::ioctl_fionbio(&write_end, true)?;
        Ok(Self { flag: WakeFlag::new(), read_end, write_end })
    }

    /// Ends the wait that goes on, or else the next one. What was written before this is seen after
    /// that wait.
    pub(crate) fn wake(&self) -> io::Result<()> {
        self.flag.wake(WOKEN, || self.signal())
    }

    /// Makes the wait that goes on look again at what bounds it; it is not told to the caller.
    pub(crate) fn recheck(&self) -> io::Result<()> {
        self.flag.wake(RECHECK, || self.signal())
    }

    /// Makes it silent again. Call it before looking at what the ringers left.
    pub(crate) fn reset(&self) {
        self.flag.reset(|| self.drain());
    }

    /// Hushes it, and reports for which reasons it was rung.
    pub(super) fn take_wakes(&self, ready: &mut Vec<Ready>) {
        report_wakes(self.flag.reset(|| self.drain()), ready);
    }

    /// The descriptor that is readable from a ring until it is hushed, for a loop that is not ours.
    pub(crate) fn poll_handle(&self) -> BorrowedFd<'_> {
        self.read_end.as_fd()
    }

    fn signal(&self) -> io::Result<()> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let written = rustix::io::write(&self.read_end, &1u64.to_ne_bytes());
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let written = rustix::io::write(&self.write_end, &[1]);
        match written {
            // Full, so it is readable already.
            Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn drain(&self) {
        let mut counter = [0; 8];
        let _ = rustix::io::read(&self.read_end, &mut counter);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read_end.as_fd()
    }
}
