//! Pairs of descriptors that no child inherits.

use std::io;
use std::os::fd::OwnedFd;

/// A pipe: the reading and the writing end, neither of which a child inherits.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    #[cfg(not(target_vendor = "apple"))]
    return Ok(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?);
    #[cfg(target_vendor = "apple")]
    {
        // No pipe2: a spawn on another thread in between would inherit them, except
        // POSIX_SPAWN_CLOEXEC_DEFAULT, which our spawner sets.
        let (read, write) = rustix::pipe::pipe()?;
        rustix::io::fcntl_setfd(&read, rustix::io::FdFlags::CLOEXEC)?;
        rustix::io::fcntl_setfd(&write, rustix::io::FdFlags::CLOEXEC)?;
        Ok((read, write))
    }
}
