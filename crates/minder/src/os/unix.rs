//! Unix: descriptors as sources.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Instant;

use crate::Source;
use crate::child::Child;
use crate::command::Command;
use crate::interest::Interest;

impl<'a, F: AsFd> From<&'a F> for Source<'a> {
    fn from(source: &'a F) -> Self {
        Self(crate::sys::wait::Source::descriptor(source))
    }
}

/// The exit of the child.
impl<'a> From<&'a Child> for Source<'a> {
    fn from(child: &'a Child) -> Self {
        Self(child.process().source())
    }
}

impl<'a> Source<'a> {
    /// A socket. On Unix a socket is a descriptor like any other. On Windows it is not, and needs
    /// this function.
    ///
    /// - Windows: reported by the socket driver (AFD), level-triggered or one-shot;
    ///   [`edge`](crate::Interest::edge) is `Unsupported`.
    ///
    /// ```
    /// use minder::{Events, Interest, Poller, Source, Token};
    /// let server = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let poller = Poller::new()?;
    /// poller.add(Source::socket(&server), Token(1), Interest::READABLE)?;
    /// let client = std::net::TcpStream::connect(server.local_addr()?)?;
    /// assert_eq!(poller.wait(&mut Events::new(), None)?, 1);
    /// poller.delete(Source::socket(&server))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg_attr(docsrs, doc(cfg(true)))] // Each system has it.
    pub fn socket(socket: &'a impl AsFd) -> Self {
        Self::from(socket)
    }
}

pub use crate::sys::wait::PollHandle;

/// See [`super::CommandLineLimit`]: no value exists on Unix.
#[derive(Clone, Debug)]
pub(super) enum CommandLineLimit {}

impl CommandLineLimit {
    pub(super) fn of(_command: &Command) -> Option<Self> {
        None
    }

    pub(super) fn max_units(&self) -> usize {
        match *self {}
    }

    pub(super) fn fits(&self, _command: &Command) -> bool {
        match *self {}
    }
}

/// See [`crate::Descriptors::inherited`].
pub(super) use crate::sys::spawn::{close_on_exec, inherited as inherited_descriptors};

/// Returns the descriptor number of an open file.
pub(super) fn descriptor_of(file: &File) -> i32 {
    file.as_raw_fd()
}

/// See [`super::wait_ready`].
pub(super) fn wait_ready(
    source: Source<'_>,
    interest: Interest,
    deadline: Option<Instant>,
) -> io::Result<bool> {
    match crate::sys::wait::poll_once(&source.0, interest, deadline) {
        Some(ready) => ready,
        // A process has no descriptor of ours.
        None => super::poller_wait::wait_by_poller(source, interest, deadline),
    }
}

/// See [`super::wants_terminal`].
pub(super) fn wants_terminal(signal: i32) -> bool {
    signal == libc::SIGTTIN || signal == libc::SIGTTOU
}

/// See [`super::supports_graceful_termination`].
pub(super) fn supports_graceful_termination() -> bool {
    true
}

/// See [`super::supports_suspend`].
pub(super) fn supports_suspend() -> bool {
    true
}
