//! Objects on Linux: eventfds.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, eventfd};

/// Numbers of objects at which the costs of mechanisms change.
pub(crate) const SIZES: &[u64] = &[0, 2, 8, 32, 64, 128, 512, 1024, 2048, 8192, 16384];

/// Objects that a program can signal, wait for and reset.
#[derive(Debug)]
pub(crate) struct Objects(Vec<OwnedFd>);

impl Objects {
    /// The number of descriptors of one object.
    pub(crate) const DESCRIPTORS: usize = 1;

    pub(crate) fn open(count: usize) -> io::Result<Self> {
        let object = |_| Ok(eventfd(0, EventfdFlags::CLOEXEC)?);
        (0..count).map(object).collect::<io::Result<_>>().map(Self)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn signal(&self, index: usize) -> io::Result<()> {
        rustix::io::write(&self.0[index], &1u64.to_ne_bytes())?;
        Ok(())
    }

    /// Resets a signalled object. Blocks until it is signalled.
    pub(crate) fn reset(&self, index: usize) -> io::Result<()> {
        rustix::io::read(&self.0[index], &mut [0; 8])?;
        Ok(())
    }

    /// Returns the descriptor that is readable while the object is signalled.
    pub(crate) fn source(&self, index: usize) -> &OwnedFd {
        &self.0[index]
    }
}
