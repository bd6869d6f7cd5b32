//! The pipes to and from a child, as streams of tokio.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::sys::{Reader, Writer};

/// The pipe to the standard input of a [`Child`](crate::Child). Dropping it or `shutdown` ends the input,
/// except that of a terminal: write its end-of-file character, which is usually 4. A child that has closed
/// its input is the error `BrokenPipe`.
///
/// ```
/// # #[cfg(unix)] {
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use minder::{Command, Stdio};
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// let mut command = Command::new("sort");
/// command.stdin(Stdio::piped()).stdout(Stdio::piped());
/// let mut child = minder_tokio::spawn(&command)?;
/// let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
/// input.write_all(b"b\na\n").await?;
/// input.shutdown().await?;
/// let mut text = String::new();
/// output.read_to_string(&mut text).await?;
/// assert!(text == "a\nb\n" && child.wait().await?.status.success());
/// # Ok(()) }
/// # main().unwrap() }
/// ```
#[derive(Debug)]
pub struct ChildStdin(Option<Writer>);

/// The pipe from the standard output of a [`Child`](crate::Child): see [`ChildStdin`].
#[derive(Debug)]
pub struct ChildStdout(pub(crate) Reader);

/// The pipe from the standard error of a [`Child`](crate::Child): see [`ChildStdin`].
#[derive(Debug)]
pub struct ChildStderr(pub(crate) Reader);

impl ChildStdin {
    pub(crate) fn new(pipe: minder::ChildStdin) -> io::Result<Self> {
        Ok(Self(Some(Writer::new(pipe)?)))
    }
}

impl AsyncWrite for ChildStdin {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Some(writer) => writer.poll_write(cx, bytes),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0 = None;
        Poll::Ready(Ok(()))
    }
}

macro_rules! reader {
    ($($type:ident)*) => {$(
        impl AsyncRead for $type {
            fn poll_read(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                self.0.poll_read(cx, buf)
            }
        }
    )*};
}

reader!(ChildStdout ChildStderr);
