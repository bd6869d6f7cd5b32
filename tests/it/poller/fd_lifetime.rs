//! Descriptors that a poller holds open, and the time at which it closes them.
//!
//! Each test has a process for itself: a child that another test starts may hold copies for a
//! moment.

use std::io::{ErrorKind as IoKind, Read, Write};
use std::time::{Duration, Instant};

use minder::poll::{Interest, Token};

use super::{Stream, counter, expect, has_edge, names, open, pair, raise, tokens, wait_events};
use crate::support::{alone, each_backend, patience};

/// Returns whether our side has seen that all copies of the other side are closed.
pub(super) fn hung_up(mut ours: &Stream) -> bool {
    ours.set_nonblocking(true).expect("set nonblocking mode");
    match ours.read(&mut [0]) {
        Ok(count) => count == 0,
        Err(error) if error.kind() == IoKind::WouldBlock => false,
        Err(error) if error.kind() == IoKind::ConnectionReset => true,
        Err(error) => panic!("{error}"),
    }
}

/// Waits until `enough` returns `true`. Returns whether it did in time.
pub(super) fn soon(enough: impl Fn() -> bool) -> bool {
    let until = patience();
    while !enough() {
        if Instant::now() > until {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

/// A deleted descriptor is not held: the other side sees at once that we closed it.
#[test]
fn delete_releases_the_file() {
    alone("poller::fd_lifetime::delete_releases_the_file", || {
        each_backend(|backend| {
            for interest in [Interest::READABLE, Interest::READABLE.oneshot(), Interest::READABLE.edge()] {
                if !has_edge(backend) && interest.is_edge() {
                    continue;
                }
                for looked in [false, true] {
                    for reported in [false, true] {
                        let poller = open(backend);
                        let (ours, theirs) = pair().expect("create socket pair");
                        poller.add(&ours, Token(1), interest).expect("add source");
                        if looked {
                            expect(&poller, &[]);
                        }
                        if reported {
                            (&theirs).write_all(b"x").expect("write bytes");
                            expect(&poller, &[1]);
                            (&ours).read_exact(&mut [0]).expect("read bytes");
                        }
                        poller.delete(&ours).expect("delete source");
                        drop(ours);
                        assert!(
                            hung_up(&theirs),
                            "{interest:?}, looked {looked}, reported {reported}: it is held open"
                        );
                        expect(&poller, &[]);
                    }
                }
            }
        });
    });
}

/// The same when another thread watched it, which waits, computes, or has exited.
#[test]
fn delete_releases_a_file_watched_by_another_thread() {
    alone("poller::fd_lifetime::delete_releases_a_file_watched_by_another_thread", || {
        each_backend(|backend| {
            let poller = open(backend);
            let (ours, theirs) = pair().expect("create socket pair");
            poller.add(&ours, Token(1), Interest::READABLE).expect("add source");
            std::thread::scope(|scope| {
                let waiting = scope.spawn(|| wait_events(&poller, patience()));
                super::settle();
                poller.delete(&ours).expect("delete source");
                drop(ours);
                assert!(soon(|| hung_up(&theirs)), "a waiting thread holds it");
                poller.notify().expect("wake poller");
                assert_eq!(waiting.join().expect("join waiter"), []);
            });
            let (ours, theirs) = pair().expect("create socket pair");
            std::thread::scope(|scope| {
                let add = || {
                    poller.add(&ours, Token(2), Interest::READABLE).expect("add source");
                    tokens(&poller)
                };
                assert_eq!(scope.spawn(add).join().expect("join thread"), [0; 0]);
            });
            poller.delete(&ours).expect("delete source");
            drop(ours);
            assert!(soon(|| hung_up(&theirs)), "a thread that ended holds it");
            let (ours, theirs) = pair().expect("create socket pair");
            std::thread::scope(|scope| {
                let (send, receive) = std::sync::mpsc::channel::<()>();
                let (added, wait) = std::sync::mpsc::channel();
                let ours = &ours;
                let poller = &poller;
                scope.spawn(move || {
                    poller.add(ours, Token(3), Interest::READABLE).expect("add source");
                    assert_eq!(tokens(poller), [0; 0]);
                    added.send(()).expect("send to thread");
                    // It sleeps for something else.
                    receive.recv().expect("receive message");
                });
                wait.recv().expect("receive message");
                poller.delete(ours).expect("delete source");
                theirs.shutdown(std::net::Shutdown::Write).expect("shut down socket");
                send.send(()).expect("send to thread");
            });
            drop(ours);
            assert!(soon(|| hung_up(&theirs)));
        });
    });
}

/// A dropped poller releases all its sources.
#[test]
fn dropped_poller_releases_everything() {
    alone("poller::fd_lifetime::dropped_poller_releases_everything", || {
        each_backend(|backend| {
            let before = crate::support::open_descriptors();
            for has_handle in [false, cfg!(unix)] {
                let (ours, theirs) = pair().expect("create socket pair");
                let poller = open(backend);
                poller.add(&ours, Token(1), Interest::READABLE).expect("add source");
                poller
                    .add_timer(Token(2), Instant::now() + Duration::from_secs(60), Duration::ZERO)
                    .expect("add timer");
                expect(&poller, &[]);
                if has_handle {
                    poller.poll_handle().expect("get poll handle");
                }
                drop(poller);
                drop(ours);
                assert!(soon(|| hung_up(&theirs)), "it is held open");
            }
            assert_eq!(crate::support::open_descriptors(), before, "descriptors are left");
        });
    });
}

/// The same when the wait that is still running ends for something else in that moment, and no
/// other follows.
#[test]
fn delete_releases_a_file_while_the_wait_ends_for_another_source() {
    alone("poller::fd_lifetime::delete_releases_a_file_while_the_wait_ends_for_another_source", || {
        each_backend(|backend| {
            for round in 0..200 {
                let poller = open(backend);
                let other = counter();
                let (ours, theirs) = pair().expect("create socket pair");
                poller.add(&ours, Token(1), Interest::READABLE).expect("add source");
                poller.add(&other, Token(2), Interest::READABLE).expect("add source");
                std::thread::scope(|scope| {
                    let waiting = scope.spawn(|| {
                        let reported = names(&wait_events(&poller, patience()));
                        // It lives on, and does not come back.
                        assert!(soon(|| hung_up(&theirs)), "it is held open, round {round}");
                        reported
                    });
                    crate::support::nap(Duration::from_micros(500));
                    raise(&other);
                    poller.delete(&ours).expect("delete source");
                    drop(ours);
                    assert_eq!(waiting.join().expect("join waiter"), [2]);
                });
            }
        });
    });
}
