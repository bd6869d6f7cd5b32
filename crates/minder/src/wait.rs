//! `Poller` and `Waker`: the safe front of `sys::wait`.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use crate::event::{Interest, Token};
use crate::sys::wait::{self, Doorbell};
use crate::{Error, ErrorKind, Result};

/// A descriptor or handle that a [`Poller`] can watch; made from a borrowed one, so that it is open.
pub struct Source<'a>(pub(crate) wait::Source<'a>);

impl fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}

/// Tells which of many sources are ready, by the backend of one's choice.
///
/// Level-triggered: a source that is ready and was not served is told again by the next [`wait`](Self::wait). All methods
/// may be called from any thread, and a change takes effect in a wait that goes on.
///
/// - Linux: `epoll` (the default) and `poll`. Other Unix: `poll`. Windows: the completion port takes no foreign sources
///   yet; [`add`](Self::add) answers `Unsupported`.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{Events, Interest, Poller, Token};
/// let (reader, mut writer) = std::io::pipe()?;
/// let poller = Poller::new()?;
/// poller.add(&reader, Token(7), Interest::READABLE)?;
/// std::io::Write::write_all(&mut writer, b"news")?;
/// let mut events = Events::new();
/// poller.wait(&mut events, None)?;
/// assert_eq!(events.iter().next().map(|event| event.token), Some(Token(7)));
/// poller.delete(&reader)?;      // before it is closed
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Poller {
    backend: Arc<dyn wait::Backend>,
}

/// What one [`Poller::wait`] found.
#[derive(Debug, Default)]
pub struct Events(Vec<wait::Ready>);

/// One source that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Readiness {
    /// The token that it was registered with.
    pub token: Token,
    /// A read would not block.
    pub readable: bool,
    /// A write would not block.
    pub writable: bool,
    /// The other side is gone, or the source is in error: the next read or write says which.
    pub closed: bool,
}

impl Events {
    /// Makes an empty list. Its memory is kept from wait to wait.
    pub fn new() -> Self {
        Self::default()
    }

    /// The sources that are ready, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = Readiness> + '_ {
        self.0.iter().filter(|ready| ready.token != wait::WAKE).map(|ready| Readiness {
            token: Token(ready.token),
            readable: ready.readable,
            writable: ready.writable,
            closed: ready.closed,
        })
    }

    /// Whether a [`Waker`] ended the wait, or took part in it.
    pub fn woken(&self) -> bool {
        self.0.iter().any(|ready| ready.token == wait::WAKE)
    }
}

/// The names of the backends of this system, best first: what [`Poller::with_backend`] takes.
pub fn backends() -> impl Iterator<Item = &'static str> {
    wait::BACKENDS.iter().map(|(name, _)| *name)
}

impl Poller {
    /// Opens the best backend of this machine.
    ///
    /// # Errors
    /// `Exhausted` when no descriptor is free.
    pub fn new() -> Result<Self> {
        Self::open(None)
    }

    /// Opens the backend of this name; [`backends`] lists them.
    ///
    /// # Errors
    /// `Unsupported` for a name that this system does not have; `Exhausted` when no descriptor is free.
    pub fn with_backend(name: &str) -> Result<Self> {
        Self::open(Some(name))
    }

    fn open(name: Option<&str>) -> Result<Self> {
        match wait::open(name) {
            Ok(backend) => Ok(Self { backend }),
            Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {
                let error = Error::own(
                    ErrorKind::Unsupported,
                    "open the wait backend",
                    "this system has no such backend",
                );
                Err(error.on(name.unwrap_or("default")))
            }
            Err(error) => Err(Error::new("open a wait backend", error)),
        }
    }

    /// The backend's name.
    pub fn backend(&self) -> &'static str {
        self.backend.name()
    }

    /// Registers a source. Delete it before it is closed.
    ///
    /// # Errors
    /// `InvalidInput` for a source that is registered already; what the system says of one that it cannot watch, such as
    /// a plain file with epoll.
    pub fn add<'a>(&self, source: impl Into<Source<'a>>, token: Token, interest: Interest) -> Result<()> {
        let token = check(token)?;
        self.backend
            .add(source.into().0, token, interest)
            .map_err(|error| Error::new("watch a source", error))
    }

    /// Changes the token or the interest of a registered source.
    ///
    /// # Errors
    /// `NotFound` for a source that is not registered.
    pub fn modify<'a>(&self, source: impl Into<Source<'a>>, token: Token, interest: Interest) -> Result<()> {
        let token = check(token)?;
        self.backend
            .modify(source.into().0, token, interest)
            .map_err(|error| Error::new("change a source", error))
    }

    /// Forgets a source. Its token is not told again after this returned, by waits that begin later.
    ///
    /// # Errors
    /// `NotFound` for a source that is not registered.
    pub fn delete<'a>(&self, source: impl Into<Source<'a>>) -> Result<()> {
        self.backend.delete(source.into().0).map_err(|error| Error::new("forget a source", error))
    }

    /// Waits until a source is ready, the waker is used, or `deadline` has come; replaces what `events` held. Returns the
    /// number of ready sources. It never ends before the deadline with nothing to tell.
    ///
    /// # Errors
    /// Only those of a system call that should not fail. A signal does not end the wait.
    pub fn wait(&self, events: &mut Events, deadline: Option<Instant>) -> Result<usize> {
        events.0.clear();
        self.backend.wait(&mut events.0, deadline).map_err(|error| Error::new("wait", error))?;
        Ok(events.iter().count())
    }

    /// Ends the wait that goes on, or else the next one.
    ///
    /// # Errors
    /// Only those of a system call that should not fail.
    pub fn notify(&self) -> Result<()> {
        self.waker().wake()
    }

    /// A handle that ends waits from any thread.
    pub fn waker(&self) -> Waker {
        Waker(self.backend.doorbell())
    }
}

/// Ends a wait from any thread. Wakes are merged: many before one wait end it once.
#[derive(Clone, Debug)]
pub struct Waker(pub(crate) Arc<Doorbell>);

impl Waker {
    /// Ends the wait that goes on, or else the next one. What was written before this call is seen after that wait.
    ///
    /// # Errors
    /// Only those of a system call that should not fail.
    pub fn wake(&self) -> Result<()> {
        self.0.ring().map_err(|error| Error::new("wake a wait", error))
    }
}

/// A few tokens are the backend's own.
fn check(token: Token) -> Result<u64> {
    if token.0 <= wait::TOKEN_MAX {
        return Ok(token.0);
    }
    Err(Error::own(ErrorKind::InvalidInput, "watch a source", "the highest sixteen tokens are taken"))
}
