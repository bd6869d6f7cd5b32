//! The reactor on Windows: a completion port, and the backend that posts signals to it.

use std::io;
use std::os::windows::io::OwnedHandle;
use std::sync::Arc;
use std::time::Instant;

use crate::backend::Backend;
use crate::sys::wait::{CompletionPort, Operation, PollHandle, Report, WaitBackend, Waker, Watched, open};

/// The port that watches the endpoints of one set.
#[derive(Debug)]
pub(crate) struct Reactor {
    port: Arc<CompletionPort>,
    backend: Arc<dyn WaitBackend>,
}

impl Reactor {
    pub(crate) fn open(backend: Option<Backend>) -> io::Result<Self> {
        Ok(Self { backend: open(backend)?, port: CompletionPort::new()? })
    }

    /// Takes this many descriptors and no more, elsewhere: here nothing but memory bounds them.
    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn limit_descriptors(&mut self, _left: Option<usize>) {}

    pub(crate) fn kind(&self) -> Backend {
        self.backend.kind()
    }

    pub(crate) fn waker(&self) -> Arc<Waker> {
        self.port.waker()
    }

    /// Waits until there is a report, the waker is used, or the deadline has passed. Appends to
    /// `reports`.
    pub(crate) fn wait(&mut self, reports: &mut Vec<Report>, deadline: Option<Instant>) -> io::Result<()> {
        self.backend.wait(&self.port, reports, deadline)
    }

    /// A handle that is signalled while `wait` would return at once: there is none.
    pub(crate) fn poll_handle(&self, _deadline: Option<Instant>) -> io::Result<PollHandle<'_>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the port. Each endpoint keeps a reference, so that its packets can always complete.
    pub(crate) fn port(&self) -> &Arc<CompletionPort> {
        &self.port
    }

    /// Posts the packet once, when `handle` is signalled.
    pub(crate) fn watch(
        &self,
        handle: Arc<OwnedHandle>,
        packet: Arc<Operation>,
    ) -> io::Result<Box<dyn Watched>> {
        let mut watched = self.backend.watch_once(&self.port, handle, packet)?;
        watched.arm()?;
        Ok(watched)
    }
}
