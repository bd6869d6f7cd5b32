//! One descriptor for a foreign loop: readable while a wait would return at once.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use minder::Backend;
use minder::poll::{Events, Interest, Poller, Token};

use super::{counter, look, lower, names, open, raise, settle, tokens, wait_events};
use crate::support::{alone, each_backend, patience, readable};

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(10);

/// Nothing is readable, or else once, and the wait that follows finds nothing.
fn assert_quiet(poller: &Poller, handle: BorrowedFd<'_>, what: &str) {
    for _ in 0..2 {
        if !readable(handle, SHORT) {
            return;
        }
        assert_eq!(look(poller), [], "{what}");
    }
    assert!(!readable(handle, SHORT), "{what}: readable again and again, with nothing to report");
}

#[test]
fn ready_source_is_announced_until_served() {
    each_backend(|backend| {
        for before in [false, true] {
            let poller = open(backend);
            let source = counter();
            poller.add(&source, Token(1), Interest::READABLE).expect("add source");
            if before {
                raise(&source);
            }
            let handle = poller.poll_handle().expect("get poll handle");
            if !before {
                assert_quiet(&poller, handle, "nothing is ready");
                raise(&source);
            }
            for round in 0..3 {
                assert!(readable(handle, LONG), "round {round}: it is ready");
                assert_eq!(tokens(&poller), [1]);
            }
            lower(&source);
            assert_quiet(&poller, handle, "it was served");
            // Many times, so that a report of an earlier time shows.
            for round in 0..50 {
                raise(&source);
                assert!(readable(handle, LONG), "round {round}");
                if round % 2 == 0 {
                    assert_eq!(tokens(&poller), [1]);
                }
                lower(&source);
                assert_eq!(tokens(&poller), [0; 0]);
            }
            assert_quiet(&poller, handle, "it was served");
        }
    });
}

/// The descriptor is taken once, and watched by its own thread while sources change.
#[test]
fn changes_of_sources_are_announced() {
    each_backend(|backend| {
        let poller = open(backend);
        let ready = counter();
        let other = counter();
        raise(&ready);
        let handle = poller.poll_handle().expect("get poll handle");
        assert_quiet(&poller, handle, "there is no source");
        poller.add(&ready, Token(1), Interest::READABLE).expect("add source");
        assert!(readable(handle, LONG), "a source that was ready when it was added");
        assert_eq!(tokens(&poller), [1]);
        poller.delete(&ready).expect("delete source");
        assert_quiet(&poller, handle, "it was deleted");
        poller.add(&other, Token(2), Interest::READABLE).expect("add source");
        assert_quiet(&poller, handle, "another one that is not ready");
        poller.modify(&other, Token(3), Interest::WRITABLE).expect("modify source");
        assert!(readable(handle, LONG), "it has room");
        assert_eq!(tokens(&poller), [3]);
        poller.modify(&other, Token(4), Interest::READABLE).expect("modify source");
        assert_quiet(&poller, handle, "writability is no longer requested");
        // A source that was reported once is not announced again until it is modified.
        poller.add(&ready, Token(5), Interest::READABLE.oneshot()).expect("add source");
        assert!(readable(handle, LONG));
        assert_eq!(tokens(&poller), [5]);
        assert_quiet(&poller, handle, "it was reported once");
        poller.modify(&ready, Token(6), Interest::READABLE.oneshot()).expect("modify source");
        assert!(readable(handle, LONG), "still ready");
        assert_eq!(tokens(&poller), [6]);
    });
}

#[test]
fn hundreds_of_unserved_sources_are_announced() {
    each_backend(|backend| {
        let poller = open(backend);
        let sources: Vec<_> = (0..600).map(|_| counter()).collect();
        for (token, source) in (0..).zip(&sources) {
            poller.add(source, Token(token), Interest::READABLE).expect("add source");
        }
        let handle = poller.poll_handle().expect("get poll handle");
        assert_quiet(&poller, handle, "nothing is ready");
        sources.iter().for_each(raise);
        let mut left = 600;
        let until = patience();
        while left > 0 {
            assert!(readable(handle, LONG) && Instant::now() < until, "{left} are left");
            for token in tokens(&poller) {
                lower(&sources[token as usize]);
                left -= 1;
            }
        }
        assert_quiet(&poller, handle, "all were served");
    });
}

