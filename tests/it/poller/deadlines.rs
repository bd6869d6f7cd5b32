//! Deadlines: never early, each wait's own, and none that is so far or so long ago that it does
//! harm.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use minder::poll::{Events, Interest, Token};

use super::{computed, counter, each_source, expect, names, open, pipe, raise, wait_events};
use crate::support::{each_backend, patience};

#[test]
fn wait_never_returns_early() {
    each_backend(|backend| {
        let poller = open(backend);
        let mut events = Events::new();
        for number in 0..400u32 {
            let time = Duration::from_nanos(200_000 + u64::from(number) * 7_001);
            let deadline = Instant::now() + time;
            let count = poller.wait_deadline(&mut events, Some(deadline)).expect("wait for events");
            let late = Instant::now();
            assert!(late >= deadline, "{:?} early of {time:?}", deadline - late);
            assert_eq!((count, events.woken()), (0, false), "nothing happened");
        }
        // A deadline that is past, or the same again, is a look.
        let past = Instant::now() - Duration::from_secs(1);
        assert_eq!(poller.wait_deadline(&mut events, Some(past)).expect("wait for events"), 0);
        assert_eq!(poller.wait_deadline(&mut events, Some(past)).expect("wait for events"), 0);
    });
}

/// A deadline that was not reached must not end the next wait.
#[test]
fn abandoned_deadline_does_not_end_the_next_wait() {
    each_backend(|backend| {
        let poller = open(backend);
        let (mut reader, mut writer) = pipe().expect("create pipe");
        poller.add(&reader, Token(1), Interest::READABLE).expect("add source");
        for _ in 0..50 {
            writer.write_all(b"x").expect("write bytes");
            let mut events = Events::new();
            let near = Instant::now() + Duration::from_millis(1);
            assert_eq!(poller.wait_deadline(&mut events, Some(near)).expect("wait for events"), 1);
            reader.read_exact(&mut [0]).expect("read bytes");
            let far = near + Duration::from_millis(2);
            assert_eq!(poller.wait_deadline(&mut events, Some(far)).expect("wait for events"), 0);
            assert!(Instant::now() >= far && !events.woken());
        }
    });
}

/// Two threads wait on one poller with their own deadlines. (What is bounded here is a hang, not
/// lateness.)
#[test]
fn concurrent_waits_keep_their_own_deadlines() {
    each_backend(|backend| {
        let poller = open(backend);
        let waker = poller.waker();
        let far = patience();
        std::thread::scope(|scope| {
            let long = scope.spawn(|| {
                let mut events = Events::new();
                poller.wait_deadline(&mut events, Some(far)).expect("wait for events");
                (Instant::now(), events.woken())
            });
            // The wait with the far deadline starts before these waits, and `third` starts after `short`.
            for _ in 0..5 {
                std::thread::park_timeout(Duration::from_millis(5));
                let near = Instant::now() + Duration::from_millis(20);
                let mut events = Events::new();
                poller.wait_deadline(&mut events, Some(near)).expect("wait for events");
                let now = Instant::now();
                assert!(now >= near, "early");
                assert!(now < far, "the near deadline was forgotten for the far one");
            }
            let short = scope.spawn(|| {
                let near = Instant::now() + Duration::from_millis(300);
                poller.wait_deadline(&mut Events::new(), Some(near)).expect("wait for events");
                assert!(Instant::now() >= near, "early");
                assert!(Instant::now() < far, "the near deadline was forgotten for a later one");
            });
            std::thread::park_timeout(Duration::from_millis(30));
            let third = scope.spawn(|| {
                let mut events = Events::new();
                poller.wait_deadline(&mut events, Some(far)).expect("wait for events");
                events.woken()
            });
            short.join().expect("join short wait");
            // One wake ends one wait.
            waker.wake().expect("wake poller");
            while !long.is_finished() && !third.is_finished() {
                std::thread::yield_now();
                assert!(Instant::now() < far, "no wait returned after the wake");
            }
            while !(long.is_finished() && third.is_finished()) {
                waker.wake().expect("wake poller");
                std::thread::park_timeout(Duration::from_millis(1));
                assert!(Instant::now() < far, "no wait returned after the wake");
            }
            assert!(long.join().expect("join long wait").1 && third.join().expect("join third wait"));
        });
    });
}

