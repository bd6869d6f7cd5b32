//! The completion port: one queue in the kernel, into which everything that a set waits for is posted.
//!
//! A port tells of operations that are over, not of things that are ready. What travels through it is a [`Packet`]: an
//! `OVERLAPPED` with a token. An endpoint lets its packet fly with an operation ([`Core::fly`]) or posts it by hand
//! ([`Core::post`]); while it flies, the kernel's pointer counts as one reference to it, which the port takes back when
//! the packet lands. So an endpoint may go away at any time, and no memory goes away under the kernel's hands.
//!
//! Limits: foreign handles are not watched yet ([`Backend::add`] answers `Unsupported`), and a port has no handle that
//! another loop may wait for ([`Port::news`]; waiting for a port itself is not documented).

#![expect(unsafe_code, reason = "completion port calls, and packets that the kernel holds")]

use std::cell::UnsafeCell;
use std::fmt::{self, Debug};
use std::io;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::{ERROR_IO_PENDING, INVALID_HANDLE_VALUE, WAIT_TIMEOUT};
use windows_sys::Win32::System::IO::{
    CancelIoEx, CreateIoCompletionPort, GetOverlappedResult, GetQueuedCompletionStatusEx, OVERLAPPED,
    OVERLAPPED_ENTRY, PostQueuedCompletionStatus,
};
use windows_sys::Win32::System::Threading::{CreateEventW, INFINITE, ResetEvent, SetEvent};

use super::bell::{Bell, NUDGED, WOKEN};
use super::{NUDGE, Open, Ready, Report, report_rings};
use crate::event::Interest;

/// How many packets one call takes. More stay in the kernel and come first next time: nobody starves.
const PACKETS_MAX: usize = 128;
/// How long the last owner of a port waits for cancelled operations. What is not back by then is leaked, never freed.
const LANDING_MAX: Duration = Duration::from_secs(2);

/// Completion keys: what the pointer of an entry is.
const KEY_PACKET: usize = 1;
const KEY_DOORBELL: usize = 2;