#[test]
fn timers_are_announced_whenever_added() {
    each_backend(|backend| {
        for before in [false, true] {
            let poller = open(backend);
            let add = |token: u64, time: u64| {
                let deadline = Instant::now() + Duration::from_millis(time);
                poller.add_timer(Token(token), deadline, Duration::ZERO).expect("add timer");
                deadline
            };
            let early = before.then(|| add(1, 5));
            let handle = poller.poll_handle().expect("get poll handle");
            let deadline = early.unwrap_or_else(|| {
                assert_quiet(&poller, handle, "there is no timer");
                add(1, 5)
            });
            let until = patience();
            while look(&poller).is_empty() {
                assert!(readable(handle, LONG) && Instant::now() < until, "the timer was not announced");
            }
            assert!(Instant::now() >= deadline, "early");
            assert_quiet(&poller, handle, "the timer was reported");
            // A timer that is added after one with a later deadline.
            let far = add(2, 60_000);
            assert_quiet(&poller, handle, "the timer is far in the future");
            let near = add(3, 5);
            assert!(readable(handle, LONG) && Instant::now() < far, "the earlier timer was not announced");
            assert_eq!(names(&wait_events(&poller, near)), [3]);
            assert_quiet(&poller, handle, "the far one is left");
            poller.delete_timer(Token(2)).expect("delete timer");
            assert_quiet(&poller, handle, "no timer is left");
        }
    });
}

/// Our own wait with a deadline in between takes nothing from the foreign loop.
#[test]
fn own_wait_keeps_timers_for_the_foreign_loop() {
    each_backend(|backend| {
        let poller = open(backend);
        let handle = poller.poll_handle().expect("get poll handle");
        for round in 0..10 {
            let deadline = Instant::now() + Duration::from_millis(8);
            poller.add_timer(Token(round), deadline, Duration::ZERO).expect("add timer");
            let mut reported = wait_events(&poller, Instant::now() + Duration::from_millis(2));
            let until = patience();
            while reported.is_empty() {
                assert!(readable(handle, LONG) && Instant::now() < until, "the timer was forgotten");
                reported = look(&poller);
            }
            assert!(names(&reported) == [round] && Instant::now() >= deadline, "{reported:?}");
        }
    });
}

#[test]
fn wake_is_announced() {
    each_backend(|backend| {
        let poller = open(backend);
        let waker = poller.waker();
        let handle = poller.poll_handle().expect("get poll handle");
        for round in 0..20 {
            if round == 1 {
                assert_quiet(&poller, handle, "the first wake was reported");
            }
            waker.wake().expect("wake poller");
            assert!(readable(handle, LONG), "round {round}");
            let mut events = Events::new();
            poller.wait_deadline(&mut events, Some(Instant::now())).expect("wait for events");
            assert!(events.woken(), "round {round}");
        }
        assert_quiet(&poller, handle, "all wakes were reported");
        // From another thread, while the foreign loop sleeps.
        std::thread::scope(|scope| {
            let foreign = scope.spawn(move || readable(handle, LONG));
            settle();
            waker.wake().expect("wake poller");
            assert!(foreign.join().expect("join foreign loop"));
        });
    });
}

#[cfg(target_os = "linux")]
#[test]
fn process_exit_is_announced() {
    use minder::poll::Source;
    each_backend(|backend| {
        let poller = open(backend);
        let handle = poller.poll_handle().expect("get poll handle");
        assert_quiet(&poller, handle, "there is no process");
        let mut child = crate::support::quiet_child("sleep-ms 30").spawn().expect("spawn test child");
        poller.add(Source::process(child.id()), Token(1), Interest::READABLE).expect("add process");
        let until = patience();
        while look(&poller).is_empty() {
            assert!(readable(handle, LONG) && Instant::now() < until, "the exit was not announced");
        }
        child.wait().expect("wait for child");
        assert!(readable(handle, LONG), "the exit is announced until the source is deleted");
        assert_eq!(tokens(&poller), [1]);
        poller.delete(Source::process(child.id())).expect("delete source");
        assert_quiet(&poller, handle, "it was deleted");
    });
}

/// Every backend within every other one: the outer waits, the inner has the sources.
#[test]
fn poller_can_watch_another_poller() {
    each_backend(|outer| {
        each_backend(|inner| {
            let outer = open(outer);
            let inner = open(inner);
            let source = counter();
            inner.add(&source, Token(7), Interest::READABLE).expect("add source");
            outer
                .add(&inner.poll_handle().expect("get poll handle"), Token(1), Interest::READABLE)
                .expect("add source");
            for round in 0..20 {
                raise(&source);
                let until = patience();
                while look(&inner).is_empty() {
                    assert_eq!(names(&wait_events(&outer, until)), [1], "round {round}");
                }
                lower(&source);
                assert_eq!(look(&inner), [], "round {round}");
            }
            // From another thread, while the outer one waits.
            for _ in 0..10 {
                while !wait_events(&outer, Instant::now() + Duration::from_millis(2)).is_empty() {
                    assert_eq!(look(&inner), []);
                }
                std::thread::scope(|scope| {
                    let waiting = scope.spawn(|| wait_events(&outer, patience()));
                    settle();
                    raise(&source);
                    assert_eq!(names(&waiting.join().expect("join waiter")), [1]);
                });
                assert_eq!(tokens(&inner), [7]);
                lower(&source);
            }
            outer.delete(&inner.poll_handle().expect("get poll handle")).expect("delete source");
        });
    });
}

