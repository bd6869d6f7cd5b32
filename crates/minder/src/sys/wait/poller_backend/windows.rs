//! The backend of the public `Poller` on Windows: a completion port, and the registered sources.
//!
//! A handle is armed by the wait that follows its registration or its last report, after that wait
//! has checked it. A handle that is still signalled is reported again; one that was served is not.
//! No handle is armed while no thread waits. So the cost of arming depends on the number of events,
//! not of registrations.

#![expect(unsafe_code, reason = "duplicating handles, and checking their state")]

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::windows::io::{
    AsRawHandle, AsRawSocket, BorrowedHandle, BorrowedSocket, FromRawHandle, OwnedHandle,
};
use std::ptr::null_mut;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use minder_os::sync::Mutex;
use windows_sys::Win32::Foundation::{
    CompareObjectHandles, DuplicateHandle, ERROR_INVALID_HANDLE, WAIT_ABANDONED_0, WAIT_FAILED, WAIT_OBJECT_0,
};
use windows_sys::Win32::Storage::FileSystem::{FILE_TYPE_DISK, FILE_TYPE_PIPE, GetFileType, SYNCHRONIZE};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, WaitForSingleObject};

use crate::backend::Backend;
use crate::interest::Interest;
use crate::sys::pid::open_process;
use crate::sys::wait::windows::{Afd, INTERRUPT_TOKEN, PACKETS_MAX, Poll};
use crate::sys::wait::{
    CompletionPort, Operation, PollHandle, RECHECK_TOKEN, Ready, Source, WAKE_TOKEN, WaitBackend, Waker,
    Watched, open,
};

/// The list of idle sources may contain this many deleted ones, plus two for each registered source,
/// before they are removed.
const IDLE_MIN: usize = 64;

/// The implementation of the public poller.
#[derive(Debug)]
pub(crate) struct PollerBackend {
    // Dropped in this order: the registrations, the backend, the port that receives their packets.
    sources: Mutex<Sources>,
    backend: Arc<dyn WaitBackend>,
    afd: OnceLock<Arc<Afd>>,
    port: Arc<CompletionPort>,
}

#[derive(Debug, Default)]
struct Sources {
    /// The tokens of the packets, by the caller's handle, socket or pid.
    ids: HashMap<SourceKey, u64>,
    /// Registrations by the token of their packets.
    registrations: HashMap<u64, Registration>,
    next_id: u64,
    /// Sources that the next wait checks and arms. Some may be deleted.
    idle: VecDeque<u64>,
    /// Number of threads that are blocked in a wait, and check no sources.
    blocked: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum SourceKey {
    Handle(usize),
    Socket(u64),
    Process(u32),
}

/// One source.
#[derive(Debug)]
struct Registration {
    token: u64,
    interest: Interest,
    packet: Arc<Operation>,
    kind: SourceKind,
    state: State,
}

#[derive(Debug)]
enum SourceKind {
    /// A copy of the handle, so that it stays open.
    Handle(Arc<OwnedHandle>, Box<dyn Watched>),
    Socket(Poll),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the list of sources to check.
    Idle,
    Armed,
    /// One-shot, and already reported.
    Disabled,
}

impl PollerBackend {
    pub(crate) fn open(backend: Option<Backend>) -> io::Result<Self> {
        let backend = open(backend)?;
        let port = CompletionPort::new()?;
        Ok(Self { sources: Mutex::default(), backend, afd: OnceLock::new(), port })
    }

    pub(crate) fn kind(&self) -> Backend {
        self.backend.kind()
    }

    pub(crate) fn waker(&self) -> Arc<Waker> {
        self.port.waker()
    }

    /// Returns whether running waits have to compute their bound again: never on Windows.
    pub(crate) fn add(&self, source: Source<'_>, token: u64, interest: Interest) -> io::Result<bool> {
        let mut sources = self.sources.lock();
        if sources.ids.contains_key(&SourceKey::of(source)) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let packet = Operation::new();
        let kind = self.watch(source, interest, &packet)?;
        let interest = if matches!(source, Source::Process(_)) { exit_interest(interest) } else { interest };
        sources.insert(SourceKey::of(source), token, interest, packet, kind)?;
        Ok(false)
    }

