//! Sources of Unix: descriptors. What is ready is reported by a look that follows at once.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use minder::poll::{Interest, Poller, Readiness, Token};
use minder::{Backend, ErrorKind};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use super::{look, tokens};

pub(super) use std::io::pipe;

pub(super) use crate::support::{
    each_backend as each_source, each_backend as each_exact, each_backend as each_handle,
};

/// The number of times that sources are added and deleted without a wait in progress.
pub(super) const CHANGES: u64 = 100_000;
/// The number of children that end at the same time.
#[cfg(target_os = "linux")]
pub(super) const CROWD: usize = 200;

/// A source that costs one descriptor.
pub(super) type Counter = OwnedFd;

pub(super) fn counter() -> Counter {
    try_counter().expect("create eventfd")
}

pub(super) fn try_counter() -> io::Result<Counter> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Makes a counter ready.
pub(super) fn raise(counter: &Counter) {
    rustix::io::write(counter, &1u64.to_ne_bytes()).expect("write to eventfd");
}

/// Serves it.
pub(super) fn lower(counter: &Counter) {
    rustix::io::read(counter, &mut [0u8; 8]).expect("read eventfd");
}

/// Another name of the same.
pub(super) fn copy(counter: &Counter) -> Counter {
    counter.try_clone().expect("duplicate handle")
}

/// One side of a stream.
pub(super) type Stream = UnixStream;

/// Both sides of a stream.
pub(super) fn pair() -> io::Result<(Stream, Stream)> {
    Stream::pair()
}

/// Waits by other means until the other side is gone.
pub(super) fn await_hang_up(ours: &Stream) {
    poll(&mut [PollFd::new(ours, PollFlags::RDHUP)], None).expect("poll for hang-up");
}

/// Fills it, and returns the number of bytes.
pub(super) fn full(writer: &mut (impl Write + AsFd)) -> usize {
    rustix::io::ioctl_fionbio(&*writer, true).expect("set nonblocking mode");
    let mut written = 0;
    while let Ok(count) = writer.write(&[b'x'; 4096]) {
        written += count;
    }
    written
}

/// Returns the readiness of a source that has just become ready.
pub(super) fn soon(poller: &Poller) -> Vec<Readiness> {
    look(poller)
}

/// These are reported, and no others.
#[track_caller]
pub(super) fn expect_since(poller: &Poller, expected: &[u64], what: &str) {
    assert_eq!(tokens(poller), expected, "{what}");
}

/// Every ready source is served, and not reported any more.
#[track_caller]
pub(super) fn served(poller: &Poller, what: &str) {
    expect_since(poller, &[], what);
}

/// Returns whether a poll reports every source that became ready before it.
pub(super) fn is_prompt() -> bool {
    true
}

/// Returns whether the backend supports edge-triggered sources.
pub(super) fn has_edge(backend: Backend) -> bool {
    backend != Backend::Poll
}

/// In which steps [`computed`] continues.
pub(super) const COMPUTED_STEP: Duration = Duration::ZERO;

/// Returns the CPU time of this thread.
pub(super) fn computed() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

/// Registers a number of which it is not known whether it is registered, as a caller does.
pub(super) fn modify_or_add(poller: &Poller, source: impl AsFd, token: u64) {
    let source = source.as_fd();
    match poller.modify(&source, Token(token), Interest::READABLE) {
        Err(error) if error.kind() == ErrorKind::Unknown => {
            poller.add(&source, Token(token), Interest::READABLE).expect("add source");
        }
        result => result.expect("add source"),
    }
}
