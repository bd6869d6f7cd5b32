//! One call of poll(2) for one source, without a backend.

use std::io;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};

use super::Source;
use crate::interest::Interest;
use crate::sys::time::timespec;

/// Waits by poll(2) until the source is ready or the deadline has passed. Returns whether it is
/// ready, or `None` if the source has no descriptor.
pub(crate) fn poll_once(
    source: &Source<'_>,
    interest: Interest,
    deadline: Option<Instant>,
) -> Option<io::Result<bool>> {
    let Source::Descriptor(fd) = source else { return None };
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, interest.is_readable());
    flags.set(PollFlags::OUT, interest.is_writable());
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left.map(timespec);
        match poll(&mut [PollFd::from_borrowed_fd(*fd, flags)], left.as_ref()) {
            Err(rustix::io::Errno::INTR) => (),
            polled => return Some(polled.map(|ready| ready > 0).map_err(io::Error::from)),
        }
    }
}
