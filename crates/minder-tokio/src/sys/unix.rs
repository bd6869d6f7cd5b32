//! Unix: descriptors in tokio's reactor, which is edge-triggered. A read or write that would block clears
//! the readiness.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::task::{Context, Poll, ready};

use minder::ChildStdin;
use tokio::io::unix::AsyncFd;
use tokio::io::{Interest, ReadBuf};

/// The reading end of a pipe from a child.
#[derive(Debug)]
pub(crate) struct Reader(AsyncFd<File>);

impl Reader {
    pub(crate) fn new(pipe: impl Into<OwnedFd>) -> io::Result<Self> {
        let file = File::from(pipe.into());
        rustix::io::ioctl_fionbio(&file, true)?;
        Ok(Self(watch(file, Interest::READABLE)?))
    }

    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let count = ready!(self.poll_with(cx, |mut file| file.read(buf.initialize_unfilled())))?;
        buf.advance(count);
        Poll::Ready(Ok(()))
    }

    /// Appends what is there, at most about `max` bytes. Returns `false` at the end of the pipe.
    pub(crate) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &mut Vec<u8>,
        max: usize,
    ) -> Poll<io::Result<bool>> {
        let mut left = max;
        let read = |file: &File| {
            let before = bytes.len();
            // With less spare capacity, std reads into a small buffer first.
            bytes.reserve(ROOM_MIN);
            let result = file.take(left as u64).read_to_end(bytes);
            left -= bytes.len() - before;
            result
        };
        ready!(self.poll_with(cx, read))?;
        Poll::Ready(Ok(left == 0))
    }

    fn poll_with(
        &mut self,
        cx: &mut Context<'_>,
        mut read: impl FnMut(&File) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.0.poll_read_ready(cx))?;
            if let Ok(result) = guard.try_io(|file| read(file.get_ref())) {
                return Poll::Ready(result.or_else(at_hang_up));
            }
        }
    }
}

/// The room for the first read of an output.
const ROOM_MIN: usize = 1 << 10;

/// Returns the end of the file for a terminal that no process has open any more.
fn at_hang_up(error: io::Error) -> io::Result<usize> {
    if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) { Ok(0) } else { Err(error) }
}

/// Returns the error of a pipe without a reader for a terminal that no process has open any more.
fn at_closed_terminal(error: io::Error) -> io::Error {
    let is_closed = error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error());
    if is_closed { io::ErrorKind::BrokenPipe.into() } else { error }
}

/// The writing end of the pipe to a child.
#[derive(Debug)]
pub(crate) struct Writer(AsyncFd<ChildStdin>);

impl Writer {
    pub(crate) fn new(pipe: ChildStdin) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Self(watch(pipe, Interest::WRITABLE)?))
    }

    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.0.poll_write_ready(cx))?;
            let is_closed = guard.ready().is_write_closed();
            match guard.try_io(|pipe| pipe.get_ref().write(bytes)) {
                Ok(result) => return Poll::Ready(result.map_err(at_closed_terminal)),
                // A terminal that no process has open any more may be full for ever.
                Err(_) if is_closed => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
                Err(_) => (),
            }
        }
    }

    /// Ends the input of a terminal, which continues to be open, by as many end-of-file characters as are
    /// `left`.
    pub(crate) fn poll_end_terminal(&mut self, cx: &mut Context<'_>, left: &mut u8) -> Poll<()> {
        while *left > 0 {
            let Ok(mut guard) = ready!(self.0.poll_write_ready(cx)) else { break };
            let send = |pipe: &AsyncFd<ChildStdin>| {
                pipe.get_ref().send_eof().map_err(|error| io::Error::from(error.io_error().kind()))
            };
            // A pipe has no such character: its end is that it is closed. So any other error ends this, too.
            let is_closed = guard.ready().is_write_closed();
            if guard.try_io(send).is_ok() || is_closed {
                *left -= 1;
            }
        }
        Poll::Ready(())
    }
}

/// The pidfd of a child, which is readable when it has exited.
#[derive(Debug)]
pub(crate) struct ExitDescriptor(AsyncFd<OwnedFd>);

impl ExitDescriptor {
    /// Returns `None` if there is none, or no descriptor is free for a copy.
    pub(crate) fn of(child: &minder::Child) -> Option<Self> {
        let copy = child.pidfd()?.try_clone_to_owned().ok()?;
        watch(copy, Interest::READABLE).ok().map(Self)
    }

    /// Waits until the child may have exited. The next call waits for the next report.
    ///
    /// # Errors
    /// The runtime that watches it has ended.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.0.poll_read_ready(cx))?.clear_ready();
        Poll::Ready(Ok(()))
    }
}

/// Registers a descriptor that it owns, which is what `register` asks for.
#[expect(deprecated, reason = "`AsyncFd::register` is unsafe, and tokio has it since 1.54 only")]
fn watch<T: AsRawFd>(descriptor: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(descriptor, interest)
}