/// The contract of a wait backend on Windows, for sources that are not endpoints.
pub(crate) trait Backend: Debug + Send + Sync {
    /// The name in the table, in `minder doctor` and in `--backend`.
    fn name(&self) -> &'static str;
    fn add(&self, source: Source<'_>, token: u64, interest: Interest) -> io::Result<()>;
    fn modify(&self, source: Source<'_>, token: u64, interest: Interest) -> io::Result<()>;
    fn delete(&self, source: Source<'_>) -> io::Result<()>;
    /// Appends what has happened. A ring of the doorbell is told with the token [`WAKE`](super::WAKE), or [`NUDGE`].
    fn wait(&self, ready: &mut Vec<Ready>, deadline: Option<Instant>) -> io::Result<()>;
    /// The bell that ends a wait from any thread.
    fn doorbell(&self) -> Arc<Doorbell>;
}

/// What can be registered with a backend: so far all of it is refused.
#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "the port takes no foreign sources yet")]
pub(crate) enum Source<'a> {
    Handle(BorrowedHandle<'a>),
    /// The end of a process, ours or not.
    Process(u32),
}

impl<'a> Source<'a> {
    pub(crate) fn handle(source: &'a impl AsHandle) -> Self {
        Self::Handle(source.as_handle())
    }
}

/// A handle that is signalled when there is news. Wait for it in any loop; never reset it.
pub type News<'a> = BorrowedHandle<'a>;

/// What the public poller stands on.
#[derive(Debug)]
pub(crate) struct Watch(Arc<dyn Backend>);

impl Watch {
    pub(crate) fn open(name: Option<&str>) -> io::Result<Self> {
        super::open(name).map(Self)
    }

    pub(crate) fn name(&self) -> &'static str {
        self.0.name()
    }

    pub(crate) fn doorbell(&self) -> Arc<Doorbell> {
        self.0.doorbell()
    }

    /// Returns whether waits have to be bounded anew: never, here.
    pub(crate) fn add(&self, source: Source<'_>, token: u64, interest: Interest) -> io::Result<bool> {
        self.0.add(source, token, interest).map(|()| false)
    }

    pub(crate) fn modify(&self, source: Source<'_>, token: u64, interest: Interest) -> io::Result<bool> {
        self.0.modify(source, token, interest).map(|()| false)
    }

    pub(crate) fn delete(&self, source: Source<'_>) -> io::Result<()> {
        self.0.delete(source)
    }

    pub(crate) fn wait(&self, ready: &mut Vec<Ready>, deadline: Option<Instant>) -> io::Result<()> {
        self.0.wait(ready, deadline)
    }

    /// A handle that is signalled while `wait` would return at once: there is none.
    pub(crate) fn news(&self, _deadline: Option<Instant>) -> io::Result<News<'_>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// There is no process that would have to be looked at.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        None
    }

    pub(crate) fn look(&self, _ready: &mut Vec<Ready>, _now: Instant) {}
}

/// The name of the one backend so far.
const NAME: &str = "iocp";

/// The backends of this system, best first: name and opener.
pub(crate) const BACKENDS: &[(&str, Open)] = &[(NAME, || Ok(Arc::new(Iocp(Core::new()?))))];

/// What the endpoints of one set are armed on.
#[derive(Debug)]
pub(crate) struct Port {
    core: Arc<Core>,
}

impl Port {
    pub(crate) fn open(name: Option<&str>) -> io::Result<Self> {
        match name.is_none_or(|name| name == NAME) {
            true => Ok(Self { core: Core::new()? }),
            false => Err(io::Error::from(io::ErrorKind::Unsupported)),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        NAME
    }

    pub(crate) fn doorbell(&self) -> Arc<Doorbell> {
        Arc::clone(&self.core.doorbell)
    }

    /// Waits until there is a report, the doorbell rings, or the deadline has come. Appends to `reports`.
    pub(crate) fn wait(&mut self, reports: &mut Vec<Report>, deadline: Option<Instant>) -> io::Result<()> {
        self.core.wait(reports, deadline)
    }

    /// A handle that is signalled while `wait` would return at once: there is none.
    pub(crate) fn news(&self, _deadline: Option<Instant>) -> io::Result<News<'_>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// What endpoints keep of the port, so that their packets always have where to land.
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

/// The port as a backend of [`Poller`](crate::Poller): so far it has a doorbell and a clock, and takes no source.
#[derive(Debug)]
struct Iocp(Arc<Core>);

impl Backend for Iocp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn add(&self, _source: Source<'_>, _token: u64, _interest: Interest) -> io::Result<()> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    fn modify(&self, _source: Source<'_>, _token: u64, _interest: Interest) -> io::Result<()> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    fn delete(&self, _source: Source<'_>) -> io::Result<()> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    fn wait(&self, ready: &mut Vec<Ready>, deadline: Option<Instant>) -> io::Result<()> {
        self.0.wait(ready, deadline)
    }

    fn doorbell(&self) -> Arc<Doorbell> {
        Arc::clone(&self.0.doorbell)
    }
}

/// A bell that ends a wait from any thread. Rings are merged: many before one wait end it once.
#[derive(Debug)]
pub(crate) struct Doorbell {
    bell: Bell,
    chime: Chime,
}

/// What is heard of a bell.
#[derive(Debug)]
enum Chime {
    /// A packet without an operation, by the port.
    Queue(Arc<OwnedHandle>),
    /// An event that stays set, by a loop that is not ours.
    Event(OwnedHandle),
}

impl Doorbell {
    /// Makes a bell that belongs to no port.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no attributes, no name; manual reset, so that it stays set until it is hushed.
        let raw = unsafe { CreateEventW(std::ptr::null(), 1, 0, std::ptr::null()) };
        if raw.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call above made this handle, and nobody else has it.
        let event = unsafe { OwnedHandle::from_raw_handle(raw) };
        Ok(Self { bell: Bell::new(), chime: Chime::Event(event) })
    }

    /// Ends the wait that goes on, or else the next one. What was written before this is seen after that wait.
    pub(crate) fn ring(&self) -> io::Result<()> {
        self.bell.ring(WOKEN, || self.signal())
    }

    /// Makes the wait that goes on look again at what bounds it; it is not told to the caller.
    pub(crate) fn nudge(&self) -> io::Result<()> {
        self.bell.ring(NUDGED, || self.signal())
    }

