//! Readiness of sources: pipes, sockets, terminals, counters; bytes, room, hang-ups and errors.

use std::io::{Read, Write};
#[cfg(unix)]
use std::net::SocketAddr;
use std::net::{Shutdown, TcpListener, TcpStream};
#[cfg(unix)]
use std::os::fd::OwnedFd;
#[cfg(unix)]
use std::time::Duration;
use std::time::Instant;

use minder::poll::{Interest, Poller, Readiness, Source, Token};

#[cfg(windows)]
use super::begin;
use super::{
    copy, counter, each_exact, each_source, expect, expect_since, full, look, lower, open, pair, pipe, raise,
    tokens, wait_events,
};
#[cfg(unix)]
use crate::support::backends;
use crate::support::{each_backend, patience};

#[test]
fn readable_source_is_reported_until_served() {
    each_backend(|backend| {
        let poller = open(backend);
        let (mut reader, mut writer) = pipe().expect("create pipe");
        poller.add(&reader, Token(7), Interest::READABLE).expect("add source");
        expect_since(&poller, &[], "an empty pipe is ready");
        writer.write_all(b"ab").expect("write bytes");
        for _ in 0..3 {
            let ready = super::soon(&poller);
            assert_eq!(ready.len(), 1);
            assert_eq!(ready[0].token, Token(7));
            assert!(ready[0].readable && !ready[0].writable && !ready[0].closed, "{ready:?}");
        }
        reader.read_exact(&mut [0]).expect("read bytes");
        expect_since(&poller, &[7], "one byte is left");
        reader.read_exact(&mut [0]).expect("read bytes");
        expect(&poller, &[]);
        drop(writer);
        let ready = wait_events(&poller, patience());
        assert!(
            ready.len() == 1 && ready[0].readable && ready[0].closed,
            "the other side is gone: {ready:?}"
        );
        poller.delete(&reader).expect("delete source");
        expect_since(&poller, &[], "reported after it was deleted");
    });
}

#[test]
fn writable_source_and_closed_reader_are_reported() {
    each_backend(|backend| {
        let poller = open(backend);
        let (mut reader, mut writer) = pipe().expect("create pipe");
        poller.add(&writer, Token(1), Interest::WRITABLE).expect("add source");
        let ready = super::soon(&poller);
        assert!(ready.len() == 1 && ready[0].writable && !ready[0].closed, "{ready:?}");
        let written = full(&mut writer);
        expect_since(&poller, &[], "a full pipe is writable");
        reader.read_exact(&mut vec![0; written]).expect("read all bytes");
        expect(&poller, &[1]);
        let _ = full(&mut writer);
        drop(reader);
        let ready = wait_events(&poller, patience());
        assert!(ready.len() == 1 && ready[0].writable && ready[0].closed, "{ready:?}");
        poller.delete(&writer).expect("delete source");
    });
}

#[test]
fn both_directions_of_a_source_are_reported() {
    each_backend(|backend| {
        let poller = open(backend);
        let (ours, theirs) = pair().expect("create socket pair");
        poller.add(&ours, Token(5), Interest::READABLE | Interest::WRITABLE).expect("add source");
        let ready = super::soon(&poller);
        assert!(ready.len() == 1 && ready[0].writable && !ready[0].readable, "{ready:?}");
        (&theirs).write_all(b"x").expect("write bytes");
        let ready = super::soon(&poller);
        assert!(ready.len() == 1 && ready[0].writable && ready[0].readable, "{ready:?}");
        poller.modify(&ours, Token(6), Interest::READABLE).expect("modify source");
        let ready = super::soon(&poller);
        assert!(ready.len() == 1 && !ready[0].writable && ready[0].readable, "{ready:?}");
        assert_eq!(ready[0].token, Token(6), "the new token");
    });
}

#[test]
fn two_descriptors_of_one_object_are_two_sources() {
    each_source(|backend| {
        let poller = open(backend);
        let source = counter();
        let other = copy(&source);
        poller.add(&source, Token(1), Interest::READABLE).expect("add source");
        poller.add(&other, Token(2), Interest::READABLE).expect("add second descriptor of the file");
        raise(&source);
        expect(&poller, &[1, 2]);
        poller.delete(&source).expect("delete source");
        drop(source);
        expect(&poller, &[2]);
        poller.delete(&other).expect("delete source");
        expect(&poller, &[]);
    });
}