/// The thread that was the first to watch, and so did something on the backend's behalf, ends.
#[test]
fn readiness_is_announced_after_the_requesting_thread_exited() {
    each_backend(|backend| {
        let poller = open(backend);
        let source = counter();
        std::thread::scope(|scope| {
            let asker = scope.spawn(|| {
                poller.add(&source, Token(1), Interest::READABLE).expect("add source");
                poller.poll_handle().expect("get poll handle");
                tokens(&poller)
            });
            assert_eq!(asker.join().expect("join asker"), [0; 0]);
        });
        let handle = poller.poll_handle().expect("get poll handle");
        assert_quiet(&poller, handle, "nothing is ready");
        for _ in 0..5 {
            raise(&source);
            assert!(readable(handle, LONG));
            assert_eq!(tokens(&poller), [1]);
            lower(&source);
            assert_quiet(&poller, handle, "it was served");
        }
    });
}

/// Returns the number of threads in this process that wait for readiness on behalf of a foreign
/// loop.
#[cfg(target_os = "linux")]
fn notifier_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("list directory").flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.trim_end() == "minder-notifier").count()
}

#[cfg(target_os = "linux")]
#[test]
fn notifier_thread_exits_with_its_poller() {
    alone("poller::foreign_loop::notifier_thread_exits_with_its_poller", || {
        each_backend(|backend| {
            let before = crate::support::open_descriptors();
            for ready in [false, true] {
                for _ in 0..20 {
                    let poller = open(backend);
                    let source = counter();
                    poller.add(&source, Token(1), Interest::READABLE).expect("add source");
                    assert_eq!(notifier_threads(), 0, "a notifier thread started before `poll_handle`");
                    if ready {
                        raise(&source);
                        assert!(readable(poller.poll_handle().expect("get poll handle"), LONG));
                    } else {
                        poller.poll_handle().expect("get poll handle");
                        poller.poll_handle().expect("get poll handle");
                    }
                    let until = patience();
                    while notifier_threads() != usize::from(backend == Backend::Poll) {
                        assert!(Instant::now() < until, "{} threads", notifier_threads());
                    }
                    drop(poller);
                    // The kernel lists a thread for a moment after it was joined.
                    let until = patience();
                    while notifier_threads() != 0 {
                        assert!(Instant::now() < until, "the notifier thread is still running");
                    }
                }
            }
            assert_eq!(crate::support::open_descriptors(), before, "descriptors are left");
        });
    });
}

/// Two threads ask at once, while a third one changes sources.
#[test]
fn many_threads_may_request_the_handle() {
    each_backend(|backend| {
        for _ in 0..20 {
            let poller = open(backend);
            let source = counter();
            raise(&source);
            std::thread::scope(|scope| {
                let ask = || readable(poller.poll_handle().expect("get poll handle").as_fd(), LONG);
                let asking: Vec<_> = (0..3).map(|_| scope.spawn(ask)).collect();
                poller.add(&source, Token(1), Interest::READABLE).expect("add source");
                assert!(asking.into_iter().all(|thread| thread.join().expect("join thread")));
            });
            assert_eq!(tokens(&poller), [1]);
        }
    });
}

/// A caller that failed without a free descriptor may retry.
#[test]
fn poll_handle_is_retried_after_a_failure() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    alone("poller::foreign_loop::poll_handle_is_retried_after_a_failure", || {
        each_backend(|backend| {
            let poller = open(backend);
            let source = counter();
            poller.add(&source, Token(1), Interest::READABLE).expect("add source");
            assert_eq!(tokens(&poller), [0; 0]);
            let before = getrlimit(Resource::Nofile);
            setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..before }).expect("set resource limit");
            let refused = poller.poll_handle().map(drop);
            setrlimit(Resource::Nofile, before).expect("set resource limit");
            if let Err(error) = refused {
                assert_eq!(error.kind(), minder::ErrorKind::Exhausted, "{error}");
            }
            let handle = poller.poll_handle().expect("get poll handle");
            // Another thread waits, too: the descriptor is the same ever after.
            std::thread::scope(|scope| {
                assert_eq!(scope.spawn(|| tokens(&poller)).join().expect("join thread"), [0; 0]);
            });
            raise(&source);
            rustix::io::fcntl_getfd(handle).expect("read descriptor flags");
            assert!(readable(handle, LONG), "it is ready");
            assert_eq!(tokens(&poller), [1]);
        });
    });
}

/// A thread that waits keeps its deadline when another one asks for the poll handle.
#[test]
fn poll_handle_delays_no_deadline() {
    each_backend(|backend| {
        let poller = &open(backend);
        let later = Instant::now() + Duration::from_secs(3600);
        poller.add_timer(Token(1), later, Duration::ZERO).expect("add timer");
        for _ in 0..3 {
            std::thread::scope(|scope| {
                let near = Instant::now() + Duration::from_millis(40);
                let waiting = scope.spawn(move || wait_events(poller, near));
                settle();
                poller.poll_handle().expect("get poll handle");
                assert_eq!(waiting.join().expect("join waiter"), []);
                let late = Instant::now() - near;
                assert!(late < LONG / 2, "the deadline was put off by {late:?}");
            });
        }
    });
}
