//! Waiting for descriptors, handles, sockets, processes and timers, for programs that have no event loop.
//!
//! A [`Poller`] waits for [`Source`]s. Each has a [`Token`], and an [`Interest`] says what is reported of it.
//! A wait fills [`Events`] with what is ready. A [`Waker`] ends a wait from another thread.
//!
//! A [`ChildSet`](crate::ChildSet) waits for its children by itself, so a program that has nothing else to
//! wait for needs none of this.

mod timers;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use minder_os::sync::Mutex;

use self::timers::Timers;
use crate::backend::Backend;
use crate::deadline::deadline_after;
pub use crate::interest::{Interest, Token};
use crate::sys::thread;
use crate::sys::wait::{self, PollHandle, PollerBackend, Ready};
use crate::{Error, ErrorKind, Operation, Result};

/// The value of [`Poller::waiter`] before the first wait. No thread has this id.
const NO_WAITER: usize = 0;

/// A source that a [`Poller`] can watch: a borrowed descriptor or handle, which is therefore open;
/// a [socket](Self::socket); a [`Child`](crate::Child); or [any process](Self::process).
///
/// - Windows: any handle that can be waited for: events, semaphores, timers, threads, processes. It
///   is readable when it is signalled, and it is reported when a wait for it was satisfied. For an
///   auto-reset event or a semaphore, the report consumes what such a wait consumes. A mutex would
///   belong to the thread that happened to wait. Files and pipes are `Unsupported`: any finished
///   operation signals their handles.
pub struct Source<'a>(pub(crate) wait::Source<'a>);

impl Source<'_> {
    /// The exit of the process with this pid, a child or not. It is readable from the exit until it
    /// is deleted; edge-triggered means the same as one-shot for it.
    ///
    /// A pid may name another process by the time it is used, unless the process is an unreaped
    /// child. After [`Poller::add`] has returned, this cannot happen on Linux, nor with the backend
    /// `kqueue`.
    ///
    /// - Linux: a pidfd; a process that has exited and is not reaped counts as exited.
    /// - macOS, BSD with `kqueue`: `EVFILT_PROC`.
    /// - Elsewhere, and before Linux 5.4: polled every 1 to 50 ms; a process that is not a child
    ///   has exited when it is reaped.
    /// - Windows: a separate handle. A pid stays in use as long as any process has a handle of the
    ///   process.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::Command;
    /// use minder::poll::{Events, Interest, Poller, Source, Token};
    /// let mut child = Command::new("true").spawn()?;
    /// let poller = Poller::new()?;
    /// poller.add(Source::process(child.id()), Token(1), Interest::READABLE)?;
    /// let mut events = Events::new();
    /// poller.wait(&mut events, None)?;
    /// assert!(events.iter().any(|ready| ready.token == Token(1)));
    /// poller.delete(Source::process(child.id()))?;
    /// assert!(child.try_wait()?.is_some());
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn process(id: u32) -> Self {
        Self(wait::Source::Process(id))
    }
}

impl fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}

