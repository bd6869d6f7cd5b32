//! Windows: tokio watches no handles of pipes or processes. The threads of the runtime read and write the
//! pipes, as in tokio's own processes, and the exit is polled.

use std::fs::File;
use std::io;
use std::os::windows::io::OwnedHandle;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use minder::ChildStdin;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The size of a read.
const READ_BYTES: usize = 16 << 10;

/// The reading end of a pipe from a child.
#[derive(Debug)]
pub(crate) struct Reader(tokio::fs::File);

impl Reader {
    #[expect(clippy::unnecessary_wraps, reason = "the contract's form")]
    pub(crate) fn new(pipe: impl Into<OwnedHandle>) -> io::Result<Self> {
        Ok(Self(tokio::fs::File::from_std(File::from(pipe.into()))))
    }

    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match ready!(Pin::new(&mut self.0).poll_read(cx, buf)) {
            // The other end is closed.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Poll::Ready(Ok(())),
            result => Poll::Ready(result),
        }
    }

    /// Appends what is there, in one read. Returns `false` at the end of the pipe.
    pub(crate) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &mut Vec<u8>,
        max: usize,
    ) -> Poll<io::Result<bool>> {
        let mut memory = [0; READ_BYTES];
        let mut buf = ReadBuf::new(&mut memory[..READ_BYTES.min(max)]);
        ready!(self.poll_read(cx, &mut buf))?;
        bytes.extend_from_slice(buf.filled());
        Poll::Ready(Ok(!buf.filled().is_empty()))
    }
}

/// The writing end of the pipe to a child.
#[derive(Debug)]
pub(crate) struct Writer(tokio::fs::File);

impl Writer {
    #[expect(clippy::unnecessary_wraps, reason = "the contract's form")]
    pub(crate) fn new(pipe: ChildStdin) -> io::Result<Self> {
        Ok(Self(tokio::fs::File::from_std(File::from(OwnedHandle::from(pipe)))))
    }

    /// Hands the bytes to a thread. The error of that write is the result of the next one.
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn poll_end_terminal(&mut self, _cx: &mut Context<'_>, _left: &mut u8) -> Poll<()> {
        Poll::Ready(())
    }
}

/// There is none.
#[derive(Debug)]
pub(crate) enum ExitDescriptor {}

impl ExitDescriptor {
    pub(crate) fn of(_child: &minder::Child) -> Option<Self> {
        None
    }

    pub(crate) fn poll(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match *self {}
    }
}