    /// See [`add`](Self::add).
    pub(crate) fn modify(&self, source: Source<'_>, token: u64, interest: Interest) -> io::Result<bool> {
        let mut sources = self.sources.lock();
        let id = *sources.ids.get(&SourceKey::of(source)).ok_or(io::ErrorKind::NotFound)?;
        let Some(registration) = sources.registrations.get_mut(&id) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        if !registration.still_matches(source, interest) {
            // Another object has the same handle value, or the interest differs.
            let packet = Operation::new();
            let kind = self.watch(source, interest, &packet)?;
            let old = sources.remove(SourceKey::of(source));
            sources.insert(SourceKey::of(source), token, interest, packet, kind)?;
            drop(sources);
            drop(old);
            return Ok(false);
        }
        registration.token = token;
        registration.interest =
            if matches!(source, Source::Process(_)) { exit_interest(interest) } else { interest };
        if registration.state == State::Disabled {
            sources.schedule_check(id)?;
        }
        Ok(false)
    }

    pub(crate) fn delete(&self, source: Source<'_>) -> io::Result<()> {
        let registration = self.sources.lock().remove(SourceKey::of(source));
        // Outside of the lock: this may wait for a thread that waits for the handle.
        registration.map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn watch(
        &self,
        source: Source<'_>,
        interest: Interest,
        packet: &Arc<Operation>,
    ) -> io::Result<SourceKind> {
        let handle = match source {
            Source::Socket(socket) => return self.poll(socket, interest, packet).map(SourceKind::Socket),
            Source::Handle(handle) => {
                // A handle does not show whether its signal is new.
                if interest.is_edge() || is_file(handle) {
                    return Err(io::ErrorKind::Unsupported.into());
                }
                duplicate(handle)?
            }
            Source::Process(pid) => open_process(pid)?,
        };
        let handle = Arc::new(handle);
        let watched = self.backend.watch(&self.port, Arc::clone(&handle), Arc::clone(packet))?;
        Ok(SourceKind::Handle(handle, watched))
    }

    fn poll(
        &self,
        socket: BorrowedSocket<'_>,
        interest: Interest,
        packet: &Arc<Operation>,
    ) -> io::Result<Poll> {
        // The driver reports a state, not a change of state.
        if interest.is_edge() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let afd = match self.afd.get() {
            Some(afd) => afd,
            None => {
                let afd = Arc::new(Afd::open(&self.port)?);
                self.afd.get_or_init(|| afd)
            }
        };
        Poll::new(afd, socket.as_raw_socket(), interest, Arc::clone(packet))
    }

    pub(crate) fn wait(&self, ready: &mut Vec<Ready>, deadline: Option<Instant>) -> io::Result<()> {
        let result = self.check_and_wait(ready, deadline);
        let sources = self.sources.lock();
        if sources.blocked > 0 && !sources.idle.is_empty() {
            // A source in `idle` is not armed until a thread checks it. Blocked threads must report
            // it, too, so one of them is interrupted.
            let _ = self.port.interrupt_wait();
        }
        drop(sources);
        result
    }

    fn check_and_wait(&self, ready: &mut Vec<Ready>, deadline: Option<Instant>) -> io::Result<()> {
        let before = ready.len();
        let mut polls = 0;
        loop {
            let mut sources = self.sources.lock();
            let armed = sources.arm(ready);
            if ready.len() == before {
                armed?;
            }
            // Reports found here do not prevent a poll for others.
            let now = Instant::now();
            let until = if ready.len() > before { Some(now) } else { deadline };
            // A poll returns at once. The next one finds what changes meanwhile.
            let is_poll = until.is_some_and(|until| until <= now);
            sources.blocked += usize::from(!is_poll);
            drop(sources);
            let found = ready.len();
            let result = self.backend.wait(&self.port, ready, until);
            let found_nothing = ready.len() == found;
            let mut sources = self.sources.lock();
            sources.blocked -= usize::from(!is_poll);
            sources.translate(ready, found);
            let polls_max = sources.registrations.len() / PACKETS_MAX;
            drop(sources);
            if ready.len() > before {
                return Ok(());
            }
            result?;
            // A poll after the deadline that reports nothing ends the wait. Packets of sources that
            // were served meanwhile may hide others from a poll, if they are more than one call
            // takes.
            let is_last = found_nothing || is_poll && polls >= polls_max;
            polls += usize::from(is_poll);
            if is_last {
                return Ok(());
            }
        }
    }

    /// Returns an error: no handle is signalled while `wait` would return at once.
    pub(crate) fn poll_handle(&self, _deadline: Option<Instant>) -> io::Result<PollHandle<'_>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// On Windows no process has to be polled.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        None
    }

