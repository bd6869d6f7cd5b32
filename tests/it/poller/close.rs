//! Sources that are closed: deleted before, or not; copies elsewhere; numbers that are used again.
//!
//! Each test has a process for itself. A child that another test starts holds copies of all
//! descriptors for a moment, and another thread may take a number that was freed here.

#![expect(unsafe_code, reason = "a descriptor that is not open is what no safe function makes")]

use std::fs::File;
use std::io::{ErrorKind as IoKind, Read, Write, pipe};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use minder::poll::{Interest, Token};
use minder::{Backend, Stdio};

use super::fd_lifetime::{hung_up, soon};
use super::{counter, look, lower, modify_or_add, names, open, pair, raise, tokens, wait_events};
use crate::support::{alone, each_backend, patience, test_child};

/// Closes a descriptor and returns its number.
fn closed_number(source: OwnedFd) -> BorrowedFd<'static> {
    let number = source.as_raw_fd();
    drop(source);
    // SAFETY: it is not open, and nothing in this process opens another before the test has ended:
    // no foreign file is used.
    unsafe { BorrowedFd::borrow_raw(number) }
}

fn is_not_open(error: &minder::Error) -> bool {
    error.io_error().raw_os_error() == Some(libc::EBADF)
}

#[test]
fn unopened_descriptor_is_rejected() {
    alone("poller::close::unopened_descriptor_is_rejected", || {
        each_backend(|backend| {
            let poller = open(backend);
            let closed = closed_number(counter());
            for interest in [Interest::READABLE, Interest::WRITABLE.oneshot()] {
                let error = poller.add(&closed, Token(1), interest).expect_err("add closed descriptor");
                assert!(is_not_open(&error), "add: {error}");
                let error = poller.modify(&closed, Token(1), interest).expect_err("modify closed descriptor");
                assert!(is_not_open(&error), "modify: {error}");
            }
            poller.delete(&closed).expect_err("delete closed descriptor");
            assert_eq!(tokens(&poller), [0; 0]);
        });
    });
}

/// A source that is closed without a delete ends no later wait, and hides no other source.
#[test]
fn source_closed_without_delete_can_be_removed_later() {
    alone("poller::close::source_closed_without_delete_can_be_removed_later", || {
        each_backend(|backend| {
            let poller = open(backend);
            let other = counter();
            poller.add(&other, Token(2), Interest::READABLE).expect("add source");
            let source = counter();
            poller.add(&source, Token(1), Interest::READABLE).expect("add source");
            raise(&source);
            assert_eq!(tokens(&poller), [1]);
            let closed = closed_number(source);
            match backend {
                // The kernel forgets it with its last copy, or with its descriptor.
                Backend::Epoll | Backend::Kqueue => assert_eq!(tokens(&poller), [0; 0]),
                _ => {
                    let ready = look(&poller);
                    assert!(names(&ready) == [1] && ready[0].closed, "{ready:?}");
                    assert_eq!(names(&wait_events(&poller, patience())), [1], "until it is deleted");
                }
            }
            raise(&other);
            assert!(tokens(&poller).contains(&2), "its neighbour is hidden");
            let deleted = poller.delete(&closed);
            assert_eq!(deleted.is_ok(), backend != Backend::Epoll, "{deleted:?}");
            assert_eq!(tokens(&poller), [2]);
            lower(&other);
            let deadline = Instant::now() + Duration::from_millis(5);
            assert_eq!(wait_events(&poller, deadline), []);
            assert!(Instant::now() >= deadline, "it ends waits still");
        });
    });
}

/// One that was silent when it was closed does no harm either.
#[test]
fn silent_closed_source_hides_no_other() {
    alone("poller::close::silent_closed_source_hides_no_other", || {
        each_backend(|backend| {
            let poller = open(backend);
            let other = counter();
            poller.add(&other, Token(2), Interest::READABLE).expect("add source");
            let source = counter();
            poller.add(&source, Token(1), Interest::READABLE).expect("add source");
            assert_eq!(tokens(&poller), [0; 0]);
            let closed = closed_number(source);
            for _ in 0..3 {
                raise(&other);
                assert!(
                    names(&wait_events(&poller, patience())).contains(&2) || tokens(&poller).contains(&2)
                );
                lower(&other);
            }
            // io_uring holds the file, poll(2) reports none, epoll has forgotten it.
            let reported = tokens(&poller);
            assert_eq!(reported, if backend == Backend::Poll { vec![1] } else { vec![] });
            assert_eq!(poller.delete(&closed).is_ok(), backend != Backend::Epoll);
            assert_eq!(tokens(&poller), [0; 0]);
        });
    });
}

/// A reused descriptor is reported for the new file, and the old one is released.
#[test]
fn reused_descriptor_reports_only_the_new_file() {
    alone("poller::close::reused_descriptor_reports_only_the_new_file", || {
        each_backend(|backend| {
            for watched in [false, true] {
                let poller = open(backend);
                let (first, mut to_first) = pipe().expect("create pipe");
                let (second, mut to_second) = pipe().expect("create pipe");
                let mut place = OwnedFd::from(first);
                poller.add(&place, Token(1), Interest::READABLE).expect("add source");
                if watched {
                    assert_eq!(tokens(&poller), [0; 0]);
                }
                // Closes the first pipe and reuses its descriptor in one step.
                rustix::io::dup2(&second, &mut place).expect("duplicate descriptor");
                // io_uring keeps a watched file open. Other backends do not, so that the pipe has no reader
                // left and a write fails.
                let held = backend == Backend::IoUring && watched;
                let written = to_first.write(b"x");
                assert_eq!(written.is_ok(), held, "{written:?}");
                modify_or_add(&poller, &place, 2);
                assert_eq!(tokens(&poller), [0; 0], "the new file is not ready");
                let written = to_first.write(b"x").expect_err("write to pipe without reader");
                assert_eq!(written.kind(), IoKind::BrokenPipe);
                to_second.write_all(b"x").expect("write bytes");
                assert_eq!([tokens(&poller), tokens(&poller)], [[2], [2]]);
                poller.delete(&place).expect("delete source");
                assert_eq!(tokens(&poller), [0; 0]);
            }
        });
    });
}

