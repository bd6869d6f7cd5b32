//! Pipes on Unix: one read for each readiness, level-triggered. What a read leaves is reported
//! again.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::sigpipe::without_sigpipe;
use super::types::ReadOutcome;
use crate::event::Interest;
use crate::sys::reactor::Reactor;
use crate::sys::wait::Report;

/// The reading end of one stream of a child.
#[derive(Debug)]
pub(crate) struct Reader {
    fd: OwnedFd,
    armed: bool,
}

impl Reader {
    /// Takes the reading end. It is made non-blocking: a starting sibling may hold a copy of the
    /// other end, and a pipe that was readable at the report may be empty when it is read.
    pub(crate) fn new(fd: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Self { fd, armed: false })
    }

    /// Starts to listen: reports with `token` will come.
    pub(crate) fn register(&mut self, reactor: &mut Reactor, token: u64) -> io::Result<()> {
        if !self.armed {
            reactor.add(&self.fd, token, Interest::READABLE)?;
            self.armed = true;
        }
        Ok(())
    }

    /// Stops listening; the child blocks when the pipe is full.
    pub(crate) fn pause(&mut self, reactor: &mut Reactor) -> io::Result<()> {
        if std::mem::take(&mut self.armed) {
            reactor.delete(&self.fd)?;
        }
        Ok(())
    }

    /// Makes the progress that `report` promises: one read into the spare room of `buffer`.
    pub(crate) fn read(
        &mut self,
        _reactor: &mut Reactor,
        _report: &Report,
        buffer: &mut Vec<u8>,
    ) -> io::Result<ReadOutcome> {
        self.drain(buffer)
    }

    /// Reads what is there, without a report.
    pub(crate) fn drain(&mut self, buffer: &mut Vec<u8>) -> io::Result<ReadOutcome> {
        loop {
            return match rustix::io::read(&self.fd, rustix::buffer::spare_capacity(buffer)) {
                Ok(0) => Ok(ReadOutcome::Eof),
                Ok(count) => Ok(ReadOutcome::Data(count)),
                Err(Errno::AGAIN) => Ok(ReadOutcome::WouldBlock),
                Err(Errno::INTR) => continue,
                // A terminal whose last user is gone.
                Err(Errno::IO) => Ok(ReadOutcome::Eof),
                Err(error) => Err(error.into()),
            };
        }
    }

    /// Returns whether bytes can pass on to `to` without a copy.
    pub(crate) fn can_forward(&self, to: &File) -> bool {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return super::splice::takes(to);
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        {
            let _ = to;
            false
        }
    }

    /// Enlarges this pipe and the pipe `to` that its bytes are copied to. Larger pipes are only
    /// faster, so that errors are ignored.
    pub(crate) fn enlarge(&self, to: Option<&File>) {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            super::splice::enlarge(&self.fd);
            if let Some(to) = to {
                super::splice::enlarge(to);
            }
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let _ = to;
    }

    /// Waits until `to` takes bytes, for at most `patience`.
    pub(crate) fn wait_for_room(&self, to: &File, patience: std::time::Duration) {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        super::splice::wait_for_room(to, patience);
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let _ = (to, patience);
    }

    /// Passes on what is there. An error leaves the bytes where they are; `WouldBlock` says that
    /// `to` is full.
    pub(crate) fn forward(&mut self, to: &File) -> io::Result<ReadOutcome> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return super::splice::forward(&self.fd, to);
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        {
            let _ = to;
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    /// Moves what is there to a place in a file. An error leaves in the stream what the file did
    /// not take.
    pub(crate) fn store(&mut self, to: &File, at: u64) -> io::Result<ReadOutcome> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return super::splice::store(&self.fd, to, at);
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        {
            let _ = (to, at);
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    /// Closes the stream. The registration is deleted first: a starting sibling may hold a copy of
    /// the descriptor, and epoll would continue to report it.
    pub(crate) fn close(mut self, reactor: &mut Reactor) -> io::Result<()> {
        self.pause(reactor)
    }

    /// The descriptor itself, for readers that block.
    pub(crate) fn into_fd(self) -> io::Result<OwnedFd> {
        rustix::io::ioctl_fionbio(&self.fd, false)?;
        Ok(self.fd)
    }
}

/// The writing end of a child's standard input.
#[derive(Debug)]
pub(crate) struct Writer {
    fd: OwnedFd,
    armed: bool,
}

impl Writer {
    /// Takes the writing end and makes it non-blocking.
    pub(crate) fn new(fd: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Self { fd, armed: false })
    }

    /// Writes as much as there is room for. When that is not all, a report with `token` comes once
    /// there is room again.
    pub(crate) fn write(&mut self, reactor: &mut Reactor, token: u64, bytes: &[u8]) -> io::Result<usize> {
        let written = match without_sigpipe(|| rustix::io::write(&self.fd, bytes)) {
            Err(Errno::AGAIN | Errno::INTR) => 0,
            // A terminal that no process has open any more; a pipe never says so.
            Err(Errno::IO) => return Err(Errno::PIPE.into()),
            result => result?,
        };
        if written < bytes.len() && !self.armed {
            reactor.add(&self.fd, token, Interest::WRITABLE)?;
            self.armed = true;
        }
        Ok(written)
    }

    /// Takes the report; says whether the caller can write now.
    pub(crate) fn ready(&mut self, reactor: &mut Reactor, _report: &Report) -> io::Result<bool> {
        let was = self.armed;
        self.deregister(reactor)?;
        Ok(was)
    }

    /// Closes the stream: the child reads the end of file.
    pub(crate) fn close(mut self, reactor: &mut Reactor) -> io::Result<()> {
        self.deregister(reactor)
    }

    /// The descriptor itself, for writers that block.
    pub(crate) fn into_fd(self) -> io::Result<OwnedFd> {
        rustix::io::ioctl_fionbio(&self.fd, false)?;
        Ok(self.fd)
    }

    fn deregister(&mut self, reactor: &mut Reactor) -> io::Result<()> {
        if std::mem::take(&mut self.armed) {
            reactor.delete(&self.fd)?;
        }
        Ok(())
    }
}

impl AsFd for Writer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
