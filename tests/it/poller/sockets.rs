//! Sockets that are closed without being deleted, numbers that are used again, and much that was
//! served.
//!
//! Where numbers count, a test has a process for itself: another thread may take one that was freed
//! here.

#![expect(unsafe_code, reason = "a socket that is not open is what no safe function makes")]

use std::io::Write;
use std::os::windows::io::{AsRawSocket, BorrowedSocket};
use std::time::{Duration, Instant};

use minder::poll::{Interest, Source, Token};

use super::{
    Stream, counter, each_exact, expect, expect_since, lower, names, open, pair, raise, soon, wait_events,
};
use crate::support::{alone, each_backend, patience};

/// Closes a socket and returns its number.
fn closed_number(stream: Stream) -> BorrowedSocket<'static> {
    let number = stream.0.as_raw_socket();
    drop(stream);
    // SAFETY: it is not open, and nothing in this process opens another before the test has ended:
    // no foreign socket is used.
    unsafe { BorrowedSocket::borrow_raw(number) }
}

/// A socket that is closed without a delete is reported as closed until deleted, and hides no
/// other.
#[test]
fn closed_socket_is_reported_as_closed_until_deleted() {
    alone("poller::sockets::closed_socket_is_reported_as_closed_until_deleted", || {
        each_backend(|backend| {
            for interest in
                [Interest::READABLE, Interest::READABLE | Interest::WRITABLE, Interest::READABLE.oneshot()]
            {
                for looked in [false, true] {
                    let poller = open(backend);
                    let (other, theirs) = pair().expect("create socket pair");
                    let (ours, _hold) = pair().expect("create socket pair");
                    poller.add(&ours, Token(1), interest).expect("add source");
                    poller.add(&other, Token(2), Interest::READABLE).expect("add source");
                    if looked && !interest.is_writable() {
                        expect(&poller, &[]);
                    }
                    let closed = closed_number(ours);
                    let ready = soon(&poller);
                    assert!(names(&ready) == [1] && ready[0].closed, "{interest:?}, {looked}: {ready:?}");
                    expect(&poller, if interest.is_oneshot() { &[] } else { &[1] });
                    (&theirs).write_all(b"x").expect("write bytes");
                    let until = patience();
                    while !names(&wait_events(&poller, until)).contains(&2) {
                        assert!(Instant::now() < until, "its neighbour is hidden");
                    }
                    poller.delete(Source::socket(&closed)).expect("delete source");
                    expect_since(&poller, &[2], "it was deleted");
                }
            }
        });
    });
}

/// A number that is used again is the new socket's only.
#[test]
fn reused_handle_reports_only_the_new_socket() {
    alone("poller::sockets::reused_handle_reports_only_the_new_socket", || {
        each_backend(|backend| {
            for looked in [false, true] {
                let poller = open(backend);
                let (first, _hold) = pair().expect("create socket pair");
                let number = first.0.as_raw_socket();
                poller.add(&first, Token(1), Interest::READABLE).expect("add source");
                if looked {
                    expect(&poller, &[]);
                }
                drop(first);
                // The kernel gives the lowest free number, or one that is free for longer.
                let pairs: Vec<_> = (0..64).map(|_| pair().expect("create socket pair")).collect();
                let mut sides = pairs.iter().flat_map(|(one, other)| [(one, other), (other, one)]);
                let Some((ours, mut theirs)) = sides.find(|(ours, _)| ours.0.as_raw_socket() == number)
                else {
                    crate::support::skip(format_args!(
                        "a number that is used again: the system used it for nothing"
                    ));
                    continue;
                };
                poller.modify(ours, Token(2), Interest::READABLE).expect("modify source");
                expect_since(&poller, &[], "the new socket is not ready");
                theirs.write_all(b"x").expect("write bytes");
                expect(&poller, &[2]);
                expect(&poller, &[2]);
                poller.delete(ours).expect("delete source");
                expect(&poller, &[]);
            }
        });
    });
}

/// More was ready and served meanwhile than the port reports at once: a look finds what is ready
/// behind it.
#[test]
fn poll_finds_ready_source_behind_many_served_ones() {
    each_exact(|backend| {
        let poller = open(backend);
        let sources: Vec<_> = (0..300).map(|_| counter()).collect();
        for (token, source) in (0..).zip(&sources) {
            poller.add(source, Token(token), Interest::READABLE).expect("add source");
        }
        for _ in 0..3 {
            expect(&poller, &[]);
            sources.iter().for_each(raise);
            sources.iter().take(299).for_each(lower);
            let ready = wait_events(&poller, Instant::now());
            assert_eq!(names(&ready), [299]);
            lower(&sources[299]);
            let deadline = Instant::now() + Duration::from_millis(3);
            assert_eq!(wait_events(&poller, deadline), []);
            assert!(Instant::now() >= deadline, "early");
        }
    });
}