    pub(crate) fn poll_exits(&self, _ready: &mut Vec<Ready>, _now: Instant) {}
}

impl Sources {
    fn insert(
        &mut self,
        key: SourceKey,
        token: u64,
        interest: Interest,
        packet: Arc<Operation>,
        kind: SourceKind,
    ) -> io::Result<()> {
        let id = self.next_id;
        self.next_id += 1;
        packet.set_token(id);
        self.ids.insert(key, id);
        self.registrations.insert(id, Registration { token, interest, packet, kind, state: State::Disabled });
        self.schedule_check(id).inspect_err(|_| drop(self.remove(key)))
    }

    fn remove(&mut self, key: SourceKey) -> Option<Registration> {
        let registration = self.registrations.remove(&self.ids.remove(&key)?)?;
        registration.packet.suppress();
        Some(registration)
    }

    /// Schedules a check of a disabled source by the next wait. If threads are blocked they will
    /// not check, so the source is armed here.
    fn schedule_check(&mut self, id: u64) -> io::Result<()> {
        let Some(registration) = self.registrations.get_mut(&id) else { return Ok(()) };
        if self.blocked > 0 {
            registration.kind.arm()?;
            registration.state = State::Armed;
        } else {
            registration.state = State::Idle;
            self.idle.push_back(id);
            if self.idle.len() > 2 * self.registrations.len() + IDLE_MIN {
                // Many sources were added and deleted while no thread waited.
                self.idle.retain(|id| self.registrations.contains_key(id));
            }
        }
        Ok(())
    }

