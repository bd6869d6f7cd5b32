//! Windows: handles as sources.

use std::fs::File;
use std::io;
use std::os::windows::io::{AsHandle, AsSocket};
use std::time::Instant;

use crate::interest::Interest;
use crate::poll::Source;

impl<'a, H: AsHandle> From<&'a H> for Source<'a> {
    fn from(source: &'a H) -> Self {
        Self(crate::sys::wait::Source::handle(source))
    }
}

impl<'a> Source<'a> {
    /// A socket: level-triggered or one-shot; [`edge`](crate::poll::Interest::edge) is `Unsupported`. The
    /// socket driver (AFD) reports it, which is undocumented; libuv and mio also use it.
    ///
    /// ```
    /// use minder::poll::{Events, Interest, Poller, Source, Token};
    /// let server = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let poller = Poller::new()?;
    /// poller.add(Source::socket(&server), Token(1), Interest::READABLE)?;
    /// let client = std::net::TcpStream::connect(server.local_addr()?)?;
    /// assert_eq!(poller.wait(&mut Events::new(), None)?, 1);
    /// poller.delete(Source::socket(&server))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg_attr(docsrs, doc(cfg(true)))] // Each system has it.
    pub fn socket(socket: &'a impl AsSocket) -> Self {
        Self(crate::sys::wait::Source::socket(socket))
    }
}

pub use crate::sys::wait::PollHandle;

/// See [`super::CommandLineLimit`].
pub(super) use crate::sys::spawn::CommandLineLimit;

/// See [`crate::Descriptors::inherited`]: there are none.
pub(super) fn inherited_descriptors() -> Vec<i32> {
    Vec::new()
}

/// See [`crate::Descriptors::close_on_exec`]: std's handles are not inherited.
pub(super) fn close_on_exec(_number: i32) {}

/// Returns -1: handles have no descriptor numbers.
pub(super) fn descriptor_of(_file: &File) -> i32 {
    -1
}

/// See [`super::wait_ready`].
pub(super) fn wait_ready(
    source: Source<'_>,
    interest: Interest,
    deadline: Option<Instant>,
) -> io::Result<bool> {
    super::poller_wait::wait_by_poller(source, interest, deadline)
}

/// See [`super::wants_terminal`].
pub(super) fn wants_terminal(_signal: i32) -> bool {
    false
}

/// See [`super::supports_graceful_termination`].
pub(super) fn supports_graceful_termination() -> bool {
    false
}

/// See [`super::supports_suspend`].
pub(super) fn supports_suspend() -> bool {
    false
}