/// Waits for many sources by a selectable backend, and for timers.
///
/// Level-triggered: the next [`wait`](Self::wait) reports a ready source again unless it was served
/// or its [`Interest`] differs. All methods may be called from any thread, and a change takes
/// effect in a running wait. After `fork` the child process needs a separate poller, because it
/// shares this one's kernel state.
///
/// With `io_uring`, if several threads wait or [`poll_handle`](Self::poll_handle) is used, the kernel
/// completes the requests of a thread in that thread. A system call of it may then fail with `EINTR`, and a
/// report is late while the thread is in a call that cannot be interrupted.
///
/// - Linux: `epoll` (the default), `io_uring` (5.11; often forbidden in containers) and `poll`. With
///   `epoll` on Linux 6.1, if several threads poll without waiting at the same time, one of them may miss
///   a ready source; a later poll reports it (measured; not seen on 6.18).
/// - macOS, FreeBSD, NetBSD, OpenBSD: `kqueue` (the default; compiled, and never run on them so
///   far) and `poll`.
/// - Windows: `iocp` (the default), `wait_pool` and `thread_pool`. All of them use one completion
///   port and differ in which threads wait for handles. Any number of handles. Another thread has to
///   wake before a signal is reported, so a poll right after the signal may miss it, and a handle that
///   was reset since may still be reported. If several threads poll a socket at the same time, one of
///   them gets the report. Tested under Wine only.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::poll::{Events, Interest, Poller, Token};
/// let (reader, mut writer) = std::io::pipe()?;
/// let poller = Poller::new()?;
/// poller.add(&reader, Token(7), Interest::READABLE)?;
/// std::io::Write::write_all(&mut writer, b"hello")?;
/// let mut events = Events::new();
/// poller.wait(&mut events, None)?;
/// assert_eq!(events.iter().next().map(|event| event.token), Some(Token(7)));
/// poller.delete(&reader)?;      // before it is closed
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Poller {
    backend: PollerBackend,
    timers: Mutex<Timers>,
    /// `true` once a timer or a polled process may bound a wait. It is never cleared.
    bounded: AtomicBool,
    /// The thread that waited last, and whether several threads have waited.
    waiter: AtomicUsize,
    has_several_waiters: AtomicBool,
    /// `true` once the caller watches the descriptor of [`poll_handle`](Self::poll_handle).
    is_watched: AtomicBool,
}

/// The sources and timers that one [`Poller::wait`] reports.
///
/// ```
/// use minder::poll::{Events, Poller, Token};
/// use std::time::{Duration, Instant};
///
/// let poller = Poller::new()?;
/// let now = Instant::now();
/// poller.add_timer(Token(1), now, Duration::ZERO)?;
/// poller.add_timer(Token(2), now, Duration::ZERO)?;
/// let mut events = Events::with_capacity(16);
/// while events.len() < 2 {
///     poller.wait(&mut events, None)?;
/// }
/// assert!(!events.is_empty() && !events.woken());
/// assert!(events.iter().all(|event| event.expired && !event.readable));
/// events.clear();
/// assert!(events.is_empty());
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Events(Vec<Ready>);

/// One source that is ready.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::poll::{Events, Interest, Poller, Readiness, Token};
///
/// let (reader, writer) = std::io::pipe()?;
/// let poller = Poller::new()?;
/// let _registration = poller.register(&reader, Token(1), Interest::READABLE)?;
/// drop(writer);
/// let mut events = Events::new();
/// poller.wait(&mut events, None)?;
/// let Readiness { token, closed, .. } = events.iter().next().expect("the end was reported");
/// assert!(token == Token(1) && closed);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Readiness {
    /// The token that it was registered with.
    pub token: Token,
    /// A read would not block.
    pub readable: bool,
    /// A write would not block.
    pub writable: bool,
    /// The other side is closed, or the source has an error. The next read or write returns which.
    ///
    /// - `kqueue`: for a socket that is watched in one direction only, this is what poll(2) reports
    ///   about the other direction. Operating systems differ there.
    /// - Windows: not set for a connection that was shut down in order in both directions. A read
    ///   returns its end.
    pub closed: bool,
    /// The deadline of a timer has passed.
    pub expired: bool,
}

impl Events {
    /// Creates an empty list. A wait reuses its memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty list with memory for this many reports.
    pub fn with_capacity(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    /// Returns the sources that are ready, in any order, and then the timers that have expired, in the
    /// order of their deadlines.
    pub fn iter(&self) -> EventsIter<'_> {
        EventsIter(self.0.iter())
    }

    /// Returns the number of reported sources and timers.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Returns whether neither a source nor a timer was reported.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Removes all reports. A wait does this, too.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns whether a [`Waker`] was used before the wait ended.
    pub fn woken(&self) -> bool {
        self.0.iter().any(|ready| ready.token == wait::WAKE_TOKEN)
    }
}

impl<'a> IntoIterator for &'a Events {
    type Item = Readiness;
    type IntoIter = EventsIter<'a>;

    fn into_iter(self) -> EventsIter<'a> {
        self.iter()
    }
}