    /// Makes it silent again. Call it before looking at what the ringers left; the port does so for its own bell.
    pub(crate) fn hush(&self) {
        self.bell.hush(|| self.empty());
    }

    /// Hushes it, and reports for which reasons it was rung.
    fn answer(&self, ready: &mut Vec<Ready>) {
        report_rings(self.bell.hush(|| self.empty()), ready);
    }

    fn signal(&self) -> io::Result<()> {
        match &self.chime {
            Chime::Queue(queue) => post(queue, KEY_DOORBELL, std::ptr::null()),
            Chime::Event(event) => set_event(event),
        }
    }

    /// A packet is out of the queue by the time that it is heard.
    fn empty(&self) {
        if let Chime::Event(event) = &self.chime {
            // SAFETY: the event is open.
            unsafe { ResetEvent(event.as_raw_handle()) };
        }
    }

    /// The handle that is signalled from a ring until the bell is hushed, for a loop that is not ours. For the bell of a
    /// port that is the port, of which nothing of the kind is documented: make a bell for it.
    pub(crate) fn news(&self) -> BorrowedHandle<'_> {
        match &self.chime {
            Chime::Queue(queue) => queue.as_handle(),
            Chime::Event(event) => event.as_handle(),
        }
    }
}

/// The shared part of a port. It lives as long as the port or any endpoint that was armed on it.
#[derive(Debug)]
pub(crate) struct Core {
    queue: Arc<OwnedHandle>,
    doorbell: Arc<Doorbell>,
    /// How many packets the kernel holds.
    flying: AtomicUsize,
    /// Packets whose endpoints are closed and whose operations nevertheless go on: the last bytes of an input.
    lingering: Mutex<Vec<Weak<Packet>>>,
}

impl Core {
    fn new() -> io::Result<Arc<Self>> {
        // One thread at a time waits; the system need not keep more of them running.
        // SAFETY: asks for a new port: no file handle, no existing port, so nothing is borrowed.
        let raw = unsafe { CreateIoCompletionPort(INVALID_HANDLE_VALUE, std::ptr::null_mut(), 0, 1) };
        if raw.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call above made this handle, and nobody else has it.
        let queue = Arc::new(unsafe { OwnedHandle::from_raw_handle(raw) });
        let doorbell = Arc::new(Doorbell { bell: Bell::new(), chime: Chime::Queue(Arc::clone(&queue)) });
        Ok(Arc::new(Self { queue, doorbell, flying: AtomicUsize::new(0), lingering: Mutex::default() }))
    }