    /// Checks the sources that are not armed, reports the signalled ones and arms the others.
    /// Reported sources that stay enabled move behind the others.
    fn arm(&mut self, ready: &mut Vec<Ready>) -> io::Result<()> {
        let len_max = ready.len() + PACKETS_MAX;
        for _ in 0..self.idle.len() {
            if ready.len() == len_max {
                break;
            }
            let Some(id) = self.idle.pop_front() else { break };
            let Some(registration) =
                self.registrations.get_mut(&id).filter(|registration| registration.state == State::Idle)
            else {
                continue;
            };
            match registration.kind.check_or_arm() {
                Ok(false) => registration.state = State::Armed,
                Ok(true) => {
                    ready.push(Ready { readable: true, ..Ready::none(registration.token) });
                    self.after_report(id);
                }
                Err(error) if registration.kind.means_closed_socket(&error) => {
                    ready.push(closed_report(registration.token));
                    self.after_report(id);
                }
                Err(error) => {
                    self.idle.push_back(id);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Updates the state of a source that was reported.
    fn after_report(&mut self, id: u64) {
        let Some(registration) = self.registrations.get_mut(&id) else { return };
        if registration.interest.is_oneshot() {
            registration.state = State::Disabled;
        } else {
            registration.state = State::Idle;
            self.idle.push_back(id);
        }
    }

    /// Converts completed packets into reports, from index `from` on.
    fn translate(&mut self, ready: &mut Vec<Ready>, from: usize) {
        let mut to = from;
        for at in from..ready.len() {
            let id = ready[at].token;
            let report = match id {
                WAKE_TOKEN | RECHECK_TOKEN => Some(ready[at]),
                INTERRUPT_TOKEN => None,
                id => self.on_completion(id),
            };
            if let Some(report) = report {
                ready[to] = report;
                to += 1;
            }
        }
        ready.truncate(to);
    }

    /// Converts one completed packet. Returns `None` for a source that was deleted or served
    /// meanwhile.
    fn on_completion(&mut self, id: u64) -> Option<Ready> {
        let registration = self.registrations.get_mut(&id)?;
        let report = match &registration.kind {
            SourceKind::Handle(..) => Ok(Some(Ready { readable: true, ..Ready::none(registration.token) })),
            SourceKind::Socket(poll) => poll.take_reply(registration.token),
        };
        let report = report.unwrap_or(Some(closed_report(registration.token)));
        match report {
            Some(_) => self.after_report(id),
            None => {
                registration.state = State::Idle;
                self.idle.push_back(id);
            }
        }
        report
    }
}

impl Registration {
    /// Returns whether the registration is for the same object and the same interest.
    fn still_matches(&self, source: Source<'_>, interest: Interest) -> bool {
        match (&self.kind, source) {
            (SourceKind::Handle(copy, _), Source::Handle(handle)) => {
                // SAFETY: both handles are open.
                !interest.is_edge()
                    && unsafe { CompareObjectHandles(copy.as_raw_handle(), handle.as_raw_handle()) } != 0
            }
            (SourceKind::Handle(..), _) => true,
            (SourceKind::Socket(poll), _) => poll.still_matches(interest) && !interest.is_edge(),
        }
    }
}

impl SourceKind {
    fn arm(&mut self) -> io::Result<()> {
        match self {
            Self::Handle(_, watched) => watched.arm(),
            Self::Socket(poll) => poll.arm(),
        }
    }

    /// Returns whether a handle is signalled. If not, arms it.
    fn check_or_arm(&mut self) -> io::Result<bool> {
        if let Self::Handle(handle, _) = self {
            // SAFETY: the handle is open, and the call does not wait.
            match unsafe { WaitForSingleObject(handle.as_raw_handle(), 0) } {
                WAIT_OBJECT_0 | WAIT_ABANDONED_0 => return Ok(true),
                WAIT_FAILED => return Err(io::Error::last_os_error()),
                _ => (),
            }
        }
        self.arm().map(|()| false)
    }

    /// Returns whether this error of arming means that a socket was closed without being deleted.
    fn means_closed_socket(&self, error: &io::Error) -> bool {
        let closed = error.raw_os_error() == Some(ERROR_INVALID_HANDLE.cast_signed());
        matches!(self, Self::Socket(_)) && closed
    }
}

/// Returns the report of a socket that was closed: the next read or write returns the cause.
fn closed_report(token: u64) -> Ready {
    Ready { readable: true, writable: true, closed: true, ..Ready::none(token) }
}

impl SourceKey {
    fn of(source: Source<'_>) -> Self {
        match source {
            Source::Handle(handle) => Self::Handle(handle.as_raw_handle().addr()),
            Source::Socket(socket) => Self::Socket(socket.as_raw_socket()),
            Source::Process(pid) => Self::Process(pid),
        }
    }
}

/// A process exits once, so edge-triggered is the same as one-shot.
fn exit_interest(interest: Interest) -> Interest {
    let once = interest.is_oneshot() || interest.is_edge();
    if once { Interest::READABLE.oneshot() } else { Interest::READABLE }
}

/// Returns whether it is a file or a pipe. Such a handle is signalled when any operation on it
/// completes, not when it is readable.
fn is_file(handle: BorrowedHandle<'_>) -> bool {
    // SAFETY: the handle is open.
    matches!(unsafe { GetFileType(handle.as_raw_handle()) }, FILE_TYPE_DISK | FILE_TYPE_PIPE)
}

/// Returns a copy of the handle that can only be waited for.
fn duplicate(handle: BorrowedHandle<'_>) -> io::Result<OwnedHandle> {
    // SAFETY: the call has no preconditions.
    let process = unsafe { GetCurrentProcess() };
    let mut copy = null_mut();
    // SAFETY: the handle is borrowed, so open; `copy` outlives the call.
    let answer =
        unsafe { DuplicateHandle(process, handle.as_raw_handle(), process, &mut copy, SYNCHRONIZE, 0, 0) };
    if answer == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above created the handle, and nothing else owns it.
    Ok(unsafe { OwnedHandle::from_raw_handle(copy) })
}
