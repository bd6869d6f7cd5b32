//! The clock of this process's CPU, and objects to wait for: eventfds on Linux, pipes elsewhere.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, PoisonError};

/// The steps in which the clock of the CPU goes on: too small to matter.
pub(crate) const TICK: std::time::Duration = std::time::Duration::from_nanos(1);

/// At how many objects it is worth while to look.
pub(crate) const SIZES: &[u64] = &[0, 2, 8, 32, 64, 128, 512, 1024, 2048, 8192, 16384];

/// Whether this is a program for Windows that runs elsewhere: it is not for Windows.
pub(crate) fn is_wine() -> bool {
    false
}

/// The CPU time of all threads of this process, those that ended included.
#[cfg(not(any(target_os = "netbsd", target_os = "openbsd")))]
pub(crate) fn cpu_time() -> std::time::Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    std::time::Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// Where one thread waits until another lets it through, once for each time that it is opened in
/// between.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    #[expect(clippy::unnecessary_wraps, reason = "the form of the other systems")]
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self::default())
    }

    pub(crate) fn open(&self) {
        *self.is_open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.opened.notify_one();
    }

    pub(crate) fn pass(&self) {
        let is_open = self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut is_open =
            self.opened.wait_while(is_open, |is_open| !*is_open).unwrap_or_else(PoisonError::into_inner);
        *is_open = false;
    }
}

/// Objects that one can signal, wait for and reset.
#[derive(Debug)]
pub(crate) struct Objects(Vec<Object>);

impl Objects {
    /// How many descriptors one of them takes.
    pub(crate) const DESCRIPTORS: usize = Object::DESCRIPTORS;

    pub(crate) fn open(count: usize) -> io::Result<Self> {
        (0..count).map(|_| Object::open()).collect::<io::Result<_>>().map(Self)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn signal(&self, index: usize) -> io::Result<()> {
        self.0[index].signal()
    }

    /// Blocks where there is nothing to reset.
    pub(crate) fn reset(&self, index: usize) -> io::Result<()> {
        self.0[index].reset()
    }

    /// What tells of a signal by being readable.
    pub(crate) fn source(&self, index: usize) -> &OwnedFd {
        &self.0[index].hear
    }
}

#[derive(Debug)]
struct Object {
    hear: OwnedFd,
    /// The other end, where hearing and signalling need two descriptors.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    push: OwnedFd,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Object {
    const DESCRIPTORS: usize = 1;

    fn open() -> io::Result<Self> {
        Ok(Self { hear: rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC)? })
    }

    fn signal(&self) -> io::Result<()> {
        rustix::io::write(&self.hear, &1u64.to_ne_bytes())?;
        Ok(())
    }

    fn reset(&self) -> io::Result<()> {
        rustix::io::read(&self.hear, &mut [0; 8])?;
        Ok(())
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl Object {
    const DESCRIPTORS: usize = 2;

    fn open() -> io::Result<Self> {
        let (hear, push) = crate::sys::fd::pipe()?;
        Ok(Self { hear, push })
    }

    fn signal(&self) -> io::Result<()> {
        rustix::io::write(&self.push, &[1])?;
        Ok(())
    }

    fn reset(&self) -> io::Result<()> {
        rustix::io::read(&self.hear, &mut [0; 1])?;
        Ok(())
    }
}