    /// Makes the operations of `handle` complete into this port. A handle belongs to one port for good.
    pub(crate) fn associate(&self, handle: BorrowedHandle<'_>) -> io::Result<()> {
        let queue = self.queue.as_raw_handle();
        // SAFETY: both handles are borrowed, so open. `KEY_PACKET` says that every operation of this handle that
        // queues a packet uses the `OVERLAPPED` of one: endpoints keep associated handles to themselves, and start all
        // such operations by `fly`.
        let raw = unsafe { CreateIoCompletionPort(handle.as_raw_handle(), queue, KEY_PACKET, 0) };
        if raw.is_null() { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Lets `packet` fly with the operation that `start` begins. It must not be flying.
    ///
    /// # Safety
    /// `start` begins at most one operation with the pointer that it is given, as its last system call, and returns what
    /// that call returned. The operation is one of a handle that was associated with this port (and, if `skips`, told to
    /// queue no packet for success at once); memory that it uses lives as long as the packet does and is changed by
    /// nobody while the packet flies.
    pub(crate) unsafe fn fly(
        &self,
        packet: &Arc<Packet>,
        skips: bool,
        start: impl FnOnce(*mut OVERLAPPED) -> i32,
    ) -> io::Result<Flight> {
        let overlapped = self.hand_over(packet);
        let answer = start(overlapped);
        let error = if answer == 0 { Some(io::Error::last_os_error()) } else { None };
        match error {
            None if skips => {
                self.take_back(overlapped);
                Ok(Flight::Over)
            }
            None => Ok(Flight::Aloft),
            Some(error) if error.raw_os_error() == Some(ERROR_IO_PENDING.cast_signed()) => Ok(Flight::Aloft),
            Some(error) => {
                // An operation that could not begin queues no packet.
                self.take_back(overlapped);
                Err(error)
            }
        }
    }

    /// Posts `packet` into the port, so that it lands without an operation. It must not be flying.
    pub(crate) fn post(&self, packet: &Arc<Packet>) -> io::Result<()> {
        let overlapped = self.hand_over(packet);
        post(&self.queue, KEY_PACKET, overlapped).inspect_err(|_| drop(self.take_back(overlapped)))
    }

    /// Gives the kernel its reference to the packet.
    fn hand_over(&self, packet: &Arc<Packet>) -> *mut OVERLAPPED {
        let was = packet.flying.swap(true, Ordering::AcqRel);
        assert!(!was, "a packet flies once at a time");
        self.flying.fetch_add(1, Ordering::AcqRel);
        let overlapped = packet.overlapped.get();
        // SAFETY: `flying` was false, so that neither the kernel nor another thread uses the structure, and we have
        // just made it true.
        unsafe { *overlapped = OVERLAPPED::default() };
        // The structure is the first field, so that its address is the packet's.
        Arc::into_raw(Arc::clone(packet)).cast_mut().cast()
    }

    /// Takes the kernel's reference back: the operation is over, or did not begin.
    fn take_back(&self, overlapped: *mut OVERLAPPED) -> Arc<Packet> {
        // SAFETY: all pointers that come here were made by `hand_over`, which turned one reference into each, and
        // each comes back once: by the queue, which hands out every packet once, or from a call that queued none.
        let packet = unsafe { Arc::from_raw(overlapped.cast::<Packet>().cast_const()) };
        packet.flying.store(false, Ordering::Release);
        self.flying.fetch_sub(1, Ordering::AcqRel);
        packet
    }

    /// Waits until there is something to tell or the deadline has come, and never ends before it otherwise.
    fn wait(&self, ready: &mut Vec<Ready>, deadline: Option<Instant>) -> io::Result<()> {
        let before = ready.len();
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            self.dequeue(ready, left)?;
            // Without anything to tell we go on until a look *after* the deadline found nothing.
            if ready.len() > before || left == Some(Duration::ZERO) {
                return Ok(());
            }
        }
    }

    /// One call: takes what is in the queue, or waits for it.
    fn dequeue(&self, ready: &mut Vec<Ready>, left: Option<Duration>) -> io::Result<()> {
        let mut entries = [OVERLAPPED_ENTRY::default(); PACKETS_MAX];
        let mut count = 0;
        let (queue, list, time) = (self.queue.as_raw_handle(), entries.as_mut_ptr(), millis(left));
        // SAFETY: the port is open, and `list` has room for as many entries as it is said to have.
        let answer =
            unsafe { GetQueuedCompletionStatusEx(queue, list, PACKETS_MAX as u32, &mut count, time, 0) };
        if answer == 0 {
            let error = io::Error::last_os_error();
            return if error.raw_os_error() == Some(WAIT_TIMEOUT.cast_signed()) {
                Ok(())
            } else {
                Err(error)
            };
        }
        for entry in &entries[..count as usize] {
            if entry.lpCompletionKey == KEY_DOORBELL {
                self.doorbell.answer(ready);
                continue;
            }
            let packet = self.take_back(entry.lpOverlapped);
            if let Some(token) = packet.token() {
                ready.push(Ready { readable: true, writable: true, ..Ready::none(token) });
            }
        }
        Ok(())
    }

    fn lingering(&self) -> MutexGuard<'_, Vec<Weak<Packet>>> {
        self.lingering.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the operation of `packet` go on after its endpoint is gone; `handle` is closed when the packet lands. When
    /// the port goes too, it is cancelled.
    pub(crate) fn linger(&self, packet: &Arc<Packet>, handle: Arc<OwnedHandle>) {
        packet.cargo().handle = Some(handle);
        let mut lingering = self.lingering();
        lingering.retain(|packet| packet.strong_count() > 0);
        lingering.push(Arc::downgrade(packet));
    }
}

impl Drop for Core {
    /// Waits for the packets that still fly. The endpoints are gone, since each holds the core, and have cancelled
    /// their operations, so that is a matter of microseconds. The queue is not closed before: its packets would be lost
    /// and their memory with them.
    fn drop(&mut self) {
        for packet in std::mem::take(&mut *self.lingering()).iter().filter_map(Weak::upgrade) {
            if let Some(handle) = &packet.cargo().handle {
                packet.cancel(handle);
            }
        }
        let until = Instant::now() + LANDING_MAX;
        let mut landed = Vec::new();
        while self.flying.load(Ordering::Acquire) > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.dequeue(&mut landed, Some(left)).is_err() {
                return;
            }
        }
    }
}