/// The iterator of [`Events::iter`].
///
/// ```
/// use minder::poll::{Events, EventsIter, Token};
///
/// /// Returns the tokens that a loop has to serve.
/// fn tokens(events: EventsIter<'_>) -> Vec<Token> {
///     events.map(|event| event.token).collect()
/// }
/// assert!(tokens(Events::new().iter()).is_empty());
/// ```
#[derive(Clone, Debug)]
pub struct EventsIter<'a>(std::slice::Iter<'a, Ready>);

impl Iterator for EventsIter<'_> {
    type Item = Readiness;

    fn next(&mut self) -> Option<Readiness> {
        let ready = self.0.find(|ready| ready.token <= wait::TOKEN_MAX)?;
        Some(Readiness {
            token: Token(ready.token),
            readable: ready.readable,
            writable: ready.writable,
            closed: ready.closed,
            expired: ready.expired,
        })
    }
}

/// A source that is registered with a [`Poller`], until this is dropped. It keeps the source
/// borrowed, so that the source cannot be closed before.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::poll::{Events, Interest, Poller, Token};
/// use std::time::Duration;
/// let (reader, mut writer) = std::io::pipe()?;
/// std::io::Write::write_all(&mut writer, b"text")?;
/// let poller = Poller::new()?;
/// let mut events = Events::new();
/// let registration = poller.register(&reader, Token(7), Interest::READABLE)?;
/// assert_eq!(poller.wait(&mut events, None)?, 1);
/// drop(registration);
/// assert_eq!(poller.wait(&mut events, Some(Duration::ZERO))?, 0);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping it deletes the source"]
pub struct Registration<'a> {
    poller: &'a Poller,
    source: wait::Source<'a>,
    /// `true` if the source was deleted by [`delete`](Self::delete).
    is_deleted: bool,
}

