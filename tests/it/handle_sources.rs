//! Sources of Windows alone: handles that are waited for, by each backend of the poller.

#![expect(unsafe_code, reason = "events, semaphores and threads are made by the system's calls")]

mod limits;

use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::null;
use std::time::{Duration, Instant};

use minder::poll::{Events, Interest, Poller, Readiness, Source, Token};
use minder::{Backend, ErrorKind};
use windows_sys::Win32::System::Threading::{
    CreateEventW, CreateSemaphoreW, ReleaseSemaphore, ResetEvent, SetEvent,
};

use crate::support::{each_backend, patience, test_child};

/// An event.
struct Signal(OwnedHandle);

impl Signal {
    /// One that stays set.
    fn manual() -> Self {
        Self::new(1)
    }

    /// One that a wait resets.
    fn auto() -> Self {
        Self::new(0)
    }

    fn new(manual: i32) -> Self {
        // SAFETY: no attributes, no name.
        let raw = unsafe { CreateEventW(null(), manual, 0, null()) };
        assert!(!raw.is_null(), "an event");
        // SAFETY: new, with no other owner.
        Self(unsafe { OwnedHandle::from_raw_handle(raw) })
    }

    fn set(&self) {
        // SAFETY: the event is open.
        assert_ne!(unsafe { SetEvent(self.0.as_raw_handle()) }, 0);
    }

    fn reset(&self) {
        // SAFETY: the event is open.
        assert_ne!(unsafe { ResetEvent(self.0.as_raw_handle()) }, 0);
    }
}

fn open(backend: Backend) -> Poller {
    let poller = Poller::with_backend(backend).expect("open backend");
    assert_eq!(poller.backend(), backend);
    poller
}

fn wait_events(poller: &Poller, deadline: Instant) -> Vec<Readiness> {
    let mut events = Events::new();
    let count = poller.wait_deadline(&mut events, Some(deadline)).expect("wait for events");
    let mut ready: Vec<_> = events.iter().collect();
    assert_eq!(ready.len(), count, "the count of what is reported");
    ready.sort_by_key(|ready| ready.token);
    ready
}

fn names(ready: &[Readiness]) -> Vec<u64> {
    ready.iter().map(|ready| ready.token.0).collect()
}

/// Waits for events, for as long as a signal may need, and returns their tokens.
fn reported(poller: &Poller) -> Vec<u64> {
    names(&wait_events(poller, patience()))
}

/// Nothing is reported, and nothing is on its way.
fn silent(poller: &Poller) {
    assert_eq!(names(&wait_events(poller, Instant::now() + Duration::from_millis(30))), [0; 0]);
}

#[test]
fn manual_event_is_reported_until_reset() {
    each_backend(|backend| {
        let poller = open(backend);
        let event = Signal::manual();
        poller.add(&event.0, Token(7), Interest::READABLE).expect("add event");
        silent(&poller);
        event.set();
        for _ in 0..5 {
            let ready = wait_events(&poller, patience());
            assert_eq!(names(&ready), [7]);
            assert!(ready[0].readable && !ready[0].writable && !ready[0].closed);
        }
        event.reset();
        silent(&poller);
        event.set();
        assert_eq!(reported(&poller), [7]);
        poller.delete(&event.0).expect("delete source");
        silent(&poller);
    });
}

#[test]
fn event_set_before_add_is_reported_by_a_poll() {
    each_backend(|backend| {
        let poller = open(backend);
        let event = Signal::manual();
        event.set();
        poller.add(&event.0, Token(1), Interest::READABLE).expect("add event");
        assert_eq!(names(&wait_events(&poller, Instant::now())), [1]);
        assert_eq!(names(&wait_events(&poller, Instant::now())), [1]);
    });
}

#[test]
fn auto_reset_event_is_reported_once_per_signal() {
    each_backend(|backend| {
        let poller = open(backend);
        let event = Signal::auto();
        poller.add(&event.0, Token(1), Interest::READABLE).expect("add event");
        for _ in 0..20 {
            event.set();
            assert_eq!(reported(&poller), [1]);
            silent_at_once(&poller);
        }
        silent(&poller);
    });
}

fn silent_at_once(poller: &Poller) {
    assert_eq!(names(&wait_events(poller, Instant::now())), [0; 0]);
}