/// How an operation began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flight {
    /// The packet comes out of the port when it is over.
    Aloft,
    /// It is over, successfully, and no packet comes.
    Over,
}

/// What travels through a port: an `OVERLAPPED`, the token to tell when it lands, and what the operation needs.
///
/// Who may use which part: `overlapped` belongs to the kernel while the packet flies, and to its one endpoint otherwise;
/// everything else may be used by all at any time, with the promise of [`Core::fly`] for the bytes.
#[repr(C)]
pub(crate) struct Packet {
    overlapped: UnsafeCell<OVERLAPPED>,
    flying: AtomicBool,
    /// [`MUTE`] for nobody.
    token: AtomicU64,
    cargo: Mutex<Cargo>,
}

/// What an operation needs as long as it goes on.
#[derive(Debug, Default)]
pub(crate) struct Cargo {
    /// Bytes that the kernel reads from while the packet flies: not to be changed then.
    pub(crate) bytes: Vec<u8>,
    /// The handle of an operation that outlives its endpoint.
    handle: Option<Arc<OwnedHandle>>,
}

const MUTE: u64 = NUDGE - 1;

// SAFETY: of its parts only `overlapped` is not `Send`, for the pointers in it: they are null, or an offset of zero.
// Nothing in it depends on the thread.
unsafe impl Send for Packet {}
// SAFETY: of its parts only `overlapped` is not `Sync`. It is written by `hand_over` alone, whose swap of `flying` lets
// one thread through and keeps it from running while the kernel has it; the kernel's own accesses go by a raw pointer.
unsafe impl Sync for Packet {}

impl Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packet")
            .field("flying", &self.flying)
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

impl Packet {
    /// Makes a packet whose landing is told to nobody.
    pub(crate) fn new() -> Arc<Self> {
        const { assert!(std::mem::offset_of!(Packet, overlapped) == 0) };
        Arc::new(Self {
            overlapped: UnsafeCell::new(OVERLAPPED::default()),
            flying: AtomicBool::new(false),
            token: AtomicU64::new(MUTE),
            cargo: Mutex::default(),
        })
    }

    /// Has landings told with this token.
    pub(crate) fn tell(&self, token: u64) {
        debug_assert!(token < MUTE);
        self.token.store(token, Ordering::Release);
    }

    /// Has landings told no more, that of a packet in flight included.
    pub(crate) fn mute(&self) {
        self.token.store(MUTE, Ordering::Release);
    }

    fn token(&self) -> Option<u64> {
        Some(self.token.load(Ordering::Acquire)).filter(|&token| token != MUTE)
    }

    /// Whether the kernel holds it, be it that its operation is over and the port has not handed it out yet.
    pub(crate) fn is_flying(&self) -> bool {
        self.flying.load(Ordering::Acquire)
    }

    pub(crate) fn cargo(&self) -> MutexGuard<'_, Cargo> {
        self.cargo.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels the operation, if it still goes on. The packet lands either way.
    pub(crate) fn cancel(&self, handle: &OwnedHandle) {
        // That nothing was left to cancel is no failure, and there is no other that could be mended.
        // SAFETY: the handle is open; the pointer is compared with those of operations and not followed.
        unsafe { CancelIoEx(handle.as_raw_handle(), self.overlapped.get()) };
    }

