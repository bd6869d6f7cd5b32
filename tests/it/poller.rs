//! `Poller` and `Waker`: every clause of a backend's contract, on every backend.

mod readiness;
mod trigger_modes;
mod limits;
mod threads;
mod waker;
mod deadlines;
mod timers;
#[cfg(any(target_os = "linux", windows))]
mod processes;
// Completion ports have no descriptor for a foreign loop.
#[cfg(unix)]
mod foreign_loop;
mod fd_lifetime;
// Numbers that are closed and used again are those of descriptors.
#[cfg(unix)]
mod close;
#[cfg(windows)]
mod sockets;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::time::{Duration, Instant};

use minder::poll::{Events, Poller, Readiness};
use minder::{Backend, ErrorKind};

use crate::support::{nap, patience};

#[cfg(unix)]
use self::unix::*;
#[cfg(windows)]
use self::windows::*;

/// Opens a backend. The rings of other tests count against the same limit of locked memory of a
/// user that is not root; they are closed within moments.
fn open(backend: Backend) -> Poller {
    let until = patience();
    loop {
        match Poller::with_backend(backend) {
            Err(error) if error.kind() == ErrorKind::Exhausted && Instant::now() < until => {
                nap(Duration::from_millis(20));
            }
            opened => {
                let poller = opened.expect("open backend");
                assert_eq!(poller.backend(), backend);
                return poller;
            }
        }
    }
}

/// Returns the sources that are ready now.
fn look(poller: &Poller) -> Vec<Readiness> {
    wait_events(poller, Instant::now())
}

/// Waits once, until the deadline, and returns the events.
fn wait_events(poller: &Poller, deadline: Instant) -> Vec<Readiness> {
    let mut events = Events::new();
    let count = poller.wait_deadline(&mut events, Some(deadline)).expect("wait for events");
    let mut ready: Vec<_> = events.iter().collect();
    assert_eq!(ready.len(), count, "the count of what is reported");
    ready.sort_by_key(|ready| ready.token);
    ready
}

fn tokens(poller: &Poller) -> Vec<u64> {
    names(&look(poller))
}

fn names(ready: &[Readiness]) -> Vec<u64> {
    ready.iter().map(|ready| ready.token.0).collect()
}

/// These are reported now, and no others.
#[track_caller]
fn expect(poller: &Poller, expected: &[u64]) {
    expect_since(poller, expected, "reported");
}

/// Lets another thread come so far that it waits.
fn settle() {
    crate::support::nap(Duration::from_millis(10));
}
