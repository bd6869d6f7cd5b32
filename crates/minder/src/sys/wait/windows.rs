//! Completion: what a backend must supply on Windows, and the port that is made of one.
//!
//! Everything that is waited for gets into one [completion port](queue): pipes by themselves,
//! sockets by the system's driver for them, and whatever else one can wait for by a *backend*,
//! which hands the signal of a handle over to the port. Backends differ in who waits for the
//! handles; no way has a limit of 64.
//!
//! A handle is told when a wait for it was satisfied, so a telling takes what such a wait takes:
//! the signal of an auto-reset event, one of a semaphore. Some other thread has to wake first, so a
//! signal is told soon, and not always by a poll that follows it at once.

mod completion_port;
mod operation;
mod waker;
mod callback;
mod deferred_close;
mod timer;
mod poller_backend;
mod afd;
mod iocp;
mod wait_pool;
mod thread_pool;
mod wait_packets;

use std::fmt::Debug;
use std::io;
use std::os::windows::io::{AsHandle, AsSocket, BorrowedHandle, BorrowedSocket, OwnedHandle};
use std::sync::Arc;
use std::time::Instant;

pub(crate) use self::completion_port::{CompletionPort, millis};
pub(crate) use self::operation::{Operation, Submission};
pub(crate) use self::poller_backend::PollerBackend;
pub(crate) use self::waker::Waker;

use super::{Open, Ready, Report, open};

/// The contract of a backend: how the signal of a handle gets into a port.
pub(crate) trait Backend: Debug + Send + Sync {
    /// The name in the table, in `minder doctor` and in `--backend`.
    fn name(&self) -> &'static str;
    /// Prepares to wait for `handle`, which it does not do before [`Watched::arm`].
    fn watch(
        &self,
        queue: &Arc<CompletionPort>,
        handle: Arc<OwnedHandle>,
        packet: Arc<Operation>,
    ) -> io::Result<Box<dyn Watched>>;
    /// The same for a handle that is rarely armed more than once.
    fn watch_once(
        &self,
        queue: &Arc<CompletionPort>,
        handle: Arc<OwnedHandle>,
        packet: Arc<Operation>,
    ) -> io::Result<Box<dyn Watched>> {
        self.watch(queue, handle, packet)
    }
    /// Waits until there is something to tell or the deadline has come. Appends to `ready`.
    fn wait(
        &self,
        queue: &CompletionPort,
        ready: &mut Vec<Ready>,
        deadline: Option<Instant>,
    ) -> io::Result<()> {
        queue.wait(ready, deadline)
    }
}

/// A handle that a backend waits for. When this is dropped, nobody waits for the handle any longer;
/// its packet may still land.
pub(crate) trait Watched: Debug + Send + Sync {
    /// Waits for the handle once, and lets the packet fly when that wait is satisfied. The packet
    /// must be at home: it is armed for the first time, or has landed.
    fn arm(&mut self) -> io::Result<()>;
}

/// The backends of this system, best first: name and opener.
pub(crate) const BACKENDS: &[(&str, Open)] = &[
    (iocp::NAME, || Ok(Arc::new(iocp::Iocp))),
    (wait_pool::NAME, || Ok(Arc::new(wait_pool::WaitPool::default()))),
    (thread_pool::NAME, || Ok(Arc::new(thread_pool::ThreadPool))),
    (wait_packets::NAME, || Ok(Arc::new(wait_packets::WaitPackets::open()?))),
];

/// What can be registered with a [`Watch`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    /// Whatever one can wait for: an event, a semaphore, a timer, a thread, a process.
    Handle(BorrowedHandle<'a>),
    Socket(BorrowedSocket<'a>),
    /// The end of a process, ours or not.
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

/// A handle that is signalled when there is news. Wait for it in any loop; never reset it.
pub type PollHandle<'a> = BorrowedHandle<'a>;

/// What the endpoints of one set are armed on.
#[derive(Debug)]
pub(crate) struct Reactor {
    queue: Arc<CompletionPort>,
    backend: Arc<dyn Backend>,
}

impl Reactor {
    pub(crate) fn open(name: Option<&str>) -> io::Result<Self> {
        Ok(Self { backend: open(name)?, queue: CompletionPort::new()? })
    }

    /// Takes this many descriptors and no more, elsewhere: here nothing but memory bounds them.
    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn fault_room(&mut self, _room: Option<usize>) {}

    pub(crate) fn name(&self) -> &'static str {
        self.backend.name()
    }

    pub(crate) fn waker(&self) -> Arc<Waker> {
        self.queue.waker()
    }

    /// Waits until there is a report, the waker rings, or the deadline has come. Appends to
    /// `reports`.
    pub(crate) fn wait(&mut self, reports: &mut Vec<Report>, deadline: Option<Instant>) -> io::Result<()> {
        self.backend.wait(&self.queue, reports, deadline)
    }

    /// A handle that is signalled while `wait` would return at once: there is none.
    pub(crate) fn news(&self, _deadline: Option<Instant>) -> io::Result<PollHandle<'_>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// What endpoints keep of the port, so that their packets always have where to land.
    pub(crate) fn queue(&self) -> &Arc<CompletionPort> {
        &self.queue
    }

    /// Lets the packet fly once, when `handle` is signalled.
    pub(crate) fn watch(
        &self,
        handle: Arc<OwnedHandle>,
        packet: Arc<Operation>,
    ) -> io::Result<Box<dyn Watched>> {
        let mut watched = self.backend.watch_once(&self.queue, handle, packet)?;
        watched.arm()?;
        Ok(watched)
    }
}
