//! A bell that ends a wait from any thread: an eventfd on Linux, a pipe elsewhere.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Rings are merged: many rings before one wait end it once.
#[derive(Debug)]
pub(crate) struct Doorbell {
    /// Whether the descriptor is, or is about to be, readable.
    rung: AtomicBool,
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
        Ok(Self { rung: AtomicBool::new(false), hear })
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(crate) fn new() -> io::Result<Self> {
        let (hear, push) = crate::sys::pipe::pair()?;
        rustix::io::ioctl_fionbio(&hear, true)?;
        rustix::io::ioctl_fionbio(&push, true)?;
        Ok(Self { rung: AtomicBool::new(false), hear, push })
    }

    /// Ends the wait that goes on, or else the next one. What was written before this is seen after that wait.
    pub(crate) fn ring(&self) -> io::Result<()> {
        if self.rung.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        rustix::io::write(&self.hear, &1u64.to_ne_bytes())?;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        rustix::io::write(&self.push, &[1])?;
        Ok(())
    }

    /// Makes it silent again. Call it before looking at what the ringers left.
    pub(crate) fn hush(&self) {
        // 1. Empty the descriptor. 2. Allow new rings. A ring between the two finds `rung` set and writes nothing; but
        // what it announces was stored before its swap, and the caller looks only after our swap: nothing is lost.
        let mut counter = [0; 8];
        let _ = rustix::io::read(&self.hear, &mut counter);
        self.rung.swap(false, Ordering::AcqRel);
    }

    /// The descriptor that is readable from a ring until it is hushed, for a loop that is not ours.
    pub(crate) fn news(&self) -> BorrowedFd<'_> {
        self.hear.as_fd()
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.hear.as_fd()
    }
}