    /// How the operation on `handle` ended, once the packet has landed: the number of bytes.
    pub(crate) fn result(&self, handle: &OwnedHandle) -> io::Result<u32> {
        assert!(!self.is_flying(), "the result is there when the packet has landed");
        let mut count = 0;
        // SAFETY: the packet does not fly, so that nobody writes to the structure (its one endpoint would have to let
        // it fly, and is here instead); the call does not wait and only reads.
        let answer =
            unsafe { GetOverlappedResult(handle.as_raw_handle(), self.overlapped.get(), &mut count, 0) };
        if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(count) }
    }
}

fn post(queue: &OwnedHandle, key: usize, overlapped: *const OVERLAPPED) -> io::Result<()> {
    // SAFETY: the port is open. The pointer is handed through as it is: null, or a reference that `dequeue` takes back.
    let answer = unsafe { PostQueuedCompletionStatus(queue.as_raw_handle(), 0, key, overlapped) };
    if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn set_event(event: &OwnedHandle) -> io::Result<()> {
    // SAFETY: the event is open.
    let answer = unsafe { SetEvent(event.as_raw_handle()) };
    if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The time in the system's unit, rounded up; what is too long for it is waited for in parts.
pub(crate) fn millis(left: Option<Duration>) -> u32 {
    let Some(left) = left else { return INFINITE };
    u32::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(INFINITE).min(INFINITE - 1)
}

#[cfg(test)]
mod tests {
    use windows_sys::Win32::Foundation::WAIT_OBJECT_0;
    use windows_sys::Win32::System::Threading::WaitForSingleObject;

    use super::super::WAKE;
    use super::*;

    /// A set may move to another thread, and so may all that it holds.
    #[test]
    fn everything_may_cross_threads() {
        fn check<T: Send + Sync>() {}
        check::<(Port, Doorbell)>();
        check::<crate::sys::spawn::Spawned>();
    }

    #[test]
    fn a_bell_of_its_own_stays_set_until_it_is_hushed() {
        let bell = Doorbell::new().unwrap();
        // SAFETY: the event is open, and the call does not wait.
        let is_set = || unsafe { WaitForSingleObject(bell.news().as_raw_handle(), 0) } == WAIT_OBJECT_0;
        assert!(!is_set());
        bell.ring().unwrap();
        assert!(is_set() && is_set());
        bell.hush();
        assert!(!is_set());
        bell.ring().unwrap();
        assert!(is_set());
    }

    #[test]
    fn rings_are_merged_and_end_one_wait() {
        let mut port = Port::open(None).unwrap();
        let bell = port.doorbell();
        bell.ring().unwrap();
        bell.ring().unwrap();
        let mut reports = Vec::new();
        port.wait(&mut reports, None).unwrap();
        port.wait(&mut reports, Some(Instant::now())).unwrap();
        assert_eq!(reports.iter().map(|report| report.token).collect::<Vec<_>>(), [WAKE]);
    }

    #[test]
    fn a_wait_never_ends_early() {
        let mut port = Port::open(None).unwrap();
        for micros in [1, 100, 999, 1_001, 5_500, 16_001] {
            let deadline = Instant::now() + Duration::from_micros(micros);
            port.wait(&mut Vec::new(), Some(deadline)).unwrap();
            assert!(Instant::now() >= deadline, "{micros} us");
        }
    }

    #[test]
    fn a_packet_flies_keeps_itself_alive_and_lands() {
        let mut port = Port::open(None).unwrap();
        let packet = Packet::new();
        packet.tell(7);
        port.core().post(&packet).unwrap();
        assert_eq!(Arc::strong_count(&packet), 2);
        let mut reports = Vec::new();
        port.wait(&mut reports, None).unwrap();
        assert_eq!((reports[0].token, Arc::strong_count(&packet)), (7, 1));
        port.core().post(&packet).unwrap();
        packet.mute();
        let weak = Arc::downgrade(&packet);
        drop(packet);
        assert!(weak.upgrade().is_some(), "the kernel holds it");
        port.wait(&mut reports, Some(Instant::now())).unwrap();
        assert_eq!((reports.len(), weak.strong_count()), (1, 0));
    }

    #[test]
    fn a_port_that_goes_takes_its_packets_along() {
        let port = Port::open(None).unwrap();
        let packet = Packet::new();
        port.core().post(&packet).unwrap();
        drop(port);
        assert_eq!(Arc::strong_count(&packet), 1);
    }
}
