//! Sources of Windows: events and connections, in turns. What becomes ready is reported soon, and
//! not always by a look that follows at once; an event that was reset before it was reported may be
//! reported once.

#![expect(unsafe_code, reason = "events, and what the standard library does not do with sockets")]

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::windows::io::{AsRawHandle, AsRawSocket, FromRawHandle, FromRawSocket, OwnedHandle};
use std::time::{Duration, Instant};

use minder::Backend;
use minder::poll::{Poller, Readiness, Source};
use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::Networking::WinSock::{
    AF_INET, FIONBIO, IN_ADDR, IN_ADDR_0, INVALID_SOCKET, LINGER, SO_LINGER, SOCK_STREAM, SOCKADDR_IN,
    SOCKET, SOL_SOCKET, connect, ioctlsocket, setsockopt, socket,
};
use windows_sys::Win32::System::Threading::{
    CreateEventW, GetCurrentThread, GetThreadTimes, ResetEvent, SetEvent,
};

use super::{names, wait_events};
use crate::support::{each_backend, patience};

pub(super) const CHANGES: u64 = 5_000;
pub(super) const CROWD: usize = 70;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Event,
    Connection,
}

thread_local! {
    /// The kind of source of which counters are made in this test.
    static KIND: Cell<Kind> = const { Cell::new(Kind::Event) };
}

fn each(kind: Kind, test: impl Fn(Backend)) {
    KIND.set(kind);
    each_backend(test);
}

/// Runs a test on every backend with either kind of source.
pub(super) fn each_source(test: impl Fn(Backend)) {
    each_handle(&test);
    each_exact(test);
}

/// Runs a test on every backend with sources that must not be reported once they are served: a
/// signal of a handle cannot be called back.
pub(super) fn each_exact(test: impl Fn(Backend)) {
    each(Kind::Connection, test);
}

/// The same for threads that poll at the same time: only one of them finds a report of the driver
/// about a socket.
pub(super) fn each_handle(test: impl Fn(Backend)) {
    each(Kind::Event, test);
}

/// An event that stays set, or a connection with a byte in it.
pub(super) enum Counter {
    Event(OwnedHandle),
    Connection(Stream, Stream),
}

impl<'a> From<&'a Counter> for Source<'a> {
    fn from(counter: &'a Counter) -> Self {
        match counter {
            Counter::Event(event) => event.into(),
            Counter::Connection(ours, _) => ours.into(),
        }
    }
}

pub(super) fn counter() -> Counter {
    try_counter().expect("create source")
}

pub(super) fn try_counter() -> io::Result<Counter> {
    if KIND.get() == Kind::Connection {
        return pair().map(|(ours, theirs)| Counter::Connection(ours, theirs));
    }
    // SAFETY: no attributes, no name; it stays set.
    let raw = unsafe { CreateEventW(std::ptr::null(), 1, 0, std::ptr::null()) };
    if raw.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: new, with no other owner.
    Ok(Counter::Event(unsafe { OwnedHandle::from_raw_handle(raw) }))
}

/// Makes a counter ready.
pub(super) fn raise(counter: &Counter) {
    match counter {
        // SAFETY: the event is open.
        Counter::Event(event) => assert_ne!(unsafe { SetEvent(event.as_raw_handle()) }, 0),
        Counter::Connection(_, theirs) => (&theirs.0).write_all(b"x").expect("write bytes"),
    }
}

/// Serves it.
pub(super) fn lower(counter: &Counter) {
    match counter {
        // SAFETY: the event is open.
        Counter::Event(event) => assert_ne!(unsafe { ResetEvent(event.as_raw_handle()) }, 0),
        // There is a byte for each that raised it: at least one.
        Counter::Connection(ours, _) => {
            ours.0.set_nonblocking(false).expect("set nonblocking mode");
            (&ours.0).read_exact(&mut [0]).expect("read bytes");
            ours.0.set_nonblocking(true).expect("set nonblocking mode");
            while (&ours.0).read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
        }
    }
}

/// Another name of the same.
pub(super) fn copy(counter: &Counter) -> Counter {
    match counter {
        Counter::Event(event) => Counter::Event(event.try_clone().expect("duplicate handle")),
        Counter::Connection(ours, theirs) => Counter::Connection(
            Stream(ours.0.try_clone().expect("duplicate handle")),
            Stream(theirs.0.try_clone().expect("duplicate handle")),
        ),
    }
}

/// One side of a connection, which resets it when it is closed: that the other side is gone, and
/// has not only shut down its writes, is reported of no other.
pub(super) struct Stream(pub(super) TcpStream);

impl<'a> From<&'a Stream> for Source<'a> {
    fn from(stream: &'a Stream) -> Self {
        Source::socket(&stream.0)
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Read for &Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(into)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream {
    pub(super) fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.0.set_nonblocking(nonblocking)
    }

    pub(super) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.0.shutdown(how)
    }
}