impl Registration<'_> {
    /// Changes the token or the interest: see [`Poller::modify`].
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::poll::{Events, Interest, Poller, Token};
    /// use std::time::Duration;
    ///
    /// let (reader, writer) = std::io::pipe()?;
    /// drop(writer);
    /// let poller = Poller::new()?;
    /// let mut events = Events::new();
    /// let registration = poller.register(&reader, Token(1), Interest::READABLE.oneshot())?;
    /// assert_eq!(poller.wait(&mut events, None)?, 1);
    /// assert_eq!(poller.wait(&mut events, Some(Duration::ZERO))?, 0, "it is reported once");
    /// registration.modify(Token(2), Interest::READABLE.oneshot())?;
    /// assert_eq!(poller.wait(&mut events, None)?, 1);
    /// registration.delete()?;
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Poller::modify`].
    pub fn modify(&self, token: Token, interest: Interest) -> Result<()> {
        self.poller.modify(Source(self.source), token, interest)
    }

    /// Deletes the source: see [`Poller::delete`]. Dropping the registration does the same, and
    /// ignores an error.
    ///
    /// # Errors
    /// As [`Poller::delete`].
    pub fn delete(mut self) -> Result<()> {
        self.is_deleted = true;
        self.poller.delete(Source(self.source))
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        if !self.is_deleted {
            // The source is open, since it is borrowed. It is unknown only if the caller deleted it.
            let _ = self.poller.delete(Source(self.source));
        }
    }
}

impl Backend {
    /// Returns the backends of this operating system, best first. The machine may refuse one, for
    /// example in a container: [`capabilities`](crate::capabilities) tells.
    pub fn available() -> impl Iterator<Item = Self> {
        wait::BACKENDS.iter().map(|(backend, _)| *backend)
    }
}

/// Parses a name. Accepts the backends of all operating systems.
///
/// # Errors
/// - [`InvalidInput`](ErrorKind::InvalidInput): no backend has this name.
impl FromStr for Backend {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|backend| backend.name() == name).ok_or_else(|| {
            let error =
                Error::of_kind(ErrorKind::InvalidInput, "find the wait backend", "no backend has this name");
            error.during(Operation::Lookup).with_subject(name)
        })
    }
}

impl Poller {
    /// Opens the best backend of this machine.
    ///
    /// # Errors
    /// `Exhausted` when no descriptor is free.
    pub fn new() -> Result<Self> {
        Self::open(None)
    }

    /// Opens this backend.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::Backend;
    /// use minder::poll::Poller;
    ///
    /// let poller = Poller::with_backend(Backend::Poll)?;
    /// assert_eq!(poller.backend(), Backend::Poll);
    /// assert!(Poller::with_backend(Backend::Iocp).is_err());
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `Unsupported`: this operating system does not have it: see [`Backend::available`].
    /// - `Exhausted`: no descriptor is free.
    pub fn with_backend(backend: Backend) -> Result<Self> {
        Self::open(Some(backend))
    }

    fn open(wanted: Option<Backend>) -> Result<Self> {
        let backend = PollerBackend::open(wanted).map_err(|error| match wanted {
            Some(wanted) if Backend::available().all(|known| known != wanted) => {
                let cause = "this system has no such backend";
                Error::of_kind(ErrorKind::Unsupported, "open the wait backend", cause)
                    .with_subject(wanted.name())
            }
            wanted => Error::new("open the wait backend", error)
                .with_subject(wanted.map_or("default", Backend::name)),
        })?;
        Ok(Self {
            backend,
            timers: Mutex::default(),
            bounded: AtomicBool::new(false),
            waiter: AtomicUsize::new(NO_WAITER),
            has_several_waiters: AtomicBool::new(false),
            is_watched: AtomicBool::new(false),
        })
    }

    /// Returns the backend.
    pub fn backend(&self) -> Backend {
        self.backend.kind()
    }

    /// Registers a source until the returned value is dropped: see [`add`](Self::add).
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::poll::{Interest, Poller, Token};
    ///
    /// let (reader, _writer) = std::io::pipe()?;
    /// let poller = Poller::new()?;
    /// let registration = poller.register(&reader, Token(1), Interest::READABLE)?;
    /// assert!(poller.add(&reader, Token(2), Interest::READABLE).is_err(), "it is registered");
    /// drop(registration); // deletes it
    /// poller.add(&reader, Token(2), Interest::READABLE)?;
    /// poller.delete(&reader)?;
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn register<'a>(
        &'a self,
        source: impl Into<Source<'a>>,
        token: Token,
        interest: Interest,
    ) -> Result<Registration<'a>> {
        let Source(source) = source.into();
        self.add(Source(source), token, interest)?;
        Ok(Registration { poller: self, source, is_deleted: false })
    }

    /// Registers a source. Delete it before it is closed; [`register`](Self::register) does that by
    /// itself.
    ///
    /// # Errors
    /// `InvalidInput` for a source that is registered already; `Unknown` for a process that does not
    /// exist; `Unsupported` for an interest that the backend does not support; the error of the
    /// operating system for a source that it cannot watch, such as a regular file with `epoll` and
    /// `kqueue`, and for a descriptor that is not open.
    pub fn add<'a>(&self, source: impl Into<Source<'a>>, token: Token, interest: Interest) -> Result<()> {
        let token = check_token(token)?;
        let is_polled = self.backend.add(source.into().0, token, interest);
        let is_polled = is_polled.map_err(|error| Error::new("watch a source", error))?;
        if is_polled { self.update_deadlines() } else { Ok(()) }
    }

    /// Changes the token or the interest of a registered source. A one-shot source is enabled
    /// again.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::poll::{Events, Interest, Poller, Token};
    /// use std::os::unix::net::UnixStream;
    ///
    /// let (ours, _theirs) = UnixStream::pair()?;
    /// let poller = Poller::new()?;
    /// poller.add(&ours, Token(1), Interest::READABLE)?;
    /// // There is something to write now.
    /// poller.modify(&ours, Token(1), Interest::READABLE | Interest::WRITABLE)?;
    /// let mut events = Events::new();
    /// poller.wait(&mut events, None)?;
    /// assert!(events.iter().any(|event| event.writable && !event.readable));
    /// poller.delete(&ours)?;
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Unknown` for a source that is not registered; otherwise as [`add`](Self::add).
    pub fn modify<'a>(&self, source: impl Into<Source<'a>>, token: Token, interest: Interest) -> Result<()> {
        let token = check_token(token)?;
        let is_polled = self.backend.modify(source.into().0, token, interest);
        let is_polled = is_polled.map_err(|error| source_error("change a source", error))?;
        if is_polled { self.update_deadlines() } else { Ok(()) }
    }

    /// Deletes a source. Waits that begin after this call do not report its token.
    ///
    /// For a source that was closed without this call, the result depends on the backend. `epoll`
    /// deletes it with the last copy of its descriptor. `kqueue` stops reporting it when its
    /// descriptor is closed. `poll` and `io_uring` report it as closed until it is deleted or its
    /// number is reused, and `io_uring` keeps its file open until then. On Windows a socket is
    /// reported as closed until it is deleted; any other source stays open and is reported as
    /// before. A reused number can always be modified or deleted, or else added.
    ///
    /// # Errors
    /// `Unknown` for a source that is not registered.
    pub fn delete<'a>(&self, source: impl Into<Source<'a>>) -> Result<()> {
        self.backend.delete(source.into().0).map_err(|error| source_error("delete a source", error))
    }

    /// Adds a timer. Its token is reported once, from `deadline` on and within `tolerance` of it if
    /// the machine is not busy. Timers share wake-ups where their tolerances allow it, which saves
    /// power and time; a tolerance of zero allows none. A wake-up is planned 0.8 ms before the
    /// tolerance ends, or an eighth of it if that is less, because it is late itself. The token may
    /// also be that of a source, but not of another timer.
    ///
    /// ```
    /// use minder::poll::{Events, Poller, Token};
    /// use std::time::{Duration, Instant};
    /// let poller = Poller::new()?;
    /// let deadline = Instant::now() + Duration::from_millis(2);
    /// poller.add_timer(Token(3), deadline, Duration::from_millis(1))?;
    /// let mut events = Events::new();
    /// poller.wait(&mut events, None)?;
    /// assert!(events.iter().any(|it| it.token == Token(3) && it.expired) && Instant::now() >= deadline);
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for a token that has a timer already.
    pub fn add_timer(&self, token: Token, deadline: Instant, tolerance: Duration) -> Result<()> {
        let number = Token(check_token(token)?);
        if !self.timers.lock().add(number, deadline, tolerance) {
            let error =
                Error::of_kind(ErrorKind::InvalidInput, "add a timer", "this token has a timer already");
            return Err(error.with_subject(token.0.to_string()));
        }
        self.update_deadlines()
    }

    /// Deletes a timer. Waits that begin after this call do not report it.
    ///
    /// ```
    /// use minder::poll::{Poller, Token};
    /// use std::time::{Duration, Instant};
    ///
    /// let poller = Poller::new()?;
    /// poller.add_timer(Token(1), Instant::now() + Duration::from_secs(60), Duration::from_secs(1))?;
    /// poller.delete_timer(Token(1))?;
    /// assert!(poller.delete_timer(Token(1)).is_err(), "there is none left");
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Unknown` for a token that has no timer, or whose timer was reported.
    pub fn delete_timer(&self, token: Token) -> Result<()> {
        if self.timers.lock().delete(token) {
            return Ok(());
        }
        let error = Error::of_kind(ErrorKind::Unknown, "delete a timer", "this token has no timer");
        Err(error.with_subject(token.0.to_string()))
    }

    /// Waits until a source is ready, a timer has expired or the waker is used, for at most `timeout`,
    /// or without a limit if there is none. Replaces the contents of `events`. Returns the number of
    /// reported sources and timers. It never returns before that time with nothing to report.
    ///
    /// A wait reports at most some hundred sources; the next wait reports the remaining ones first.
    ///
    /// # Errors
    /// A system call fails that should not. A signal does not end the wait.
    pub fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> Result<usize> {
        self.wait_deadline(events, deadline_after(timeout))
    }

    /// Waits until `deadline` at the latest: see [`wait`](Self::wait).
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_deadline(&self, events: &mut Events, deadline: Option<Instant>) -> Result<usize> {
        events.0.clear();
        let scope = WaitScope::enter(self);
        let ready = &mut events.0;
        let result = if scope.is_bounded() {
            self.wait_bounded(ready, deadline)
        } else {
            self.backend.wait(ready, deadline).and_then(|()| match ready[..] {
                // Another thread has added a timer or a polled process during this wait.
                [Ready { token: wait::RECHECK_TOKEN, .. }] => {
                    ready.clear();
                    self.wait_bounded(ready, deadline)
                }
                _ => Ok(()),
            })
        };
        drop(scope);
        let reported = result.map(|()| events.len()).map_err(|error| Error::new("wait", error))?;
        if self.is_watched.load(Ordering::Relaxed) {
            let updated = self.update_poll_handle();
            // An error would hide the events, and a source may report only once. The next wait tries again.
            if reported == 0 {
                updated?;
            }
        }
        Ok(reported)
    }

    /// Waits until a source is ready, a timer has expired, a polled process has exited or the deadline
    /// has passed.
    fn wait_bounded(&self, ready: &mut Vec<Ready>, deadline: Option<Instant>) -> std::io::Result<()> {
        loop {
            let until = [deadline, self.next_at()].into_iter().flatten().min();
            self.backend.wait(ready, until)?;
            ready.retain(|ready| ready.token != wait::RECHECK_TOKEN);
            let now = Instant::now();
            self.backend.poll_exits(ready, now);
            let mut timers = self.timers.lock();
            while let Some(token) = timers.pop(now) {
                ready.push(Ready { expired: true, ..Ready::none(token.0) });
            }
            drop(timers);
            // The backend has polled once more after a deadline that it was given.
            let deadline_passed = until == deadline && deadline.is_some_and(|deadline| now >= deadline);
            if !ready.is_empty() || deadline_passed {
                return Ok(());
            }
        }
    }

    /// Ends the running wait, or else the next one.
    ///
    /// ```
    /// use minder::poll::{Events, Poller};
    ///
    /// let poller = Poller::new()?;
    /// poller.notify()?;
    /// let mut events = Events::new();
    /// assert_eq!(poller.wait(&mut events, None)?, 0);
    /// assert!(events.woken());
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// A system call fails that should not.
    pub fn notify(&self) -> Result<()> {
        self.waker().wake()
    }

    /// Returns a handle that ends waits from any thread.
    ///
    /// ```
    /// use minder::poll::{Events, Poller};
    ///
    /// let poller = Poller::new()?;
    /// let waker = poller.waker();
    /// std::thread::spawn(move || waker.wake());
    /// let mut events = Events::new();
    /// poller.wait(&mut events, None)?;
    /// assert!(events.woken());
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn waker(&self) -> Waker {
        Waker(self.backend.waker())
    }

    /// Returns a descriptor or handle for another event loop. It is readable while
    /// [`wait`](Self::wait) would return at once. Watch it level-triggered. When it is readable, call
    /// `wait` with a deadline that has passed; that may report nothing.
    ///
    /// - `epoll`, `io_uring`, `kqueue`: the kernel's own object. If there are timers, each wait costs
    ///   one more system call from now on. The backend `poll` starts a thread that polls for the
    ///   caller.
    /// - Windows: `Unsupported` so far.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::poll::{Events, Interest, Poller, Token};
    /// use std::time::{Duration, Instant};
    /// let (outer, inner) = (Poller::new()?, Poller::new()?);
    /// outer.add(&inner.poll_handle()?, Token(0), Interest::READABLE)?;
    /// inner.add_timer(Token(1), Instant::now() + Duration::from_millis(1), Duration::ZERO)?;
    /// let mut events = Events::new();
    /// assert_eq!(outer.wait(&mut events, None)?, 1);
    /// assert_eq!(inner.wait_deadline(&mut events, Some(Instant::now()))?, 1);
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Unsupported` if the backend has no such object; `Exhausted` if no descriptor is free.
    pub fn poll_handle(&self) -> Result<PollHandle<'_>> {
        self.is_watched.store(true, Ordering::SeqCst);
        self.backend.poll_handle(self.next_at()).map_err(|error| Error::new("watch a poller", error))
    }

    fn update_poll_handle(&self) -> Result<()> {
        self.poll_handle().map(drop)
    }

    /// Returns when the next timer expires or polled process is checked.
    fn next_at(&self) -> Option<Instant> {
        let timers = self.timers.lock().next_at();
        [timers, self.backend.next_at()].into_iter().flatten().min()
    }

    /// Makes running waits, and the caller's event loop, compute their deadlines again.
    fn update_deadlines(&self) -> Result<()> {
        // This thread stores `bounded` and then reads the waiters. A waiting thread stores itself
        // as a waiter and then reads `bounded`. With sequential consistency at least one of them
        // sees the other's store.
        self.bounded.store(true, Ordering::SeqCst);
        let waiter = self.waiter.load(Ordering::SeqCst);
        // The calling thread itself does not wait.
        if self.has_several_waiters.load(Ordering::SeqCst)
            || (waiter != NO_WAITER && waiter != thread::here())
        {
            self.backend.waker().recheck().map_err(|error| Error::new("wake a wait", error))?;
        }
        if self.is_watched.load(Ordering::SeqCst) { self.update_poll_handle() } else { Ok(()) }
    }
}

/// Registers the calling thread as a waiter, for the time of one wait.
struct WaitScope<'a>(&'a Poller);

impl<'a> WaitScope<'a> {
    fn enter(poller: &'a Poller) -> Self {
        let here = thread::here();
        let last = poller.waiter.swap(here, Ordering::SeqCst);
        if last != here && last != NO_WAITER {
            poller.has_several_waiters.store(true, Ordering::SeqCst);
        }
        Self(poller)
    }

    fn is_bounded(&self) -> bool {
        self.0.bounded.load(Ordering::SeqCst)
    }
}

impl Drop for WaitScope<'_> {
    fn drop(&mut self) {
        // A recheck wakes one thread. A thread that leaves wakes another, so that timers are
        // reported in time.
        if self.0.has_several_waiters.load(Ordering::SeqCst)
            && self.is_bounded()
            && self.0.next_at().is_some()
        {
            let _ = self.0.backend.waker().recheck();
        }
    }
}

/// Ends a wait from any thread. Wakes are merged: many before one wait end it once.
///
/// ```
/// use minder::poll::{Events, Poller, Waker};
///
/// let poller = Poller::new()?;
/// let waker: Waker = poller.waker();
/// let thread = std::thread::spawn(move || waker.wake());
/// let mut events = Events::new();
/// poller.wait(&mut events, None)?;
/// assert!(events.woken() && thread.join().is_ok_and(|woken| woken.is_ok()));
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Waker(pub(crate) Arc<wait::Waker>);

impl Waker {
    /// Ends the running wait, or else the next one. The thread that waits sees everything that was
    /// written before this call.
    ///
    /// # Errors
    /// A system call fails that should not.
    pub fn wake(&self) -> Result<()> {
        self.0.wake().map_err(|error| Error::new("wake a wait", error))
    }
}

/// Returns the error for a source that may not be registered.
fn source_error(phrase: &'static str, error: std::io::Error) -> Error {
    let is_unknown = error.kind() == std::io::ErrorKind::NotFound;
    let error = Error::new(phrase, error).during(Operation::Watch);
    if is_unknown { error.with_kind(ErrorKind::Unknown, "it is not registered") } else { error }
}

/// Returns the number of a token. The highest ones are reserved for the backend.
fn check_token(token: Token) -> Result<u64> {
    if token.0 <= wait::TOKEN_MAX {
        return Ok(token.0);
    }
    Err(Error::of_kind(ErrorKind::InvalidInput, "watch a source", "the highest sixteen tokens are taken"))
}
