//! More than 64 handles are watched.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use minder::poll::{Events, Interest, Poller, Token};

use super::{Signal, names, open, reported, silent, wait_events};
use crate::support::{each_backend, patience};

#[test]
fn each_of_4096_handles_is_reported() {
    each_backend(|backend| {
        let poller = open(backend);
        let events: Vec<Signal> = (0..4096).map(|_| Signal::auto()).collect();
        for (number, event) in events.iter().enumerate() {
            poller.add(&event.0, Token(number as u64), Interest::READABLE).expect("add event");
        }
        assert_eq!(names(&wait_events(&poller, Instant::now())), [0; 0]);
        for number in [0, 1, 62, 63, 64, 65, 127, 1020, 1021, 2048, 4095] {
            events[number].set();
            assert_eq!(reported(&poller), [number as u64]);
        }
        events.iter().for_each(Signal::set);
        let mut seen = HashSet::new();
        while seen.len() < events.len() {
            for number in reported(&poller) {
                assert!(seen.insert(number), "{number} twice before all were reported once");
            }
        }
        silent(&poller);
        for event in &events {
            poller.delete(&event.0).expect("delete source");
        }
    });
}

#[test]
fn no_handle_starves_while_all_stay_set() {
    each_backend(|backend| {
        let poller = open(backend);
        let events: Vec<Signal> = (0..1000).map(|_| Signal::manual()).collect();
        for (number, event) in events.iter().enumerate() {
            event.set();
            poller.add(&event.0, Token(number as u64), Interest::READABLE).expect("add event");
        }
        let mut counts = vec![0_u32; events.len()];
        while counts.contains(&0) {
            for number in reported(&poller) {
                counts[number as usize] += 1;
                assert!(
                    counts[number as usize] <= 2,
                    "{number} is reported a third time before all were reported"
                );
            }
        }
    });
}

#[test]
fn changes_during_a_wait_end_it() {
    each_backend(|backend| {
        let poller = Arc::new(open(backend));
        for _ in 0..20 {
            let early = Signal::manual();
            let late = Signal::manual();
            early.set();
            let theirs = Arc::clone(&poller);
            let waiter = std::thread::spawn(move || names(&wait_events(&theirs, patience())));
            crate::support::nap(Duration::from_millis(5));
            poller.add(&early.0, Token(1), Interest::READABLE).expect("add event");
            assert_eq!(waiter.join().expect("join waiter"), [1]);
            poller.delete(&early.0).expect("delete source");
            poller.add(&late.0, Token(2), Interest::READABLE).expect("add event");
            let theirs = Arc::clone(&poller);
            let waiter = std::thread::spawn(move || names(&wait_events(&theirs, patience())));
            crate::support::nap(Duration::from_millis(5));
            late.set();
            assert_eq!(waiter.join().expect("join waiter"), [2]);
            poller.delete(&late.0).expect("delete source");
        }
    });
}

#[test]
fn sources_are_added_and_deleted_during_waits() {
    each_backend(|backend| {
        let poller = Arc::new(open(backend));
        let until = Instant::now() + crate::support::race_time();
        std::thread::scope(|scope| {
            for number in 0..3_u64 {
                let poller = &poller;
                scope.spawn(move || {
                    while Instant::now() < until {
                        let event = Signal::auto();
                        poller.add(&event.0, Token(number), Interest::READABLE).expect("add event");
                        event.set();
                        poller.delete(&event.0).expect("delete source");
                    }
                });
            }
            let poller = &poller;
            scope.spawn(move || {
                let mut events = Events::new();
                while Instant::now() < until {
                    let deadline = Instant::now() + Duration::from_millis(2);
                    Poller::wait_deadline(poller, &mut events, Some(deadline)).expect("wait for events");
                    assert!(events.iter().all(|ready| ready.token.0 < 3));
                }
            });
        });
        silent(&poller);
    });
}
