//! `Poller` and `Waker`: every clause of a backend's contract, on every backend.

mod readiness;
mod modes;
mod limits;
mod threads;
mod wakes;
mod deadlines;
mod timers;
#[cfg(target_os = "linux")]
mod processes;
mod news;
mod closing;

use std::io::{PipeWriter, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use minder::{ErrorKind, Events, Interest, Poller, Readiness, Token};
use rustix::event::{EventfdFlags, eventfd};

fn open(name: &str) -> Poller {
    let poller = Poller::with_backend(name).expect("a backend of this system");
    assert_eq!(poller.backend(), name);
    poller
}

/// What is ready now.
fn look(poller: &Poller) -> Vec<Readiness> {
    hear(poller, Instant::now())
}

/// What one wait tells until then.
fn hear(poller: &Poller, deadline: Instant) -> Vec<Readiness> {
    let mut events = Events::new();
    let count = poller.wait(&mut events, Some(deadline)).expect("a wait");
    let mut ready: Vec<_> = events.iter().collect();
    assert_eq!(ready.len(), count, "the count of what is told");
    ready.sort_by_key(|ready| ready.token);
    ready
}

fn tokens(poller: &Poller) -> Vec<u64> {
    names(&look(poller))
}

fn names(ready: &[Readiness]) -> Vec<u64> {
    ready.iter().map(|ready| ready.token.0).collect()
}

fn full(writer: &mut PipeWriter) -> usize {
    rustix::io::ioctl_fionbio(&*writer, true).expect("a pipe");
    let mut written = 0;
    while let Ok(count) = writer.write(&[b'x'; 4096]) {
        written += count;
    }
    written
}

/// A source that costs one descriptor.
fn counter() -> OwnedFd {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("an eventfd")
}

/// Makes a counter ready.
fn raise(counter: &OwnedFd) {
    rustix::io::write(counter, &1u64.to_ne_bytes()).expect("an eventfd");
}

/// Serves it.
fn lower(counter: &OwnedFd) {
    rustix::io::read(counter, &mut [0u8; 8]).expect("an eventfd");
}

/// What a caller does with a number of which it does not know whether it is registered.
fn modify_or_add(poller: &Poller, source: impl AsFd, token: u64) {
    let source = source.as_fd();
    match poller.modify(&source, Token(token), Interest::READABLE) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            poller.add(&source, Token(token), Interest::READABLE).expect("a source");
        }
        result => result.expect("a source"),
    }
}

/// Lets another thread come so far that it waits.
fn settle() {
    crate::kit::nap(Duration::from_millis(10));
}