#[test]
fn semaphore_is_reported_once_per_unit() {
    each_backend(|backend| {
        let poller = open(backend);
        // SAFETY: no attributes, no name.
        let raw = unsafe { CreateSemaphoreW(null(), 0, 100, null()) };
        assert!(!raw.is_null());
        // SAFETY: new, with no other owner.
        let semaphore = unsafe { OwnedHandle::from_raw_handle(raw) };
        poller.add(&semaphore, Token(1), Interest::READABLE).expect("add semaphore");
        silent(&poller);
        for _ in 0..3 {
            // SAFETY: it is open, and the previous count is not asked for.
            assert_ne!(unsafe { ReleaseSemaphore(semaphore.as_raw_handle(), 7, std::ptr::null_mut()) }, 0);
            for unit in 0..7 {
                assert_eq!(reported(&poller), [1], "unit {unit}");
            }
            silent(&poller);
        }
    });
}

#[test]
fn oneshot_is_reported_once_until_modified() {
    each_backend(|backend| {
        let poller = open(backend);
        let event = Signal::manual();
        poller.add(&event.0, Token(1), Interest::READABLE.oneshot()).expect("add event");
        event.set();
        assert_eq!(reported(&poller), [1]);
        silent(&poller);
        poller.modify(&event.0, Token(2), Interest::READABLE.oneshot()).expect("modify source");
        assert_eq!(reported(&poller), [2]);
        silent(&poller);
        poller.modify(&event.0, Token(3), Interest::READABLE).expect("modify source");
        assert_eq!([reported(&poller), reported(&poller)], [[3], [3]]);
        event.reset();
        silent(&poller);
        let error = poller
            .modify(&event.0, Token(3), Interest::READABLE.edge())
            .expect_err("make event edge-triggered");
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    });
}

#[test]
fn invalid_calls_return_errors() {
    each_backend(|backend| {
        let poller = open(backend);
        let event = Signal::auto();
        assert_eq!(poller.delete(&event.0).expect_err("delete unknown source").kind(), ErrorKind::Unknown);
        let unknown =
            poller.modify(&event.0, Token(1), Interest::READABLE).expect_err("modify unknown source");
        assert_eq!(unknown.kind(), ErrorKind::Unknown);
        poller.add(&event.0, Token(1), Interest::READABLE).expect("add event");
        let twice = poller.add(&event.0, Token(2), Interest::READABLE).expect_err("add source again");
        assert_eq!(twice.kind(), ErrorKind::InvalidInput);
        poller.delete(&event.0).expect("delete source");
        assert_eq!(poller.delete(&event.0).expect_err("delete source again").kind(), ErrorKind::Unknown);
        let (reader, _writer) = std::io::pipe().expect("create pipe");
        let pipe = poller.add(&reader, Token(1), Interest::READABLE).expect_err("add pipe");
        assert_eq!(pipe.kind(), ErrorKind::Unsupported);
        let unused = poller.add(Source::process(0x7fff_fffc), Token(1), Interest::READABLE);
        assert_eq!(unused.expect_err("add process with unused pid").kind(), ErrorKind::Unknown);
    });
}

#[test]
fn reused_handle_can_be_modified() {
    each_backend(|backend| {
        let poller = open(backend);
        let first = Signal::manual();
        let number = first.0.as_raw_handle();
        poller.add(&first.0, Token(1), Interest::READABLE).expect("add event");
        drop(first);
        // The kernel gives the lowest free number; others may take it first.
        let mut kept = Vec::new();
        let second = (0..64).map(|_| Signal::manual()).find_map(|event| {
            if event.0.as_raw_handle() == number {
                return Some(event);
            }
            kept.push(event);
            None
        });
        let Some(second) = second else { return };
        poller.modify(&second.0, Token(2), Interest::READABLE).expect("modify source");
        second.set();
        assert_eq!(reported(&poller), [2]);
    });
}

#[test]
fn exits_of_children_and_threads_are_reported() {
    each_backend(|backend| {
        let poller = open(backend);
        let mut child = test_child("gate 0").stdin(minder::Stdio::piped()).spawn().expect("spawn test child");
        poller.add(&child, Token(1), Interest::READABLE).expect("add child");
        poller.add(Source::process(child.id()), Token(2), Interest::READABLE.edge()).expect("add process");
        let (hold, held) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || held.recv().is_err());
        poller.add(&thread, Token(3), Interest::READABLE.oneshot()).expect("add thread");
        silent(&poller);
        drop(hold);
        assert_eq!(reported(&poller), [3]);
        drop(child.stdin.take());
        let mut seen = Vec::new();
        while seen.len() < 2 {
            seen.extend(reported(&poller));
            seen.sort_unstable();
            seen.dedup();
        }
        assert_eq!(seen, [1, 2]);
        // By its number, an end is reported once where that was asked for.
        assert_eq!([reported(&poller), reported(&poller)], [[1], [1]]);
        child.wait().expect("wait for child");
    });
}
