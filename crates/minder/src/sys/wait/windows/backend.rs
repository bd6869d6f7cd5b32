//! The contract of a wait backend on Windows, and what can be registered with one.

use std::fmt::Debug;
use std::io;
use std::os::windows::io::{AsHandle, AsSocket, BorrowedHandle, BorrowedSocket, OwnedHandle};
use std::sync::Arc;
use std::time::Instant;

use super::{CompletionPort, Operation};
use crate::backend::Backend;
use crate::sys::wait::Ready;

/// The contract of a backend: how the signal of a handle gets into a port.
pub(crate) trait WaitBackend: Debug + Send + Sync {
    /// Returns the variant of [`Backend`] of this backend.
    fn kind(&self) -> Backend;
    /// Prepares to wait for `handle`. The wait itself begins with [`Watched::arm`].
    fn watch(
        &self,
        port: &Arc<CompletionPort>,
        handle: Arc<OwnedHandle>,
        packet: Arc<Operation>,
    ) -> io::Result<Box<dyn Watched>>;
    /// The same for a handle that is rarely armed more than once.
    fn watch_once(
        &self,
        port: &Arc<CompletionPort>,
        handle: Arc<OwnedHandle>,
        packet: Arc<Operation>,
    ) -> io::Result<Box<dyn Watched>> {
        self.watch(port, handle, packet)
    }
    /// Waits until there is something to report or the deadline has passed. Appends to `ready`.
    fn wait(
        &self,
        port: &CompletionPort,
        ready: &mut Vec<Ready>,
        deadline: Option<Instant>,
    ) -> io::Result<()> {
        port.wait(ready, deadline)
    }
}

/// A handle that a backend waits for. Dropping it ends the wait. The packet may still complete
/// afterwards.
pub(crate) trait Watched: Debug + Send + Sync {
    /// Waits for the handle once, and posts the packet when that wait is satisfied. The packet must
    /// not be in flight: it is armed for the first time, or has completed.
    fn arm(&mut self) -> io::Result<()>;
}

/// A source that can be registered with a [`PollerBackend`](super::PollerBackend).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    /// Any handle that can be waited for: an event, a semaphore, a timer, a thread, a process.
    Handle(BorrowedHandle<'a>),
    Socket(BorrowedSocket<'a>),
    /// The exit of a process, which may be any process.
    Process(u32),
}

impl<'a> Source<'a> {
    pub(crate) fn handle(source: &'a impl AsHandle) -> Self {
        Self::Handle(source.as_handle())
    }

    pub(crate) fn socket(source: &'a impl AsSocket) -> Self {
        Self::Socket(source.as_socket())
    }
}

/// A handle that is signalled when an event is pending. Wait for it in any loop; never reset it.
#[cfg_attr(docsrs, doc(cfg(true)))] // Each system has it.
pub type PollHandle<'a> = BorrowedHandle<'a>;