// The handle of a file is signalled by any operation on it.
#[cfg(unix)]
#[test]
fn plain_file_is_rejected_or_always_ready() {
    each_backend(|backend| {
        let poller = open(backend);
        let file = tempfile::tempfile().expect("create temporary file");
        match poller.add(&file, Token(1), Interest::READABLE) {
            Ok(()) => assert_eq!(tokens(&poller), [1]),
            Err(error) => assert!(error.to_string().starts_with("failed to watch a source: "), "{error}"),
        }
    });
}

/// Polls once and returns what is reported: readable, writable, closed.
fn only(poller: &Poller) -> [bool; 3] {
    flags(&look(poller))
}

fn flags(ready: &[Readiness]) -> [bool; 3] {
    match ready {
        [] => [false; 3],
        [one] => [one.readable, one.writable, one.closed],
        many => panic!("several are reported: {many:?}"),
    }
}

/// Polls until the expected readiness is reported: data over a network may need a moment.
fn soon(poller: &Poller, expected: [bool; 3], what: &str) {
    let until = patience();
    loop {
        let reported = only(poller);
        if reported == expected {
            return;
        }
        assert!(Instant::now() < until, "{what}: reported {reported:?}, expected {expected:?}");
    }
}

/// Polls until the source is closed. A child of another test may hold the other side for a moment.
fn soon_closed(poller: &Poller) -> [bool; 3] {
    let until = patience();
    loop {
        let reported = only(poller);
        if reported[2] {
            return reported;
        }
        assert!(Instant::now() < until, "the hang-up was not reported: {reported:?}");
    }
}

const READ: [bool; 3] = [true, false, false];
const ALL: [bool; 3] = [true, true, true];
const NONE: [bool; 3] = [false; 3];

/// A source that was served before a wait began is not reported by it, with any watch
/// meanwhile.
#[test]
fn source_served_before_a_wait_is_not_reported() {
    each_exact(|backend| {
        let poller = open(backend);
        let sources: Vec<_> = (0..40).map(|_| counter()).collect();
        for (token, source) in (0..).zip(&sources) {
            poller.add(source, Token(token), Interest::READABLE).expect("add source");
        }
        for round in 0..50 {
            // All are watched and silent; then they become ready, without a wait in progress.
            expect_since(&poller, &[], &format!("round {round}"));
            sources.iter().for_each(raise);
            // Some rounds contain a wait that reports them.
            if round % 3 == 1 {
                assert_eq!(tokens(&poller).len(), sources.len());
            }
            // One is left.
            let left = round % sources.len();
            sources.iter().enumerate().filter(|(at, _)| *at != left).for_each(|(_, source)| lower(source));
            expect_since(&poller, &[left as u64], &format!("round {round}"));
            lower(&sources[left]);
        }
    });
}

#[test]
fn only_requested_readiness_is_reported() {
    each_backend(|backend| {
        let poller = open(backend);
        let (ours, theirs) = pair().expect("create socket pair");
        poller.add(&ours, Token(1), Interest::READABLE).expect("add source");
        assert_eq!(only(&poller), NONE, "writability was not requested");
        poller.modify(&ours, Token(1), Interest::WRITABLE).expect("modify source");
        (&theirs).write_all(b"x").expect("write bytes");
        assert_eq!(only(&poller), [false, true, false], "readability was not requested");
    });
}

// Windows lacks pairs of local sockets.
#[cfg(unix)]
#[test]
fn half_closed_unix_socket_is_only_readable() {
    each_backend(|backend| {
        let poller = open(backend);
        let (mut ours, theirs) = pair().expect("create socket pair");
        poller.add(&ours, Token(1), Interest::READABLE).expect("add source");
        assert_eq!(only(&poller), NONE);
        theirs.shutdown(Shutdown::Write).expect("shut down socket");
        assert_eq!(only(&poller), READ, "the end of the stream");
        assert_eq!(ours.read(&mut [0]).expect("read end of file"), 0);
        assert_eq!(only(&poller), READ, "an end stays ready");
        drop(theirs);
        soon_closed(&poller);
    });
}

/// Returns a connection over the loopback device.
fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind listener");
    let ours = TcpStream::connect(listener.local_addr().expect("get local address")).expect("connect");
    (ours, listener.accept().expect("accept connection").0)
}

