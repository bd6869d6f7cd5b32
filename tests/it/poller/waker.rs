//! Wakes: none is lost, none is reported twice, among all other reasons to return.

#![cfg_attr(unix, expect(unsafe_code, reason = "signals to one thread"))]

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use minder::poll::{Events, Interest, Token};

#[cfg(unix)]
use super::lower;
use super::{counter, each_source, open, pipe, raise};
#[cfg(unix)]
use crate::support::alone;
use crate::support::{each_backend, on_drop, patience, race_time};

#[test]
fn wakes_are_merged_and_the_next_wait_is_quiet() {
    each_backend(|backend| {
        let poller = open(backend);
        let waker = poller.waker();
        let mut events = Events::new();
        for _ in 0..20 {
            (0..10).for_each(|_| waker.wake().expect("wake poller"));
            poller.notify().expect("wake poller");
            assert_eq!(poller.wait_deadline(&mut events, Some(patience())).expect("wait for events"), 0);
            assert!(events.woken(), "a wake was lost");
            poller
                .wait_deadline(&mut events, Some(Instant::now() + Duration::from_millis(1)))
                .expect("wait for events");
            assert!(!events.woken(), "eleven wakes were two");
        }
    });
}

#[test]
fn wake_is_reported_with_ready_sources() {
    each_backend(|backend| {
        let poller = open(backend);
        let (reader, mut writer) = pipe().expect("create pipe");
        poller.add(&reader, Token(1), Interest::READABLE).expect("add source");
        writer.write_all(b"x").expect("write bytes");
        poller.notify().expect("wake poller");
        let mut events = Events::new();
        let mut woken = false;
        let mut seen = false;
        for _ in 0..2 {
            seen |= poller.wait_deadline(&mut events, Some(patience())).expect("wait for events") == 1;
            woken |= events.woken();
        }
        assert!(woken && seen);
    });
}

/// A value that a thread stored before it woke the poller is seen after the wait that it ended,
/// however the threads meet.
#[test]
fn wake_is_never_lost() {
    each_backend(|backend| {
        let poller = open(backend);
        let stored = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        let seen = AtomicU64::new(0);
        let until = patience();
        let time = race_time() / 2;
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let waker = poller.waker();
                let stored = &stored;
                let stop = &stop;
                scope.spawn(move || {
                    while !stop.load(Ordering::SeqCst) {
                        stored.fetch_add(1, Ordering::SeqCst);
                        waker.wake().expect("wake poller");
                        std::hint::spin_loop();
                    }
                    // The last one counts: no wake follows it.
                    stored.fetch_add(1, Ordering::SeqCst);
                    waker.wake().expect("wake poller");
                });
            }
            let _stop = on_drop(|| stop.store(true, Ordering::SeqCst));
            let end = Instant::now() + time;
            let mut events = Events::new();
            while Instant::now() < end {
                poller.wait_deadline(&mut events, Some(until)).expect("wait for events");
                assert!(events.woken(), "the wait ended without a wake");
                seen.store(stored.load(Ordering::SeqCst), Ordering::SeqCst);
            }
            let before_stop = stored.load(Ordering::SeqCst);
            stop.store(true, Ordering::SeqCst);
            // Each of the three stores once more at least.
            while seen.load(Ordering::SeqCst) < before_stop + 3 {
                poller.wait_deadline(&mut events, Some(until)).expect("wait for events");
                assert!(events.woken(), "the last wake was lost");
                seen.store(stored.load(Ordering::SeqCst), Ordering::SeqCst);
            }
        });
    });
}

/// One thread rings once and waits for the answer: a ring that is lost stops both.
#[test]
fn wake_is_answered_by_a_wake() {
    each_backend(|backend| {
        let here = open(backend);
        let there = open(backend);
        let to_here = here.waker();
        let to_there = there.waker();
        let end = Instant::now() + race_time() / 2;
        let turns = Arc::new(AtomicU64::new(0));
        let theirs = Arc::clone(&turns);
        let thread = std::thread::spawn(move || {
            let mut events = Events::new();
            while theirs.load(Ordering::SeqCst) != u64::MAX {
                there.wait_deadline(&mut events, Some(patience())).expect("wait for events");
                assert!(events.woken(), "a wake was lost on the way there");
                to_here.wake().expect("wake poller");
            }
        });
        let mut events = Events::new();
        while Instant::now() < end {
            turns.fetch_add(1, Ordering::SeqCst);
            to_there.wake().expect("wake poller");
            here.wait_deadline(&mut events, Some(patience())).expect("wait for events");
            assert!(events.woken(), "a wake was lost on the way back");
        }
        turns.store(u64::MAX, Ordering::SeqCst);
        to_there.wake().expect("wake poller");
        thread.join().expect("join thread");
    });
}

/// Eight threads ring, and each counts in its own cell what the waiter has to have seen after
/// its last ring.
#[test]
fn wakes_of_eight_threads_all_arrive() {
    each_backend(|backend| {
        let poller = open(backend);
        let cells: Vec<AtomicU64> = (0..8).map(|_| AtomicU64::new(0)).collect();
        const RINGS: u64 = 2000;
        std::thread::scope(|scope| {
            for cell in &cells {
                let waker = poller.waker();
                scope.spawn(move || {
                    for _ in 0..RINGS {
                        cell.fetch_add(1, Ordering::Relaxed);
                        waker.wake().expect("wake poller");
                    }
                });
            }
            let mut events = Events::new();
            let until = patience();
            let mut waits = 0;
            while cells.iter().any(|cell| cell.load(Ordering::Relaxed) < RINGS) {
                assert_eq!(poller.wait_deadline(&mut events, Some(until)).expect("wait for events"), 0);
                assert!(events.woken(), "the last wake of some thread was lost");
                waits += 1;
            }
            assert!(waits <= 8 * RINGS, "{waits} waits for {} wakes", 8 * RINGS);
        });
        // At most one is left over.
        let mut events = Events::new();
        poller.wait_deadline(&mut events, Some(Instant::now())).expect("wait for events");
        poller.wait_deadline(&mut events, Some(Instant::now())).expect("wait for events");
        assert!(!events.woken(), "two wakes were left over");
    });
}