/// Both sides of a stream.
pub(super) fn pair() -> io::Result<(Stream, Stream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let ours = TcpStream::connect(listener.local_addr()?)?;
    let theirs = listener.accept()?.0;
    for side in [&ours, &theirs] {
        side.set_nodelay(true)?;
        let linger = LINGER { l_onoff: 1, l_linger: 0 };
        let socket = side.as_raw_socket() as SOCKET;
        let level = SOL_SOCKET;
        let name = SO_LINGER;
        // SAFETY: the socket is open, and `linger` has the size that is passed.
        let answer = unsafe {
            setsockopt(socket, level, name, (&raw const linger).cast(), size_of::<LINGER>() as i32)
        };
        assert_eq!(answer, 0, "a connection that can be reset");
    }
    Ok((Stream(ours), Stream(theirs)))
}

/// Returns a reader and a writer: anonymous pipes cannot be watched.
pub(super) fn pipe() -> io::Result<(Stream, Stream)> {
    pair()
}

/// Waits by other means until the other side is gone.
pub(super) fn await_hang_up(ours: &Stream) {
    // A read may take the error along, as Wine does.
    let other = Poller::new().expect("create poller");
    other.add(ours, minder::poll::Token(1), minder::poll::Interest::READABLE).expect("add source");
    let until = patience();
    while !wait_events(&other, until).iter().any(|ready| ready.closed) {
        assert!(Instant::now() < until, "no reset");
    }
}

/// Fills it, and returns the number of bytes.
pub(super) fn full(writer: &mut Stream) -> usize {
    writer.0.set_nonblocking(true).expect("set nonblocking mode");
    let mut written = 0;
    let mut last = Instant::now();
    // Windows finds more room for a while.
    while last.elapsed() < Duration::from_millis(100) {
        if let Ok(count) = writer.write(&[b'x'; 4096]) {
            written += count;
            last = Instant::now();
        }
    }
    written
}

/// Waits for a source that has just become ready, and returns its readiness.
pub(super) fn soon(poller: &Poller) -> Vec<Readiness> {
    wait_events(poller, patience())
}

/// These are reported, and no others: maybe not all by the same wait.
#[track_caller]
pub(super) fn expect_since(poller: &Poller, expected: &[u64], what: &str) {
    if expected.is_empty() {
        let time = if is_prompt() { 0 } else { 5 };
        assert_eq!(
            names(&wait_events(poller, Instant::now() + Duration::from_millis(time))),
            [0; 0],
            "{what}"
        );
        return;
    }
    let mut reported = Vec::new();
    let until = patience();
    while reported != expected {
        let new = names(&wait_events(poller, until));
        assert!(!new.is_empty(), "{what}: reported {reported:?}, expected {expected:?}");
        assert!(new.iter().all(|token| expected.contains(token)), "{what}: {new:?}, expected {expected:?}");
        reported.extend(new);
        reported.sort_unstable();
        reported.dedup();
    }
}

/// Every ready source is served, and not reported any more. An earlier signal of a handle may be
/// reported still.
#[track_caller]
pub(super) fn served(poller: &Poller, what: &str) {
    if is_prompt() {
        return expect_since(poller, &[], what);
    }
    let until = patience();
    while !wait_events(poller, Instant::now() + Duration::from_millis(30)).is_empty() {
        assert!(Instant::now() < until, "{what}");
    }
}

/// Returns whether a poll reports every source that became ready before it.
pub(super) fn is_prompt() -> bool {
    KIND.get() == Kind::Connection
}

/// Returns whether the backend supports edge-triggered sources.
pub(super) fn has_edge(_backend: Backend) -> bool {
    false
}

/// In which steps [`computed`] continues: those of the clock of Windows (GetSystemTimeAdjustment),
/// or of Linux under Wine.
pub(super) const COMPUTED_STEP: Duration = Duration::from_millis(16);

/// Returns the CPU time of this thread.
pub(super) fn computed() -> Duration {
    let mut times = [FILETIME::default(); 4];
    let [made, ended, system, user] = &mut times;
    // SAFETY: the pseudo-handle is this thread's; all four outlive the call.
    let answer = unsafe { GetThreadTimes(GetCurrentThread(), made, ended, system, user) };
    assert_ne!(answer, 0, "the times of this thread");
    let ticks = |time: &FILETIME| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    Duration::from_nanos((ticks(&times[2]) + ticks(&times[3])) * 100)
}

/// Begins to connect, and does not wait for it.
pub(super) fn begin(to: SocketAddr) -> Stream {
    let SocketAddr::V4(to) = to else { panic!("an address of the loopback device") };
    // SAFETY: numbers only; the standard library has opened Winsock for the listener.
    let raw = unsafe { socket(AF_INET.into(), SOCK_STREAM, 0) };
    assert_ne!(raw, INVALID_SOCKET, "a socket");
    // SAFETY: new, with no other owner.
    let stream = Stream(unsafe { TcpStream::from_raw_socket(raw as u64) });
    let mut yes = 1;
    // SAFETY: the socket is open; `yes` outlives the call.
    assert_eq!(unsafe { ioctlsocket(raw, FIONBIO, &mut yes) }, 0);
    let address = IN_ADDR { S_un: IN_ADDR_0 { S_addr: u32::from_ne_bytes(to.ip().octets()) } };
    let name =
        SOCKADDR_IN { sin_family: AF_INET, sin_port: to.port().to_be(), sin_addr: address, sin_zero: [0; 8] };
    // SAFETY: the socket is open, and the name has the size that is passed.
    unsafe { connect(raw, (&raw const name).cast(), size_of::<SOCKADDR_IN>() as i32) };
    stream
}