#[test]
fn tcp_connection_reports_bytes_half_close_and_close() {
    each_backend(|backend| {
        let poller = open(backend);
        let (mut ours, mut theirs) = connection();
        poller.add(Source::socket(&ours), Token(1), Interest::READABLE).expect("add source");
        assert_eq!(only(&poller), NONE);
        theirs.write_all(b"xy").expect("write bytes");
        soon(&poller, READ, "bytes");
        ours.read_exact(&mut [0; 2]).expect("read two bytes");
        assert_eq!(only(&poller), NONE);
        theirs.shutdown(Shutdown::Write).expect("shut down socket");
        soon(&poller, READ, "their half is closed");
        poller
            .modify(Source::socket(&ours), Token(1), Interest::READABLE | Interest::WRITABLE)
            .expect("modify source");
        soon(&poller, [true, true, false], "ours is open");
        ours.shutdown(Shutdown::Write).expect("shut down socket");
        // The driver does not report whether our own half is closed.
        if cfg!(unix) {
            soon(&poller, ALL, "both are closed");
        }
    });
}

#[test]
fn reset_connection_is_an_error() {
    each_backend(|backend| {
        let poller = open(backend);
        let (mut ours, theirs) = connection();
        poller.add(Source::socket(&ours), Token(1), Interest::READABLE).expect("add source");
        assert_eq!(only(&poller), NONE);
        // Closing with unread bytes resets the connection.
        ours.write_all(b"x").expect("write bytes");
        // By other means than a poller: the byte is there.
        theirs.peek(&mut [0]).expect("peek at socket");
        drop(theirs);
        let until = patience();
        while !look(&poller).iter().any(|ready| ready.readable && ready.closed) {
            assert!(Instant::now() < until, "the reset was not reported");
        }
        match ours.read(&mut [0]) {
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "the next read says why");
            }
            // Wine takes the error from the socket when it looks at it.
            Ok(count) => assert!(cfg!(windows) && count == 0, "no reset"),
        }
    });
}

#[test]
fn listener_is_readable_while_connections_are_pending() {
    each_backend(|backend| {
        let poller = open(backend);
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind listener");
        let to = listener.local_addr().expect("get local address");
        poller.add(Source::socket(&listener), Token(1), Interest::READABLE).expect("add source");
        for _ in 0..5 {
            assert_eq!(only(&poller), NONE, "no connection is pending");
            let guests = [(); 2].map(|()| TcpStream::connect(to).expect("connect"));
            for _ in &guests {
                soon(&poller, READ, "a connection is pending");
                listener.accept().expect("accept connection");
            }
        }
        poller.delete(Source::socket(&listener)).expect("delete source");
    });
}

/// Starts to connect without waiting for the connection.
#[cfg(unix)]
fn begin(to: SocketAddr) -> OwnedFd {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).expect("create socket");
    match connect(&socket, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS | rustix::io::Errno::CONNREFUSED) => socket,
        Err(error) => panic!("connect: {error}"),
    }
}

// The kernel completes some connections before they are accepted. Only on Linux can a test limit
// their number.
#[cfg(unix)]
#[test]
fn connecting_socket_is_writable_when_connected() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind listener");
    let to = listener.local_addr().expect("get local address");
    // The kernel completes connections up to the backlog. The next one hangs until one is accepted,
    // and its request is repeated after a second.
    rustix::net::listen(&listener, 0).expect("set backlog");
    let pollers: Vec<_> = backends().into_iter().map(open).collect();
    let mut waiting = Vec::new();
    let last = loop {
        let next = begin(to);
        pollers[0].add(&next, Token(1), Interest::WRITABLE).expect("add source");
        let until = Instant::now() + Duration::from_millis(100);
        let reported = wait_events(&pollers[0], until);
        pollers[0].delete(&next).expect("delete source");
        if reported.is_empty() {
            break next;
        }
        waiting.push(next);
        assert!(waiting.len() < 10, "the listener has a larger backlog than 0");
    };
    for poller in &pollers {
        poller.add(&last, Token(2), Interest::WRITABLE).expect("add source");
        assert_eq!(tokens(poller), [0; 0], "a connection in progress has room");
    }
    (0..waiting.len()).for_each(|_| drop(listener.accept().expect("accept connection")));
    for poller in &pollers {
        let reported = wait_events(poller, patience());
        assert_eq!(flags(&reported), [false, true, false], "on {}", poller.backend());
    }
}

#[test]
fn refused_connection_is_reported_as_closed() {
    each_backend(|backend| {
        let poller = open(backend);
        let free =
            TcpListener::bind("127.0.0.1:0").expect("bind listener").local_addr().expect("get local address");
        let socket = begin(free);
        poller.add(&socket, Token(1), Interest::WRITABLE).expect("add source");
        // Readable, too, where the kernel reports unrequested readiness.
        let reported = soon_closed(&poller);
        assert!(reported[1], "the connection was refused: {reported:?}");
        if cfg!(unix) {
            soon(&poller, ALL, "the connection was refused");
        }
    });
}

