//! Pipes on Unix: one read for each readiness, level-triggered. Bytes that a read leaves are
//! reported again.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::sigpipe::without_sigpipe;
use super::types::ReadOutcome;
use crate::group::Size;
use crate::interest::Interest;
use crate::sys::error::is_registration_limit;
use crate::sys::reactor::Reactor;
use crate::sys::wait::Report;

/// The reading end of one stream of a child.
#[derive(Debug)]
pub(crate) struct Reader {
    fd: OwnedFd,
    armed: bool,
    /// `true` if each read has to ask the kernel not to wait, because the descriptor blocks.
    #[cfg(target_os = "linux")]
    reads_now: bool,
    is_terminal: bool,
    /// `true` if this is a terminal that no process had open at the last read.
    is_hung_up: bool,
}

impl Reader {
    /// Takes the reading end of a pipe. For a set, reads do not wait: a starting sibling may hold a copy
    /// of the other end, and a pipe that was readable at the report may be empty when it is read.
    pub(crate) fn new(fd: OwnedFd, nonblocking: bool) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if nonblocking && super::read_now::may_work() {
            return Ok(Self { fd, armed: false, reads_now: true, is_terminal: false, is_hung_up: false });
        }
        Ok(Self { is_terminal: false, ..Self::of_terminal(fd, nonblocking)? })
    }

    /// Takes our side of a terminal. For a set it is non-blocking.
    pub(crate) fn of_terminal(fd: OwnedFd, nonblocking: bool) -> io::Result<Self> {
        if nonblocking {
            rustix::io::ioctl_fionbio(&fd, true)?;
        }
        Ok(Self {
            fd,
            armed: false,
            #[cfg(target_os = "linux")]
            reads_now: false,
            is_terminal: true,
            is_hung_up: false,
        })
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Returns whether this is a terminal that no process has open any more.
    pub(crate) fn is_hung_up(&self) -> bool {
        self.is_hung_up
    }

    /// Registers the pipe for reports with `token`.
    pub(crate) fn register(&mut self, reactor: &mut Reactor, token: u64) -> io::Result<()> {
        if !self.armed {
            reactor.add(&self.fd, token, Interest::READABLE)?;
            self.armed = true;
        }
        Ok(())
    }

    /// Stops the reports. The child blocks when the pipe is full.
    pub(crate) fn pause(&mut self, reactor: &mut Reactor) -> io::Result<()> {
        if std::mem::take(&mut self.armed) {
            reactor.delete(&self.fd)?;
        }
        Ok(())
    }

    /// Handles `report` by one read into the spare capacity of `buffer`.
    pub(crate) fn read(
        &mut self,
        _reactor: &mut Reactor,
        _report: &Report,
        buffer: &mut Vec<u8>,
    ) -> io::Result<ReadOutcome> {
        self.drain(buffer)
    }

    /// Reads the available bytes, without a report.
    pub(crate) fn drain(&mut self, buffer: &mut Vec<u8>) -> io::Result<ReadOutcome> {
        loop {
            return match self.read_once(buffer) {
                Ok(0) => Ok(ReadOutcome::Eof),
                Ok(count) => Ok(ReadOutcome::Data(count)),
                Err(Errno::AGAIN) => Ok(ReadOutcome::WouldBlock),
                Err(Errno::INTR) => continue,
                // The last process that used the terminal has closed it.
                Err(Errno::IO) => {
                    self.is_hung_up = true;
                    Ok(ReadOutcome::Eof)
                }
                Err(error) => Err(error.into()),
            };
        }
    }

    fn read_once(&mut self, buffer: &mut Vec<u8>) -> Result<usize, Errno> {
        #[cfg(target_os = "linux")]
        if self.reads_now {
            match super::read_now::read_now(&self.fd, buffer) {
                Err(Errno::OPNOTSUPP) => {
                    rustix::io::ioctl_fionbio(&self.fd, true)?;
                    self.reads_now = false;
                }
                result => return result,
            }
        }
        rustix::io::read(&self.fd, rustix::buffer::spare_capacity(buffer))
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

    /// Moves the available bytes to `to`. After an error they stay in the pipe. `WouldBlock` means
    /// that `to` is full.
    pub(crate) fn forward(&mut self, to: &File) -> io::Result<ReadOutcome> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return super::splice::forward(&self.fd, to);
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        {
            let _ = to;
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    /// Moves the available bytes to an offset of a file. After an error the other bytes stay in the
    /// pipe.
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

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Sets the size of the terminal that this is our side of.
    pub(crate) fn resize_terminal(&self, size: Size) -> io::Result<()> {
        super::resize_terminal(&self.fd, size)
    }

    /// Returns the descriptor, for readers that block if [`new`](Self::new) left it so.
    pub(crate) fn into_fd(self) -> io::Result<OwnedFd> {
        Ok(self.fd)
    }
}

/// The writing end of a child's standard input.
#[derive(Debug)]
pub(crate) struct Writer {
    fd: OwnedFd,
    armed: bool,
    /// `true` if the backend had no room for the pipe: the caller polls it.
    unwatched: bool,
    /// The last byte that was written; a line feed before the first.
    last: u8,
    /// Once the input of a terminal was ended: what is still to be written for that.
    ending: Option<Vec<u8>>,
}

impl Writer {
    /// Takes the writing end. For a set it is non-blocking.
    pub(crate) fn new(fd: OwnedFd, nonblocking: bool) -> io::Result<Self> {
        if nonblocking {
            rustix::io::ioctl_fionbio(&fd, true)?;
        }
        Ok(Self { fd, armed: false, unwatched: false, last: b'\n', ending: None })
    }

    /// Writes as much as there is room for. If that is not all, a report with `token` follows when
    /// there is room again, unless the writer [`is_unwatched`](Self::is_unwatched).
    pub(crate) fn write(&mut self, reactor: &mut Reactor, token: u64, bytes: &[u8]) -> io::Result<usize> {
        let written = match without_sigpipe(|| rustix::io::write(&self.fd, bytes)) {
            Err(Errno::AGAIN | Errno::INTR) => 0,
            // No process has the terminal open any more. A pipe never returns this.
            Err(Errno::IO) => return Err(Errno::PIPE.into()),
            result => result?,
        };
        if written < bytes.len() {
            self.watch(reactor, token)?;
        }
        self.last = bytes[..written].last().copied().unwrap_or(self.last);
        Ok(written)
    }

    /// Ends the input of a terminal by its end-of-file character, which a reader of lines takes for that.
    /// Closing this side ends nothing, since the reading side is a copy. Returns whether that is done. If
    /// not, a report with `token` follows when there is room, as for [`write`](Self::write); then this is
    /// called again.
    pub(crate) fn end_terminal(&mut self, reactor: &mut Reactor, token: u64) -> io::Result<bool> {
        let rest = match self.ending.take() {
            Some(rest) => rest,
            None => super::terminal::end_of_input(&self.fd, self.last)?,
        };
        let written = self.write(reactor, token, &rest)?;
        self.ending = Some(rest[written..].to_vec());
        Ok(written == rest.len())
    }

    /// Returns whether the input of a terminal was ended.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    fn watch(&mut self, reactor: &mut Reactor, token: u64) -> io::Result<()> {
        if self.armed {
            return Ok(());
        }
        match reactor.add(&self.fd, token, Interest::WRITABLE) {
            Ok(()) => (self.armed, self.unwatched) = (true, false),
            Err(error) if is_registration_limit(&error) => self.unwatched = true,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Returns whether the backend had no room for the pipe, so that no report follows.
    pub(crate) fn is_unwatched(&self) -> bool {
        self.unwatched
    }

    /// Returns whether there is room in an unwatched pipe, or its reader is gone. If not, the pipe is
    /// registered as far as the backend has room by now.
    pub(crate) fn poll(&mut self, reactor: &mut Reactor, token: u64) -> io::Result<bool> {
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut fds = [PollFd::new(&self.fd, PollFlags::OUT)];
        let is_ready = rustix::io::retry_on_intr(|| rustix::event::poll(&mut fds, Some(&now)))? > 0;
        if is_ready {
            self.unwatched = false;
        } else {
            self.watch(reactor, token)?;
        }
        Ok(is_ready)
    }

    /// Handles the report. Returns whether the caller can write now.
    pub(crate) fn ready(&mut self, reactor: &mut Reactor, _report: &Report) -> io::Result<bool> {
        let was = self.armed;
        self.deregister(reactor)?;
        Ok(was)
    }

    /// Closes the stream: the child reads the end of file.
    pub(crate) fn close(mut self, reactor: &mut Reactor) -> io::Result<()> {
        self.deregister(reactor)
    }

    /// Sets the size of the terminal that this is our side of.
    pub(crate) fn resize_terminal(&self, size: Size) -> io::Result<()> {
        super::resize_terminal(&self.fd, size)
    }

    /// Returns the descriptor, for writers that block if [`new`](Self::new) left it so.
    pub(crate) fn into_fd(self) -> io::Result<OwnedFd> {
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