#[test]
fn past_deadline_polls_once() {
    each_source(|backend| {
        let poller = open(backend);
        let source = counter();
        poller.add(&source, Token(1), Interest::READABLE).expect("add source");
        let past = Instant::now() - Duration::from_millis(1);
        for _ in 0..100 {
            assert_eq!(wait_events(&poller, past), []);
        }
        raise(&source);
        expect(&poller, &[1]);
        for _ in 0..100 {
            assert_eq!(names(&wait_events(&poller, past)), [1]);
        }
    });
}

/// Without serving the source, every wait returns, and deadlines pass.
#[test]
fn busy_source_ends_every_wait_and_hides_no_deadline() {
    each_source(|backend| {
        let poller = open(backend);
        let source = counter();
        raise(&source);
        poller.add(&source, Token(1), Interest::READABLE).expect("add source");
        let start = Instant::now();
        let mut waits = 0;
        // The first look at a socket under Wine takes its time.
        let deadline = start + Duration::from_millis(if cfg!(windows) { 500 } else { 30 });
        while Instant::now() < deadline {
            assert_eq!(names(&wait_events(&poller, deadline)), [1]);
            waits += 1;
        }
        assert!(waits > 1, "one wait lasted until the deadline");
        let far = Instant::now() + Duration::from_secs(10);
        (0..100).for_each(|_| assert_eq!(names(&wait_events(&poller, far)), [1]));
        assert!(Instant::now() < far);
        // What a busy source hid must not end a quiet wait.
        poller.delete(&source).expect("delete source");
        let later = Instant::now() + Duration::from_millis(3);
        assert_eq!(wait_events(&poller, later), []);
        assert!(Instant::now() >= later, "early");
    });
}

/// Returns the latest `Instant`.
fn end_of_time() -> Instant {
    let now = Instant::now();
    (0..63).rev().fold(now, |latest, bit| latest.checked_add(Duration::from_secs(1 << bit)).unwrap_or(latest))
}

#[test]
fn wait_sleeps_until_the_latest_possible_deadline() {
    each_backend(|backend| {
        let years = |count: u64| Instant::now() + Duration::from_secs(count * 31_557_600);
        for deadline in [end_of_time(), years(200), years(300), years(5_000_000_000)] {
            let poller = open(backend);
            let waker = poller.waker();
            std::thread::scope(|scope| {
                let waiting = scope.spawn(|| {
                    let before = computed();
                    let mut events = Events::new();
                    poller.wait_deadline(&mut events, Some(deadline)).expect("wait for events");
                    assert!(events.woken(), "the end of time has come");
                    computed() - before
                });
                crate::support::nap(Duration::from_millis(60));
                waker.wake().expect("wake poller");
                let time = waiting.join().expect("join waiter");
                assert!(time < Duration::from_millis(25), "a wait for nothing computed for {time:?}");
            });
        }
    });
}

/// A deadline that is still to come ends the wait though a later one was asked for by the same
/// thread before.
#[test]
fn deadlines_of_one_thread_may_come_in_any_order() {
    each_backend(|backend| {
        let poller = open(backend);
        let waker = poller.waker();
        let mut events = Events::new();
        for round in 0..40u64 {
            // A far one that a wake gave up; then near ones.
            waker.wake().expect("wake poller");
            poller.wait_deadline(&mut events, Some(patience())).expect("wait for events");
            let near = Instant::now() + Duration::from_micros(100 + 50 * (round % 7));
            assert_eq!(wait_events(&poller, near), []);
            let now = Instant::now();
            assert!(now >= near, "early");
            assert!(now < near + Duration::from_secs(5), "the far deadline was kept");
        }
    });
}
