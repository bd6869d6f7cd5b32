//! A bell that ends a wait from any thread: an eventfd on Linux, a pipe elsewhere.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::bell::{Bell, NUDGED, WOKEN};
use super::{Ready, report_rings};

/// Rings are merged: many rings before one wait end it once.
#[derive(Debug)]
pub(crate) struct Doorbell {
    bell: Bell,
    hear: OwnedFd,
    /// The other end, where hearing and ringing need two descriptors.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    push: OwnedFd,
}

impl Doorbell {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn new() -> io::Result<Self> {
        use rustix::event::{EventfdFlags, eventfd};
        let hear = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { bell: Bell::new(), hear })
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(crate) fn new() -> io::Result<Self> {
        let (hear, push) = crate::sys::pipe::pair()?;
        rustix::io::ioctl_fionbio(&hear, true)?;
        rustix::io::ioctl_fionbio(&push, true)?;
        Ok(Self { bell: Bell::new(), hear, push })
    }

    /// Ends the wait that goes on, or else the next one. What was written before this is seen after
    /// that wait.
    pub(crate) fn ring(&self) -> io::Result<()> {
        self.bell.ring(WOKEN, || self.signal())
    }

    /// Makes the wait that goes on look again at what bounds it; it is not told to the caller.
    pub(crate) fn nudge(&self) -> io::Result<()> {
        self.bell.ring(NUDGED, || self.signal())
    }

    /// Makes it silent again. Call it before looking at what the ringers left.
    pub(crate) fn hush(&self) {
        self.bell.hush(|| self.empty());
    }

    /// Hushes it, and reports for which reasons it was rung.
    pub(super) fn answer(&self, ready: &mut Vec<Ready>) {
        report_rings(self.bell.hush(|| self.empty()), ready);
    }

    /// The descriptor that is readable from a ring until it is hushed, for a loop that is not ours.
    pub(crate) fn news(&self) -> BorrowedFd<'_> {
        self.hear.as_fd()
    }

    fn signal(&self) -> io::Result<()> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let written = rustix::io::write(&self.hear, &1u64.to_ne_bytes());
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let written = rustix::io::write(&self.push, &[1]);
        match written {
            // Full, so it is readable already.
            Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn empty(&self) {
        let mut counter = [0; 8];
        let _ = rustix::io::read(&self.hear, &mut counter);
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.hear.as_fd()
    }
}