/// Both sides of a terminal.
#[cfg(unix)]
fn terminal() -> (OwnedFd, OwnedFd) {
    use rustix::fs::{Mode, OFlags};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("open pseudo-terminal");
    grantpt(&ours).expect("grant pseudo-terminal");
    unlockpt(&ours).expect("unlock pseudo-terminal");
    let name = ptsname(&ours, Vec::new()).expect("get terminal name");
    let theirs =
        rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("open terminal");
    (ours, theirs)
}

// A console cannot be a source.
#[cfg(unix)]
#[test]
fn terminal_is_readable_after_a_line_and_closed_with_its_peer() {
    each_backend(|backend| {
        let poller = open(backend);
        let (ours, theirs) = terminal();
        poller.add(&theirs, Token(1), Interest::READABLE).expect("add source");
        poller.add(&ours, Token(2), Interest::READABLE).expect("add source");
        expect(&poller, &[]);
        rustix::io::write(&ours, b"half a").expect("write to terminal");
        // It echoes; the echo is served, and the line is not there yet.
        soon_tokens(&poller, &[2], "the echo");
        rustix::io::read(&ours, &mut [0; 64]).expect("read terminal");
        soon_tokens(&poller, &[], "a line that is not over");
        rustix::io::write(&ours, b" line\n").expect("write to terminal");
        soon_tokens(&poller, &[1, 2], "the line and its echo");
        assert_eq!(rustix::io::read(&theirs, &mut [0; 64]).expect("read line"), "half a line\n".len());
        soon_tokens(&poller, &[2], "the line was read");
        poller.delete(&theirs).expect("delete source");
        rustix::io::read(&ours, &mut [0; 64]).expect("read terminal");
        drop(theirs);
        assert!(soon_closed(&poller)[0]);
        let (ours, theirs) = terminal();
        poller.add(&theirs, Token(3), Interest::READABLE).expect("add source");
        expect_since(&poller, &[2], "the first is still gone");
        drop(ours);
        let until = patience();
        while !look(&poller).iter().any(|ready| ready.token == Token(3) && ready.readable && ready.closed) {
            assert!(Instant::now() < until, "the hang-up was not reported");
        }
    });
}

#[cfg(unix)]
fn soon_tokens(poller: &Poller, expected: &[u64], what: &str) {
    let until = patience();
    loop {
        let reported = tokens(poller);
        if reported == expected {
            return;
        }
        assert!(Instant::now() < until, "{what}: reported {reported:?}, expected {expected:?}");
    }
}

// No object counts both ways.
#[cfg(unix)]
#[test]
fn eventfd_is_writable_until_full() {
    each_backend(|backend| {
        let poller = open(backend);
        let source = counter();
        poller.add(&source, Token(1), Interest::READABLE | Interest::WRITABLE).expect("add source");
        assert_eq!(only(&poller), [false, true, false], "at zero");
        raise(&source);
        assert_eq!(only(&poller), [true, true, false], "at one");
        rustix::io::write(&source, &(u64::MAX - 2).to_ne_bytes()).expect("write to eventfd");
        assert_eq!(only(&poller), READ, "as high as it goes");
        lower(&source);
        assert_eq!(only(&poller), [false, true, false], "served");
    });
}

/// A hang-up is reported of a source of which only room was asked, and of one of which only bytes
/// were.
#[test]
fn hangup_is_reported_for_any_interest() {
    each_backend(|backend| {
        for interest in [Interest::READABLE, Interest::WRITABLE, Interest::READABLE | Interest::WRITABLE] {
            let poller = open(backend);
            let (ours, theirs) = pair().expect("create socket pair");
            poller.add(&ours, Token(1), interest).expect("add source");
            drop(theirs);
            let [readable, writable, _] = soon_closed(&poller);
            assert!(readable || !interest.is_readable(), "{interest:?}");
            assert!(writable || !interest.is_writable(), "{interest:?}");
            poller.delete(&ours).expect("delete source");
            expect(&poller, &[]);
        }
    });
}

/// The same when more sources are added before the wait than one call hands over.
#[test]
fn source_served_before_a_wait_is_not_reported_with_many_new_ones() {
    each_exact(|backend| {
        let poller = open(backend);
        let served = counter();
        let sources = (0..600).map(|_| counter()).collect::<Vec<_>>();
        poller.add(&served, Token(1), Interest::READABLE).expect("add source");
        expect(&poller, &[]);
        raise(&served);
        lower(&served);
        for (token, source) in (2..).zip(&sources) {
            poller.add(source, Token(token), Interest::READABLE).expect("add source");
        }
        expect_since(&poller, &[], "it was served");
    });
}
