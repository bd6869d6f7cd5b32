//! One wait for one source by a [`Poller`].

use std::io;
use std::time::Instant;

use crate::interest::Interest;
use crate::poll::{Events, Poller, Source, Token};

/// Waits for a source that no plain system call takes: see [`wait_ready`](super::wait_ready).
pub(super) fn wait_by_poller(
    source: Source<'_>,
    interest: Interest,
    deadline: Option<Instant>,
) -> io::Result<bool> {
    let poller = Poller::new()?;
    poller.add(source, Token(0), interest)?;
    Ok(poller.wait_deadline(&mut Events::new(), deadline)? > 0)
}