/// Timers that are added from elsewhere make the wait look at its bounds again; a wake at the same
/// moment is reported anyway.
#[test]
fn wake_is_not_mistaken_for_a_new_timer() {
    each_backend(|backend| {
        let poller = open(backend);
        let waker = poller.waker();
        let stop = AtomicBool::new(false);
        let stored = AtomicU64::new(0);
        let far = Instant::now() + Duration::from_secs(3600);
        std::thread::scope(|scope| {
            for first in [0, 1_000_000] {
                let poller = &poller;
                let stop = &stop;
                scope.spawn(move || {
                    let mut token = first;
                    while !stop.load(Ordering::SeqCst) {
                        poller.add_timer(Token(token), far, Duration::ZERO).expect("add timer");
                        poller.delete_timer(Token(token)).expect("delete timer");
                        token += 1;
                    }
                });
            }
            // One ring at a time, each waited for: one that is lost is a hang, which `patience` ends.
            let ringer = scope.spawn(|| {
                let until = Instant::now() + race_time() / 4;
                let mut rings = 0;
                while Instant::now() < until {
                    rings += 1;
                    waker.wake().expect("wake poller");
                    while stored.load(Ordering::SeqCst) < rings && !stop.load(Ordering::SeqCst) {
                        std::thread::yield_now();
                    }
                }
                stop.store(true, Ordering::SeqCst);
                waker.wake().expect("wake poller");
            });
            let mut events = Events::new();
            while !stop.load(Ordering::SeqCst) {
                let count = poller.wait_deadline(&mut events, Some(patience())).expect("wait for events");
                if count > 0 || !events.woken() {
                    stop.store(true, Ordering::SeqCst);
                    panic!("reported {count}, woken: {}", events.woken());
                }
                stored.fetch_add(1, Ordering::SeqCst);
            }
            ringer.join().expect("join waking thread");
        });
    });
}

/// A new timer alone ends no wait.
#[test]
fn new_timer_alone_ends_no_wait() {
    each_backend(|backend| {
        let poller = open(backend);
        let far = Instant::now() + Duration::from_secs(3600);
        let deadline = Instant::now() + Duration::from_millis(30);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let mut events = Events::new();
                let count = poller.wait_deadline(&mut events, Some(deadline)).expect("wait for events");
                (count, events.woken(), Instant::now())
            });
            let mut token = 0;
            while Instant::now() < deadline {
                poller.add_timer(Token(token), far, Duration::ZERO).expect("add timer");
                token += 1;
                std::thread::yield_now();
            }
            let (count, woken, now) = waiting.join().expect("join waiter");
            assert!(count == 0 && !woken && now >= deadline, "{count} {woken}");
        });
    });
}

#[test]
fn wake_is_reported_with_busy_sources() {
    each_source(|backend| {
        let poller = open(backend);
        let busy: Vec<_> = (0..300).map(|_| counter()).collect();
        for (token, source) in (0..).zip(&busy) {
            raise(source);
            poller.add(source, Token(token), Interest::READABLE).expect("add source");
        }
        let mut events = Events::new();
        for _ in 0..20 {
            poller.notify().expect("wake poller");
            let mut waits = 0;
            while !{
                poller.wait_deadline(&mut events, Some(patience())).expect("wait for events");
                events.woken()
            } {
                waits += 1;
                assert!(waits < 4, "300 busy sources hide the wake");
            }
        }
    });
}

#[cfg(unix)]
extern "C" fn ignore(_signal: i32) {}

/// A signal ends no wait, nor a look at many sources that were served.
// Windows has no signals.
#[cfg(unix)]
#[test]
fn signal_ends_no_wait() {
    alone("poller::waker::signal_ends_no_wait", || {
        // SAFETY: all zero is a value of a sigaction.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = ignore as extern "C" fn(i32) as usize;
        // SAFETY: the handler does nothing.
        unsafe { libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()) };
        each_backend(|backend| {
            let poller = open(backend);
            let sources: Vec<_> = (0..600).map(|_| counter()).collect();
            for (token, source) in (0..).zip(&sources) {
                poller.add(source, Token(token), Interest::READABLE).expect("add source");
            }
            let stop = AtomicBool::new(false);
            // SAFETY: it asks for a number that is always there.
            let looker = unsafe { libc::pthread_self() };
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !stop.load(Ordering::SeqCst) {
                        // SAFETY: the thread lives until this one has ended.
                        unsafe { libc::pthread_kill(looker, libc::SIGUSR1) };
                        crate::support::nap(Duration::from_micros(50));
                    }
                });
                let end = Instant::now() + race_time() / 4;
                let mut result = Ok(0);
                while Instant::now() < end && matches!(result, Ok(0)) {
                    sources.iter().for_each(raise);
                    sources.iter().for_each(lower);
                    result = poller.wait_deadline(&mut Events::new(), Some(Instant::now()));
                }
                stop.store(true, Ordering::SeqCst);
                assert_eq!(result.expect("poll for events"), 0);
            });
        });
    });
}