/// Numbers change hands a thousand times, by every way that ends a registration.
#[test]
fn reports_follow_descriptors_through_a_thousand_reuses() {
    alone("poller::close::reports_follow_descriptors_through_a_thousand_reuses", || {
        each_backend(|backend| {
            let poller = open(backend);
            let mut place = counter();
            for round in 0..1000 {
                let loud = round % 3 == 0;
                // One copy only: epoll continues with a file that is open elsewhere.
                let next = counter();
                rustix::io::dup2(&next, &mut place).expect("duplicate descriptor");
                drop(next);
                if loud {
                    raise(&place);
                }
                modify_or_add(&poller, &place, round);
                let expected = if loud { vec![round] } else { vec![] };
                if round % 2 == 0 {
                    assert_eq!(tokens(&poller), expected, "round {round}");
                }
                if round % 5 == 0 {
                    poller.delete(&place).expect("delete source");
                    assert_eq!(tokens(&poller), [0; 0], "round {round}");
                }
            }
        });
    });
}

/// A child keeps a copy of the source open after `delete`. The poller reports nothing for that
/// copy.
#[test]
fn copy_in_a_child_is_not_reported_after_delete() {
    alone("poller::close::copy_in_a_child_is_not_reported_after_delete", || {
        each_backend(|backend| {
            let poller = open(backend);
            let (ours, theirs) = pair().expect("create socket pair");
            poller.add(&ours, Token(1), Interest::READABLE).expect("add source");
            assert_eq!(tokens(&poller), [0; 0]);
            let copy = Arc::new(File::from(ours.as_fd().try_clone_to_owned().expect("duplicate handle")));
            let mut child = test_child("cat").stdin(Stdio::shared(copy)).spawn().expect("spawn test child");
            poller.delete(&ours).expect("delete source");
            drop(ours);
            (&theirs).write_all(b"for the child").expect("write bytes");
            let mut copied = [0; 13];
            let mut output = child.stdout.take().expect("take stdout");
            output.read_exact(&mut copied).expect("read output of child");
            assert_eq!(&copied, b"for the child");
            (&theirs).write_all(b"more").expect("write bytes");
            assert_eq!(tokens(&poller), [0; 0], "the copy of the child was reported");
            assert!(!hung_up(&theirs), "the copy of the child is closed");
            theirs.shutdown(std::net::Shutdown::Write).expect("shut down socket");
            child.wait().expect("wait for child");
            assert!(soon(|| hung_up(&theirs)), "a copy is still open");
            assert_eq!(tokens(&poller), [0; 0]);
        });
    });
}

/// The trap that `delete` before `close` avoids: epoll watches the file, of which a child may have
/// a copy.
#[test]
fn epoll_reports_a_copy_in_a_child_without_delete() {
    alone("poller::close::epoll_reports_a_copy_in_a_child_without_delete", || {
        let poller = open(Backend::Epoll);
        let (ours, theirs) = pair().expect("create socket pair");
        poller.add(&ours, Token(1), Interest::READABLE).expect("add source");
        let copy = Arc::new(File::from(ours.as_fd().try_clone_to_owned().expect("duplicate handle")));
        let mut child =
            test_child("sleep-ms 600000").stdin(Stdio::shared(copy)).spawn().expect("spawn test child");
        drop(ours);
        (&theirs).write_all(b"x").expect("write bytes");
        assert_eq!(names(&wait_events(&poller, patience())), [1], "the child's copy");
        child.kill(minder::Termination::IMMEDIATE).expect("kill child");
        child.wait().expect("wait for child");
        assert!(soon(|| tokens(&poller).is_empty()), "the last copy is gone");
    });
}

/// The end of a pipe comes when the last writer is gone, and a child was the last.
#[test]
fn eof_is_reported_when_the_child_closes_its_copy() {
    alone("poller::close::eof_is_reported_when_the_child_closes_its_copy", || {
        each_backend(|backend| {
            let poller = open(backend);
            let (reader, writer) = pipe().expect("create pipe");
            poller.add(&reader, Token(1), Interest::READABLE).expect("add source");
            let copy = Stdio::from(File::from(OwnedFd::from(writer)));
            let (held, hold) = pipe().expect("create pipe");
            let held = Stdio::from(File::from(OwnedFd::from(held)));
            // It lives until its input ends.
            let mut child = test_child("gate 0").stdin(held).stdout(copy).spawn().expect("spawn test child");
            assert_eq!(
                wait_events(&poller, Instant::now() + Duration::from_millis(20)),
                [],
                "the child can write"
            );
            drop(hold);
            let ready = wait_events(&poller, patience());
            assert!(names(&ready) == [1] && ready[0].closed, "{ready:?}");
            child.wait().expect("wait for child");
        });
    });
}
