//! A waker that ends a wait from any thread: an eventfd on Linux, a pipe on other systems.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::types::Ready;
use super::wake_flag::{RECHECK, WOKEN, WakeFlag, report_wakes};

/// Ends a wait from any thread. Wake-ups are merged: several before one wait end it once.
#[derive(Debug)]
pub(crate) struct Waker {
    flag: WakeFlag,
    read_end: OwnedFd,
    /// The other end, where reading and writing need two descriptors.
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

    /// Ends the running wait, or else the next one. The thread that waits sees everything that was
    /// written before this call.
    pub(crate) fn wake(&self) -> io::Result<()> {
        self.flag.wake(WOKEN, || self.signal())
    }

    /// Makes the running wait compute its deadline again. The caller of the wait gets no report.
    pub(crate) fn recheck(&self) -> io::Result<()> {
        self.flag.wake(RECHECK, || self.signal())
    }

    /// Clears the waker. Call it before reading the data that the waking threads have stored.
    pub(crate) fn reset(&self) {
        self.flag.reset(|| self.drain());
    }

    /// Clears the waker and reports the reasons of the wake-ups.
    pub(super) fn take_wakes(&self, ready: &mut Vec<Ready>) {
        report_wakes(self.flag.reset(|| self.drain()), ready);
    }

    /// Returns the descriptor that is readable from a wake-up until the reset, for a foreign loop.
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
