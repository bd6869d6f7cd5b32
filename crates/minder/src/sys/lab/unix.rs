//! The clock of this process's CPU, and objects to wait for: eventfds on Linux, pipes elsewhere.

use std::io;
use std::os::fd::OwnedFd;

/// The CPU time of all threads of this process, those that ended included.
#[cfg(not(any(target_os = "netbsd", target_os = "openbsd")))]
pub(crate) fn cpu_time() -> std::time::Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    std::time::Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
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
        let (hear, push) = crate::sys::pipe::pair()?;
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
